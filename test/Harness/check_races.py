"""check_races.py CHECKPOINT RUN: a compiled program of 4 workers has no data race, and a planted one is reported.

RUN is k2rt-run built with ThreadSanitizer. The program is compiled as always, but its linker is given objects made of
what `k2c compile --emit llvm` prints, with ThreadSanitizer's calls in them. These know loads and stores of at most 16
bytes, so vectors and masked accesses are split into elements before. The golden results must come out without a report.
Then the launches of the step function leave out their barriers: there must be a report.
"""
import os
import re
import shutil
import sys
import tempfile

from bundles import Bundle, Failure, output
from check_golden import check_bundle
from golden import Report

TARGET = "x86-64-v3"
FLAGS = ["--target", TARGET, "--compute", "f32"]
THREADS = 4
PLANTED = 0  # the launch that loses its barrier
RACE = "WARNING: ThreadSanitizer: data race"
PASSES = "function(scalarize-masked-mem-intrin,scalarizer<load-store>),tsan-module,function(tsan)"
LINKER = """#!/bin/sh
# ld.lld-22 for k2c compile: the same link, of other objects.
while [ "$1" != -o ]; do shift; done
exec {linker} -shared -z noexecstack -z now --version-script "$2.exports" -o "$2" {objects}
"""


class Threaded(Bundle):
    """A bundle whose every run has THREADS workers."""

    def text(self, *arguments):
        return super().text(*arguments, "--threads", THREADS)


def instrumented(text, target):
    """Writes the object of an LLVM module that tells ThreadSanitizer of its loads and stores."""
    text, defined = re.subn(r"(?m)^(define .*) \{$", r"\1 nounwind sanitize_thread {", text)
    if not defined:
        raise Failure(f"{target}: no function is defined")
    text = 'target triple = "x86_64-unknown-linux-gnu"\n' + text
    output(["opt-22", "-passes=" + PASSES, "-tsan-handle-cxx-exceptions=0", "-o", target + ".bc"], input=text)
    compile_ir = ["clang-22", "-O1", "-fPIC", "-march=" + TARGET, "-ffp-contract=off", "-Wno-override-module"]
    output([*compile_ir, "-c", target + ".bc", "-o", target])


class Compiler:
    """A folder with k2c, RUN as its runtime, and a linker that takes the objects of `modules`."""

    def __init__(self, folder, run):
        self.folder = folder
        os.makedirs(os.path.join(folder, "bin"))
        shutil.copy(shutil.which("k2c"), folder)
        shutil.copy(run, os.path.join(folder, "k2rt-run"))
        self.k2c = os.path.join(folder, "k2c")

    def modules(self, source):
        """name -> text of every LLVM module of the program; kernels that share their code have equal files."""
        output([self.k2c, "compile", source, "-o", f"{self.folder}/ir", "--emit", "llvm", *FLAGS])
        folder = os.path.join(self.folder, "ir", "llvm")
        texts = {open(os.path.join(folder, name)).read(): name for name in sorted(os.listdir(folder))}
        return {name: text for text, name in texts.items()}

    def link(self, source, modules, name):
        """The bundle of `source`, whose program is made of `modules`."""
        objects = []
        for module, text in modules.items():
            objects.append(os.path.join(self.folder, f"{name}-{module}.o"))
            instrumented(text, objects[-1])
        linker = os.path.join(self.folder, "bin", "ld.lld-22")
        with open(linker, "w") as script:
            script.write(LINKER.format(linker=shutil.which("ld.lld-22"), objects=" ".join(objects)))
        os.chmod(linker, 0o755)
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        bundle = os.path.join(self.folder, name)
        objects = f"{self.folder}/objects"
        command = [self.k2c, "compile", source, "-o", bundle, *FLAGS, "--cache-dir", objects]
        output(command, env={**os.environ, "PATH": path})
        return Threaded(bundle)


# A closed launch: the first entry of the worker's api, called with (worker, kernel, function, grid, arguments). An open
# one is the entry at byte 24, k2rt_ir_api.launch_nowait.
CLOSED = re.compile(
    r"getelementptr i8, ptr (%\d+), i32 0\n"
    r"( +%\d+ = load ptr, .*\n +%\d+ = call i32 %\d+\(ptr %0, i32 \d+, ptr @\w+, i64)"
)


def without_barrier(modules, number):
    """The modules, where the launch of that number of the step function leaves out its barrier."""
    launches = list(CLOSED.finditer(modules["host.ll"]))
    if number >= len(launches):
        raise Failure(f"the step function has {len(launches)} launches with a barrier")
    at = launches[number]
    changed = f"getelementptr i8, ptr {at[1]}, i32 24\n{at[2]}"
    return {**modules, "host.ll": at.string[: at.start()] + changed + at.string[at.end() :]}


def check(source, run):
    report = Report(f"{THREADS} workers on {source} under ThreadSanitizer")
    # A race whose earlier access is no longer in the history is not reported, and a kernel has 10^5 accesses.
    os.environ["TSAN_OPTIONS"] = "exitcode=66:halt_on_error=1:history_size=7"
    with tempfile.TemporaryDirectory() as folder:
        compiler = Compiler(os.path.join(folder, "tools"), run)
        modules = compiler.modules(source)
        bundle = compiler.link(source, modules, "program")
        listed = output(["llvm-nm-22", "--undefined-only", "--dynamic", f"{bundle.folder}/program.so"])
        told = "__tsan_write4" in listed and "__tsan_read4" in listed
        report.check(told, "the program tells of its loads and stores")
        check_bundle(report, source, bundle)
        planted = compiler.link(source, without_barrier(modules, PLANTED), "planted")
        try:
            check_bundle(Report("planted"), source, planted)
            said = ""
        except Failure as failure:
            said = str(failure)
        report.check("exit 66" in said and RACE in said, f"a launch without its barrier is reported: {said[:400]}")
    return report.finish()


if __name__ == "__main__":
    try:
        sys.exit(check(*sys.argv[1:]))
    except Failure as failure:
        sys.exit(f"check_races.py: {failure}")
