"""Judges a description of an API with tools that are not ours: `openapi_check.py FILE`.

The document is valid for openapi-spec-validator, and every example and default in it is valid for its schema by jsonschema.
Prints each problem, and exits with 1 if there is one.
"""

import json
import sys

from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

DOCUMENT = "urn:document"
# The keywords of a schema whose value is a schema, a list of schemas, or schemas by name.
ONE = ["additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedProperties"]
LIST = ["allOf", "anyOf", "oneOf", "prefixItems"]
NAMED = ["$defs", "dependentSchemas", "patternProperties", "properties"]


def steps(pointer):
    """The pointer as a JSON pointer."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in pointer)


def examples(schema, pointer):
    """Each value that a schema shows of itself, with the pointers of the value and of the schema."""
    if not isinstance(schema, dict):
        return
    for name in ["example", "default"]:
        if name in schema:
            yield schema[name], pointer + [name], pointer
    for at, value in enumerate(schema.get("examples", [])):
        yield value, pointer + ["examples", at], pointer
    for name in ONE:
        yield from examples(schema.get(name), pointer + [name])
    for name in LIST:
        for at, below in enumerate(schema.get(name, [])):
            yield from examples(below, pointer + [name, at])
    for name in NAMED:
        for key, below in schema.get(name, {}).items():
            yield from examples(below, pointer + [name, key])


def described(node, pointer):
    """The same for all that is not a schema: parameters, headers, bodies and whatever contains them."""
    if isinstance(node, list):
        for at, below in enumerate(node):
            yield from described(below, pointer + [at])
    if not isinstance(node, dict):
        return
    if "schema" in node:
        schema = pointer + ["schema"]
        yield from examples(node["schema"], schema)
        if "example" in node:
            yield node["example"], pointer + ["example"], schema
        for name, one in node.get("examples", {}).items():
            yield one.get("value"), pointer + ["examples", name, "value"], schema
    for name, below in node.items():
        if name not in ["schema", "example", "examples"]:
            yield from described(below, pointer + [name])


def main(file):
    with open(file, encoding="utf-8") as text:
        document = json.load(text)
    problems = [f"{steps(error.absolute_path)}: {error.message}" for error in OpenAPIV31SpecValidator(document).iter_errors()]
    registry = Registry().with_resource(DOCUMENT, Resource(contents=document, specification=DRAFT202012))
    schemas = document.get("components", {}).get("schemas", {})
    shown = [found for name, schema in schemas.items() for found in examples(schema, ["components", "schemas", name])]
    shown += described({name: below for name, below in document.items() if name != "components"}, [])
    for value, pointer, schema in shown:
        reference = {"$ref": f"{DOCUMENT}#{steps(schema)}"}
        validator = Draft202012Validator(reference, registry=registry, format_checker=Draft202012Validator.FORMAT_CHECKER)
        problems += [f"{steps(pointer)}: {error.message}" for error in validator.iter_errors(value)]
    if not shown:
        problems.append("there is no example")
    for problem in problems:
        print(problem)
    print(f"{file}: {len(problems)} problems in the document and its {len(shown)} examples and defaults")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
