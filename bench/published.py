"""The published results: docs/benchmarks/NAME.csv has the tables of a run, runs.json what a run was (machine, date,
commit, command), and docs/benchmarks.md a summary between two markers.

    published.py [--check]      writes the summary; with --check only tells whether it is current
"""

import csv
import io
import json
import os
import pathlib
import re
import shutil
import statistics
import sys

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
BEGIN, END = "<!-- summary: written by bench/published.py -->\n", "<!-- /summary -->\n"
RATIOS = ("x best", "x torch")  # against the fastest peer of a CPU table, and of a GPU table


def write_file(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def parse(markdown):
    """results.md of run.py or gpu.py: (facts, rows); a row is a dictionary from the column to the cell."""
    facts = dict(re.findall(r"^(Machine|Date|Libraries|Command|Run): (.*?) *$", markdown, re.MULTILINE))
    left_out = re.findall(r"^- (.*)$", markdown, re.MULTILINE)
    rows, table, header = [], "", None
    for line in markdown.splitlines():
        if line.startswith("### "):
            table, header = line[4:], None
        elif line.startswith("| "):
            cells = [cell.strip().replace("**", "") for cell in line.strip("|").split(" | ")]
            if header is None:
                header = cells
            else:
                rows.append({"table": table or groups_of(markdown), **dict(zip(header, cells))})
    return {**facts, **({"left out": left_out} if left_out else {})}, rows


def groups_of(markdown):
    """A GPU's table has no heading: its cases begin with the names of their groups."""
    names = re.findall(r"^\| (\w+)-", markdown, re.MULTILINE)
    return " and ".join(dict.fromkeys(names))


def to_csv(rows):
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="-", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read(docs, name):
    """The rows of a run."""
    with (docs / "benchmarks" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_runs(docs):
    path = docs / "benchmarks" / "runs.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def publish(folder, docs, name):
    """Puts results.md and the charts of a folder among the published runs under that name; other runs stay."""
    facts, rows = parse((folder / "results.md").read_text(encoding="utf-8"))
    place, runs = docs / "benchmarks", read_runs(docs)
    place.mkdir(exist_ok=True)
    for old in runs.get(name, {}).get("charts", []):
        (place / old).unlink(missing_ok=True)
    charts = []
    for svg in sorted(folder.glob("*.svg")):
        charts.append(f"{name}-{svg.name}")
        shutil.copyfile(svg, place / charts[-1])
    runs[name] = {**facts, **({"charts": charts} if charts else {})}
    write_file(place / f"{name}.csv", to_csv(rows))
    write_file(place / "runs.json", json.dumps(runs, indent=1, ensure_ascii=False) + "\n")
    write_file(docs / "benchmarks.md", summarised(docs))


def tables(docs):
    """(run, title, rows) of every table."""
    for name in read_runs(docs):
        by_title = {}
        for row in read(docs, name):
            by_title.setdefault(row["table"], []).append(row)
        for title, rows in by_title.items():
            yield name, title, rows


def against_peers(rows):
    """The ratios to the fastest peer, of the cases that have one."""
    return [float(row[column]) for row in rows for column in RATIOS if row.get(column, "-") != "-"]


def figures(rows):
    ratios = against_peers(rows)
    if not ratios:
        return "-"
    return f"{statistics.median(ratios):.2f} ({sum(ratio < 1 for ratio in ratios)} of {len(ratios)})"


def summary(docs):
    """A table for CPUs with a column per number of threads, and one for GPUs."""
    cpu, gpu, threads = {}, [], set()
    for name, title, rows in tables(docs):
        group, _, count = title.partition(", ")
        if count:
            threads.add(count)
            chart = f"{name}-{title.lower().replace(',', '').replace(' ', '-')}.svg"
            target = chart if (docs / "benchmarks" / chart).exists() else f"{name}.csv"
            cpu.setdefault(group, {}).setdefault(count, []).append(f"[{figures(rows)}](benchmarks/{target})")
        else:
            floor = statistics.median(float(row["x floor"]) for row in rows)
            date = read_runs(docs)[name].get("Date", "-")
            gpu.append(f"| [{group}](benchmarks/{name}.csv) | {figures(rows)} | {floor:.2f} | {date} |")
    counts = sorted(threads, key=lambda text: int(text.split()[0]))
    lines = ["| CPU | " + " | ".join(counts) + " |", "|---|" + "---|" * len(counts)]
    for group, cells in cpu.items():
        for i in range(max(len(of_count) for of_count in cells.values())):
            row = [cells[count][i] if i < len(cells.get(count, [])) else "-" for count in counts]
            lines.append(f"| {group}{', another run' if i > 0 else ''} | " + " | ".join(row) + " |")
    if gpu:
        lines += ["", "| GPU | x torch | x floor | measured |", "|---|---|--:|---|", *gpu]
    return "\n".join(lines) + "\n"


def summarised(docs):
    """docs/benchmarks.md with the summary of today's data."""
    text = (docs / "benchmarks.md").read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    return head + BEGIN + summary(docs) + END + rest.partition(END)[2]


def main():
    page, text = DOCS / "benchmarks.md", summarised(DOCS)
    if "--check" not in sys.argv:
        write_file(page, text)
    elif page.read_text(encoding="utf-8") != text:
        print("the summary of docs/benchmarks.md is stale: python3 bench/published.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
