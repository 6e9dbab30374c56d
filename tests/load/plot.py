#!/usr/bin/env python3
"""plot.py SAMPLES.csv CHART.svg: what the load test's process held, over time."""

import csv
import sys

PANELS = [  # column, title, unit
    ("resident_bytes", "resident memory, MiB", 1 << 20),
    ("heap_bytes", "allocated memory, MiB", 1 << 20),
    ("live_objects", "live objects between rounds", 1),
    ("open_files", "open files between rounds", 1),
    ("rounds", "rounds a second", None),
]
WIDTH, PANEL, LEFT, RIGHT, TOP, GAP = 720, 110, 70, 15, 50, 45


def read(path):
    with open(path, newline="") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def series(samples, column, unit):
    if unit is not None:
        return [sample[column] / unit for sample in samples]
    before = [{"seconds": 0, column: 0}, *samples]
    return [(b[column] - a[column]) / max(b["seconds"] - a["seconds"], 1e-9) for a, b in zip(before, samples)]


def draw(samples):
    height = TOP + len(PANELS) * (PANEL + GAP)
    out = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' "
           f"height='{height}' font-family='sans-serif' font-size='11'>",
           f"<rect width='{WIDTH}' height='{height}' fill='white'/>",
           f"<text x='{LEFT}' y='20' font-weight='bold'>16 threads on 8 queues: {samples[-1]['rounds']:.0f} "
           f"rounds in {samples[-1]['seconds']:.0f} seconds</text>"]
    times = [sample["seconds"] for sample in samples]
    for number, (column, title, unit) in enumerate(PANELS):
        out += panel(times, series(samples, column, unit), title, TOP + number * (PANEL + GAP))
    return "\n".join([*out, "</svg>"]) + "\n"


def panel(times, values, title, top):
    """From 0, so that constant values look constant."""
    highest, last, bottom = max(*values, 1) * 1.1, max(times), top + PANEL
    points = " ".join(f"{LEFT + (WIDTH - LEFT - RIGHT) * time / last:.1f},{bottom - PANEL * value / highest:.1f}"
                      for time, value in zip(times, values))
    out = [f"<text x='{LEFT}' y='{top - 5}'>{title}</text>",
           f"<rect x='{LEFT}' y='{top}' width='{WIDTH - LEFT - RIGHT}' height='{PANEL}' fill='none' stroke='#cbd5e0'/>",
           f"<polyline points='{points}' fill='none' stroke='#d53f8c' stroke-width='1.5'/>"]
    for value in (0, highest / 1.1):
        y = bottom - PANEL * value / highest + 4
        out.append(f"<text x='{LEFT - 6}' y='{y:.1f}' text-anchor='end'>{value:.4g}</text>")
    for time in (0, last):
        x = LEFT + (WIDTH - LEFT - RIGHT) * time / last
        out.append(f"<text x='{x:.1f}' y='{bottom + 14}' text-anchor='{'end' if time else 'start'}'>{time:.4g} s</text>")
    return out


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[2], "w") as chart:
        chart.write(draw(read(sys.argv[1])))
