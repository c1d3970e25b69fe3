#!/usr/bin/env python3
"""coverage-report.py BUILD: lines covered by folder, and the ten least covered files, of the profiles that an
instrumented build left in BUILD/profiles. Exit code 1 when less than 90 % of all lines or 60 % of a file's were run.
Files in TOLERATED may have less, each for the reason beside it. Generated files are no source of ours.
"""
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("base", "lib", "runtime", "dialects", "include")
MIN_OF_ALL, MIN_OF_A_FILE = 90, 60
TOLERATED = {
    "runtime/src/run/FileFaults.cpp": "its handler ends the process at once, so no counter of a fault is ever written",
}


def profile(build):
    """Merges the raw profiles."""
    merged = build / "all.profdata"
    listed = build / "profiles.txt"
    listed.write_text("".join(f"{path}\n" for path in sorted((build / "profiles").glob("*.profraw"))))
    command = ["llvm-profdata-22", "merge", "-sparse", "--failure-mode=all", "-f", listed, "-o", merged]
    subprocess.run(command, check=True)
    return merged


def covered_lines(build):
    """path -> (lines, lines that ran). A line counts once, whichever programs have it."""
    folders = (*build.glob("bin/*"), *build.glob("unit/*"))
    binaries = [path for path in folders if path.is_file() and path.stat().st_mode & 0o111]
    objects = [word for path in binaries[1:] for word in ("-object", str(path))]
    command = ["llvm-cov-22", "export", "-summary-only", f"-instr-profile={profile(build)}", str(binaries[0]), *objects]
    document = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    files = {}
    for file in document["data"][0]["files"]:
        path = Path(file["filename"])
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in FOLDERS:
            lines = file["summary"]["lines"]
            files[str(path.relative_to(ROOT))] = (lines["count"], lines["covered"])
    return files


def percent(lines, covered):
    return 100 * covered / lines if lines else 100.0


def folder_of(path):
    parts = path.split("/")[:-1]
    return "/".join(parts[: 3 if parts[0] == "runtime" or parts[:2] == ["lib", "Kernels"] else 2])


def main():
    build = Path(sys.argv[1]).resolve()
    files = covered_lines(build)
    folders = defaultdict(lambda: [0, 0])
    for path, (lines, covered) in files.items():
        for name in (folder_of(path), "all"):
            folders[name][0] += lines
            folders[name][1] += covered
    for name, counts in sorted(folders.items(), key=lambda item: (item[0] == "all", item[0])):
        print(f"{name:28} {counts[0]:7} lines {percent(*counts):6.1f} %")
    ranked = sorted(files, key=lambda path: percent(*files[path]))
    print("least covered files:")
    for path in ranked[:10]:
        reason = TOLERATED.get(path, "")
        print(f"  {percent(*files[path]):5.1f} % of {files[path][0]:4} lines  {path}  {reason}".rstrip())
    poor = [path for path in ranked if percent(*files[path]) < MIN_OF_A_FILE and path not in TOLERATED]
    for path in poor:
        print(f"coverage: {path}: {percent(*files[path]):.1f} % of lines, at least {MIN_OF_A_FILE} % are asked")
    stale = [path for path in TOLERATED if path not in files or percent(*files[path]) >= MIN_OF_A_FILE]
    for path in stale:
        print(f"coverage: {path} needs no exception; remove it from TOLERATED")
    if percent(*folders["all"]) < MIN_OF_ALL:
        print(f"coverage: {percent(*folders['all']):.1f} % of all lines, at least {MIN_OF_ALL} % are asked")
        return 1
    return 1 if poor or stale else 0


if __name__ == "__main__":
    sys.exit(main())
