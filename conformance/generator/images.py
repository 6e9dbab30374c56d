"""Sampling images between pixels, and the gradients of that."""
import itertools
import math

from generator.arithmetic import half_to_even, is_float, r32, saturated, stored
from generator.operation import Data, Result, made, model
from generator.suite import FLOATS, Suite, data

NEAREST, LINEAR = "DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR", "DML_INTERPOLATION_MODE_LINEAR"
HALF_UP, FLOOR, CEILING = "half up", "DML_AXIS_DIRECTION_DECREASING", "DML_AXIS_DIRECTION_INCREASING"


def coordinate(x, scale, in_offset, out_offset):
    """Computed in FLOAT32, in this order."""
    return r32(r32(r32(x - r32(out_offset)) / r32(scale)) - r32(in_offset))


def taps(x, size, mode, rule):
    """Pixels along one dimension and their weights."""
    def inside(i):
        return max(0, min(size - 1, i))

    if mode == NEAREST:
        return [(inside(math.floor(r32(x + 0.5)) if rule == HALF_UP else math.floor(x) if rule == FLOOR else
                        math.ceil(x)), 1.0)]
    low = math.floor(x)
    weight = r32(x - low)
    return [(inside(low), 1 - weight), (inside(low + 1), weight)]


def stretched_taps(x, size, scale):
    """An antialiased dimension: the triangle is as wide as an output pixel."""
    weights = [(i, max(0.0, 1 - abs(i - x) * scale)) for i in range(size)]
    total = math.fsum(w for _, w in weights)
    return [(i, w / total) for i, w in weights if w > 0]


def sampled(sizes, out, mode, rule, scales, in_offsets, out_offsets, antialiased=False):
    """For each position of the output, the positions of the input and their weights."""
    lines = []
    for d, size in enumerate(out):
        line = []
        for o in range(size):
            x = coordinate(o, scales[d], in_offsets[d], out_offsets[d])
            wide = antialiased and mode == LINEAR and 1 / scales[d] > 2
            line.append(stretched_taps(x, sizes[d], scales[d]) if wide else taps(x, sizes[d], mode, rule))
        lines.append(line)
    for o in itertools.product(*map(range, out)):
        combined = itertools.product(*(lines[d][x] for d, x in enumerate(o)))
        yield o, [(tuple(i for i, _ in parts), math.prod(w for _, w in parts)) for parts in combined]


def rounded(t, value):
    """An integer result is rounded to nearest, ties to even."""
    return stored(t, value) if is_float(t) else saturated(t, int(half_to_even(r32(value))))


# Sizes, scales, offsets of the input's and of the output's pixels.
RESAMPLINGS = {
    "double": ([1, 2, 3, 4], [1, 1, 2, 2], [0.5] * 4, [-0.5] * 4),
    "one-and-a-half": ([1, 2, 4, 6], [1, 1, 1.5, 1.5], [0.5] * 4, [-0.5] * 4),
    "half": ([1, 1, 4, 6], [1, 1, 0.5, 0.5], [0.5] * 4, [-0.5] * 4),
    "from-corners": ([1, 2, 3, 3], [1, 1, 2.5, 2], [0] * 4, [0] * 4),
    "shifted": ([1, 2, 4, 4], [1, 1, 2, 1], [0.25, 0, 0.5, -0.25], [0, 0, -0.25, 0.5]),
    "three-dimensions": ([2, 3, 4], [2, 1, 0.5], [0.5] * 3, [-0.5] * 3),
}


def resample_suites():
    for operator, rules, offsets in (("RESAMPLE", (HALF_UP,), False), ("RESAMPLE1", (HALF_UP,), True),
                                     ("RESAMPLE2", (FLOOR, CEILING), True), ("RESAMPLE3", (FLOOR, CEILING), True)):
        suite = Suite(operator, "the nearest pixel or a linear interpolation, in every dimension.")
        for name, (sizes, scales, ins, outs) in RESAMPLINGS.items():
            if not offsets and ins[0] != 0.5:
                continue
            out = [int(size * scale) for size, scale in zip(sizes, scales)]
            for mode, rule in [(LINEAR, rules[0]), *((NEAREST, rule) for rule in rules)]:
                def make(t):
                    attributes = {"InterpolationMode": mode, "Scales": scales}
                    if offsets:
                        attributes.update(InputPixelOffsets=ins, OutputPixelOffsets=outs)
                    if len(rules) > 1:
                        attributes["RoundingDirection"] = rule
                    if operator == "RESAMPLE3":
                        attributes["Antialiased"] = False

                    def compute(arrays):
                        x = arrays["InputTensor"]
                        return {"OutputTensor": {o: math.fsum(x[p] * w for p, w in parts) if mode == LINEAR else
                                                 x[parts[0][0]] for o, parts in
                                                 sampled(sizes, out, mode, rule, scales, ins, outs)}}

                    near = dict(ulps=16, absolute=2e-6) if mode == LINEAR else {}
                    return model(operator, {"InputTensor": Data(t, sizes, data(t, math.prod(sizes), seed=3)),
                                            "OutputTensor": Result(t, out, convert=rounded, **near)}, compute,
                                 **attributes)

                kind = "linear" if mode == LINEAR else "nearest" + (
                    "" if rule == HALF_UP else "-down" if rule == FLOOR else "-up")
                # Weights of thirds may fall between two integers either way.
                types = (*FLOATS, "UINT8", "INT8") if name in ("double", "half") else FLOATS
                suite.add(f"{name}-{kind}", f"{name.replace('-', ' ').capitalize()}, {kind.replace('-', ' ')}.", make,
                          types, strided=name in ("shifted", "double"), since="5.1" if len(sizes) < 4 else "1.0")
        if operator == "RESAMPLE3":
            antialiased(suite)
        yield suite.group


