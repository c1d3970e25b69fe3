"""docs/performance.md, written from the results: tables of both sides, what is missed, where the time goes."""
import os
import statistics
import textwrap

from . import kernels, points, roofline, store as stores, traces

INTRODUCTION = """# Performance

Written by `scripts/bench.sh`; change that, not this page. The results may come from several runs that were stopped and
went on; the command that measures what they cover:

    {command}

Machine: {cpu}, {threads} threads. Memory reads {usual:.1f} GB/s in the median of all probes ({low:.1f} to {high:.1f});
loops of multiply-adds on registers reach {peaks}.

Both sides see the same machine: at each point the engines take turns, rounds follow one another, and a probe of the
memory (`k2c-roofs`) runs before and after each measurement. A measurement is disturbed when a probe is more than
{disturbed:.0%} off the median of all; it may be taken {attempts} time(s) in all. {repeated} of {count} were repeated;
{left} are in the tables although disturbed, and a ratio means less where the GB/s of its two sides differ. A figure is
the median over the rounds, a spread is (largest - smallest) / median; "once" marks a figure of one round.

Weights are bf16 in every checkpoint (`benchmarks/checkpoints.py`: published layouts, random numbers). `bf16` computes
with bf16 operands; `f32` computes in f32, k2c on the bf16 weights as they are, the others on weights widened to f32.
Every sequence reads its own random prompt first. k2c runs with the numerics contract on: its logits depend on no
batch, chunk or thread count.{realtime}
"""

REALTIME = """ Other programs ran on this machine: what is timed had real-time priority, which the kernel
limits to 95% of each second, for both sides alike."""

SPEED = """
## Speed

GB/s is the memory probe around the measurements to its left. The wanted ratios were set on a Zen 5 processor with 1,030
GFLOP/s in bf16 on two threads and 54 GB/s of memory; other machines give other ratios.

"""

BANDWIDTH = """## Decoding at batch 1 against the memory

Bytes that a token must read, at the measured speed, beside a probe that the same process runs on the same threads over
the memory it holds.

"""

MISSED = """## Figures that are missed

"""

PRODUCTS = """## Matrix products on one core

`kernel-bench`: y [rows][n] = x [rows][k] W, packed weights, one core, CPU time, medians of {repetitions} repetitions
interleaved at random; GFLOP/s, and the ratio to the loop of multiply-adds and to oneDNN in the same process.

"""

KERNELS = """
## Where the time goes

The shortest step of `run bench --trace`, which other programs disturbed least. FLOP and bytes are the compiler's counts
(`cost` of each kernel in manifest.json): every operand once, experts as many as tokens hit on average. The roof of a
kernel is the longer of its FLOP at the peak and its bytes at the memory's speed, as the same process reads it after
the steps; bytes that stay in a cache can beat it.

"""


def processor():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return "unknown processor"


