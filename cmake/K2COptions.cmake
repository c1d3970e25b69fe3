# Compiler-wide settings: language level, warnings, ccache, lld, sanitizers.
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

# Tools, the runtime and the unit tests land in one place.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

# Warnings of our own targets; LLVM's headers are SYSTEM.
add_library(k2c-warnings INTERFACE)
target_compile_options(k2c-warnings INTERFACE -Wall -Wextra -Wno-unused-parameter)

# Sanitizers of the MLIR-free libraries and the runtime (they read hostile bytes).
add_library(k2c-sanitize INTERFACE)
if(K2C_FUZZ)
  target_compile_options(k2c-sanitize INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(K2C_SANITIZE OR K2C_FUZZ)
  target_compile_options(k2c-sanitize INTERFACE -fsanitize=address,undefined -fno-sanitize=vptr
                         -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(k2c-sanitize INTERFACE -fsanitize=address,undefined)
endif()
