"""Holds a file of Kubernetes objects to the part of their published schemas that k2c uses (k8s_schemas.json): types,
required fields, values and, other than the API server, no field that is unknown, which it would drop.

usage: k8s_schema.py FILE
"""
import json
import os
import re
import sys

import yaml

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}


def problems(value, schema, schemas, place):
    """What is wrong with a value, each with its place."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"]]
    wanted = TYPES.get(schema.get("type"), object)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        yield f"{place}: is {value!r}, must be of type {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: is {value!r}, must be one of {schema['enum']}"
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        yield f"{place}: is {value!r}, must be as {schema['pattern']}"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{place}: is {value}, must be at least {schema['minimum']}"
    for key in schema.get("required", ()):
        if key not in value:
            yield f"{place}.{key}: is missing"
    if wanted is dict:
        for key, member in value.items():
            if key not in schema["properties"]:
                yield f"{place}.{key}: is unknown"
            else:
                yield from problems(member, schema["properties"][key], schemas, f"{place}.{key}")
    elif wanted is list:
        for number, member in enumerate(value):
            yield from problems(member, schema["items"], schemas, f"{place}[{number}]")


def main(path):
    with open(os.path.join(os.path.dirname(__file__), "k8s_schemas.json"), encoding="utf8") as file:
        schemas = json.load(file)
    with open(path, encoding="utf8") as file:
        objects = list(yaml.safe_load_all(file))
    wrong = []
    for one in objects:
        kind = f"{one.get('apiVersion')} {one.get('kind')}"
        wrong += problems(one, schemas[kind], schemas, one["kind"]) if kind in schemas else [f"{kind}: has no schema"]
    for line in wrong:
        print(line)
    print(f"{len(objects)} objects, {len(wrong)} mistakes")
    sys.exit(1 if wrong else 0)


main(*sys.argv[1:])