def table(head, rows):
    """Markdown; the first column is words, the others numbers."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def rate(series):
    return f"{series.median:,.0f}" if series.median >= 100 else f"{series.median:,.1f}"


def item(words):
    """A line of a list, folded to the width of a page."""
    return textwrap.fill(words, 120, initial_indent="- ", subsequent_indent="  ") + "\n"


def spread(series):
    return f"{series.spread:.0%}" if len(series.values) > 1 else "once"


class Page:
    def __init__(self, args, setup, bench):
        self.args, self.setup, self.k2c = args, setup, bench.engines[0]
        self.store = bench.store
        self.series = stores.series(self.store)
        self.roofs = setup.roofs()
        self.missed = []

    def models(self):
        return [model for model in self.args.models if any(key[0] == model for key in self.series)]

    def introduction(self):
        probes = [probe / 1e9 for line in self.store.lines for probe in line["probe"]]
        chosen = self.store.chosen()
        peaks = " and ".join(f"{value:,.0f} GFLOP/s in {name}" for name, value in self.peaks().items())
        return INTRODUCTION.format(
            command=self.command(), cpu=processor(), threads=self.setup.threads, usual=statistics.median(probes),
            low=min(probes), high=max(probes), peaks=peaks, repeated=self.store.repeated(), count=len(chosen),
            disturbed=stores.DISTURBED, attempts=self.store.max_attempts,
            realtime=REALTIME if self.args.realtime else "",
            left=sum(self.store.deviation(line) > stores.DISTURBED for line in chosen))

    def command(self):
        options = [f"--rounds {self.args.rounds}"]
        if any(key[3] != self.k2c.name for key in self.series):
            options.insert(0, "--peers")
        if self.models() != points.MODELS:
            options.append("--models " + ",".join(self.models()))
        if self.args.compute != points.COMPUTES:
            options.append("--compute " + ",".join(self.args.compute))
        if self.store.max_attempts != 3:
            options.append(f"--attempts {self.store.max_attempts}")
        options += ["--realtime"] if self.args.realtime else []
        if self.args.points:
            options.append("--points " + ",".join(self.args.points))
        return " ".join(["scripts/bench.sh", *options])

    def peaks(self):
        """GFLOP/s of the types this processor multiplies in registers."""
        found = {name: self.roofs[f"{name}_flops_per_s"] / 1e9 for name in ("f32", "bf16")}
        return {name: value for name, value in found.items() if value > 0}

    def speeds(self, model, compute):
        """Tokens a second of a model in one compute type."""
        found = [key for key in self.series if key[:2] == (model, compute)]
        if not found:
            return ""
        peers = [name for name in ("llama.cpp", "transformers") if any(key[3] == name for key in found)]
        head = ["tokens/s", "k2c", "spread", "GB/s"]
        for peer in peers:
            head += [peer, "spread", "GB/s", "ratio"]
        if "llama.cpp" in peers:
            head.append("wanted")
        rows = []
        for point in points.of_model(model, self.args.points):
            own = self.series.get((model, compute, point.name, self.k2c.name))
            if own:
                rows.append(self.speed_row(model, compute, point, own, peers))
        return f"### {model}, {compute}\n\n" + table(head, rows) + "\n"

    def speed_row(self, model, compute, point, own, peers):
        row = [point.title(), rate(own), spread(own), f"{own.probe / 1e9:.0f}"]
        for peer in peers:
            other = self.series.get((model, compute, point.name, peer))
            row += [rate(other), spread(other), f"{other.probe / 1e9:.0f}",
                    f"{own.median / other.median:.2f}"] if other else ["", "", "", ""]
        if "llama.cpp" in peers:
            wanted = points.WANTED.get((model, point.name))
            row.append(f"{wanted:.1f}" if wanted else "")
            other = self.series.get((model, compute, point.name, "llama.cpp"))
            if wanted and other and own.median < wanted * other.median:
                self.missed.append(f"{model}, {compute}, {point.title()}: {own.median / other.median:.2f} times "
                                   f"llama.cpp, {wanted:.1f} wanted")
        return row

    def bandwidth(self):
        """Decoding one sequence is bound by reading the weights: how near it is."""
        rows = []
        for (model, compute, point, engine), series in self.series.items():
            if engine != self.k2c.name or "own_probe" not in series.lines[0] or "@" in point:
                continue
            reads = statistics.median(line["value"] * line["bytes_per_token"] for line in series.lines)
            share = statistics.median(line["value"] * line["bytes_per_token"] / line["own_probe"]
                                      for line in series.lines)
            rows.append([f"{model}, {compute}", f"{series.lines[0]['bytes_per_token'] / 1e6:.0f}", f"{reads / 1e9:.1f}",
                         f"{share:.0%}"])
            if share < points.WANTED_SHARE:
                self.missed.append(f"{model}, {compute}, decode, batch 1: reads at {share:.0%} of the probe, "
                                   f"{points.WANTED_SHARE:.0%} wanted")
        if not rows:
            return ""
        return (BANDWIDTH + table(["", "MB a token", "GB/s read", "of the probe"], rows) + "\n")

    def products(self):
        """kernel-bench, when it is built and peers are measured."""
        found = kernels.rows_of(kernels.measure(self.setup))
        rows, slower = [], {}
        for kind, n, k, count, own, other, peak in found:
            rows.append([f"{kind}, n {n}, k {k}", str(count), f"{own / 1e9:,.0f}", f"{own / peak:.0%}" if peak else "",
                         f"{other / 1e9:,.0f}" if other else "", f"{own / other:.2f}" if other else ""])
            words = f"{kind} product, n {n}, k {k}"
            if count >= 512 and own < kernels.OF_PEAK * peak:
                self.missed.append(f"{words}, {count} rows: {own / peak:.1%} of the peak, {kernels.OF_PEAK:.0%} wanted")
            if count < 512 and own < kernels.OF_ONEDNN * other:
                slower.setdefault(words, []).append(f"{own / other:.2f} with {count} row{'s' * (count > 1)}")
        self.missed += [f"{words}, of oneDNN's speed: {', '.join(ratios)}; {kernels.OF_ONEDNN:.2f} wanted"
                        for words, ratios in slower.items()]
        if not rows:
            return ""
        head = ["", "rows", "k2c", "of the peak", "oneDNN", "ratio"]
        return PRODUCTS.format(repetitions=kernels.REPETITIONS) + table(head, rows) + "\n"

    def kernels(self, model):
        """Tables and picture of the first compute type measured."""
        compute = next((one for one in self.args.compute if any(key[:2] == (model, one) for key in self.series)), None)
        measured = [point for point in points.of_model(model, self.args.points)
                    if (model, compute, point.name, self.k2c.name) in self.series
                    and (point.batch > 1 or not point.context)]
        steps = []
        for point in measured:
            step = traces.measure(self.k2c, self.setup, model, compute, point)
            if step:
                steps.append((point.title(), step))
        if not steps:
            return ""
        name = f"{os.path.splitext(os.path.basename(self.args.page))[0]}-{model}.svg"
        with open(os.path.join(os.path.dirname(os.path.abspath(self.args.page)), name), "w") as file:
            drawn = [step for step in steps if "@" not in step[0]][:4]
            file.write(roofline.picture(f"{model}, {compute}: kernels under the roofs of this machine", drawn,
                                        self.peaks(), max(step.memory for _, step in drawn) / 1e9))
        parts = [f"### {model}, {compute}\n\n![roofline of {model}]({name})\n"]
        return "\n".join(parts + [self.kernel_table(title, step, compute) for title, step in steps]) + "\n"

    def kernel_table(self, title, step, compute):
        peak, memory = self.roofs[f"{compute}_flops_per_s"], step.memory
        shown = [kernel for kernel in step.kernels if kernel.seconds >= 0.02 * step.seconds]
        rows = []
        for kernel in shown:
            roof = max(kernel.flops / peak if peak else 0, kernel.bytes / memory)
            rows.append([kernel.name, str(kernel.launches or ""), f"{kernel.seconds * 1e3:.3f}",
                         f"{kernel.seconds / step.seconds:.0%}",
                         f"{kernel.flop_rate() / 1e9:,.0f}" if kernel.flops else "",
                         f"{kernel.byte_rate() / 1e9:,.1f}" if kernel.bytes else "",
                         f"{roof / kernel.seconds:.0%}" if kernel.bytes else ""])
        others = step.seconds - sum(kernel.seconds for kernel in shown)
        rows.append([f"{len(step.kernels) - len(shown)} others", "", f"{others * 1e3:.3f}",
                     f"{others / step.seconds:.0%}", "", "", ""])
        return (f"{title}: {step.seconds * 1e3:.2f} ms, memory at {memory / 1e9:.1f} GB/s\n\n" +
                table(["kernel", "launches", "ms", "of the step", "GFLOP/s", "GB/s", "of its roof"], rows))

    def left_out(self):
        """What the command would measure and the results lack, by model, compute type and engine."""
        lacking = {}
        engines = sorted({key[3] for key in self.series})
        for model in self.args.models:
            for compute in self.args.compute:
                for point in points.of_model(model, self.args.points):
                    for engine in engines:
                        expected = engine != "transformers" or (compute == "f32" and point.context <= 1024)
                        if expected and (model, compute, point.name, engine) not in self.series:
                            lacking.setdefault(f"{model}, {compute}, {engine}", []).append(point.name)
        lines = [item(f"{where}: {', '.join(names)}") for where, names in lacking.items()]
        return "Not measured when this page was written:\n\n" + "".join(lines) + "\n" if lines else ""

    def text(self):
        speeds = "".join(self.speeds(model, compute) for model in self.models() for compute in self.args.compute)
        bandwidth = self.bandwidth() + self.products()
        taken_apart = "".join(self.kernels(model) for model in self.models())
        missed = "".join(map(item, self.missed)) or "None of those measured here.\n"
        return (self.introduction() + SPEED + speeds + self.left_out() + bandwidth + MISSED + missed + KERNELS +
                taken_apart)


def counted(page):
    """The page's last section: nothing here measures it."""
    if not os.path.exists(page):
        return ""
    with open(page) as file:
        _, heading, section = file.read().partition("\n## Kernels of a GPU, counted\n")
    return heading + section


def write(args, setup, bench):
    os.makedirs(os.path.dirname(os.path.abspath(args.page)), exist_ok=True)
    text = Page(args, setup, bench).text().rstrip("\n") + "\n" + counted(args.page)
    with open(args.page, "w") as file:
        file.write(text)
