#!/usr/bin/env python3
"""Draws digits, trains a small network to tell them apart, and writes it as an ONNX model.

Nothing but Python is needed; it takes about two minutes, and gives the same files every time:

    python3 examples/digits/train.py

digits.onnx: "pictures" (UINT8, any number of 16x16 pictures, 255 is ink) to "probabilities" of the ten
digits. pictures.npy: one picture of each digit that it was not trained with, for `./dev demo`.
"""

import math
import pathlib
import random
import struct

SIZE, HIDDEN, DIGITS = 16, 40, 10
TRAINING, TEST, EPOCHS = 6000, 1000, 8


def arc(x, y, rx, ry, begin, end, steps=10):
    """A part of an ellipse; angles in degrees, 0 to the right, 90 down."""
    angles = [math.radians(begin + (end - begin) * i / steps) for i in range(steps + 1)]
    return [(x + rx * math.cos(a), y + ry * math.sin(a)) for a in angles]


# Strokes in a square from -1 to 1, x to the right and y down; a digit may be written in several ways.
STROKES = {
    0: [[arc(0, 0, 0.55, 0.9, -90, 270)]],
    1: [[[(-0.3, -0.5), (0.1, -0.9), (0.1, 0.9)]], [[(0, -0.9), (0, 0.9)]],
        [[(-0.3, -0.5), (0.1, -0.9), (0.1, 0.9)], [(-0.3, 0.9), (0.5, 0.9)]]],
    2: [[arc(0, -0.4, 0.5, 0.5, -170, 40) + [(-0.55, 0.9), (0.6, 0.9)]]],
    3: [[arc(0, -0.45, 0.5, 0.45, -150, 90) + arc(0, 0.45, 0.55, 0.45, -90, 150)]],
    4: [[[(0.1, -0.9), (-0.6, 0.25), (0.6, 0.25)], [(0.25, -0.2), (0.25, 0.9)]],
        [[(-0.5, -0.9), (-0.5, 0.1), (0.5, 0.1)], [(0.4, -0.9), (0.4, 0.9)]]],
    5: [[[(0.5, -0.9), (-0.4, -0.9), (-0.45, -0.15)] + arc(0, 0.35, 0.55, 0.55, -120, 140)]],
    6: [[[(0.35, -0.9)] + arc(0, 0.1, 0.55, 0.6, -130, -200) + arc(0, 0.4, 0.5, 0.5, 180, -180)]],
    7: [[[(-0.55, -0.9), (0.55, -0.9), (-0.1, 0.9)]],
        [[(-0.55, -0.9), (0.55, -0.9), (-0.1, 0.9)], [(-0.3, 0.0), (0.45, 0.0)]]],
    8: [[arc(0, -0.45, 0.42, 0.45, 90, 450) + arc(0, 0.45, 0.52, 0.45, -90, 270)]],
    9: [[arc(0, -0.4, 0.5, 0.5, 0, 360) + [(0.5, -0.4), (0.35, 0.9)]]],
}


def draw(digit, rng):
    """A picture as 256 bytes: the strokes turned, slanted, scaled, moved and drawn by an unsteady hand."""
    turn, slant = math.radians(rng.uniform(-14, 14)), rng.uniform(-0.2, 0.2)
    width, height = rng.uniform(3.9, 6.3), rng.uniform(5.2, 6.6)
    right, down = SIZE / 2 - 0.5 + rng.uniform(-1, 1), SIZE / 2 - 0.5 + rng.uniform(-0.8, 0.8)
    pen = rng.uniform(0.65, 1.15)
    cos, sin = math.cos(turn), math.sin(turn)
    ink = [0.0] * (SIZE * SIZE)
    for stroke in rng.choice(STROKES[digit]):
        points = []
        for x, y in stroke:
            x, y = (x + slant * y + rng.gauss(0, 0.045)) * width, (y + rng.gauss(0, 0.045)) * height
            points.append((right + cos * x - sin * y, down + sin * x + cos * y))
        for (x0, y0), (x1, y1) in zip(points, points[1:]):
            steps = max(1, int(math.hypot(x1 - x0, y1 - y0) / 0.4))
            for i in range(steps + 1):
                stamp(ink, x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps, pen)
    for _ in range(rng.randrange(8)):
        ink[rng.randrange(SIZE * SIZE)] = rng.uniform(0, 0.8)  # dirt
    return bytes(min(255, round(255 * value)) for value in ink)


def stamp(ink, x, y, pen):
    for row in range(max(0, int(y) - 1), min(SIZE, int(y) + 3)):
        for column in range(max(0, int(x) - 1), min(SIZE, int(x) + 3)):
            value = min(1.0, pen + 0.5 - math.hypot(column - x, row - y))
            if value > ink[row * SIZE + column]:
                ink[row * SIZE + column] = value


