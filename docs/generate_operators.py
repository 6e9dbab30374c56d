#!/usr/bin/env python3
"""generate_operators.py ANYDML [--check]: writes docs/operators.md from what `anydml operators` says of every
operator, what each computes (docs/computes.json, by family) and the examples of docs/examples.json; with --check only
tells whether it is current."""
import json
import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
PAGE = FOLDER / "operators.md"
HEAD = """# Operators

All operators of feature level 6.4: what each computes, its fields, and an example. They run on the CPU and on NVIDIA GPUs.
Written by `./dev generate` from the tables that the library checks with; `anydml operators NAME` prints those.

Types without a level hold from the operator's own on; *5.0:* begins what a device of that feature level or above
accepts instead. What relates fields to each other (equal sizes, equal types, ranges) is in
the sentence of the failure. How exact results are: [promises](promises.md).

| family | operators |
|---|---|
"""


def ask(anydml, *arguments):
    output = subprocess.run([anydml, "operators", *arguments, "--json"], check=True, capture_output=True, text=True).stdout
    return json.loads(output)


def dimensions(tensor):
    low, high = tensor["minDimensions"], tensor["maxDimensions"]
    return f"{low}" if low == high else f"{low}-{high}"


def support_cell(operator, field):
    """What a tensor may be, from the lowest level up; only where that changes."""
    cells, last = [], None
    for support in reversed(operator["support"]):
        allowed = [f"{dimensions(t)}D {', '.join(t['dataTypes'])}" for t in support["tensors"] if t["field"] == field]
        cell = " / ".join(dict.fromkeys(allowed))
        if cell and cell != last:
            level = support["featureLevel"]
            cells.append(cell if level == operator["since"] else f"*{level}:* {cell}")
            last = cell
    return "<br>".join(cells)


def section(operator, computes, examples):
    name = operator["name"]
    lines = [f"### {name}", "", computes, ""]
    lines += [f"Since {operator['since']}, `DML_OPERATOR_TYPE` {operator['type']}.", ""]
    lines += ["| field | | may be |", "|---|---|---|"]
    for field in operator["fields"]:
        kind = {"input": "input", "output": "output"}.get(field["kind"], f"`{field['type']}`")
        if field["optional"]:
            kind += ", optional" + (f" from {field['optionalFrom']}" if "optionalFrom" in field else "")
        cell = support_cell(operator, field["name"]) or ", ".join(field.get("values", []))
        lines.append(f"| `{field['name']}` | {kind} | {cell} |")
    lines.append("")
    for example in examples:
        lines += [example["text"], "", "```console", *example["session"], "```", ""]
    return lines


def contents(families):
    """A row per family, with links to its operators."""
    for family in families:
        title = family["family"]
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        yield f"| [{title}](#{anchor}) | {', '.join(f'[{name}](#{name.lower()})' for name in family['operators'])} |"


def check_names(known, families, examples):
    """Every operator has one line of what it computes and an example, and nothing else has."""
    described = [name for family in families for name in family["operators"]]
    twice = {name for name in described if described.count(name) > 1}
    assert not twice, f"computes.json has {twice} twice"
    for file, names in (("computes.json", set(described)), ("examples.json", set(examples))):
        assert names == known, f"{file} lacks {sorted(known - names)}; there is no {sorted(names - known)}"
    for family in families:
        for name, text in family["operators"].items():
            assert text.endswith(".") and "\n" not in text, f"computes.json: {name} is no line that ends with a period"


def page(anydml):
    examples = json.loads((FOLDER / "examples.json").read_text())
    families = json.loads((FOLDER / "computes.json").read_text())
    check_names({operator["name"] for operator in ask(anydml)["operators"]}, families, examples)
    lines = [HEAD + "\n".join(contents(families)), ""]
    for family in families:
        lines += [f"## {family['family']}", ""]
        if family["holds for all"]:
            lines += [family["holds for all"], ""]
        for name, computes in family["operators"].items():
            lines += section(ask(anydml, name)["operator"], computes, examples[name])
    return "\n".join(lines).rstrip() + "\n"


def main():
    text = page(sys.argv[1])
    if "--check" not in sys.argv:
        PAGE.write_text(text)
    elif PAGE.read_text() != text:
        print("docs/operators.md is stale: ./dev generate")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
