#!/usr/bin/env python3
"""draw_overview.py [--check]: draws docs/benchmarks/overview.svg, the picture of docs/benchmarks.md, from the data in
docs/benchmarks; with --check only tells whether it is current. A dot is a case of a table: our time divided by the
best peer's."""
import html
import math
import pathlib
import statistics
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "bench"))
sys.dont_write_bytecode = True
import published

PICTURE = FOLDER / "benchmarks" / "overview.svg"
# (title, [(row, run, table or None for all, beginning of the cases' names)])
CPU = "one thread of an x86-64 processor, against the best of PyTorch 2.11, onnxruntime 1.30, NumPy 2.5 and the C++ library"
GPU = "one NVIDIA H200, by its clock, against PyTorch 2.11"
PANELS = [
    (CPU, [("TOP_K1", "x86-64-16-cores", "TOP_K1, 1 thread", "topk"),
           ("SCATTER_ND", "x86-64-16-cores", "SCATTER_ND, 1 thread", "scatter")]),
    (GPU, [("TOP_K1", "h200", None, "topk"), ("SCATTER_ND", "h200", None, "scatter"),
           ("element-wise", "h200-elementwise", None, ""), ("moves", "h200-move", None, ""),
           ("REDUCE", "h200-reduce", None, ""), ("softmax", "h200-softmax", None, ""),
           ("normalisation", "h200-normalization", None, ""), ("RESAMPLE", "h200-resample", None, ""),
           ("CONVOLUTION", "h200-convolution", None, "")]),
]
LOW, HIGH = 1 / 64, 64
WIDTH, LEFT, RIGHT, ROW, HEAD = 890, 120, 690, 26, 30
OURS, PEER, INK, LINE = "#b83280", "#4a5568", "#1a202c", "#cbd5e0"


def cases(machine, table, prefix):
    """The ratio of each case; cases that no peer was timed for are left out."""
    rows = published.read(FOLDER, machine)
    return published.against_peers([row for row in rows
                                    if row["table"] == (table or row["table"]) and row["case"].startswith(prefix)])


def x_of(ratio):
    ratio = min(max(ratio, LOW), HIGH)
    return LEFT + (RIGHT - LEFT) * math.log(ratio / LOW) / math.log(HIGH / LOW)


def text_at(x, y, text, anchor="start", size=12, more=f"fill='{INK}'"):
    return (f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-family='sans-serif' font-size='{size}' "
            f"{more}>{html.escape(text)}</text>")


def row(name, ratios, y):
    """A line with dots, a stroke at the median, and what they are in words."""
    middle = statistics.median(ratios)
    out = [text_at(LEFT - 12, y + 4, name, "end"),
           f"<line x1='{LEFT}' x2='{RIGHT}' y1='{y}' y2='{y}' stroke='#edf2f7'/>"]
    for i, ratio in enumerate(sorted(ratios)):
        out.append(f"<circle cx='{x_of(ratio):.1f}' cy='{y + (i % 3 - 1) * 5}' r='3.2' "
                   f"fill='{OURS if ratio <= 1 else PEER}' fill-opacity='0.6'/>")
    out.append(f"<line x1='{x_of(middle):.1f}' x2='{x_of(middle):.1f}' y1='{y - 10}' y2='{y + 10}' stroke='{INK}' "
               "stroke-width='2'/>")
    ahead = sum(ratio <= 1 for ratio in ratios)
    out.append(text_at(RIGHT + 14, y + 4, f"median {middle:.2f}; {ahead} of {len(ratios)} ahead", size=11))
    return out


def draw():
    out, y = [], 50
    for title, rows in PANELS:
        out.append(text_at(10, y + 6, title, size=12, more=f"fill='{INK}' font-weight='bold'"))
        top, y = y + 16, y + HEAD
        for name, machine, table, prefix in rows:
            out += row(name, cases(machine, table, prefix), y + ROW / 2 - 4)
            y += ROW
        for exponent in range(-6, 7, 2):
            x = x_of(2.0 ** exponent)
            stroke = (INK, 1.2) if exponent == 0 else (LINE, 0.6)
            out.insert(0, f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{top}' y2='{y}' stroke='{stroke[0]}' "
                          f"stroke-width='{stroke[1]}'/>")
            label = f"{2 ** exponent}x" if exponent >= 0 else f"1/{2 ** -exponent}"
            out.append(text_at(x, y + 13, label, "middle", 11))
        y += 34
    out.append(text_at((LEFT + x_of(1)) / 2, y, "← AnyDML takes less time", "middle", 12, f"fill='{OURS}'"))
    out.append(text_at((RIGHT + x_of(1)) / 2, y, "AnyDML takes more time →", "middle", 12, f"fill='{PEER}'"))
    height = y + 16
    head = [f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{height}' "
            f"viewBox='0 0 {WIDTH} {height}'>", f"<rect width='{WIDTH}' height='{height}' fill='white'/>",
            text_at(10, 24, "AnyDML's time divided by the best peer's: a dot per case, a stroke at the median", size=15,
                    more=f"fill='{INK}' font-weight='bold'")]
    return "\n".join([*head, *out, "</svg>"]) + "\n"


def main():
    picture = draw()
    if "--check" not in sys.argv:
        PICTURE.write_text(picture, encoding="utf-8")
    elif PICTURE.read_text(encoding="utf-8") != picture:
        print("docs/benchmarks/overview.svg is stale: python3 docs/draw_overview.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
