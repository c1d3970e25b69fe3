"""Compares a page of `k2c plan --html` with the JSON of the same plan: sections, one bar for each class of ranks, a
phase, a tier and a point of the roofline for each that the JSON has, every number, nothing from elsewhere.

  check_plan_page.py PAGE JSON
"""
import html.parser
import json
import re
import sys

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(html.parser.HTMLParser):
    """Elements as (tag, attributes), the text of the style sheet, and tags that do not nest."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.wrong, self.style, self.texts = [], [], [], "", []
        self.feed(text)
        self.wrong += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes another element")

    def handle_data(self, text):
        if self.open and self.open[-1] == "style":
            self.style += text
        elif text.strip():
            self.texts.append(text)

    def all(self, tag, classes=None):
        return [
            attributes
            for each, attributes in self.elements
            if each == tag and (classes is None or classes in (attributes.get("class") or "").split())
        ]


def numbers_of(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return {number for item in value for number in numbers_of(item)}
    return {value} if isinstance(value, (int, float)) and not isinstance(value, bool) else set()


def sections_of(plan):
    """Those that have something to show."""
    shown = {
        "roofline": any(part["flops"] and part["seconds"] for part in plan["steps"]),
        "timeline": "pipeline" in plan,
        "traffic": any(tier["seconds"] for tier in plan["traffic"]),
        "frontier": "search" in plan,
    }
    names = ["summary", "memory", "step", "roofline", "timeline", "traffic", "frontier", "notes"]
    return [name for name in names if shown.get(name, True)]


def problems(page, plan):
    yield from page.wrong
    ids = [attributes.get("id") for attributes in page.all("section")]
    sections = sections_of(plan)
    if ids != sections:
        yield f"sections are {ids}, not {sections}"
    known = {attributes["id"] for _, attributes in page.elements if attributes.get("id")}
    for attributes in page.all("section"):
        if attributes.get("aria-labelledby") not in known:
            yield f"section {attributes.get('id')} has no title"
    for attributes in page.all("svg"):
        is_part = attributes.get("aria-hidden") == "true" or attributes.get("class") == "inner"
        if not is_part and not attributes.get("aria-label"):
            yield "a drawing has no label"
    yield from foreign(page)
    bars = [(bar["data-ranks"], int(bar["data-count"]), int(bar["data-total"])) for bar in page.all("g", "bar")]
    wanted = [(ranks["ranks"], ranks["count"], ranks["total_bytes"]) for ranks in plan["memory"]]
    if bars != wanted:
        yield f"bars of memory are {bars}, ranks are {wanted}"
    pools = {"prefill": plan["layout"].get("prefill", plan["layout"]), "decode": plan["layout"], "": plan["layout"]}
    replicas = [pools[ranks.get("pool", "")].get("replicas", 1) for ranks in plan["memory"]]
    if sum(n * ranks["count"] for n, ranks in zip(replicas, plan["memory"])) != plan["devices"]:
        yield "the ranks of the bars are not all devices"
    phases = list(dict.fromkeys(part["phase"] for part in plan["steps"]))
    if [phase["data-phase"] for phase in page.all("g", "phase")] != phases:
        yield f"phases drawn are not {phases}"
    tiers = [(tier["phase"], tier["tier"]) for tier in plan["traffic"] if any(t["seconds"] for t in plan["traffic"])]
    if [(tier["data-phase"], tier["data-tier"]) for tier in page.all("g", "tier")] != tiers:
        yield f"tiers drawn are not {tiers}"
    points = sum(part["flops"] > 0 and part["seconds"] > 0 for part in plan["steps"])
    if len(page.all("circle", "part")) != points:
        yield f"{len(page.all('circle', 'part'))} points on the roofline, {points} parts compute"
    lanes = len(plan.get("pipeline", {"ranks": []})["ranks"])
    if len(page.all("g", "lane")) != lanes:
        yield f"{len(page.all('g', 'lane'))} ranks on the timeline, {lanes} in the pipeline"
    shown = {float(attributes["data-value"]) for _, attributes in page.elements if "data-value" in attributes}
    for number in sorted(numbers_of(plan)):
        if float(number) not in shown:
            yield f"number {number!r} is not on the page"
    text = " ".join(page.texts)
    bands = [f"{name}: {band}" for name, band in plan["bands"].items()]
    for sentence in plan["summary"]["bounds"] + plan["summary"]["advice"] + plan["notes"] + bands:
        if sentence not in text:
            yield f"missing: {sentence}"


def foreign(page):
    """What would need a network, runs, or is styled by nothing."""
    for tag, attributes in page.elements:
        if tag in ("script", "link", "img", "iframe", "object", "embed"):
            yield f"there is a <{tag}>"
        for name, value in attributes.items():
            if name in ("src", "href", "xlink:href", "action") or name.startswith("on") or "://" in (value or ""):
                yield f"<{tag}> has {name}={value}"
    if "url(" in page.style or "@import" in page.style:
        yield "the style sheet loads something"
    styled = set(re.findall(r"\.([A-Za-z][A-Za-z0-9]*)", page.style)) | {"s0", "bar", "phase", "tier", "lane"}
    for _, attributes in page.elements:
        for name in (attributes.get("class") or "").split():
            if name not in styled:
                yield f"class {name} has no style"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        page = Page(file.read())
    with open(sys.argv[2], encoding="utf-8") as file:
        plan = json.load(file)
    found = list(dict.fromkeys(problems(page, plan)))
    for problem in found[:20]:
        print("check_plan_page:", problem, file=sys.stderr)
    print(f"{len(page.all('svg', None))} drawings, {len(numbers_of(plan))} numbers, {len(found)} problems")
    return bool(found)


sys.exit(main())