def antialiased(suite):
    for name, sizes, scales in (("quarter", [1, 1, 8, 12], [1, 1, 0.25, 0.25]),
                                ("half", [1, 1, 4, 6], [1, 1, 0.5, 0.5]),
                                ("one-dimension", [1, 2, 10, 3], [1, 1, 0.2, 2])):
        out = [round(size * scale) for size, scale in zip(sizes, scales)]

        def make(t):
            def compute(arrays):
                x = arrays["InputTensor"]
                return {"OutputTensor": {o: math.fsum(x[p] * w for p, w in parts) for o, parts in sampled(
                    sizes, out, LINEAR, FLOOR, scales, [0.5] * 4, [-0.5] * 4, True)}}
            return model("RESAMPLE3", {"InputTensor": Data(t, sizes, data(t, math.prod(sizes), seed=4)),
                                       "OutputTensor": Result(t, out, ulps=16, absolute=1e-5)}, compute,
                         InterpolationMode=LINEAR, RoundingDirection=FLOOR, Scales=scales, InputPixelOffsets=[0.5] * 4,
                         OutputPixelOffsets=[-0.5] * 4, Antialiased=True)

        suite.add(f"antialiased-{name}", "Antialiased where less than half is left.", make, strided=True)


def upsample():
    suite = Suite("UPSAMPLE_2D", "whole factors of width and height.")
    for name, sizes, width, height in (("3x2", [1, 2, 2, 3], 3, 2), ("volume", [1, 1, 2, 3, 2], 2, 4),
                                       ("1x1", [2, 1, 3, 2], 1, 1)):
        scales = [1] * (len(sizes) - 2) + [height, width]
        out = [size * scale for size, scale in zip(sizes, scales)]
        for mode in (NEAREST, LINEAR):
            def make(t):
                def compute(arrays):
                    x = arrays["InputTensor"]
                    return {"OutputTensor": {o: math.fsum(x[p] * w for p, w in parts) for o, parts in sampled(
                        sizes, out, mode, HALF_UP, scales, [0.5] * 5, [-0.5] * 5)}}
                near = dict(ulps=16, absolute=2e-6) if mode == LINEAR else {}
                return model("UPSAMPLE_2D", {"InputTensor": Data(t, sizes, data(t, math.prod(sizes), seed=5)),
                                             "OutputTensor": Result(t, out, **near)}, compute,
                             ScaleSize={"Width": width, "Height": height}, InterpolationMode=mode)
            suite.add(f"{name}-{'linear' if mode == LINEAR else 'nearest'}",
                      f"Width times {width}, height times {height}.",
                      make, strided=name == "3x2")
    return suite.group


def resample_gradients():
    for operator, rules in (("RESAMPLE_GRAD", (HALF_UP,)), ("RESAMPLE_GRAD1", (FLOOR, CEILING))):
        suite = Suite(operator, "each gradient goes to the pixels from which its output is sampled.")
        for name, (sizes, scales, ins, outs) in RESAMPLINGS.items():
            out = [int(size * scale) for size, scale in zip(sizes, scales)]
            for mode, rule in [(LINEAR, rules[0]), *((NEAREST, rule) for rule in rules)]:
                def make(t):
                    def compute(arrays):
                        dy, result = arrays["InputGradientTensor"], made(sizes, lambda *c: 0.0)
                        for o, parts in sampled(sizes, out, mode, rule, scales, ins, outs):
                            for p, w in parts:
                                result[p] += w * dy[o]
                        return {"OutputGradientTensor": result}
                    more = {} if rule == HALF_UP else {"RoundingDirection": rule}
                    return model(operator, {
                        "InputGradientTensor": Data(t, out, data(t, math.prod(out), seed=6)),
                        "OutputGradientTensor": Result(t, sizes, ulps=16, absolute=1e-5)}, compute,
                        InterpolationMode=mode, Scales=scales, InputPixelOffsets=ins, OutputPixelOffsets=outs, **more)

                kind = "linear" if mode == LINEAR else "nearest" + (
                    "" if rule == HALF_UP else "-down" if rule == FLOOR else "-up")
                suite.add(f"{name}-{kind}", f"{name.replace('-', ' ').capitalize()}, {kind.replace('-', ' ')}.", make,
                          FLOATS if name == "shifted" else FLOATS[:1], strided=name == "shifted",
                          since="5.1" if len(sizes) < 4 else "1.0")
        yield suite.group


def groups():
    return [*resample_suites(), upsample(), *resample_gradients()]
