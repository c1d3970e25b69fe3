# lit configuration: %k2c_src and %k2c_obj are the source and build folders, %python the interpreter.
import os
import sys
import lit.formats
from lit.llvm import llvm_config

config.name = "K2C"
config.test_format = lit.formats.ShTest(not llvm_config.use_lit_shell)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.k2c_obj_root, "test")
llvm_config.use_default_substitutions()
bin_dir = os.path.join(config.k2c_obj_root, "bin")
tools = ["k2c", "k2c-opt", "k2c-plan", "k2rt-run", "mlir-opt", "mlir-translate", "llvm-tblgen", "not", "split-file"]
llvm_config.add_tool_substitutions(
    [t for t in tools if any(os.path.exists(os.path.join(d, t)) for d in (bin_dir, config.llvm_tools_dir))],
    [bin_dir, config.llvm_tools_dir])
config.substitutions.append(("%k2c_src", config.k2c_src_root))
config.substitutions.append(("%k2c_obj", config.k2c_obj_root))
config.substitutions.append(("%llvm_include", os.path.join(os.path.dirname(config.llvm_tools_dir), "include")))
config.substitutions.append(("%python", config.python or sys.executable))
