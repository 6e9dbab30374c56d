#!/usr/bin/env python3
"""Where the time of `./dev test` goes.

    times.py ROOT           prints the tables, from what the last runs of the steps left in build-times
    times.py ROOT --write   puts them into docs/testing.md
"""
import glob
import os
import sys
import xml.etree.ElementTree

BEGIN, END = "<!-- times: written by ./dev times --write -->\n", "<!-- /times -->\n"
SLOW_TESTS, SLOW_FILES = 12, 8
# The step whose build a step uses; by default its own.
FOLDERS = {"plain": "build-plain", "asan": "build-asan", "tsan": "build-tsan"}


def minutes(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def steps_table(steps, parts):
    """`steps`: name, passed or not, seconds. `parts`: the durations of a step's parts."""
    lines = ["| step | minutes | of which |", "|---|---|---|"]
    for name, status, seconds in steps:
        inside = ", ".join(f"{what} {minutes(s)}" for what, s in parts.get(name, {}).items())
        lines.append(f"| {name} | {minutes(seconds)} | {inside}{'' if status == 'passed' else ' (failed)'} |")
    lines.append(f"| all | {minutes(sum(step[2] for step in steps))} | |")
    return lines


def slowest_table(head, columns):
    """`columns`: names and seconds of each step. The slowest tests of any step, with their times in each."""
    steps = [step for step, times in columns.items() if times]
    if not steps:
        return []
    lines = [f"| {head} | " + " | ".join(steps) + " |", "|---|" + "---|" * len(steps)]
    worst = {}
    for step in steps:
        for name, seconds in columns[step].items():
            worst[name] = max(worst.get(name, 0), seconds)
    for name in sorted(worst, key=lambda n: -worst[n])[:SLOW_TESTS if head == "test" else SLOW_FILES]:
        cells = [f"{columns[step][name]:.0f} s" if name in columns[step] else "" for step in steps]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return lines


def read_steps(folder):
    with open(os.path.join(folder, "steps"), encoding="utf-8") as file:
        return [(name, status, int(seconds)) for name, status, seconds in map(str.split, file)]


def read_parts(folder):
    result = {}
    for path in glob.glob(os.path.join(folder, "*.parts")):
        parts = result[os.path.basename(path)[:-len(".parts")]] = {}
        with open(path, encoding="utf-8") as file:
            for what, seconds in map(str.split, file):
                parts[what] = parts.get(what, 0) + int(seconds)
    return result


def read_tests(path):
    """CTest's times of a JUnit file."""
    if not os.path.exists(path):
        return {}
    root = xml.etree.ElementTree.parse(path).getroot()
    return {case.get("name"): float(case.get("time") or 0) for case in root.iter("testcase")}


def read_files(path):
    """The durations of ninja's commands; several run at the same time."""
    if not os.path.exists(path):
        return {}
    times = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if len(fields) == 5 and fields[3].endswith(".o"):
                short = fields[3].replace("CMakeFiles/", "").replace(".dir", "").replace("__/", "")
                times[short] = (int(fields[1]) - int(fields[0])) / 1000
    return times


def tables(root):
    folder = os.path.join(root, "build-times")
    steps = read_steps(folder)
    with open(os.path.join(folder, "machine"), encoding="utf-8") as file:
        machine = file.read().strip()
    names = [name for name, _, _ in steps]
    tests = {name: read_tests(os.path.join(folder, f"{name}.xml")) for name in names}
    files = {name: read_files(os.path.join(root, FOLDERS[name], ".ninja_log")) for name in names if name in FOLDERS}
    parts = [(f"On {machine}, in minutes:", steps_table(steps, read_parts(folder))),
             ("The slowest tests of any step, beside others (as many at a time as there are cores):",
              slowest_table("test", tests)),
             ("The files that take longest to compile, beside others:", slowest_table("file", files))]
    return "\n\n".join("\n".join([sentence, "", *lines]) for sentence, lines in parts if lines) + "\n"


def main(root, options):
    text = tables(root)
    if options == ["--write"]:
        page = os.path.join(root, "docs", "testing.md")
        with open(page, encoding="utf-8") as file:
            old = file.read()
        with open(page, "w", encoding="utf-8") as file:
            file.write(old[:old.index(BEGIN) + len(BEGIN)] + text + old[old.index(END):])
    elif options:
        sys.exit(__doc__)
    else:
        print(text, end="")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
