"""end_mutants.py MUTATE TOY WORK: ends a run by SIGTERM while its mutant is planted and its filter waits; the source
must be sound then, and the filter ended."""
import os
import signal
import subprocess
import sys
import time

mutate, toy, work = sys.argv[1:]
waiting, source = os.path.join(work, "tree", "waiting"), os.path.join(work, "tree", "lib", "A", "a.cpp")
run = subprocess.Popen(["bash", mutate, "--root", toy, "--work", work, "condition"])
for _ in range(1000):
    if os.path.exists(waiting) and os.path.getsize(waiting):
        break
    time.sleep(0.05)
with open(waiting) as file, open(source) as code:
    pid = int(file.read())
    assert "b && c" not in code.read(), "the mutant is not planted"
run.send_signal(signal.SIGTERM)
assert run.wait(timeout=60) == 143, run.returncode
with open(source) as code:
    assert "b && c" in code.read(), "the mutant is still planted"
for _ in range(100):
    if not os.path.exists(f"/proc/{pid}"):
        sys.exit(0)
    time.sleep(0.05)
sys.exit(f"{pid} goes on")
