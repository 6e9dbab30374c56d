#!/usr/bin/env python3
"""promises_test.py FOLDER: the evidence that docs/promises.md names for its promises exists: files and folders, tests
in them, and groups of the conformance pack."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
GROUPS = (ROOT / "conformance" / "groups.sha256").read_text(encoding="utf-8")


def exists(holder):
    path, _, name = holder.partition(":")
    if path.startswith("conformance/"):  # a group of the pack, or several
        return re.search(rf"^\w+  {path.removeprefix('conformance/')}(/|$)", GROUPS, re.MULTILINE) is not None
    if not (ROOT / path).exists():
        return False
    if not name:
        return True
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".py"):
        return re.search(rf"^def {name}\(", text, re.MULTILINE) is not None
    suite, test = name.split(".")
    return re.search(rf"^TEST(?:_F|_P)?\({suite},\s*{test}\)", text, re.MULTILINE) is not None


def main():
    page = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!of |---)(.*) \| (.*) \|$", page.split("## Promises and tests")[1], re.MULTILINE)
    missing = []
    for promise, holders in rows:
        names = re.findall(r"`([^`]+)`", holders)
        missing += [f"{promise}: there is no {name}" for name in names if not exists(name)]
        missing += [] if names else [f"{promise}: nothing holds it"]
    print(*missing, f"{len(rows)} promises, {len(missing)} without what is said to hold them", sep="\n")
    return 1 if missing or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
