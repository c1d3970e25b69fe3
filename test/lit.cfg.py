# lit configuration: %k2c_src and %k2c_obj are the source and build folders, %python the interpreter, %harness the
# Python of the end-to-end tests, which share compiled bundles. Tools come from PATH: ours, then LLVM's. %checkpoint
# writes a checkpoint from a seed, %compile is k2c compile in f32, whatever processor a test runs on, with the cache of
# objects that tests share, %objects that cache.
#
# Tests are *.mlir and *.test; --param tier=long takes *.long, tier=sweep *.sweep. Of the others tier=fast takes those
# that compile no whole program, tier=check the rest (suites.py has the tiers and their time limits).
import importlib.util
import os
import sys

from lit.llvm import llvm_config

sys.path.insert(0, os.path.dirname(__file__))
import suites
from lit_format import PathQuotingShTest, quoted

config.name = "K2C"
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.k2c_obj_root, "test")
tier = suites.tier(lit_config)
config.test_format = PathQuotingShTest(not llvm_config.use_lit_shell)
config.suffixes = suites.suffixes(tier)
config.excludes = ["Inputs", "Harness", *suites.excluded_folders(tier, config.test_source_root)]
suites.limit_time(lit_config, tier)
llvm_config.use_default_substitutions()
tool_folders = [os.path.join(config.k2c_obj_root, "bin"), config.llvm_tools_dir]
llvm_config.with_environment("PATH", tool_folders, append_path=True)
config.substitutions.append(("%k2c_src", quoted(config.k2c_src_root)))
config.substitutions.append(("%k2c_obj", quoted(config.k2c_obj_root)))
harness = os.path.join(config.test_source_root, "Harness")
config.substitutions.append(("%harness", quoted(harness)))
config.substitutions.append(("%poison", quoted(os.path.join(config.test_exec_root, "k2rt-poison.so"))))
config.substitutions.append(("%recording", quoted(os.path.join(config.test_exec_root, "k2c-recording-driver.so"))))
objects = os.path.join(config.k2c_obj_root, "test-bundles", "objects")
# lit runs a test on each processor, so a compile has one.
config.substitutions.append(("%compile", "k2c compile --compute f32 --jobs 1 --cache-dir " + quoted(objects)))
config.substitutions.append(("%objects", quoted(objects)))
config.substitutions.append(("%checkpoint", "%python " + quoted(os.path.join(harness, "checkpoint.py"))))
config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "cache")  # not the user's
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
config.environment["K2C_INSTRUMENT"] = config.k2c_instrument
config.environment["K2C_TEST_BUNDLES"] = os.path.join(config.k2c_obj_root, "test-bundles")
config.substitutions.append(("%llvm_include", os.path.join(os.path.dirname(config.llvm_tools_dir), "include")))
config.substitutions.append(("%python", quoted(config.python or sys.executable)))
config.available_features.update(suites.features())
for name, launcher in (("openmpi", suites.openmpi()), ("mpich", suites.mpich())):
    config.substitutions.append((f"%{name}", launcher or "false"))
for name, library in (("openmpi", "mpi-openmpi"), ("mpich", "mpi-mpich"), ("ucx", "ucx")):
    if not os.path.exists(os.path.join(config.k2c_obj_root, "lib", f"libk2rt-{library}.so")):
        config.available_features.discard(name)  # its header was not there to build with
if importlib.util.find_spec("yaml"):
    config.available_features.add("pyyaml")  # of the interpreter that runs tests
if importlib.util.find_spec("onnx") and importlib.util.find_spec("onnxruntime"):
    config.available_features.add("onnx")
if importlib.util.find_spec("torch") and importlib.util.find_spec("transformers"):
    config.available_features.add("transformers")
if config.k2c_instrument == "address":
    config.available_features.add("asan")
if chromium := suites.chromium():
    config.substitutions.append(("%chromium", quoted(chromium)))
