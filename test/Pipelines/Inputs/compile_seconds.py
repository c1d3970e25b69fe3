"""compile_seconds.py SECONDS COMMAND..: the command, with all that it starts, takes at most so many of processors.

A busy machine adds nothing to them.
"""
import resource
import subprocess
import sys

subprocess.run(sys.argv[2:], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
seconds = used.ru_utime + used.ru_stime
print(f"{seconds:.1f} s of processors")
assert seconds <= float(sys.argv[1]), seconds
