"""A chart as SVG: times on the left, ratios to the floor on the right, one line per case."""

import html
import math

COLORS = {
    "AnyDML": "#d53f8c", "std::nth_element+sort": "#a0aec0", "std::partial_sort": "#4a5568", "numpy": "#2b6cb0",
    "torch": "#dd6b20", "torch.max": "#ecc94b", "torch.scatter_": "#ecc94b", "onnxruntime": "#2f855a",
    "onnxruntime-c": "#2f855a", "onnxruntime-node": "#68d391",
}
ROW, LABELS, PANEL, GAP, TOP, FONT = 18, 270, 380, 40, 64, "font-family='sans-serif' font-size='11'"


class _Scale:
    """Logarithmic, over whole decades."""

    def __init__(self, values, left):
        self.low = math.floor(math.log10(min(values)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(values))))
        self.left = left

    def x(self, value):
        return self.left + PANEL * (math.log10(value) - self.low) / (self.high - self.low)

    def ticks(self):
        return [10.0 ** exponent for exponent in range(self.low, self.high + 1)]


def draw(title, records):
    peers = list(dict.fromkeys(name for record in records for name in record["peers"]))
    bottom = TOP + ROW * len(records)
    width, height = LABELS + 2 * PANEL + GAP + 30, bottom + 30
    out = [f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
           f"viewBox='0 0 {width} {height}'>", f"<rect width='{width}' height='{height}' fill='white'/>"]
    out.append(_text(10, 20, title, "start", "font-weight='bold'"))
    out += _legend(peers)

    times = [_points(record, 1) for record in records]
    by_floor = [_points(record, record["floor_ms"]) for record in records]
    times_with_floor = [points + [("floor", record["floor_ms"])] for points, record in zip(times, records)]
    out += _panel(times_with_floor, LABELS, bottom, "milliseconds")
    out += _panel([points + [("floor", 1.0)] for points in by_floor], LABELS + PANEL + GAP, bottom,
                  "times the floor")
    for row, record in enumerate(records):
        out.append(_text(LABELS - 10, TOP + ROW * row + 13, record["case"], "end"))
    out.append("</svg>")
    return "\n".join(out) + "\n"


def _points(record, unit):
    # Ours comes last, on top of the others.
    values = [*record["peers"].items(), ("AnyDML", record["ours_ms"])]
    return [(name, ms / unit) for name, ms in values]


def _panel(rows, left, bottom, title):
    scale = _Scale([value for row in rows for _, value in row], left)
    out = [_text(left + PANEL / 2, TOP - 8, title, "middle")]
    for tick in scale.ticks():
        x = scale.x(tick)
        out.append(f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{TOP}' y2='{bottom}' stroke='#e2e8f0'/>")
        out.append(_text(x, bottom + 14, f"{tick:g}", "middle"))
    for number, row in enumerate(rows):
        y = TOP + ROW * number + ROW / 2
        out.append(f"<line x1='{left}' x2='{left + PANEL}' y1='{y}' y2='{y}' stroke='#edf2f7'/>")
        for name, value in row:
            out.append(_mark(name, scale.x(value), y))
    return out


def _mark(name, x, y):
    if name == "floor":
        return f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{y - 7}' y2='{y + 7}' stroke='black' stroke-width='2'/>"
    if name == "AnyDML":
        points = f"{x:.1f},{y - 6} {x + 6:.1f},{y} {x:.1f},{y + 6} {x - 6:.1f},{y}"
        return f"<polygon points='{points}' fill='{COLORS[name]}'/>"
    return f"<circle cx='{x:.1f}' cy='{y}' r='4' fill='{COLORS.get(name, 'black')}' fill-opacity='0.8'/>"


def _legend(peers):
    out, x = [], 10
    for name in ["AnyDML", "floor", *peers]:
        out.append(_mark(name, x + 6, 36))
        out.append(_text(x + 18, 40, name, "start"))
        x += 40 + 7 * len(name)
    return out


def _text(x, y, text, anchor, more=""):
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' {FONT} {more}>{html.escape(text)}</text>"
