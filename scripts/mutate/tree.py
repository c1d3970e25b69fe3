"""A clone of a repository's HEAD in a folder of its own, where mutants are planted, built and tested."""
import contextlib
import fcntl
import os
import shutil
import subprocess
import time

MIN_LIMIT = 60.0  # seconds that a filter may always take; with a mutant, five times what it takes without


class TreeError(Exception):
    """The tree without a mutant cannot be used."""


def git(folder, *arguments):
    """The output of a git command."""
    return subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True, text=True).stdout.strip()


class Tree:
    """The clone of `root` in `work`/tree, at root's HEAD, configured; `jobs` compile at a time."""

    def __init__(self, root, work, settings, jobs):
        self.folder = os.path.join(work, "tree")
        self.settings, self.jobs = settings, jobs
        self.commit = git(root, "rev-parse", "HEAD")
        self.seconds = {}  # filter -> seconds without a mutant
        os.makedirs(work, exist_ok=True)
        self.lock = open(os.path.join(work, "lock"), "w", encoding="utf-8")  # held while this object lives
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise TreeError(f"another run plants mutants in {work}; wait for it, or name another folder with --work") \
                from error
        if not os.path.isdir(os.path.join(self.folder, ".git")):
            shutil.rmtree(self.folder, ignore_errors=True)
            subprocess.run(["git", "clone", "--quiet", "--no-checkout", root, self.folder], check=True)
        git(self.folder, "fetch", "--quiet", os.path.abspath(root), self.commit)
        git(self.folder, "checkout", "--quiet", "--force", "--detach", self.commit)
        code, output = self.run(settings.configure, 600)
        if code:
            raise TreeError(f"the clone does not configure:\n{tail(output)}")

    def run(self, command, limit):
        """Exit code and output of `command` in the clone; 124 after `limit` seconds, with all that it started ended."""
        environment = dict(os.environ)
        environment.setdefault("CCACHE_BASEDIR", self.folder)  # objects of other checkouts are found
        environment.setdefault("CCACHE_NOHASHDIR", "1")
        with subprocess.Popen(["bash", "-c", command], cwd=self.folder, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, start_new_session=True) as process:
            try:
                output, _ = process.communicate(timeout=limit)
                return process.returncode, output.decode(errors="replace")
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                output, _ = process.communicate()
                return 124, output.decode(errors="replace")
            except BaseException:  # an interrupt: nothing that was started goes on
                os.killpg(process.pid, 9)
                raise

    def build(self, targets):
        """True, or False and the output, as the build of `targets` says."""
        command = self.settings.build.replace("{jobs}", str(self.jobs)).replace("{targets}", " ".join(targets))
        code, output = self.run(command, 3600)
        return code == 0, output

    def prepare(self, test):
        """Builds what `test` needs and runs it without a mutant; raises TreeError unless it passes."""
        if test.text in self.seconds:
            return
        built, output = self.build(test.targets)
        if not built:
            raise TreeError(f"'{test.text}' does not build without a mutant:\n{tail(output)}")
        start = time.monotonic()
        code, output = self.run(test.command, 1800)
        if not test.has_passed(code, output):
            raise TreeError(f"'{test.text}' does not pass without a mutant:\n{tail(output)}")
        self.seconds[test.text] = time.monotonic() - start

    def passes(self, test):
        """True when the built tree passes `test`, in a time that no mutant's loop needs: out of time twice, for a
        machine may have been busy."""
        for _ in range(2):
            code, output = self.run(test.command, max(MIN_LIMIT, 5 * self.seconds[test.text]))
            if code != 124:
                break
        return test.has_passed(code, output)

    @contextlib.contextmanager
    def planted(self, path, text):
        """The file `path` holds `text` while the context lasts."""
        full = os.path.join(self.folder, path)
        with open(full, encoding="utf-8") as source:
            sound = source.read()
        try:
            write(full, text)
            yield
        finally:
            write(full, sound)

    def read(self, path):
        """The text of a file of the clone."""
        with open(os.path.join(self.folder, path), encoding="utf-8") as source:
            return source.read()


def write(path, text):
    """Writes `text` with a time that no earlier build has seen: builds compare times."""
    with open(path, "w", encoding="utf-8") as target:
        target.write(text)


def tail(output, lines=15):
    """The last lines of an output, indented."""
    return "\n".join("    " + line for line in output.strip().split("\n")[-lines:])
