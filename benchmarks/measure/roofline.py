"""The roofline of a model's steps as SVG: FLOP a second of each kernel over its FLOP a byte, under the two roofs."""
import math

WIDTH, HEIGHT = 960, 600
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 64, 56
COLOURS = ["#0b6e99", "#c2410c", "#4d7c0f", "#7e22ce"]
LABELLED = 0.02  # of a step: kernels that take less have a dot, no label
FONT = 11
HALO = ' stroke="#fff" stroke-width="3" paint-order="stroke"'


class Scale:
    """Logarithmic, from the decades around what is drawn to pixels."""

    def __init__(self, values, first, last):
        self.low = math.floor(math.log10(min(values)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(values))))
        self.first, self.last = first, last

    def at(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.first + share * (self.last - self.first)

    def decades(self):
        return [10.0 ** power for power in range(self.low, self.high + 1)]


def number(value):
    return f"{value:g}" if value < 10000 else f"{value:,.0f}"


def text(x, y, words, anchor="start", colour="#222", size=FONT, more=""):
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size}"{more}>{words}'
            "</text>")


class Labels:
    """Places words beside their dots so that none covers another."""

    def __init__(self):
        self.taken = []

    def block(self, box):
        self.taken.append(box)

    def free(self, box):
        inside = LEFT < box[0] and box[2] < WIDTH - RIGHT and TOP < box[1] and box[3] < HEIGHT - BOTTOM
        return inside and all(box[2] <= other[0] or other[2] <= box[0] or box[3] <= other[1] or other[3] <= box[1]
                              for other in self.taken)

    def place(self, x, y, words):
        """The left end of the baseline nearest to (x, y) where the words fit; None when nowhere."""
        width = 0.58 * FONT * len(words)
        for away in range(8, 240, 6):
            for angle in range(0, 360, 15):
                dx, dy = away * math.cos(math.radians(angle)), away * math.sin(math.radians(angle))
                left = x + dx if dx >= 0 else x + dx - width
                box = (left - 2, y + dy - FONT, left + width + 2, y + dy + 3)
                if self.free(box):
                    self.block(box)
                    return left, y + dy
        return None


def axes(xs, ys):
    found = []
    for value in xs.decades():
        found.append(f'<line x1="{xs.at(value):.1f}" y1="{TOP}" x2="{xs.at(value):.1f}" y2="{HEIGHT - BOTTOM}" '
                     'stroke="#ddd"/>')
        found.append(text(xs.at(value), HEIGHT - BOTTOM + 18, number(value), "middle"))
    for value in ys.decades():
        found.append(f'<line x1="{LEFT}" y1="{ys.at(value):.1f}" x2="{WIDTH - RIGHT}" y2="{ys.at(value):.1f}" '
                     'stroke="#ddd"/>')
        found.append(text(LEFT - 8, ys.at(value) + 4, number(value), "end"))
    found.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, "arithmetic intensity, FLOP a byte", "middle", size=13))
    found.append(text(18, (TOP + HEIGHT - BOTTOM) / 2, "GFLOP a second", "middle", size=13,
                      more=f' transform="rotate(-90 18 {(TOP + HEIGHT - BOTTOM) / 2:.0f})"'))
    return found


def roofs(xs, ys, peaks, bandwidth, labels):
    """The memory's slope up to the highest peak, and a line for each peak. GFLOP/s and GB/s."""
    found = []
    low, high = 10.0 ** xs.low, 10.0 ** xs.high
    top = max(peaks.values())
    start = max(low, 10.0 ** ys.low / bandwidth)
    end = min(high, top / bandwidth)
    found.append(f'<line x1="{xs.at(start):.1f}" y1="{ys.at(start * bandwidth):.1f}" x2="{xs.at(end):.1f}" '
                 f'y2="{ys.at(end * bandwidth):.1f}" stroke="#222" stroke-width="1.5"/>')
    found.append(text(xs.at(start) + 8, ys.at(start * bandwidth) - 14, f"memory {bandwidth:.0f} GB/s"))
    for name, peak in peaks.items():
        begin = max(low, peak / bandwidth)
        found.append(f'<line x1="{xs.at(begin):.1f}" y1="{ys.at(peak):.1f}" x2="{xs.at(high):.1f}" '
                     f'y2="{ys.at(peak):.1f}" stroke="#222" stroke-width="1.5"/>')
        words = f"{name} {peak:,.0f} GFLOP/s"
        found.append(text(xs.at(high) - 4, ys.at(peak) - 5, words, "end"))
        labels.block((xs.at(high) - 7 * len(words), ys.at(peak) - 18, xs.at(high), ys.at(peak) + 2))
    return found


def leader(x, y, radius, place, label, colour):
    """A line from a dot to the near end of its label, where they are apart."""
    width = 0.58 * FONT * len(label)
    near, level = min(max(x, place[0]), place[0] + width), place[1] - FONT / 3
    if math.hypot(near - x, level - y) < radius + FONT:
        return []
    return [f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{near:.1f}" y2="{level:.1f}" stroke="{colour}" stroke-width="0.7"/>']


def dots(xs, ys, steps, labels):
    found, words = [], []
    for index, (title, step) in enumerate(steps):
        colour = COLOURS[index % len(COLOURS)]
        for kernel in step.kernels:
            if not kernel.flops or not kernel.seconds:
                continue
            share = kernel.seconds / step.seconds
            x, y = xs.at(kernel.intensity()), ys.at(kernel.flop_rate() / 1e9)
            radius = 3 + 14 * math.sqrt(share)
            told = f"{title}: {kernel.name}, {kernel.seconds * 1e3:.3f} ms"
            found.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}" fill-opacity="0.45" '
                         f'stroke="{colour}"><title>{told}</title></circle>')
            labels.block((x - radius / 2, y - radius / 2, x + radius / 2, y + radius / 2))
            if share >= LABELLED:
                words.append((share, x, y, radius, colour, f"{kernel.name[2:]} {share:.0%}"))
    for _, x, y, radius, colour, label in sorted(words, reverse=True):
        place = labels.place(x, y, label)
        if place:
            found += leader(x, y, radius, place, label, colour)
            found.append(text(*place, label, colour=colour, more=HALO))
    return found


def picture(title, steps, peaks, bandwidth):
    """The text of the SVG. `steps`: (title, Step) pairs; `peaks`: name -> GFLOP/s; `bandwidth`: GB/s."""
    kernels = [kernel for _, step in steps for kernel in step.kernels if kernel.flops and kernel.seconds]
    rates = [kernel.flop_rate() / 1e9 for kernel in kernels]
    intensities = [kernel.intensity() for kernel in kernels]
    xs = Scale([*intensities, *(peak / bandwidth for peak in peaks.values())], LEFT, WIDTH - RIGHT)
    ys = Scale([*rates, *(1.3 * peak for peak in peaks.values())], HEIGHT - BOTTOM, TOP)
    labels = Labels()
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>', text(LEFT, 24, title, size=16)]
    x = LEFT
    for index, (name, step) in enumerate(steps):
        words = f"{name}: {step.seconds * 1e3:.2f} ms"
        parts.append(f'<circle cx="{x + 6}" cy="44" r="6" fill="{COLOURS[index % len(COLOURS)]}"/>')
        parts.append(text(x + 17, 48, words, size=12))
        x += 36 + 6.2 * len(words)
    parts += axes(xs, ys) + roofs(xs, ys, peaks, bandwidth, labels) + dots(xs, ys, steps, labels)
    return "\n".join([*parts, "</svg>"]) + "\n"
