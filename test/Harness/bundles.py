"""Bundles for tests: each (checkpoint, options) is compiled once and shared by every test that asks for it.

Bundles live in $K2C_TEST_BUNDLES/<tools>/<name>-<hash>, where <tools> stands for the k2c and k2rt-run that made them:
a rebuilt compiler makes new ones, and the old go. Tests run in parallel, so a lock file guards each bundle.
"""
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from array import array


class Failure(Exception):
    """What a check found wrong, for people."""


def _stamp(path):
    info = os.stat(path)
    return f"{os.path.abspath(path)}|{info.st_size}|{info.st_mtime_ns}\n"


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _tool():
    path = shutil.which("k2c")
    if not path:
        raise Failure("k2c is not in PATH")
    return path


def split_options(arguments):
    """(the arguments before --, the options for k2c behind it)"""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:cut], arguments[cut + 1:]


@contextlib.contextmanager
def json_file(value):
    """The path of a temporary file that holds `value` as JSON."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(value, file)
        file.flush()
        yield file.name


def output(command, **options):
    """The standard output of a command that must succeed; options as of subprocess.run."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode:
        raise Failure(f"{' '.join(map(str, command))}\nexit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def _compile(source, output_folder, *options):
    """k2c compile with these options, in f32 where they name no type: that is what references and forms are of."""
    compute = () if "--compute" in options else ("--compute", "f32")
    return output([_tool(), "compile", source, "-o", output_folder, *compute, *options])


def form(source, name, *options):
    """The text of a form of `source`."""
    return _compile(source, "-", "--emit", name, *options)


def _root():
    """The folder of the bundles these tools made; those of other tools are removed."""
    top = os.environ.get("K2C_TEST_BUNDLES") or os.path.join(tempfile.gettempdir(), "k2c-test-bundles")
    tool = _tool()
    tools = _digest(_stamp(tool) + _stamp(os.path.join(os.path.dirname(os.path.realpath(tool)), "k2rt-run")))
    os.makedirs(top, exist_ok=True)
    with open(os.path.join(top, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for entry in os.listdir(top):
            if entry not in ("lock", "objects", "checkpoints", tools):
                shutil.rmtree(os.path.join(top, entry), ignore_errors=True)
        os.makedirs(os.path.join(top, tools), exist_ok=True)
    return top, os.path.join(top, tools)


def objects():
    """The folder of compiled kernels that all tests share: --cache-dir."""
    return os.path.join(_root()[0], "objects")


class Bundle:
    """A compiled program and what it prints."""

    def __init__(self, folder, source=None):
        self.folder, self.source = folder, source
        with open(os.path.join(folder, "manifest.json")) as file:
            self.manifest = json.load(file)

    def text(self, *arguments):
        """The standard output of DIR/run, on one thread unless `arguments` say more: lit has a test a processor."""
        if "device" in self.manifest:
            how = () if "--driver" in arguments else ("--driver", "emulated")
        else:
            how = () if "--threads" in arguments else ("--threads", "1")
        return output([os.path.join(self.folder, "run"), *map(str, arguments), *how])

    def json(self, *arguments):
        return json.loads(self.text(*arguments, "--json"))

    def logits(self, ids, *arguments):
        """Rows of logits after `ids`: the last, or with --all every one. Each row is an array of floats."""
        return rows(self.json("logits", "--prompt-ids", ",".join(map(str, ids)), *arguments)["logits"])

    def batch_logits(self, prompts, *arguments):
        """The rows of each of the prompts, which share steps."""
        with json_file(prompts) as file:
            return [rows(one["logits"]) for one in self.json("logits", "--batch-file", file, *arguments)]

    def generate(self, ids, count, *arguments):
        prompt = ",".join(map(str, ids))
        return self.json("generate", "--prompt-ids", prompt, "-n", count, "--ignore-eos", *arguments)


def rows(lists):
    return [array("f", row) for row in lists]


def compile_into(folder, source, *options):
    """The bundle `folder`, made anew; the objects of kernels are shared with other bundles."""
    _compile(source, folder, "--cache-dir", objects(), "--jobs", "1", *options)
    return Bundle(folder, source)


def compiled(source, *options):
    """The bundle of `source` under these options of k2c compile."""
    root = _root()[1]
    files = sorted(os.path.join(source, name) for name in os.listdir(source))
    key = _digest("".join(map(_stamp, files)) + "|".join(options))
    folder = os.path.join(root, f"{os.path.basename(os.path.realpath(source))}-{key}")
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(folder, "manifest.json")):
            return compile_into(folder, source, *options)
    return Bundle(folder, source)
