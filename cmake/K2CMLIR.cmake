# Finds LLVM/MLIR 22.1. Debian installs it outside CMake's default prefixes, so llvm-config-22 is asked where.
find_program(K2C_LLVM_CONFIG NAMES llvm-config-22)
if(K2C_LLVM_CONFIG AND NOT MLIR_DIR)
  execute_process(COMMAND ${K2C_LLVM_CONFIG} --prefix OUTPUT_VARIABLE K2C_LLVM_PREFIX OUTPUT_STRIP_TRAILING_WHITESPACE)
  list(PREPEND CMAKE_PREFIX_PATH ${K2C_LLVM_PREFIX})
endif()
find_package(MLIR 22.1 REQUIRED CONFIG)
# libMLIR.so only: one static libMLIR*.a beside it would make two TypeIDs.
set(MLIR_LINK_MLIR_DYLIB ON)
set(LLVM_RUNTIME_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/bin)
set(LLVM_LIBRARY_OUTPUT_INTDIR ${CMAKE_BINARY_DIR}/lib)
set(MLIR_BINARY_DIR ${CMAKE_BINARY_DIR})
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
# The generated pages; each example names the test that it was cut from.
add_custom_target(k2c-doc COMMAND python3 ${PROJECT_SOURCE_DIR}/test/Style/Inputs/examples.py ${PROJECT_SOURCE_DIR}
                                  ${PROJECT_BINARY_DIR}/docs)
add_dependencies(k2c-doc mlir-doc)
