#!/bin/bash
# Plants mutants, one at a time, in a clone of HEAD: the test that is named for each must fail. --help says more.
#   scripts/mutate.sh [--check | --list | --drawn N --seed S] [PATTERN ...]
exec env PYTHONDONTWRITEBYTECODE=1 python3 "$(dirname "${BASH_SOURCE[0]}")/mutate/main.py" "$@"
