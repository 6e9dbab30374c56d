#!/usr/bin/env python3
"""generate_operators.py ANYDML [--check]: writes docs/operators.md (the index) and docs/operators/FAMILY.md from what
`anydml operators` says of every operator, what each computes (docs/computes.json, by family) and the examples of
docs/examples.json; with --check only tells whether they are current, and whether other pages name the right number of
operators."""
import collections
import json
import pathlib
import re
import subprocess
import sys
import textwrap

FOLDER = pathlib.Path(__file__).resolve().parent
INDEX, PAGES = FOLDER / "operators.md", FOLDER / "operators"
# Pages written by hand that say how many operators there are.
COUNTED = {FOLDER.parent / "README.md": "{} operators", FOLDER / "README.md": "all {}", FOLDER / "porting.md": "All {}"}
WRITTEN = "Written by `./dev generate`; do not edit."
INDEX_HEAD = """# Operators

AnyDML has all {count} operators of DirectML up to feature level {newest}, on the CPU and on NVIDIA GPUs. The page of a family
says what each operator computes, lists its fields with the allowed data types and dimension counts, and shows an
example. `anydml operators NAME` prints the same tables, which are the ones that the library checks descriptions with.

{written}

## Families
"""
PAGE_HEAD = """# {title}

[All families](../operators.md). {written}

In the tables, types without a level are valid from the operator's own feature level on; *5.0:* precedes the types that a
device of feature level 5.0 or above accepts instead. Relations between fields (equal sizes, equal types, ranges) are
explained in the error messages. [Promises](../promises.md) says how exact results are.
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
    lines = [f"## {name}", "", computes, ""]
    lines += [f"Since {operator['since']}, `DML_OPERATOR_TYPE` {operator['type']}.", ""]
    lines += ["| field | kind | allowed |", "|---|---|---|"]
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


def page_of(family):
    return re.sub(r"\W+", "-", family["family"].lower()) + ".md"


def family_page(family, tables, examples):
    lines = [*PAGE_HEAD.format(title=family["family"], written=WRITTEN).splitlines(), ""]
    if family["holds for all"]:
        lines += [family["holds for all"], ""]
    for name, computes in family["operators"].items():
        lines += section(tables[name], computes, examples[name])
    return "\n".join(lines).rstrip() + "\n"


def index_page(operators, families):
    levels = collections.Counter(operator["since"] for operator in operators)
    lines = [INDEX_HEAD.format(count=len(operators), newest=list(levels)[-1], written=WRITTEN)]
    for family in families:
        page = f"operators/{page_of(family)}"
        links = ", ".join(f"[{name}]({page}#{name.lower()})" for name in family["operators"])
        lines += [f"### [{family['family']}]({page})", "",
                  *textwrap.wrap(links, 125, break_long_words=False, break_on_hyphens=False), ""]
    lines += ["## By feature level", "", "How many operators each feature level added:", "",
              "| " + " | ".join([*levels, "all"]) + " |", "|" + "--:|" * (len(levels) + 1),
              "| " + " | ".join(str(count) for count in [*levels.values(), len(operators)]) + " |"]
    return "\n".join(lines) + "\n"


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


def pages(anydml):
    examples = json.loads((FOLDER / "examples.json").read_text())
    families = json.loads((FOLDER / "computes.json").read_text())
    operators = ask(anydml)["operators"]
    check_names({operator["name"] for operator in operators}, families, examples)
    tables = {operator["name"]: ask(anydml, operator["name"])["operator"] for operator in operators}
    return len(operators), {INDEX: index_page(operators, families),
                            **{PAGES / page_of(family): family_page(family, tables, examples) for family in families}}


def main():
    count, texts = pages(sys.argv[1])
    if "--check" not in sys.argv:
        PAGES.mkdir(exist_ok=True)
        for old in set(PAGES.glob("*.md")) - set(texts):
            old.unlink()
        for path, text in texts.items():
            path.write_text(text)
        return 0
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text() != text]
    stale += sorted(set(PAGES.glob("*.md")) - set(texts))
    for path in stale:
        print(f"{path.relative_to(FOLDER.parent)} is stale: ./dev generate")
    miscounted = [path for path, words in COUNTED.items() if words.format(count) not in path.read_text()]
    for path in miscounted:
        print(f"{path.relative_to(FOLDER.parent)} does not say '{COUNTED[path].format(count)}'")
    return 1 if stale or miscounted else 0


if __name__ == "__main__":
    sys.exit(main())
