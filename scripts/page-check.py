#!/usr/bin/env python3
"""Opens pages of `k2c plan --html` in headless Chromium, 500 and 1400 pixels wide, light and dark, writes a screenshot
of each and measures them with everything unfolded. Fails where a part must be scrolled sideways, text is cut, leaves
its drawing or its box, or lies on other text of a drawing, or where the theme is not the one asked for.

usage: scripts/page-check.py -o FOLDER [--planner FILE] [--chromium FILE] [PAGE.html ...]
Without pages, those of a serving, a training, a refused, a two-pool and a searched plan are made.
"""
import argparse
import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLANS = {
    "serving": "deepseek-v3 --topology 4x8-h100 --layout ep=32,overlap=1",
    "training": "kimi-k2 --topology 256-h800 --train --layout ep=16,dp=16,pp=16,recompute=full,zero=os+g",
    "long-pipeline": "kimi-k2 --topology 256-h800 --train --layout "
    "ep=16,dp=16,pp=16,schedule=interleaved,chunks=2,recompute=full,zero=os+g",
    "refused": "kimi-k2 --topology 256-h800 --train --layout ep=16,dp=16,pp=16,zero=os,microbatches=32",
    "pools": "deepseek-v3 --topology 4x8-h100 --layout ep=16,prefill.ep=8,prefill.pp=2,prefill.redundant=16",
    "search": "olmoe --topology h100x8 --search",
}

PATIENCE = 60  # seconds for one page or answer

# Runs in the page and says what is wrong with it.
MEASURE = """(() => {
  document.querySelectorAll('details').forEach(each => each.open = true);
  const found = [], near = 1.5;
  const name = e => e.tagName.toLowerCase() + (e.className.baseVal ?? e.className ? '.' +
    (e.className.baseVal ?? e.className) : '') + ' "' + e.textContent.trim().slice(0, 40) + '"';
  const page = document.scrollingElement;
  if (page.scrollWidth > page.clientWidth)
    found.push('the page is ' + page.scrollWidth + ' wide in a window of ' + page.clientWidth);
  for (const e of document.querySelectorAll('body *:not(svg *)'))
    if (e.clientWidth && e.scrollWidth > e.clientWidth + near && getComputedStyle(e).display !== 'inline')
      found.push(name(e) + (getComputedStyle(e).overflowX === 'hidden' ? ' is cut: ' : ' must be scrolled sideways: ') +
        e.scrollWidth + ' wide in ' + e.clientWidth);
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text; (text = texts.nextNode());) {
    if (!text.data.trim() || text.parentElement.closest('svg, script, style'))
      continue;
    let box = text.parentElement;
    while (getComputedStyle(box).display === 'inline')
      box = box.parentElement;
    const range = document.createRange(), frame = box.getBoundingClientRect();
    range.selectNodeContents(text);
    for (const line of range.getClientRects())
      if (line.left < frame.left - near || line.right > frame.right + near) {
        found.push('"' + text.data.trim() + '" leaves its box');
        break;
      }
  }
  for (const svg of document.querySelectorAll('.chart > svg')) {
    const label = svg.getAttribute('aria-label'), frame = svg.getBoundingClientRect(), boxes = [];
    for (const text of svg.querySelectorAll('text')) {
      const box = text.getBoundingClientRect(), words = text.textContent;
      if (!box.width)
        continue;
      if (box.left < frame.left - near || box.right > frame.right + near || box.top < frame.top - near ||
          box.bottom > frame.bottom + near)
        found.push(label + ': "' + words + '" leaves the drawing');
      for (const [other, before] of boxes)
        if (Math.min(box.right, other.right) - Math.max(box.left, other.left) > near &&
            Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top) > 4)
          found.push(label + ': "' + words + '" lies on "' + before + '"');
      boxes.push([box, words]);
    }
  }
  const light = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(part => part > 127);
  return JSON.stringify({found, light, height: page.scrollHeight,
                         shapes: document.querySelectorAll('.chart rect, .chart circle').length});
})()"""


