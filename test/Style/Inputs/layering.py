"""Holds every #include and every LINK of a CMakeLists.txt against the table of docs/Architecture.md, and the table
against itself: arrows of it may not run in a circle.

usage: layering.py ROOT
"""
import os
import re
import sys

from tree import CPP, files, lines, report

# Headers of include/k2c/Kernels that are not of the part without MLIR.
KERNEL_HEADERS = {"Describe.h": "Kernels/Describe", "TileAttr.h": "Kernels/Describe",
                  "LayoutAttr.h": "Kernels/Describe", "TouchAttr.h": "Kernels/Describe", "Cpu.h": "Kernels/Cpu",
                  "Nvidia.h": "Kernels/Nvidia"}
# A library's part, where it is not its name without K2C.
LIBRARIES = {"K2CKernelModel": "Kernels/Model", "K2CKernelDescribe": "Kernels/Describe",
             "K2CKernelCpu": "Kernels/Cpu", "K2CKernelNvidia": "Kernels/Nvidia", "K2CNvidia": "Target",
             "K2CPackage": "Target", "K2CPlanCommand": "tools", "K2CCommandLine": "tools",
             "MLIR": "mlir", "LLVM": "mlir", "k2c-base": "base",
             "k2rt-text": "runtime/text", "k2rt-sampling": "runtime/sampling",
             "k2rt-transport": "runtime/transport", "k2rt-exchange": "runtime/exchange"}
# Folders of runtime/src, which include each other by these names.
COMPONENTS = ("program", "text", "sampling", "transport", "exchange", "engine", "device/cpu", "device/cuda", "device",
              "api", "run")
DIALECTS = {"K2CNn", "K2CMoe", "K2CMla", "K2CDist", "K2CMem", "K2CKern", "K2CRt"}


def table(root):
    """Part -> what it may include, of all its rows."""
    allowed = {}
    for line in lines(root, "docs/Architecture.md"):
        if row := re.match(r"([\w/]+) +->(.*)$", line):
            names = {name.strip() for name in row[2].split(",")} - {""}
            allowed[row[1]] = allowed.get(row[1], set()) | names
    return allowed


def circles(allowed):
    """Each part from which arrows of the table lead back to it."""
    def reached(part, seen):
        for used in (allowed.get(part) or set()) - seen:
            seen.add(used)
            reached(used, seen)
        return seen
    return [f"docs/Architecture.md: {part} may include itself through others: a circle"
            for part in sorted(allowed) if part in reached(part, set())]


def component_of(path):
    """The component of the runtime that a path below runtime/src begins with; of another, its folder."""
    known = [component for component in COMPONENTS if path.startswith(component + "/")]
    return f"runtime/{known[0] if known else os.path.dirname(path)}".rstrip("/")


def part_of(path):
    """The part that a file, or a header as it is included, belongs to."""
    steps = path.split("/")
    if steps[:2] == ["runtime", "src"]:
        return component_of("/".join(steps[2:]))
    if steps[:2] == ["runtime", "include"]:
        return "runtime/include"
    if path.startswith(tuple(component + "/" for component in COMPONENTS)):
        return component_of(path)
    if steps[0] in ("mlir", "llvm", "llvm-c", "mlir-c", "clang", "lld"):
        return "mlir"
    if steps[0] == "k2rt":
        return path
    if steps[0] in ("base", "dialects", "tools"):
        return steps[0]
    if steps[0] == "k2c" or steps[0] == "lib" or steps[:2] == ["include", "k2c"]:
        steps = steps[2 if steps[0] == "include" else 1:]
        if steps[0] == "Kernels":
            return KERNEL_HEADERS.get(steps[1], "Kernels/Model") if len(steps) == 2 else f"Kernels/{steps[1]}"
        return steps[0]
    return None


def library_part(name):
    if name in DIALECTS:
        return "dialects"
    if name in LIBRARIES:
        return LIBRARIES[name]
    own = name[3:] if name.startswith("K2C") else "runtime" if name.startswith("k2rt") else None
    return own


def forbidden(allowed, part, used):
    if part not in allowed:
        return True
    return used is not None and used != part and used not in allowed[part]


def includes(root, allowed):
    """(problem or None) for each #include of a file that has a part."""
    for path in files(root, *CPP, ".td", under=["base", "dialects", "include", "lib", "runtime", "tools"]):
        part = part_of(path)
        for number, line in enumerate(lines(root, path), 1):
            include = re.match(r'\s*#?include\s*["<]([^">]+)[">]', line)
            if not include:
                continue
            used = part_of(include[1])
            if used and used.startswith("runtime/") and not path.startswith("runtime/"):
                yield f"{path}:{number}: {include[1]} is a private header of the runtime"
                continue
            yield (f"{path}:{number}: {part} may not include {include[1]}"
                   if forbidden(allowed, part, used) else None)


def links(root, allowed):
    """The same for the libraries that a target names."""
    for path in files(root, "CMakeLists.txt", under=["base", "dialects", "lib", "runtime", "tools"]):
        text = "\n".join(re.sub(r"#.*", "", line) for line in lines(root, path))
        for call in re.finditer(r"(?:k2c_(?:library|tool|dialect)|target_link_libraries)\(([^)]*)\)", text):
            words = call[1].split("DEPENDS")[0].split()
            part = part_of(path.replace("CMakeLists.txt", "x"))
            keyword = "PRIVATE" if call[0].startswith("target") else "LINK"
            linked = words[words.index(keyword) + 1:] if keyword in words else []
            if "MLIR" in words[:2]:
                linked.append("MLIR")
            for name in linked:
                yield (f"{path}: {words[0]} ({part}) may not link {name}"
                       if forbidden(allowed, part, library_part(name)) else None)


def main(root):
    allowed = table(root)
    found = [*circles(allowed), *includes(root, allowed), *links(root, allowed)] if allowed else []
    report([problem for problem in found if problem], len(found), "includes and links")


main(sys.argv[1])
