#!/usr/bin/env python3
"""Writes the models of this folder and what is expected of them.

    generate.py           writes the files
    generate.py --check   fails when they are not what would be written

What is expected is computed here, from the documents alone; no DirectML is asked.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from generator import (attention, bindings, contradictions, conversion, element_wise, generated, graphs, identity,  # noqa: E402
                       images, lookup, moves, normalization, pages, products, recurrent, reduction, refusals, regions,
                       scatter_elements, scatter_nd, top_k, windows)
from generator.pack import HERE  # noqa: E402

OF_ANY_OPERATOR = ("pages", "bindings", "refusals", "graphs", "identity", "scatter_elements",
                   "scatter_nd", "top_k")  # modules whose operators have their refusals elsewhere
BEGIN, END = "<!-- groups: written by generate.py -->\n", "<!-- /groups -->\n"


def table(groups):
    lines = ["| group | models | proves | from |", "|---|---|---|---|"]
    lines += [f"| `{g.name}` | {len(g.models)} | {g.proves} | {g.basis} |" for g in groups]
    lines += [f"| {len(groups)} groups | {sum(len(g.models) for g in groups)} | | |"]
    return "\n".join(lines) + "\n"


def readme(groups):
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as file:
        text = file.read()
    return text[:text.index(BEGIN) + len(BEGIN)] + table(groups) + text[text.index(END):]


def present():
    """The generated files that are there."""
    for folder, _, names in os.walk(HERE):
        for name in names:
            if name.endswith(".json"):
                yield os.path.relpath(os.path.join(folder, name), HERE).replace(os.sep, "/")


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    parts = (top_k, scatter_nd, scatter_elements, identity, element_wise, conversion, reduction, normalization,
             windows, images, regions, moves, lookup, generated, products, recurrent, attention, pages,
             bindings, refusals, graphs)
    made = {part.__name__.rpartition(".")[2]: list(part.groups()) for part in parts}
    refused = contradictions.groups({name: groups for name, groups in made.items() if name not in OF_ANY_OPERATOR})
    groups = sorted([group for part in made.values() for group in part] + list(refused), key=lambda group: group.name)
    files = {path: text for group in groups for path, text in group.files()}
    files["README.md"] = readme(groups)
    stale = sorted(set(present()) - set(files))
    for path, text in files.items():
        full = os.path.join(HERE, *path.split("/"))
        if os.path.exists(full):
            with open(full, encoding="utf-8", newline="") as file:
                if file.read() == text:
                    continue
        stale.append(path)
        if not arguments:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
    for path in stale:
        if not arguments and path not in files:
            os.remove(os.path.join(HERE, *path.split("/")))
    if arguments and stale:
        sys.exit("not what generate.py writes (run it): " + ", ".join(stale))


if __name__ == "__main__":
    main(sys.argv[1:])
