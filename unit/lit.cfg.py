# lit configuration of the GoogleTest programs, which join the pool of the lit tests: tier fast. A program is run in
# shards, each with the time limit of the tier.
import os
import sys

import lit.formats

sys.path.insert(0, os.path.join(config.k2c_src_root, "test"))
import suites

config.name = "K2C-Unit"
config.test_source_root = config.test_exec_root = os.path.join(config.k2c_obj_root, "unit")
config.test_format = lit.formats.GoogleTest(".", "")
with open(os.path.join(config.test_source_root, "list.txt")) as programs:
    config.test_format.test_suffixes = set(programs.read().split())
suites.limit_time(lit_config, "fast")
