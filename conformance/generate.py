#!/usr/bin/env python3
"""Writes the conformance pack: models and what is expected of them, computed from the documents alone.

    generate.py FOLDER            writes the pack into FOLDER, with README.md and judge.py
    generate.py --check FOLDER    fails when the pack in FOLDER is not the one that groups.sha256 and README.md list
    generate.py --accept FOLDER   writes the pack, and its groups into groups.sha256 and README.md
"""
import hashlib
import json
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
HASHES, README = HERE / "groups.sha256", HERE / "README.md"
BY_HAND = ("README.md", "judge.py")  # belong to the pack as they are
BEGIN, END = "<!-- groups: written by generate.py -->\n", "<!-- /groups -->\n"


def generated():
    """The text of every generated file by its path in the pack."""
    from generator import (attention, bindings, contradictions, conversion, element_wise, generated, graphs, identity,
                           images, lookup, moves, normalization, pages, products, recurrent, reduction, refusals,
                           regions, scatter_elements, scatter_nd, top_k, windows)
    parts = (top_k, scatter_nd, scatter_elements, identity, element_wise, conversion, reduction, normalization,
             windows, images, regions, moves, lookup, generated, products, recurrent, attention, pages,
             bindings, refusals, graphs)
    refused_elsewhere = (pages, bindings, refusals, graphs, identity, scatter_elements, scatter_nd, top_k)
    made = {part: list(part.groups()) for part in parts}
    refused = contradictions.groups({part.__name__.rpartition(".")[2]: groups for part, groups in made.items()
                                     if part not in refused_elsewhere})
    groups = [group for part in made.values() for group in part] + list(refused)
    return {path: text for group in groups for path, text in group.files()}


def write(folder):
    """Writes only what differs, and removes the models of an older pack."""
    if folder == HERE or folder.exists() and any(folder.iterdir()) and not (folder / "judge.py").exists():
        sys.exit(f"generate.py: FOLDER is {folder}, which holds other files; it must be empty, new, or a pack")
    files = {name: (HERE / name).read_bytes() for name in BY_HAND}
    files.update({path: text.encode() for path, text in generated().items()})
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.rglob("*.json"):
        if path.relative_to(folder).as_posix() not in files:
            path.unlink()
    for path, text in files.items():
        file = folder / path
        if not file.exists() or file.read_bytes() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text)
    for path, _, _ in os.walk(folder, topdown=False):
        if not os.listdir(path):
            os.rmdir(path)


def groups_of(folder):
    """What expected.json says of every group of a pack, by name, and a hash of the group's files."""
    groups = {}
    for expected in sorted(folder.rglob("expected.json")):
        content = hashlib.sha256()
        for path in sorted(expected.parent.glob("*.json")):
            text = path.read_bytes()
            content.update(f"{path.name} {len(text)}\n".encode() + text)
        name = expected.parent.relative_to(folder).as_posix()
        groups[name] = (json.loads(expected.read_bytes()), content.hexdigest())
    return dict(sorted(groups.items()))


def hashes(groups):
    return "".join(f"{content}  {name}\n" for name, (_, content) in groups.items())


def readme(groups):
    lines = ["| group | models | proves | from |", "|---|---|---|---|"]
    lines += [f"| `{name}` | {len(group['models'])} | {group['proves']} | {group['basis']} |"
              for name, (group, _) in groups.items()]
    lines += [f"| {len(groups)} groups | {sum(len(group['models']) for group, _ in groups.values())} | | |"]
    text = README.read_text(encoding="utf-8")
    return text[:text.index(BEGIN) + len(BEGIN)] + "\n".join(lines) + "\n" + text[text.index(END):]


def check(folder):
    groups = groups_of(folder)
    found, listed = (set(text.splitlines()) for text in (hashes(groups), HASHES.read_text(encoding="utf-8")))
    differing = sorted({line.partition("  ")[2] for line in found ^ listed})
    if differing:
        sys.exit(f"{len(differing)} of {len(groups)} groups in {folder} are not what conformance/groups.sha256 lists: "
                 f"{', '.join(differing)}. If that is wanted, ./dev generate accepts it.")
    if readme(groups) != README.read_text(encoding="utf-8"):
        sys.exit("The table of groups in conformance/README.md is not what ./dev generate writes.")


def main(arguments):
    what = arguments[0] if arguments[:1] in (["--check"], ["--accept"]) else ""
    folders = arguments[1:] if what else arguments
    if len(folders) != 1 or folders[0].startswith("-"):
        sys.exit(__doc__)
    folder = pathlib.Path(folders[0]).resolve()
    if what != "--check":
        write(folder)
    if what == "--check":
        check(folder)
    if what == "--accept":
        groups = groups_of(folder)
        HASHES.write_text(hashes(groups), encoding="utf-8")
        README.write_text(readme(groups), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
