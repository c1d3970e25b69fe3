# lit configuration: %k2c_src and %k2c_obj are the source and build folders, %python the interpreter, %harness the
# Python of the end-to-end tests, which share compiled bundles. Tools come from PATH: ours, then LLVM's. Tests are
# *.mlir and *.test; with --param long=1 (check-long) they are *.long. %checkpoint writes a checkpoint from a seed,
# %compile is k2c compile with the cache of objects that tests share, %objects that cache.
import os
import sys

import lit.util
from lit.llvm import llvm_config

sys.path.insert(0, os.path.dirname(__file__))
from lit_format import PathQuotingShTest, quoted

config.name = "K2C"
config.test_format = PathQuotingShTest(not llvm_config.use_lit_shell)
config.suffixes = [".long"] if lit_config.params.get("long") else [".mlir", ".test"]
config.excludes = ["Inputs", "Harness"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.k2c_obj_root, "test")
llvm_config.use_default_substitutions()
tool_folders = [os.path.join(config.k2c_obj_root, "bin"), config.llvm_tools_dir]
llvm_config.with_environment("PATH", tool_folders, append_path=True)
config.substitutions.append(("%k2c_src", quoted(config.k2c_src_root)))
config.substitutions.append(("%k2c_obj", quoted(config.k2c_obj_root)))
harness = os.path.join(config.test_source_root, "Harness")
config.substitutions.append(("%harness", quoted(harness)))
config.substitutions.append(("%poison", quoted(os.path.join(config.test_exec_root, "k2rt-poison.so"))))
objects = os.path.join(config.k2c_obj_root, "test-bundles", "objects")
config.substitutions.append(("%compile", "k2c compile --cache-dir " + quoted(objects)))
config.substitutions.append(("%objects", quoted(objects)))
config.substitutions.append(("%checkpoint", "%python " + quoted(os.path.join(harness, "checkpoint.py"))))
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
config.environment["K2C_TEST_BUNDLES"] = os.path.join(config.k2c_obj_root, "test-bundles")
config.substitutions.append(("%llvm_include", os.path.join(os.path.dirname(config.llvm_tools_dir), "include")))
config.substitutions.append(("%python", quoted(config.python or sys.executable)))
if lit.util.which("clang-format-22"):
    config.available_features.add("clang-format")
chromium = lit.util.which("chromium") or lit.util.which("google-chrome")
if chromium:
    config.available_features.add("chromium")
    config.substitutions.append(("%chromium", quoted(chromium)))
