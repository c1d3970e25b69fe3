"""What the lit suites of test/ and unit/ share: tiers, time limits, and what this machine has."""
import ctypes.util
import os
import shutil
import subprocess

from Harness.hosts import memory_controller

# Seconds that one test may take, by tier: a deadlock ends as a failure. Tests of a tier take a tenth of it.
LIMITS = {"fast": 120, "check": 300, "long": 600, "sweep": 7200}
# Folders whose tests compile and run whole programs: tier check. The others, and the unit tests, are tier fast.
PROGRAMS = {"Bundle", "Cluster", "EndToEnd", "Hostile", "Onnx", "Runtime", "Semantics", "Tools"}


def tier(lit_config):
    """The tier that --param tier=NAME asks for; None: fast and check, for a test that is run by hand."""
    name = lit_config.params.get("tier")
    if name is not None and name not in LIMITS:
        lit_config.fatal(f"tier={name}: is none of {', '.join(LIMITS)}")
    return name


def suffixes(tier):
    return {"long": [".long"], "sweep": [".sweep"]}.get(tier, [".mlir", ".test"])


def excluded_folders(tier, root):
    """The folders directly below `root` that belong to another tier."""
    folders = {entry.name for entry in os.scandir(root) if entry.is_dir()}
    return sorted({"fast": folders & PROGRAMS, "check": folders - PROGRAMS}.get(tier, ()))


def limit_time(lit_config, tier):
    try:
        import psutil  # noqa: F401: lit ends the processes of a test with it
    except ImportError:
        lit_config.fatal("python3-psutil is missing, without which no test has a time limit; run scripts/setup.sh")
    if lit_config.maxIndividualTestTime == 0:  # --timeout of the command line wins
        lit_config.maxIndividualTestTime = LIMITS[tier or "long"]


def chromium():
    return shutil.which("chromium") or shutil.which("google-chrome")


def can_mount():
    """Whether a test may mount a file system of its own: in a namespace, as any user where the system allows it."""
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def mpi_launcher(library, says):
    """The mpirun of an MPI library, by Debian's name for it or by what it says of itself."""
    for name in (f"mpirun.{library}", "mpirun"):
        path = shutil.which(name)
        try:
            if path and says in subprocess.run([path, "--version"], capture_output=True, text=True).stdout:
                return path
        except OSError:
            pass
    return None


def openmpi():
    """How a test starts ranks under Open MPI: more than processors, as root, too."""
    path = mpi_launcher("openmpi", "Open MPI")
    as_root = "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
    return path and f"{as_root} {path} --oversubscribe --bind-to none --mca mpi_yield_when_idle 1"


def mpich():
    """The same under MPICH."""
    return mpi_launcher("mpich", "HYDRA")


def can_make_hosts():
    """Whether this process may make network namespaces with names and mounts of their own (Harness/hosts.py)."""
    name = f"k2c-probe-{os.getpid()}"
    try:
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
        inside = ["ip", "netns", "exec", name, "unshare", "--uts", "--mount", "true"]
        works = made and subprocess.run(inside, capture_output=True).returncode == 0
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
    except OSError:
        return False
    return works and shutil.which("tc")


def features(cpuinfo="/proc/cpuinfo"):
    """What a test may name behind REQUIRES; a test that asks for more is UNSUPPORTED, and counted."""
    with open(cpuinfo) as file:
        flags = next((set(line.split(":")[1].split()) for line in file if line.startswith("flags")), set())
    found = {
        "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags,
        "avx512bf16": "avx512_bf16" in flags,
        "cgroups": memory_controller(),
        "chromium": chromium(),
        "clang-format": shutil.which("clang-format-22"),
        "cuda": os.path.exists("/dev/nvidiactl"),
        "groff": shutil.which("groff"),
        "mpich": mpich(),
        "namespaces": can_make_hosts(),
        "openmpi": openmpi(),
        "pkg-config": shutil.which("pkg-config"),
        "ptxas": shutil.which("ptxas"),
        "shellcheck": shutil.which("shellcheck"),
        "slurm": all(map(shutil.which, ("slurmctld", "slurmd", "sbatch", "munged", "nsenter"))),
        "tmpfs": can_mount(),
        "ucx": ctypes.util.find_library("ucp"),
    }
    return {name for name, there in found.items() if there}
