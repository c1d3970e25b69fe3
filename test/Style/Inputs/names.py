"""One name per thing: files and their banners and guards, passes and their files, tests in kebab case; and no term
that docs/Glossary.md has retired.

usage: names.py ROOT
"""
import os
import re
import sys

from tree import CPP, files, lines, report


# The runtime's public headers are named as C headers are, and mains as their programs.
C_NAMES = (r"main\.cpp|k2[\w-]*\.\w+|(numerics|placement|program|reserve|share|traffic|polynomials)\.h|"
           r"(abi|polynomials)\.def")
# A source longer than this has an idea to tell, in a banner of at least so many lines.
LONG, MIN_BANNER = 150, 4
# Texts that words are looked for in, and what has words of its own: the glossary, its test, texts of many scripts.
TEXT = (".td", ".md", ".mlir", ".test", ".long", ".sweep", ".py", ".sh", ".txt", ".yaml")
OWN_WORDS = ("docs/Glossary.md", "test/Style/names.test", "test/Style/Inputs/names.py", "test/EndToEnd/oracle/",
             "test/Runtime/tokenizers/")
CAMEL_CASE = re.compile(r"[A-Z]\w*\.\w+|" + C_NAMES)


def kebab(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


def banner(path, text):
    """A file begins with what it is; with the banner of LLVM, under its own name."""
    if text[0].startswith("//===-"):
        named = re.match(r"//===-+ (\S+) - \S.*-+===//$", text[0])
        if not named or not path.endswith(named[1]):
            yield f"{path}:1: the banner must read '//===- {os.path.basename(path)} - what it does ---===//'"
    elif not text[0].startswith(("//", "/*", "#", '"""')):
        yield f"{path}:1: no banner: begin with what the file does"


def idea(path, text):
    """A long source tells its idea before its first line of code, as lld's MarkLive and CIRCT's InferContext do."""
    count = len(text) - 1
    told = next((number for number, line in enumerate(text) if not line.startswith("//")), count)
    if path.startswith(("base/", "dialects/", "lib/", "runtime/", "tools/")) and count > LONG and told < MIN_BANNER:
        yield f"{path}: {count} lines and a banner of {told}: tell its idea in {MIN_BANNER} lines or more"


def guard(path, text):
    """K2C_SUPPORT_ERROR_H for base/Error.h, K2C_LIB_... and K2C_DIALECTS_... elsewhere."""
    place = re.sub(r"^(include/k2c|runtime/include/k2rt|runtime/src|unit)/", "", path)
    prefix = "K2RT_" if path.startswith("runtime/") else "K2C_"
    wanted = prefix + re.sub(r"[/.-]", "_", place).upper()
    found = [line.split()[1] for line in text if line.startswith("#ifndef ")][:1]
    if path.startswith(("base/", "include/", "lib/", "dialects/", "runtime/include/")) and found != [wanted]:
        yield f"{path}: the include guard is {found[0] if found else 'missing'}, not {wanted}"
    elif not found:
        yield f"{path}: has no include guard"


def passes(root):
    """A pass BoundDispersion is the flag bound-dispersion and the file BoundDispersion.cpp."""
    for group in ("Transforms", "Conversion"):
        for line in lines(root, f"include/k2c/{group}/Passes.td"):
            if declared := re.match(r'def (\w+) *: *Pass<"([\w-]+)"', line):
                if kebab(declared[1]) != declared[2]:
                    yield f"pass {declared[1]} has the flag {declared[2]}, not {kebab(declared[1])}"
                if not os.path.exists(os.path.join(root, "lib", group, declared[1] + ".cpp")):
                    yield f"pass {declared[1]} has no file lib/{group}/{declared[1]}.cpp"


def named_in_docs(root):
    """docs/Pipeline.md shows every form and every optional pass by its name."""
    page = "\n".join(lines(root, "docs/Pipeline.md"))
    for file, macro, pattern in (("Forms", "K2C_FORM", "=== {} ="),
                                 ("OptionalPasses", "K2C_OPTIONAL_PASS", "| {} | {} |")):
        for line in lines(root, f"include/k2c/Transforms/{file}.def"):
            if declared := re.match(macro + r'\(\w+, "([\w-]+)", "(.*)"\)', line):
                if pattern.format(declared[1], declared[2]) not in page:
                    yield f"docs/Pipeline.md does not have '{pattern.format(declared[1], declared[2])}'"


def terms(root):
    """What docs/Glossary.md has retired: a pattern, whether it is one of words, the term, what to say instead."""
    table = "\n".join(lines(root, "docs/Glossary.md")).partition("\n| retired |")[2]
    for term, say, pattern in re.findall(r"^\| ([a-z].*?) \| (.*?) \| (.*?) ?\|$", table, re.M):
        words = re.sub(r" \(.*|,.*", "", term)
        yield re.compile(pattern.strip("`").replace(r"\|", "|") or rf"\b{words}s?\b"), not pattern, words, say


def retired(root, paths):
    """No retired term in code, forms, messages, tests and docs. Words are also found as parts of identifiers."""
    known = list(terms(root))
    for path in paths:
        for number, line in enumerate(lines(root, path), 1):
            spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_-]", " ", line).lower()
            for pattern, is_words, term, say in known:
                if pattern.search(spaced if is_words else line):
                    yield f"{path}:{number}: '{term}' is retired (docs/Glossary.md): say {say}"


def main(root):
    code = ["base", "dialects", "fuzz", "include", "lib", "runtime", "tools", "unit"]
    sources = files(root, ".cpp", ".h", ".def", ".td", under=code)
    problems = [*passes(root), *named_in_docs(root)]
    for path in sources:
        text = lines(root, path)
        problems += banner(path, text)
        if path.endswith(".h"):
            problems += guard(path, text)
        if path.endswith(".cpp"):
            problems += idea(path, text)
        if not CAMEL_CASE.fullmatch(os.path.basename(path)):
            problems.append(f"{path}: a file of C++ has a name in CamelCase")
    scripts = files(root, ".py", ".sh", under=["fuzz", "models", "scripts", "test"])
    for path in scripts:
        if not lines(root, path)[0].startswith(("#", '"""')):
            problems.append(f"{path}:1: no banner: begin with what the file does")
    tests = files(root, ".test", ".long", ".sweep", ".mlir", under=["test"])
    for path in tests:
        if not re.fullmatch(r"[a-z0-9]+([-.][a-z0-9]+)*", os.path.basename(path)):
            problems.append(f"{path}: a test has a name in kebab-case")
    texts = files(root, *CPP, *TEXT) + [page for page in ["README.md"] if os.path.exists(os.path.join(root, page))]
    problems += retired(root, [path for path in texts if not path.startswith(OWN_WORDS)])
    report(problems, len(sources) + len(scripts) + len(tests), "files")


main(sys.argv[1])
