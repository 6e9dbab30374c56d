#!/usr/bin/env python3
"""benchmarks_test.py PAGE: every case of docs/benchmarks.md that is faster than its floor is explained, and every
column of its tables but the peers' is; every section says on what machine, at which commit and with what command it
was measured."""
import fnmatch
import pathlib
import re
import sys


FACTS = {"machine": r"\nMachine: \S", "date": r"\nDate: 20\d\d-", "libraries": r"\nLibraries: \S",
         "commit": r"\((AnyDML at|AnyDML as of commit) [0-9a-f]{7}",
         "command": r"\n(Run|Command): `?(\./dev bench|python3 bench/)"}


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def main():
    text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    head, tables = text[:text.index("<!-- machine ")], text[text.index("<!-- machine "):]
    explained = re.findall(r"`([^`]+)`", head.split("## Ratios to the floor")[1].split("## ")[0])
    columns = re.findall(r"^\| ([^|]+?) \|", head, re.MULTILINE)
    columns = {name.strip() for cell in columns for name in cell.split(",")}
    wrong, header, rows = [], [], 0
    for name, section in re.findall(r"<!-- machine (\S+) -->(.*?)<!-- /machine", tables, re.DOTALL):
        wrong += [f"{name} does not say: {what}" for what, pattern in FACTS.items() if not re.search(pattern, section)]
    for line in tables.splitlines():
        if line.startswith("| case"):
            header = cells(line)
            # Peers stand behind the best of them.
            own = header[:header.index("x best") + 1] if "x best" in header else header
            wrong += [f"the column '{name}' is not explained" for name in own if name not in columns]
        elif line.startswith("| ") and "x floor" in header:
            rows += 1
            case, ratio = cells(line)[0], float(cells(line)[header.index("x floor")])
            if ratio < 1 and not any(fnmatch.fnmatch(case, pattern) for pattern in explained):
                wrong.append(f"{case} takes {ratio} of its floor; docs/benchmarks.md does not say why")
    print(*dict.fromkeys(wrong), f"{rows} cases", sep="\n")
    return 1 if wrong or rows == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
