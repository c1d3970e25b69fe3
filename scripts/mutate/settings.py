"""How a tree is built and tested: test/Mutants/settings.ini.

[tree] says how to configure and build; each [filter KIND] which targets a filter needs, how it runs, and what its
output has when tests have run and passed ({1} and so on stand for the words behind KIND); each [draw FOLDER] the
filters that drawn mutants of a folder meet, one a line.
"""
import configparser
import dataclasses
import os
import re
import shlex

import draw


@dataclasses.dataclass
class Filter:
    """A narrow set of tests."""
    text: str
    targets: list
    command: str
    passed: str

    def has_passed(self, code, output):
        """Tests have run, and none failed."""
        return code == 0 and re.search(self.passed, output) is not None


class Settings:
    """The settings of the tree `root`."""

    def __init__(self, root):
        self.parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
        path = os.path.join(root, "test", "Mutants", "settings.ini")
        if not self.parser.read(path, encoding="utf-8"):
            raise ValueError(f"there is no {path}")
        self.configure = self.parser["tree"]["configure"]
        self.build = self.parser["tree"]["build"]

    def filter(self, text):
        """The filter that `text` names: KIND WORD ..."""
        kind, *words = shlex.split(text)
        if f"filter {kind}" not in self.parser:
            raise ValueError(f"no filter is named '{kind}'; test/Mutants/settings.ini has those that are")
        section = self.parser[f"filter {kind}"]

        def filled(value):
            used = max((int(number) for number in re.findall(r"\{(\d)\}", section["run"])), default=0)
            if used != len(words):
                raise ValueError(f"the filter '{kind}' takes {used} words, got {len(words)}: '{text}'")
            return re.sub(r"\{(\d)\}", lambda m: shlex.quote(words[int(m[1]) - 1]), value)

        return Filter(text, filled(section["targets"]).split(), filled(section["run"]), section["passed"])

    def folders_without_draw(self, root):
        """Folders of sources that no [draw FOLDER] holds, so that nothing would ever be drawn there."""
        folders = self.drawn_folders()
        return sorted({os.path.dirname(path) for path in draw.sources(root) if not draw.folder_of(path, folders)})

    def drawn_folders(self):
        """Folder -> the filters of its drawn mutants."""
        return {name.split()[1]: [line for line in self.parser[name]["filters"].split("\n") if line.strip()]
                for name in self.parser.sections() if name.startswith("draw ")}