# The page's address, once it is complete.
LOADED = """new Promise(done => document.readyState == "complete" ? done(location.href)
                                 : addEventListener("load", () => done(location.href)))"""


class Browser:
    """Chromium's protocol for developers, over a pipe: JSON messages that end with a zero byte."""

    def __init__(self, program, folder):
        toBrowser, self.into = os.pipe()
        self.out, fromBrowser = os.pipe()
        # It reads 3 and writes 4. Copies out of the way, so that neither is overwritten before it is copied.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (toBrowser, fromBrowser)]
        command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-extensions"]
        command += ["--remote-debugging-pipe", "--user-data-dir=" + folder, "about:blank"]
        self.process = subprocess.Popen(
            command,
            preexec_fn=lambda: (os.dup2(ends[0], 3), os.dup2(ends[1], 4)),
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (toBrowser, fromBrowser, *ends):
            os.close(end)
        self.sent, self.rest, self.session = 0, b"", None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def message(self):
        while b"\0" not in self.rest:
            if not select.select([self.out], [], [], PATIENCE)[0]:
                sys.exit(f"page-check.py: the browser has not answered for {PATIENCE} seconds")
            read = os.read(self.out, 1 << 20)
            if not read:
                raise BrokenPipeError
            self.rest += read
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.sent += 1
        message = {"id": self.sent, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.into, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.sent:
                if "error" in answer:
                    sys.exit(f"page-check.py: {method}: {answer['error']['message']}")
                return answer["result"]

    def open(self, path, width, theme):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        url = pathlib.Path(path).resolve().as_uri()
        self.call("Page.navigate", url=url)
        # An event of a load may be that of the page before, or come before navigate's answer: the page is asked.
        end = time.monotonic() + PATIENCE
        while self.call("Runtime.evaluate", expression=LOADED, awaitPromise=True)["result"].get("value") != url:
            if time.monotonic() > end:
                sys.exit(f"page-check.py: {path} is not loaded after {PATIENCE} seconds")

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def measure(self):
        return json.loads(self.call("Runtime.evaluate", expression=MEASURE)["result"]["value"])

    def end(self):
        self.process.terminate()
        self.process.wait()


def plan(planner, folder):
    pages = []
    for name, arguments in PLANS.items():
        page = os.path.join(folder, name + ".html")
        done = subprocess.run([planner, *arguments.split(), "--html", page], capture_output=True, text=True)
        if done.returncode != (1 if name == "refused" else 0):
            sys.exit(f"page-check.py: {name}: {done.stderr.strip() or 'was not refused'}")
        pages.append(page)
    return pages


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", required=True, metavar="FOLDER", help="for pages and screenshots")
    parser.add_argument("--planner", default=os.path.join(ROOT, "build", "bin", "k2c-plan"))
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    parser.add_argument("pages", nargs="*", metavar="PAGE.html")
    options = parser.parse_args()
    if not options.chromium:
        sys.exit("page-check.py: there is no browser; apt-get install chromium")
    os.makedirs(options.o, exist_ok=True)
    pages = options.pages or plan(options.planner, options.o)
    problems = 0
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(options.chromium, profile)
        for page in pages:
            for width in (500, 1400):
                for theme in ("light", "dark"):
                    name = f"{os.path.splitext(os.path.basename(page))[0]}-{width}-{theme}"
                    browser.open(page, width, theme)
                    browser.picture(os.path.join(options.o, name + ".png"))
                    found = browser.measure()
                    if found["light"] != (theme == "light"):
                        found["found"].append("the page is in the other theme")
                    for problem in found["found"]:
                        print(f"{name}: {problem}", file=sys.stderr)
                    problems += len(found["found"])
                    print(f"{name}: {found['shapes']} shapes, {found['height']} pixels high unfolded")
        browser.end()
    print(f"{len(pages)} pages, {problems} problems")
    return bool(problems)


try:
    sys.exit(main())
except BrokenPipeError:
    sys.exit("page-check.py: the browser has ended")
