#!/usr/bin/env python3
"""names_test.py SOURCE_DIR: no two files define a type of the same name in the same namespace.

If templates and inline functions use such types, the linker silently keeps one of the two: a kernel was once launched
with the parameters of another family's kernel.
"""
import collections
import os
import re
import sys

ENDINGS = (".h", ".cuh", ".cu", ".cc")
TOKEN = re.compile(r"namespace(\s+[\w:]+)?\s*\{|\b(?:struct|class|enum(?:\s+class)?)\s+(\w+)\s*(?:final\s*)?(?::(?!:)[^;{(]*)?\{|[{}]")
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)


def types(text):
    """The full names of types that are defined in namespaces with names."""
    around = []
    for match in TOKEN.finditer(NOISE.sub("", text)):
        token = match.group()
        if token.startswith("namespace"):
            around.append((match.group(1) or "").strip())
        elif token == "}":
            if around:
                around.pop()
        elif token == "{":
            around.append(None)
        else:
            if all(around):
                yield "::".join([*around, match.group(2)])
            around.append(None)


def main():
    found = collections.defaultdict(set)
    root = os.path.join(sys.argv[1], "src")
    for folder, _, names in os.walk(root):
        for name in names:
            if not name.endswith(ENDINGS) or name.endswith("_test.cc"):
                continue
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                for full in types(file.read()):
                    found[full].add(os.path.relpath(path, root))
    assert len(found) > 500, f"only {len(found)} types were found: {root} is not the source folder"
    twice = {name: sorted(files) for name, files in found.items() if len(files) > 1}
    for name, files in sorted(twice.items()):
        print(f"{name} is defined in {', '.join(files)}")
    sys.exit(1 if twice else 0)


if __name__ == "__main__":
    main()
