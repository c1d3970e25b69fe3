"""A printed form goes on to what would have been printed next: check_forms.py FOLDER... [-- k2c compile options].

For every FOLDER with a config.json, in f32 and in bf16: the planned form, driven on by k2c-opt without options, must be
the runtime form that k2c compile prints, character for character. Prints how many were compared.
"""
import glob
import os
import subprocess
import sys

from bundles import split_options

FORMS = ("--distributed-form", "--scheduled-form", "--runtime-form")


def run(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def main(arguments):
    patterns, options = split_options(arguments)
    folders = [path for pattern in patterns for path in sorted(glob.glob(pattern))
               if os.path.exists(path + "/config.json")]
    for folder in folders:
        for compute in ("f32", "bf16"):
            compile_ = ("k2c", "compile", folder, "-o", "-", "--compute", compute, *options, "--emit")
            driven = run("k2c-opt", "-", *FORMS, text=run(*compile_, "planned"))
            if driven.rstrip() != run(*compile_, "runtime").rstrip():
                sys.exit(f"{folder} in {compute}: the planned form goes on to another runtime form")
    print(f"{len(folders)} models, each in f32 and bf16")


main(sys.argv[1:])
