"""Takes hosts away that list a process which has ended since, and looks whether a namespace is left."""
import subprocess

from hosts import Hosts


class Late(Hosts):
    """Lists one process that has ended, then none."""

    def __enter__(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        self.lists = [[gone.pid], []]
        return super().__enter__()

    def processes(self, host=None, program=None):
        return self.lists.pop(0)


with Late(1) as hosts:
    names = [*hosts.names, hosts.switch]
left = subprocess.run(["ip", "netns", "list"], stdout=subprocess.PIPE, text=True, check=True).stdout
print("left:", *[name for name in names if name in left] or ["nothing"])
