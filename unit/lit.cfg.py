# lit configuration of the GoogleTest programs, which join the pool of the lit tests of their tier: fast, or check for
# those that compile kernels. A program is run in shards, each with the time limit of the tier.
import os
import sys

import lit.formats

sys.path.insert(0, os.path.join(config.k2c_src_root, "test"))
import suites

config.name = "K2C-Unit"
config.test_source_root = config.test_exec_root = os.path.join(config.k2c_obj_root, "unit")
config.test_format = lit.formats.GoogleTest(".", "")
tier = suites.tier(lit_config)
with open(os.path.join(config.test_source_root, "tiers.txt")) as lines:
    programs = {name: of for of, name in map(str.split, lines)}
config.test_format.test_suffixes = {name for name, of in programs.items() if of == (tier or of)}
suites.limit_time(lit_config, tier)
