"""A lit test format for folders whose names have spaces; a module of its own because lit's workers import it."""
import os

import lit.formats
import lit.TestRunner


def quoted(path):
    return f'"{path}"' if " " in path else path


class PathQuotingShTest(lit.formats.ShTest):
    """A ShTest whose %s, %S, %p and %t are quoted where they have a space."""

    def execute(self, test, lit_config):
        source = test.getSourcePath()
        temporary = lit.TestRunner.getTempPaths(test)[1] + ".tmp"
        folder = os.path.dirname(source)
        paths = {"s": source, "S": folder, "p": folder, "t": temporary}
        extra = [(f"%{letter}(?![a-z])", quoted(path)) for letter, path in paths.items()]
        return lit.TestRunner.executeShTest(test, lit_config, self.execute_external, extra)
