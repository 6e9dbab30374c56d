#!/usr/bin/env python3
"""What compiling takes, in processor time, which other work on the machine changes little.

    note=$PWD/tests/dev/compile_times.py
    cmake --preset release -DCMAKE_CXX_COMPILER_LAUNCHER=$note -DCMAKE_CUDA_COMPILER_LAUNCHER=$note
    cmake --build build -j1 --target anydml-installed   # a clean one
    tests/dev/compile_times.py --sum build

As a compiler's launcher it writes a line per object, with its seconds, to compile_times in the build's folder."""
import os
import resource
import subprocess
import sys
from collections import Counter

NAME = "compile_times"


def launch(command):
    status = subprocess.call(command)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    target = command[command.index("-o") + 1] if "-o" in command else "?"
    with open(NAME, "a") as file:
        file.write(f"{used.ru_utime + used.ru_stime:.2f} {target}\n")
    return status


def print_sums(folder):
    objects = {}  # the last time of each
    with open(os.path.join(folder, NAME)) as file:
        for line in file:
            seconds, target = line.split()
            objects[target] = float(seconds)
    groups = Counter()
    for target, seconds in objects.items():
        library = target.split("CMakeFiles/")[-1].split(".dir/")[0]
        groups[library + (" (nvcc)" if target.endswith((".cu.o", ".ptx")) else "")] += seconds
    print(f"{sum(objects.values()):7.0f} s in all, {len(objects)} objects")
    for what in (groups, objects):
        print()
        for name, seconds in sorted(what.items(), key=lambda item: -item[1])[:20]:
            print(f"{seconds:7.1f} s {name}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--sum"] and len(sys.argv) == 3:
        print_sums(sys.argv[2])
    elif len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    else:
        sys.exit(launch(sys.argv[1:]))
