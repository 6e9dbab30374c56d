#!/usr/bin/env python3
"""generate_operators.py ANYDML [--check]: writes docs/operators.md from what `anydml operators` says of every
operator, and the examples of docs/examples.json; with --check only tells whether it is current."""
import json
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
PAGE = FOLDER / "operators.md"
HEAD = """# Operators

All operators of feature level 6.4, written by `./dev generate` from the tables that the library checks with. They run
on the CPU and on NVIDIA GPUs. `anydml operators NAME` prints the same.

Types without a level hold from the operator's own on; *5.0:* begins what a device of that feature level or above
accepts instead. What relates fields to each other (equal sizes, equal types, ranges) is in
the sentence of the failure.
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


def section(operator, examples):
    name = operator["name"]
    lines = [f"## {name}", ""]
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


def page(anydml):
    examples = json.loads((FOLDER / "examples.json").read_text())
    names = [operator["name"] for operator in ask(anydml)["operators"]]
    unknown = set(examples) - set(names)
    assert not unknown, f"examples.json has examples of {unknown}"
    lines = [HEAD]
    for name in names:
        operator = ask(anydml, name)["operator"]
        assert name in examples or not operator["implementations"], f"examples.json has no example of {name}"
        lines += section(operator, examples.get(name, []))
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
