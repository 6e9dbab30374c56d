#!/usr/bin/env python3
"""benchmarks_test.py ROOT: docs/benchmarks/README.md explains every published case that is faster than its floor, and
every column except the peers'; every run states its machine, commit and command; the summary in docs/benchmarks.md
matches the data."""
import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
import published

FACTS = {"Machine": r"\S", "Date": r"20\d\d-\d\d-\d\d$", "Libraries": r"\S"}
COMMIT = r"\((AnyDML at|AnyDML as of commit) [0-9a-f]{7}"
COMMAND = r"`?(\./dev bench|python3 bench/)"


def check_facts(name, facts):
    for fact, pattern in FACTS.items():
        if not re.match(pattern, facts.get(fact, "")):
            yield f"{name} does not say: {fact}"
    if not any(re.search(COMMIT, value) for value in facts.values() if isinstance(value, str)):
        yield f"{name} does not say: commit"
    if not re.match(COMMAND, facts.get("Command", facts.get("Run", ""))):
        yield f"{name} does not say: command"


def check_rows(rows, columns, explained):
    header = list(rows[0])
    # Columns after "x best" are the peers.
    own = header[1:header.index("x best") + 1] if "x best" in header else header[1:]
    yield from (f"the column '{name}' is not explained" for name in own if name not in columns)
    for row in rows:
        case, ratio = row["case"], float(row["x floor"])
        if ratio < 1 and not any(fnmatch.fnmatch(case, pattern) for pattern in explained):
            yield f"{case} takes {ratio} of its floor; docs/benchmarks/README.md does not say why"


def main():
    docs = ROOT / "docs"
    text = (docs / "benchmarks" / "README.md").read_text(encoding="utf-8")
    explained = re.findall(r"`([^`]+)`", text.split("## Ratios to the floor")[1].split("## ")[0])
    columns = {name.strip() for cell in re.findall(r"^\| ([^|]+?) \|", text, re.MULTILINE) for name in cell.split(",")}
    runs, wrong, count = published.read_runs(docs), [], 0
    for name, facts in runs.items():
        rows = published.read(docs, name)
        count += len(rows)
        wrong += [*check_facts(name, facts), *check_rows(rows, columns, explained)]
        wrong += [f"{name}: there is no {chart}" for chart in facts.get("charts", [])
                  if not (docs / "benchmarks" / chart).exists()]
    if (docs / "benchmarks.md").read_text(encoding="utf-8") != published.summarised(docs):
        wrong.append("the summary of docs/benchmarks.md is stale: python3 bench/published.py")
    print(*dict.fromkeys(wrong), f"{len(runs)} runs, {count} cases", sep="\n")
    return 1 if wrong or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
