"""The table of mutants: files test/Mutants/*.txt, read and held against the sources.

A mutant is a head of fields, one a line, and the text before and after:

    mutant append-after-attention
    file   lib/Transforms/CallEffects.cpp
    why    an append behind an attention needs no barrier
    fails  opt Transforms/group-launches-effects
    <<<<
                   (is<AppendDesc>(second) && readsPlanes(first));
    ====
                   false;
    >>>>

`fails` names the filter that must fail (settings.py). The text before may begin within a line and span several; it must
stand in the file exactly once, so that whoever moves code moves its mutant. `equal REASON` says that no test can tell
the mutant from the program. Lines that begin with # outside of texts are comments.
"""
import dataclasses
import glob
import hashlib
import os

FIELDS = ("mutant", "file", "why", "fails", "equal")
MAX_EQUAL = 8  # mutants that may be called equivalent


class TableError(Exception):
    """An error of the table: its place and what is wrong."""


@dataclasses.dataclass
class Mutant:
    """One change of one file, and the filter that must fail with it."""
    name: str
    file: str
    why: str
    fails: str
    before: str
    after: str
    equal: str = ""
    place: str = ""

    def key(self):
        """What a verdict depends on, beside the commit."""
        text = "\0".join((self.file, self.fails, self.before, self.after))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def planted(self, text):
        """`text` of the file with the mutant in it."""
        found = text.count(self.before)
        if found != 1:
            raise TableError(f"{self.place}: mutant {self.name}: its text stands {found} times in {self.file}, "
                             "not once; move the mutant along with the code")
        return text.replace(self.before, self.after)


def read_head(lines, number, path):
    """The fields from line `number` on, and the number of the line that opens the text before."""
    fields = {}
    while number < len(lines) and lines[number] != "<<<<":
        name, _, value = lines[number].partition(" ")
        if name not in FIELDS or name in fields or not value.strip():
            raise TableError(f"{path}:{number + 1}: expected one of {', '.join(FIELDS)}, once and with a value, "
                             f"or <<<<, got '{lines[number]}'")
        fields[name] = value.strip()
        number += 1
    missing = [name for name in FIELDS[:4] if name not in fields]
    if missing:
        raise TableError(f"{path}:{number + 1}: a mutant without {', '.join(missing)}")
    return fields, number


def read_text(lines, number, end, path):
    """The lines up to the marker `end`, and the number of the line behind it."""
    for last in range(number, len(lines)):
        if lines[last] == end:
            return "\n".join(lines[number:last]), last + 1
    raise TableError(f"{path}:{number}: the text has no end: {end} is missing")


def read_file(root, path):
    """The mutants of one file of the table."""
    with open(os.path.join(root, path), encoding="utf-8") as source:
        lines = source.read().split("\n")
    mutants, number = [], 0
    while number < len(lines):
        if not lines[number].strip() or lines[number].startswith("#"):
            number += 1
            continue
        place = f"{path}:{number + 1}"
        head, number = read_head(lines, number, path)
        before, number = read_text(lines, number + 1, "====", path)
        after, number = read_text(lines, number, ">>>>", path)
        if not before.strip() or before == after:
            raise TableError(f"{place}: mutant {head['mutant']} changes nothing")
        mutants.append(Mutant(head["mutant"], head["file"], head["why"], head["fails"], before, after,
                              head.get("equal", ""), place))
    return mutants


def read(root):
    """All mutants, in the order of the files' names. Raises TableError at the first that cannot be read."""
    paths = sorted(os.path.relpath(path, root) for path in glob.glob(os.path.join(root, "test", "Mutants", "*.txt")))
    mutants = [mutant for path in paths for mutant in read_file(root, path)]
    names = set()
    for mutant in mutants:
        if mutant.name in names:
            raise TableError(f"{mutant.place}: a second mutant is named {mutant.name}")
        names.add(mutant.name)
    return mutants


def problems(root, mutants, settings):
    """What is wrong with mutants against the sources of `root`: each text once in its file, filters known, few called
    equivalent and each of these in docs/Testing.md."""
    found = []
    for mutant in mutants:
        try:
            settings.filter(mutant.fails)
            with open(os.path.join(root, mutant.file), encoding="utf-8") as source:
                mutant.planted(source.read())
        except OSError:
            found.append(f"{mutant.place}: mutant {mutant.name}: there is no {mutant.file}")
        except (TableError, ValueError) as error:
            text = str(error)
            found.append(text if text.startswith(mutant.place) else f"{mutant.place}: mutant {mutant.name}: {text}")
    found += [f"test/Mutants/settings.ini: no [draw ..] holds {folder}, so no mutant is drawn there"
              for folder in settings.folders_without_draw(root)]
    equal = [mutant for mutant in mutants if mutant.equal]
    if len(equal) > MAX_EQUAL:
        found.append(f"{len(equal)} mutants are called equivalent, at most {MAX_EQUAL} may be")
    explained = ""
    if equal and os.path.exists(os.path.join(root, "docs", "Testing.md")):
        with open(os.path.join(root, "docs", "Testing.md"), encoding="utf-8") as source:
            explained = source.read()
    found += [f"{mutant.place}: mutant {mutant.name} is called equivalent, and docs/Testing.md does not say why"
              for mutant in equal if f"`{mutant.name}`" not in explained]
    return found
