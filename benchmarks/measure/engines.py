"""The engines that are measured. Each gives tokens a second at a point. Not timed: `files` makes what lies on the disk,
`prepare` what comes right before a measurement.

k2c itself; llama.cpp's own benchmark programs; Hugging Face transformers in a process that keeps the model loaded.
"""
import hashlib
import json
import os
import statistics
import subprocess

from . import Failure, points

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def output(command, **options):
    """Standard output of a command that must succeed."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from None
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Failure(f"{' '.join(command)}: exit {done.returncode}: " + " / ".join(said[-3:]))
    return done.stdout


def need(folder, name, remedy):
    """Path of a program in `folder`."""
    path = os.path.join(folder, name)
    if not os.access(path, os.X_OK):
        raise Failure(f"{path} is missing; {remedy}")
    return path


def peer_options(add):
    """Where the peers are; `add` adds an option to a command line."""
    add("--peers-folder", default=os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"),
                                               "k2c-peers"), help="where peers are installed (~/.cache/k2c-peers)")
    add("--peers-python", default="", help="a Python that has torch and transformers, in place of an own environment")


def peer_python(args):
    """The Python that has what llama.cpp's converter and transformers need."""
    return args.peers_python or os.path.join(os.path.abspath(args.peers_folder), "python", "bin", "python3")


def digest(*paths):
    """Changes when one of the files does."""
    text = "".join(f"{os.stat(path).st_size} {os.stat(path).st_mtime_ns}\n" for path in paths)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class K2c:
    name = "k2c"

    def __init__(self, setup):
        self.setup = setup
        self.tool = need(setup.tools, "k2c", "build it: ninja -C build k2c k2rt-run")
        runtime = need(setup.tools, "k2rt-run", "build it: ninja -C build k2rt-run")
        self.version = digest(self.tool, runtime)

    def measures(self, model, compute, point):
        return True

    def bundle(self, model, compute, point):
        """A bundle whose limits fit the point; long contexts have one of their own, their caches are large."""
        near = [one for one in points.of_model(model, self.setup.points) if one.tokens(self.setup.steps) <= 1024]
        group = near if point.name in [one.name for one in near] else [point]
        limits = ["--max-sequences", str(max(one.batch for one in group)), "--max-context",
                  str(max(one.tokens(self.setup.steps) for one in group) + 1)]
        options = ["--compute", compute, *limits]
        # The compute type leads the name; what else decides the bundle is hashed.
        key = hashlib.sha256(" ".join([self.version, *options]).encode()).hexdigest()[:8]
        folder = os.path.join(self.setup.work, "bundles", f"{model}-{compute}-{key}")
        if not os.path.exists(os.path.join(folder, "manifest.json")):
            self.setup.say(f"k2c compile {model} {' '.join(options)}")
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            blobs = os.path.join(self.setup.work, "blobs")
            os.makedirs(blobs, exist_ok=True)
            output([self.tool, "compile", self.setup.checkpoint(model), "-o", folder, *options, "--blob-store", blobs,
                    *self.setup.cache])
        return folder

    def files(self, model, compute, point):
        self.bundle(model, compute, point)

    prepare = files

    def flags(self, point):
        if point.prompt:
            return ["--prefill", str(point.prompt), "--decode", "0", "--context", "1"]
        return ["--prefill", "0", "--decode", str(self.setup.steps), "--batch", str(point.batch), "--context",
                str(max(1, point.context))]

    def run(self, model, compute, point, *more):
        folder = self.bundle(model, compute, point)
        return json.loads(output([*self.setup.first, os.path.join(folder, "run"), "bench", *self.flags(point),
                                  "--threads", str(self.setup.threads), "--json", *more]))

    def measure(self, model, compute, point):
        said = self.run(model, compute, point, "--repeat", str(self.setup.repeats))
        found = {"value": said["prefill_tokens_per_s" if point.prompt else "decode_tokens_per_s"]}
        if not point.prompt and point.batch == 1:
            found["bytes_per_token"] = said["bytes_per_token"]
            found["own_probe"] = said["bandwidth_probe_bytes_per_s"]
        return found

    def close(self):
        pass


