"""Opens a page of `k2c plan --html` in headless Chromium at two widths and in both themes, measures it and looks at the
screenshot: the page does not scroll sideways, no text of a drawing leaves it or lies on another, and the drawings are
there in their colours.

  check_plan_layout.py CHROMIUM PAGE FOLDER
"""
import json
import os
import re
import struct
import subprocess
import sys
import zlib

# Runs in a copy of the page; the page itself has no script.
MEASURE = """<script>
addEventListener('load', () => {
  const found = [];
  if (document.documentElement.scrollWidth > innerWidth)
    found.push('the page is ' + document.documentElement.scrollWidth + ' wide in a window of ' + innerWidth);
  for (const svg of document.querySelectorAll('.chart svg')) {
    const name = svg.getAttribute('aria-label'), frame = svg.getBoundingClientRect(), boxes = [];
    for (const text of svg.querySelectorAll('text')) {
      const box = text.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 ||
          box.bottom > frame.bottom + 1)
        found.push(name + ': "' + text.textContent + '" leaves the drawing');
      for (const [other, words] of boxes) {
        const wide = Math.min(box.right, other.right) - Math.max(box.left, other.left);
        const high = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
        if (wide > 2 && high > 4)
          found.push(name + ': "' + text.textContent + '" lies on "' + words + '"');
      }
      boxes.push([box, text.textContent]);
    }
  }
  const drawn = document.querySelectorAll('.chart svg rect, .chart svg circle').length;
  document.body.dataset.measured = JSON.stringify({found, drawn, height: document.documentElement.scrollHeight});
});
</script>"""


def chromium(program, arguments, url):
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *arguments, url]
    return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout


def colours(path):
    """Colours of an 8-bit PNG with their pixels."""
    with open(path, "rb") as file:
        data = file.read()
    at, compressed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, _, mode = struct.unpack(">IIBB", body[:10])
        if kind == b"IDAT":
            compressed += body
        at += length + 12
    channels = {2: 3, 6: 4}[mode]
    raw, stride = zlib.decompress(compressed), width * channels
    counts, above = {}, bytes(stride)
    for row in range(height):
        begin = row * (stride + 1)
        line = unfilter(raw[begin], bytearray(raw[begin + 1 : begin + 1 + stride]), above, channels)
        for x in range(0, stride, channels * 3):  # every third pixel is enough
            colour = bytes(line[x : x + 3])
            counts[colour] = counts.get(colour, 0) + 1
        above = line
    return counts


def unfilter(kind, line, above, channels):
    for i in range(len(line)):
        left = line[i - channels] if i >= channels else 0
        up, corner = above[i], above[i - channels] if i >= channels else 0
        if kind == 1:
            line[i] = (line[i] + left) & 255
        elif kind == 2:
            line[i] = (line[i] + up) & 255
        elif kind == 3:
            line[i] = (line[i] + (left + up) // 2) & 255
        elif kind == 4:
            guess = left + up - corner
            nearest = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))
            line[i] = (line[i] + nearest[2]) & 255
    return line


def main():
    program, page, folder = sys.argv[1:4]
    with open(page, encoding="utf-8") as file:
        text = file.read()
    os.makedirs(folder, exist_ok=True)
    measured = os.path.join(folder, "measured.html")
    with open(measured, "w", encoding="utf-8") as file:
        file.write(text.replace("</body>", MEASURE + "</body>"))
    found = []
    for width in (1280, 500):
        dom = chromium(program, [f"--window-size={width},900", "--dump-dom"], "file://" + os.path.abspath(measured))
        match = re.search(r'data-measured="([^"]*)"', dom)
        if not match:
            found.append(f"{width}: the page did not load")
            continue
        result = json.loads(match.group(1).replace("&quot;", '"').replace("&lt;", "<").replace("&amp;", "&"))
        found += [f"{width}: {problem}" for problem in result["found"]]
        print(f"{width} pixels wide: {result['height']} high, {result['drawn']} shapes")
    for theme, sheet in zip(("dark", "light"), (1, 0)):
        picture = os.path.join(folder, theme + ".png")
        chromium(
            program,
            [f"--blink-settings=preferredColorScheme={1 - sheet}", "--window-size=900,1600", "--screenshot=" + picture],
            "file://" + os.path.abspath(page),
        )
        colour = re.findall(r"--page: #([0-9a-f]{6})", text)[sheet]
        names = ("blue", "green", "orange", "purple")
        drawn = [re.findall(f"--{name}: #([0-9a-f]{{6}})", text)[sheet] for name in names]
        counts = colours(picture)
        if counts.get(bytes.fromhex(colour), 0) < sum(counts.values()) / 3:
            found.append(f"{theme}: the page is not mostly #{colour}")
        if sum(counts.get(bytes.fromhex(each), 0) for each in drawn) < 300:
            found.append(f"{theme}: nothing is drawn in {drawn}")
    for problem in found[:20]:
        print("check_plan_layout:", problem, file=sys.stderr)
    return bool(found)


sys.exit(main())
