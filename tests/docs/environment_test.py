#!/usr/bin/env python3
"""environment_test.py FOLDER: anydml.h and docs/environment.md list the environment variables that src/ reads, and no
others."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()


def main():
    read = set()
    for path in (ROOT / "src").rglob("*"):
        if path.suffix in (".cc", ".cu", ".h") and not path.stem.endswith(("_test", "_for_tests")):
            read |= set(re.findall(r'"(ANYDML_[A-Z_]+)"', path.read_text(encoding="utf-8")))
    listed = {
        "include/anydml.h": r"^ \*   (ANYDML_[A-Z_]+) ",
        "docs/environment.md": r"^\| `(ANYDML_[A-Z_]+)",
    }
    wrong = []
    for name, pattern in listed.items():
        named = set(re.findall(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
        wrong += [f"{name} does not list {variable}, which src/ reads" for variable in sorted(read - named)]
        wrong += [f"{name} lists {variable}, which src/ does not read" for variable in sorted(named - read)]
    print(*wrong, f"{len(read)} variables", sep="\n")
    return 1 if wrong or not read else 0


if __name__ == "__main__":
    sys.exit(main())