class LlamaCpp:
    name = "llama.cpp"

    def __init__(self, setup):
        self.setup = setup
        folder = os.path.join(setup.peers, "llama", "bin")
        remedy = f"run: benchmarks/peers/install.sh {setup.peers}"
        self.bench = need(folder, "llama-bench", remedy)
        self.batched = need(folder, "llama-batched-bench", remedy)
        self.version = digest(self.bench)
        self.choices = os.path.join(setup.work, f"flash-attention-{self.version}.json")
        self.tried = {}
        if os.path.exists(self.choices):
            with open(self.choices) as file:
                self.tried = json.load(file)

    def measures(self, model, compute, point):
        return True

    def weights(self, model, compute):
        """The checkpoint as GGUF, its matrices of the type that is computed with."""
        path = os.path.join(self.setup.work, "gguf", f"{model}-{compute}.gguf")
        if not os.path.exists(path):
            self.setup.say(f"converting {model} to GGUF, {compute}")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            output([self.setup.python(), os.path.join(HERE, "peers", "convert_gguf.py"), self.setup.peers,
                    self.setup.checkpoint(model), "--outfile", path + ".partial", "--outtype", compute])
            os.replace(path + ".partial", path)
        return path

    def files(self, model, compute, point):
        self.weights(model, compute)

    def prepare(self, model, compute, point):
        self.flash_attention(model, compute, point)

    def flash_attention(self, model, compute, point):
        """The faster of -fa 0 and 1 at this point, tried once. Long contexts take minutes and follow the short ones."""
        if point.context > 1024:
            point = points.Point("tg1@512")
        key = f"{model} {compute} {point.name}"
        if key not in self.tried:
            self.tried[key] = max("01", key=lambda flag: self.rate(model, compute, point, flag, 1))
            with open(self.choices, "w") as file:
                json.dump(self.tried, file)
        return self.tried[key]

    def measure(self, model, compute, point):
        flag = self.flash_attention(model, compute, point)
        repeats = 1 if point.context > 1024 else self.setup.repeats
        return {"value": self.rate(model, compute, point, flag, repeats), "flash_attention": flag}

    @staticmethod
    def batched_rows(command):
        """What llama-batched-bench prints. Its log thread loses the last line at times when it ends."""
        for _ in range(5):
            rows = [json.loads(line) for line in output(command).splitlines() if line.startswith("{")]
            if rows:
                return rows
        raise Failure(f"{' '.join(command)}: printed no result in 5 runs")

    def rate(self, model, compute, point, flash_attention, repeats):
        """Tokens a second by llama.cpp's own programs."""
        common = ["-m", self.weights(model, compute), "-t", str(self.setup.threads), "-fa", flash_attention]
        if point.batch > 1:
            context = point.batch * (point.tokens(self.setup.steps) + 1)
            sizes = ["-npp", str(max(1, point.context)), "-ntg", str(self.setup.steps), "-npl", str(point.batch)]
            rows = self.batched_rows([*self.setup.first, self.batched, *common, *sizes, "-tb",
                                      str(self.setup.threads), "-c", str(context), "-b", "2048", "-ub", "512",
                                      "--output-format", "jsonl"])
            return rows[-1]["speed_tg"]
        size = ["-p", str(point.prompt), "-n", "0"] if point.prompt else ["-p", "0", "-n", str(self.setup.steps), "-d",
                                                                           str(point.context)]
        said = json.loads(output([*self.setup.first, self.bench, *common, *size, "-r", str(repeats), "-o", "json"]))
        return statistics.median(said[-1]["samples_ts"])

    def close(self):
        pass


class Transformers:
    name = "transformers"

    def __init__(self, setup):
        self.setup = setup
        self.python = setup.python()
        self.version = "1"
        self.log = open(os.path.join(setup.work, "transformers.log"), "w+")
        self.process, self.loaded = None, None

    def measures(self, model, compute, point):
        """Its eager attention takes minutes at long contexts, and bf16 is not what it is compared in."""
        return compute == "f32" and point.context <= 1024

    def files(self, model, compute, point):
        self.setup.checkpoint(model)

    def prepare(self, model, compute, point):
        if self.loaded == model:
            return
        self.close()
        self.setup.say(f"transformers loads {model}")
        self.process = subprocess.Popen(
            [*self.setup.first, self.python, os.path.join(HERE, "peers", "transformers_bench.py"),
             self.setup.checkpoint(model), "--threads", str(self.setup.threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.loaded = model
        self.ask({"ready": True})

    def ask(self, question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            self.close()
            self.log.seek(0)
            said = self.log.read().strip().splitlines()
            raise Failure("transformers ended: " + " / ".join(said[-3:]))
        return json.loads(answer)

    def measure(self, model, compute, point):
        return self.ask({"prompt": point.prompt, "batch": point.batch, "context": max(1, point.context),
                         "steps": min(16, self.setup.steps), "repeats": self.setup.repeats})

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
        self.process, self.loaded = None, None


def make(setup):
    """The engines of this run, k2c first."""
    return [K2c(setup)] + ([LlamaCpp(setup), Transformers(setup)] if setup.with_peers else [])
