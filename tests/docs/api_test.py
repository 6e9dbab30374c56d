#!/usr/bin/env python3
"""api_test.py FOLDER: docs/api.md names every function, type and constant of include/anydml.h, and docs/python-api.md
every class and function of the Python package; neither names anything that does not exist."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()


def compare(page, names, pattern):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = set(re.findall(pattern, text, re.MULTILINE))
    for name in sorted(names - named):
        print(f"docs/{page} does not speak of {name}")
    for name in sorted(named - names):
        print(f"docs/{page} speaks of {name}, which is not there")
    return names == named


def main():
    header = (ROOT / "include" / "anydml.h").read_text(encoding="utf-8")
    package = (ROOT / "python" / "anydml" / "__init__.py").read_text(encoding="utf-8")
    declared = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    c_names = set(re.findall(r"\bAnyDml\w+", declared)) | set(re.findall(r"\bANYDML_PLACE_\w+", declared))
    listed = re.search(r"__all__ = \[(.*)\*_functions\]", package).group(1)
    python_names = set(re.findall(r'"(\w+)"', listed)) - {"onnx"}
    same = compare("api.md", c_names, r"\b(?:AnyDml[A-Z]\w+|ANYDML_PLACE_[A-Z]+)\b")
    same &= compare("python-api.md", python_names, r"^## dml\.(\w+)")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
