# Compiler-wide settings: language level, warnings, ccache, lld, instrumentation.
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_C_STANDARD 11)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
# Our asserts stay on, and line tables are enough for a debugger.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1")
# A multiply and an add are two roundings unless the code says fma (numerics N7).
add_compile_options(-ffp-contract=off)

find_program(K2C_CCACHE ccache)
if(K2C_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${K2C_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${K2C_CCACHE})
endif()

# LLVM's linker, where it is installed: a seventh of the time of GNU ld for a tool of the compiler.
find_program(K2C_LLD NAMES ld.lld HINTS /usr/lib/llvm-22/bin)
if(K2C_LLD)
  get_filename_component(K2C_LLD_FOLDER ${K2C_LLD} DIRECTORY)
  add_link_options(-fuse-ld=lld -B${K2C_LLD_FOLDER})
endif()

# Installed tools find LLVM's shared libraries where they are; Debian's lie outside the loader's folders.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

# Tools, the runtime and the unit tests land in one place.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# Warnings of our own targets; LLVM's headers are SYSTEM.
add_library(k2c-warnings INTERFACE)
target_compile_options(k2c-warnings INTERFACE -Wall -Wextra -Wno-unused-parameter)

# Instrumentation of everything that is ours; scripts/check-san.sh, fuzz.sh and coverage.sh choose it. LLVM's libraries
# have none and no RTTI: that rules out vptr, and its headers' own poisoning is switched off in SanitizerOptions.c.
add_library(k2c-instrument INTERFACE)
if(NOT K2C_INSTRUMENT MATCHES "^(address|thread|coverage)?$")
  message(FATAL_ERROR "K2C_INSTRUMENT is '${K2C_INSTRUMENT}'; choose address, thread or coverage, or leave it empty")
endif()
# What libFuzzer counts: the libraries without MLIR, which read hostile bytes.
add_library(k2c-edges INTERFACE)
if(K2C_FUZZ)
  set(K2C_INSTRUMENT address)
  target_compile_options(k2c-edges INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(K2C_INSTRUMENT STREQUAL address)
  set(k2c_instrument_flags -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=undefined)
elseif(K2C_INSTRUMENT STREQUAL thread)
  set(k2c_instrument_flags -fsanitize=thread)
elseif(K2C_INSTRUMENT STREQUAL coverage)
  set(k2c_instrument_flags -fprofile-instr-generate=${CMAKE_BINARY_DIR}/profiles/%4m.profraw -fcoverage-mapping)
endif()
if(K2C_INSTRUMENT)
  set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1")
  target_compile_options(k2c-instrument INTERFACE ${k2c_instrument_flags} -fno-omit-frame-pointer)
  target_link_options(k2c-instrument INTERFACE ${k2c_instrument_flags})
endif()
