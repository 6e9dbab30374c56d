#!/usr/bin/env python3
"""Which files clang-tidy looks at after a change: `./dev test tidy-changed`.

    choose_tidy.py ROOT BUILD <FILES    reads the files that changed, a line each, and prints a pattern for run-clang-tidy
                                        that finds those that are compiled, or include one directly; nothing where
                                        there is none. BUILD has compile_commands.json.

Where files are compiled together, the file that includes them stands for them.
"""
import json
import os
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def includes(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return INCLUDE.findall(file.read())
    except OSError:
        return []


def parts(path, build):
    """The sources that are compiled as one file."""
    if not os.path.realpath(path).startswith(os.path.realpath(build) + os.sep):
        return [path]
    return [part for part in includes(path) if os.path.isabs(part)] or [path]


def choose(root, build, changed):
    changed = {os.path.realpath(os.path.join(root, name)) for name in changed}
    # An include is matched with the end of a path: "ops/operator.h", "describe.h".
    headers = [name for name in changed if name.endswith((".h", ".inc"))]
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        compiled = {entry["file"] for entry in json.load(file)}
    chosen = set()
    for path in compiled:
        for part in parts(path, build):
            part = os.path.realpath(part)
            if part in changed or any(header.endswith("/" + name) for name in includes(part) for header in headers):
                chosen.add(path)
    return sorted(chosen)


def main():
    root, build = sys.argv[1:3]
    chosen = choose(root, build, [line.strip() for line in sys.stdin if line.strip()])
    print(f"dev: clang-tidy looks at {len(chosen)} files", file=sys.stderr)
    print("|".join(f"^{re.escape(path)}$" for path in chosen))


if __name__ == "__main__":
    main()
