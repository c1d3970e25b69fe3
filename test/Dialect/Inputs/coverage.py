"""Checks that a dialect is documented and tested: reads llvm-tblgen's JSON of its Ops.td and the dialect's tests.

Every op, attribute and type has a summary; every op a description and a place in ops.mlir; every constraint [Cn] of a
description has a negative test naming it, and every id a test names is described.
usage: coverage.py NAME dump.json TEST_FOLDER
"""
import json
import pathlib
import re
import sys


def definitions(dump, dialect):
    """(kind, name as diagnostics write it, record) of each op, attribute and type of `dialect`."""
    for record in dump.values():
        classes = record.get("!superclasses", []) if isinstance(record, dict) else []
        owner = record.get("opDialect") or record.get("dialect") if classes else None
        if not owner or dump[owner["def"]]["name"] != dialect:
            continue
        if "Op" in classes:
            yield "op", f"{dialect}.{record['opName']}", record
        elif "AttrDef" in classes:
            yield "attribute", f"#{dialect}.{record['mnemonic']}", record
        elif "TypeDef" in classes:
            yield "type", f"!{dialect}.{record['mnemonic']}", record


def main(dialect, dump_path, folder):
    dump = json.loads(pathlib.Path(dump_path).read_text())
    folder = pathlib.Path(folder)
    ops, invalid = ("".join(path.read_text() for path in folder.glob(name)) for name in ("ops*.mlir", "invalid*.mlir"))
    problems = []
    tested = set(re.findall(r"'([#!]?[a-z_.]+)' (?:op )?\[(C\d+)\]", invalid))
    described = set()
    count = 0
    for kind, name, record in definitions(dump, dialect):
        count += 1
        if not record.get("summary"):
            problems.append(f"{name}: no summary")
        description = record.get("description") or ""
        if kind == "op":
            if not description.strip():
                problems.append(f"{name}: no description")
            if not re.search(rf"^[^/\n]*\b{re.escape(name)}\b", ops, re.M):
                problems.append(f"{name}: not in ops.mlir")
        for constraint in set(re.findall(r"\[(C\d+)\]", description)):
            described.add((name, constraint))
            if (name, constraint) not in tested:
                problems.append(f"{name}: [{constraint}] has no negative test")
    for name, constraint in sorted(tested - described):
        # [C1] of ops that keep the row space is described by the RowSpaceOp interface.
        if constraint != "C1" and name.lstrip("#!").startswith(dialect + "."):
            problems.append(f"{name}: [{constraint}] is tested but not described")
    if not count:
        problems.append(f"{dialect}: no definitions found")
    print("\n".join(problems) or f"{dialect}: {count} definitions covered")
    return 1 if problems else 0


sys.exit(main(*sys.argv[1:]))
