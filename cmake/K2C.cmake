# The project's own rules. All tblgen and LLVM plumbing is here and nowhere else.
#
#   k2c_library(Name [MLIR] SOURCES a.cpp ... [LINK lib ...] [DEPENDS target ...])
#   k2c_dialect(Nn nn)              dialects/Nn: NnOps.td, and if there are Nn{Attributes,Types,Enums,Interfaces}.td
#   k2c_passes(Transforms K2CTransforms)   Passes.td of include/k2c/Transforms
#   k2c_source_hash(fooHash FooHash.cpp a.cpp ...)   FooHash.cpp of the build: k2c::fooHash, a hash of these sources
#   k2c_tool(k2c-opt [MLIR] SOURCES main.cpp LINK lib ...)
#   k2c_unittest(Name [MLIR] [TIER check] SOURCES a.cpp ... LINK lib ...)   one GoogleTest program, of check-fast

set(K2C_INCLUDE_DIRS ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR}/include
                     ${PROJECT_BINARY_DIR}/include ${PROJECT_SOURCE_DIR}/runtime/include)

# MLIR code: LLVM's headers are system headers, no exceptions, the shared libraries.
function(k2c_use_mlir target)
  target_include_directories(${target} SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  target_compile_options(${target} PRIVATE -fno-exceptions)
  target_link_libraries(${target} PUBLIC MLIR LLVM)
endfunction()

function(k2c_common target)
  target_include_directories(${target} PUBLIC ${K2C_INCLUDE_DIRS})
  target_link_libraries(${target} PRIVATE k2c-warnings k2c-instrument)
endfunction()

# What sources made, or checked, may be kept under their hash. A source that changes has CMake run again.
function(k2c_source_hash constant file)
  set(code "")
  foreach(source ${ARGN})
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    file(SHA256 ${source} hash)
    string(APPEND code ${hash})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  endforeach()
  string(SHA256 code ${code})
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [[
namespace k2c {
extern const char *const @constant@;
const char *const @constant@ = "@code@";
}
]])
endfunction()

# What every executable of ours has in common.
function(k2c_executable name)
  add_executable(${name} ${ARGN})
  k2c_common(${name})
  if(K2C_INSTRUMENT STREQUAL address)
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/SanitizerOptions.c)
  endif()
endfunction()

function(k2c_library name)
  cmake_parse_arguments(ARG "MLIR" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  k2c_common(${name})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(ARG_MLIR)
    k2c_use_mlir(${name})
  else()
    target_link_libraries(${name} PRIVATE k2c-edges)
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# Declares K2C<Name>IncGen and K2C<Name>.
function(k2c_dialect name mnemonic)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  set(LLVM_TARGET_DEFINITIONS ${name}Ops.td)
  mlir_tablegen(${name}Ops.h.inc -gen-op-decls)
  mlir_tablegen(${name}Ops.cpp.inc -gen-op-defs)
  mlir_tablegen(${name}Dialect.h.inc -gen-dialect-decls -dialect=${mnemonic})
  mlir_tablegen(${name}Dialect.cpp.inc -gen-dialect-defs -dialect=${mnemonic})
  mlir_tablegen(${name}Types.h.inc -gen-typedef-decls -typedefs-dialect=${mnemonic})
  mlir_tablegen(${name}Types.cpp.inc -gen-typedef-defs -typedefs-dialect=${mnemonic})
  mlir_tablegen(${name}Attributes.h.inc -gen-attrdef-decls -attrdefs-dialect=${mnemonic})
  mlir_tablegen(${name}Attributes.cpp.inc -gen-attrdef-defs -attrdefs-dialect=${mnemonic})
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${name}Enums.td)
    set(LLVM_TARGET_DEFINITIONS ${name}Enums.td)
    mlir_tablegen(${name}Enums.h.inc -gen-enum-decls)
    mlir_tablegen(${name}Enums.cpp.inc -gen-enum-defs)
  endif()
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${name}Interfaces.td)
    set(LLVM_TARGET_DEFINITIONS ${name}Interfaces.td)
    mlir_tablegen(${name}Interfaces.h.inc -gen-op-interface-decls)
    mlir_tablegen(${name}Interfaces.cpp.inc -gen-op-interface-defs)
  endif()
  add_public_tablegen_target(K2C${name}IncGen)
  add_mlir_doc(${name}Ops ${name} Dialects/ -gen-dialect-doc -dialect=${mnemonic})
  k2c_library(K2C${name} MLIR SOURCES ${ARG_SOURCES} LINK ${ARG_LINK} DEPENDS K2C${name}IncGen ${ARG_DEPENDS})
endfunction()

function(k2c_passes group target)
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  mlir_tablegen(Passes.h.inc -gen-pass-decls -name ${target})
  add_public_tablegen_target(${target}IncGen)
  add_mlir_doc(Passes ${group}Passes Passes/ -gen-pass-doc)
endfunction()

function(k2c_tool name)
  cmake_parse_arguments(ARG "MLIR" "" "SOURCES;LINK" ${ARGN})
  k2c_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  if(ARG_MLIR)
    k2c_use_mlir(${name})
  endif()
endfunction()

function(k2c_unittest name)
  cmake_parse_arguments(ARG "MLIR" "TIER" "SOURCES;LINK" ${ARGN})
  if(NOT ARG_TIER)
    set(ARG_TIER fast)
  endif()
  k2c_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE K2C_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             K2C_BINARY_DIR="${PROJECT_BINARY_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
  if(ARG_MLIR)
    k2c_use_mlir(${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY K2C_UNITTESTS ${name})
  set_property(GLOBAL APPEND_STRING PROPERTY K2C_UNITTEST_TIERS "${ARG_TIER} ${name}\n")
endfunction()