class Network:
    """Probabilities = softmax(relu(x W1 + b1) W2 + b2), trained one picture at a time."""

    def __init__(self, rng):
        self.w1 = [[rng.gauss(0, 0.1) for _ in range(HIDDEN)] for _ in range(SIZE * SIZE)]
        self.b1 = [0.0] * HIDDEN
        self.w2 = [[rng.gauss(0, 0.2) for _ in range(DIGITS)] for _ in range(HIDDEN)]
        self.b2 = [0.0] * DIGITS

    def forward(self, picture):
        hidden = list(self.b1)
        for value, weights in zip(picture, self.w1):
            if value:  # most pixels are background
                scaled = value / 255
                hidden = [h + scaled * w for h, w in zip(hidden, weights)]
        hidden = [max(0.0, h) for h in hidden]
        scores = list(self.b2)
        for value, weights in zip(hidden, self.w2):
            if value:
                scores = [s + value * w for s, w in zip(scores, weights)]
        most = max(scores)
        powers = [math.exp(s - most) for s in scores]
        total = sum(powers)
        return hidden, [p / total for p in powers]

    def learn(self, picture, digit, rate):
        hidden, errors = self.forward(picture)
        errors[digit] -= 1
        back = [sum(e * w for e, w in zip(errors, weights)) if h else 0.0 for h, weights in zip(hidden, self.w2)]
        for j, h in enumerate(hidden):
            if h:
                self.w2[j] = [w - rate * h * e for w, e in zip(self.w2[j], errors)]
        self.b2 = [b - rate * e for b, e in zip(self.b2, errors)]
        for i, value in enumerate(picture):
            if value:
                step = rate * value / 255
                self.w1[i] = [w - step * b for w, b in zip(self.w1[i], back)]
        self.b1 = [b - rate * x for b, x in zip(self.b1, back)]

    def answer(self, picture):
        probabilities = self.forward(picture)[1]
        return probabilities.index(max(probabilities))


# The protobuf encoding of the messages in onnx.proto, by their field numbers.
def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


FLOAT, UINT8 = 1, 2


def tensor(name, sizes, values):
    data = struct.pack(f"<{len(values)}f", *values)
    return b"".join(field(1, size) for size in sizes) + field(2, FLOAT) + field(8, name) + field(9, data)


def value_info(name, element, sizes):
    shape = b"".join(field(1, field(2, size) if isinstance(size, str) else field(1, size)) for size in sizes)
    return field(1, name) + field(2, field(1, field(1, element) + field(2, shape)))


def node(operator, inputs, output, **attributes):
    text = b"".join(field(1, name) for name in inputs) + field(2, output) + field(3, output) + field(4, operator)
    for name, value in attributes.items():
        text += field(5, field(1, name) + field(3, value) + field(20, 2))  # an INT
    return text


def model(network):
    flat = lambda rows: [value for row in rows for value in row]
    nodes = [node("Cast", ["pictures"], "numbers", to=FLOAT),
             node("Mul", ["numbers", "scale"], "ink"),
             node("Flatten", ["ink"], "pixels", axis=1),
             node("Gemm", ["pixels", "w1", "b1"], "sums"),
             node("Relu", ["sums"], "hidden"),
             node("Gemm", ["hidden", "w2", "b2"], "scores"),
             node("Softmax", ["scores"], "probabilities", axis=1)]
    weights = [tensor("scale", [], [1 / 255]),
               tensor("w1", [SIZE * SIZE, HIDDEN], flat(network.w1)), tensor("b1", [HIDDEN], network.b1),
               tensor("w2", [HIDDEN, DIGITS], flat(network.w2)), tensor("b2", [DIGITS], network.b2)]
    graph = b"".join(field(1, text) for text in nodes) + field(2, "digits")
    graph += b"".join(field(5, text) for text in weights)
    graph += field(11, value_info("pictures", UINT8, ["count", SIZE, SIZE]))
    graph += field(12, value_info("probabilities", FLOAT, ["count", DIGITS]))
    return field(1, 8) + field(2, "examples/digits/train.py") + field(7, graph) + field(8, field(1, "") + field(2, 13))


def npy(pictures):
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(pictures)}, {SIZE}, {SIZE}), }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + b"".join(pictures)


def main():
    rng = random.Random(1)
    pictures = [(draw(i % DIGITS, rng), i % DIGITS) for i in range(TRAINING)]
    unseen = [(draw(i % DIGITS, rng), i % DIGITS) for i in range(TEST)]
    network = Network(rng)
    for epoch in range(EPOCHS):
        rng.shuffle(pictures)
        for picture, digit in pictures:
            network.learn(picture, digit, 0.05 * 0.7 ** epoch)
        right = sum(network.answer(picture) == digit for picture, digit in unseen)
        print(f"epoch {epoch + 1}: {right / TEST:.1%} of {TEST} unseen pictures are right", flush=True)
    folder = pathlib.Path(__file__).parent
    (folder / "digits.onnx").write_bytes(model(network))
    (folder / "pictures.npy").write_bytes(npy([picture for picture, _ in unseen[:DIGITS]]))


if __name__ == "__main__":
    main()
