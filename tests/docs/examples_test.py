#!/usr/bin/env python3
"""examples_test.py PAGE...: runs the commands of the pages and compares what they print.

A page's ```console blocks are one session, in a folder with examples/ and nothing else: `$ ` begins a command, `> ` goes
on with it, and what follows is its output, both streams together. A line `...` stands for any lines, `[exit code N]`
for how it ends when that is not 0.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def sessions(text):
    """Yields (command, expected lines)."""
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        command, expected = None, []
        for line in block.splitlines():
            if line.startswith("$ "):
                if command is not None:
                    yield command, expected
                command, expected = line[2:], []
            elif line.startswith("> ") and not expected:
                command += "\n" + line[2:]
            else:
                expected.append(line)
        if command is not None:
            yield command, expected


def matches(expected, actual):
    """Whether the lines are the same, with `...` for any."""
    if not expected:
        return not actual
    if expected[0] == "...":
        return any(matches(expected[1:], actual[i:]) for i in range(len(actual) + 1))
    return bool(actual) and expected[0] == actual[0] and matches(expected[1:], actual[1:])


def run(command, folder):
    result = subprocess.run(["bash", "-c", command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, timeout=300)
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    return lines + ([f"[exit code {result.returncode}]"] if result.returncode else [])


def main():
    count = failed = 0
    for page in map(pathlib.Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "examples").symlink_to(EXAMPLES)
            for command, expected in sessions(page.read_text()):
                count += 1
                actual = run(command, folder)
                if not matches([line.rstrip() for line in expected], actual):
                    failed += 1
                    print(f"{page.name}: $ {command}\nexpected:", *expected, "printed:", *actual, "", sep="\n")
    print(f"{count} commands, {failed} not as printed")
    return 1 if failed or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
