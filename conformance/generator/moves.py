"""Operators that move elements without interpreting them."""
import math

from generator.arithmetic import is_float, r32
from generator.element_wise import described
from generator.operation import Data, Result, made, model, types_of
from generator.suite import WIDTHS, Suite, data

SIZES = [2, 3, 4, 5]


def read_from(operator, sizes, out, source, field="InputTensor", output="OutputTensor", outside=0, **attributes):
    """Each element of the output is the input's element at `source(coordinates)`, or `outside` if that is None."""
    def make(t):
        def compute(arrays):
            x = arrays[field]

            def one(*c):
                place = source(c)
                return (outside(t) if callable(outside) else outside) if place is None else x[place]
            return {output: made(out, one)}

        return model(operator, {field: Data(t, sizes, data(t, math.prod(sizes), seed=3)), output: Result(t, out)},
                     compute,
                     **{k: v(t) if callable(v) else v for k, v in attributes.items()})
    return make


def all_or_some(suite, name, claim, make, every, **more):
    if every:
        suite.add_all_types(name, claim, make, **more)
    else:
        suite.add(name, claim, make, WIDTHS[:2], **more)


SLICES = {  # window's offset and size, and stride
    "part": ([0, 1, 1, 2], [2, 2, 3, 3], [1, 1, 1, 1]),
    "steps": ([0, 0, 0, 1], [2, 3, 4, 4], [1, 2, 3, 2]),
    "one-element": ([1, 2, 3, 4], [1, 1, 1, 1], [1, 1, 1, 1]),
    "everything": ([0, 0, 0, 0], SIZES, [1, 1, 1, 1]),
}
REVERSED = {
    "reversed": ([0, 0, 0, 0], SIZES, [1, 1, -1, -1]),
    "reversed-steps": ([0, 0, 1, 0], [2, 3, 3, 5], [-1, 1, -2, -3]),
}


def slice_suites():
    old = Suite("SLICE", "a window of the input, with steps.")
    new = Suite("SLICE1", "a window of the input, with steps of both signs; the output may end earlier.")
    gradient = Suite("SLICE_GRAD", "elements written where a slice takes them from, zeros elsewhere.")
    for name, (offsets, window, strides) in {**SLICES, **REVERSED}.items():
        out = [1 + (n - 1) // abs(s) for n, s in zip(window, strides)]

        def source(c):
            return tuple((o if s > 0 else o + n - 1) + s * x for x, o, n, s in zip(c, offsets, window, strides))

        claim = f"{name.replace('-', ' ').capitalize()}."
        attributes = dict(InputWindowOffsets=offsets, InputWindowSizes=window, InputWindowStrides=strides)
        every = name in ("steps", "reversed-steps")
        if name in SLICES:
            all_or_some(old, name, claim, read_from("SLICE", SIZES, out, source, Offsets=offsets, Sizes=out,
                                                    Strides=strides), every)
        all_or_some(new, name, claim, read_from("SLICE1", SIZES, out, source, **attributes), every)

        def make(t):
            def compute(arrays):
                result = made(SIZES, lambda *c: 0)
                result.update({source(c): x for c, x in arrays["InputGradientTensor"].items()})
                return {"OutputGradientTensor": result}
            return model("SLICE_GRAD", {"InputGradientTensor": Data(t, out, data(t, math.prod(out), seed=4)),
                                        "OutputGradientTensor": Result(t, SIZES)}, compute, **attributes)

        if every:
            gradient.add_all_types(name, claim, make, "InputGradientTensor")
        else:
            gradient.add(name, claim, make, WIDTHS[:2])
    new.add("shorter", "The output may be shorter than the window allows.",
            read_from("SLICE1", [10], [3], lambda c: (1 + 2 * c[0],), InputWindowOffsets=[1], InputWindowSizes=[9],
                      InputWindowStrides=[2]), strided=True)
    new.add("8-dimensions", "Eight dimensions.",
            read_from("SLICE1", [1, 2, 1, 3, 1, 2, 1, 4], [1, 2, 1, 2, 1, 1, 1, 2],
                      lambda c: (0, c[1], 0, 2 - 2 * c[3], 0, 1, 0, 3 - c[7]),
                      InputWindowOffsets=[0, 0, 0, 0, 0, 1, 0, 2],
                      InputWindowSizes=[1, 2, 1, 3, 1, 1, 1, 2], InputWindowStrides=[1, 1, 1, -2, 1, 1, 1, -1]), WIDTHS)
    return [old.group, new.group, gradient.group]


def split_and_join():
    split = Suite("SPLIT", "one tensor becomes several along an axis.")
    join = Suite("JOIN", "several tensors become one along an axis.")
    for name, sizes, axis, parts in (("rows", [1, 1, 7, 3], 2, [2, 1, 4]), ("columns", [2, 1, 2, 8], 3, [3, 5]),
                                     ("single", [1, 2, 3, 2], 1, [2]), ("first-axis", [6, 5], 0, [1, 2, 3]),
                                     ("many", [1, 1, 2, 20], 3, [1] * 20)):
        starts = [sum(parts[:i]) for i in range(len(parts))]
        shapes = [[part if d == axis else n for d, n in enumerate(sizes)] for part in parts]

        def moved(c, by):
            return tuple(x + by if d == axis else x for d, x in enumerate(c))

        def make_split(t):
            fields = {"InputTensor": Data(t, sizes, data(t, math.prod(sizes), seed=5))}
            fields.update({f"OutputTensors[{i}]": Result(t, shape) for i, shape in enumerate(shapes)})
            return model("SPLIT", fields, lambda a: {f"OutputTensors[{i}]": made(
                shape, lambda *c: a["InputTensor"][moved(c, starts[i])]) for i, shape in enumerate(shapes)}, Axis=axis)

        def make_join(t):
            fields = {f"InputTensors[{i}]": Data(t, shape, data(t, math.prod(shape), seed=6 + i))
                      for i, shape in enumerate(shapes)}
            fields["OutputTensor"] = Result(t, sizes)

            def compute(a):
                return {"OutputTensor": {moved(c, starts[i]): x for i in range(len(shapes))
                                         for c, x in a[f"InputTensors[{i}]"].items()}}
            return model("JOIN", fields, compute, Axis=axis)

        every = types_of("JOIN", "InputTensors") if name == "columns" else WIDTHS[:2]
        for suite, make in ((split, make_split), (join, make_join)):
            suite.add(name, f"{len(parts)} along axis {axis}.", make, every, strided=True)
    return [split.group, join.group]


def tile():
    suite = Suite("TILE", "the input, repeated.")
    for name, sizes, repeats in (("rows", [1, 1, 2, 3], [1, 1, 3, 1]), ("both", [1, 2, 2, 3], [2, 1, 2, 3]),
                                 ("once", [1, 2, 3, 2], [1, 1, 1, 1]), ("one-dimension", [3], [5])):
        out = [n * r for n, r in zip(sizes, repeats)]
        all_or_some(suite, name, f"{repeats} times.", read_from(
            "TILE", sizes, out, lambda c: tuple(x % n for x, n in zip(c, sizes)), Repeats=repeats), name == "both")
    return suite.group


def reflected(i, n, repeat_edge):
    period = 2 * n if repeat_edge else max(2 * (n - 1), 1)
    m = i % period
    return m if m < n else period - m - (1 if repeat_edge else 0)


PADDINGS = {"CONSTANT": lambda i, n: i if 0 <= i < n else None, "EDGE": lambda i, n: max(0, min(n - 1, i)),
            "REFLECTION": lambda i, n: reflected(i, n, False), "SYMMETRIC": lambda i, n: reflected(i, n, True),
            "WRAP": lambda i, n: i % n}


def padding_suites():
    for operator in ("PADDING", "PADDING1"):
        suite = Suite(operator, "five kinds of padding, also wider than the input.")
        for mode, place in PADDINGS.items():
            for name, sizes, start, end in (("narrow", [1, 2, 3, 4], [0, 0, 1, 2], [0, 1, 2, 1]),
                                            ("wide", [1, 1, 2, 3], [0, 2, 5, 4], [0, 0, 3, 7]),
                                            ("line", [4], [2], [0])):
                def source(c):
                    places = [place(x - a, n) for x, a, n in zip(c, start, sizes)]
                    return None if None in places else tuple(places)

                def value(t):
                    return 2.75 if is_float(t) else 2

                attributes = {"PaddingMode": f"DML_PADDING_MODE_{mode}", "StartPadding": start, "EndPadding": end}
                if operator == "PADDING":
                    attributes["PaddingValue"] = 2.75
                else:
                    attributes["PaddingValueDataType"] = lambda t: f"DML_TENSOR_DATA_TYPE_{t}"
                    attributes["PaddingValue"] = lambda t: described(operator, {"PaddingValue": value(t)},
                                                                     t)["PaddingValue"]
                out = [n + a + b for n, a, b in zip(sizes, start, end)]
                all_or_some(suite, f"{mode.lower()}-{name}", f"{mode}, {name}.", read_from(
                    operator, sizes, out, source, outside=value, **attributes), (mode, name) == ("CONSTANT", "narrow"),
                    **({} if (mode, name) == ("CONSTANT", "narrow") else {"strided": name == "wide"}))
        yield suite.group


def depth_suites():
    for suffix in ("", "1"):
        down = Suite("SPACE_TO_DEPTH" + suffix, "blocks of pixels become channels.")
        up = Suite("DEPTH_TO_SPACE" + suffix, "channels become blocks of pixels.")
        for block, (n, channels, height, width) in ((2, (2, 3, 2, 3)), (3, (1, 1, 2, 1)), (1, (1, 2, 2, 2))):
            for order in ("DEPTH_COLUMN_ROW", "COLUMN_ROW_DEPTH") if suffix else ("DEPTH_COLUMN_ROW",):
                deep, flat = [n, channels * block * block, height, width], [n, channels, height * block, width * block]

                def of_deep(c):
                    """The position of pixel c of the flat image in the deep one."""
                    b, ch, y, x = c
                    inner = y % block * block + x % block
                    k = inner * channels + ch if order == "DEPTH_COLUMN_ROW" else ch * block * block + inner
                    return b, k, y // block, x // block

                def of_flat(c):
                    b, k, y, x = c
                    inner, ch = divmod(k, channels) if order == "DEPTH_COLUMN_ROW" else divmod(k, block * block)[::-1]
                    return b, ch, y * block + inner // block, x * block + inner % block

                attributes = {"BlockSize": block}
                if suffix:
                    attributes["Order"] = f"DML_DEPTH_SPACE_ORDER_{order}"
                name = f"block-{block}" + (f"-{order.lower().replace('_', '-')}" if suffix else "")
                for suite, sizes, out, source in ((up, deep, flat, of_deep), (down, flat, deep, of_flat)):
                    all_or_some(suite, name, f"Blocks of {block}.", read_from(
                        suite.operator, sizes, out, source, **attributes), block == 2)
        yield from (up.group, down.group)


def reverse_subsequences():
    suite = Suite("REVERSE_SUBSEQUENCES", "the first elements along an axis in reverse, as many as the length "
                                          "of each sequence.")
    for name, sizes, axis, lengths in (("last-axis", [1, 1, 4, 5], 3, [0, 1, 3, 9]),
                                       ("rows", [1, 2, 4, 2], 2, [4, 2, 3, 0]),
                                       ("first-axis", [5, 3], 0, [2, 5, 4])):
        small = [1 if d == axis else n for d, n in enumerate(sizes)]
        for index in ("UINT32", "UINT64"):
            def make(t):
                def compute(arrays):
                    x, counts = arrays["InputTensor"], arrays["SequenceLengthsTensor"]

                    def one(*c):
                        length = min(counts[tuple(0 if d == axis else v for d, v in enumerate(c))], sizes[axis])
                        return x[tuple(length - 1 - v if d == axis and v < length else v for d, v in enumerate(c))]
                    return {"OutputTensor": made(sizes, one)}
                return model(suite.operator, {"InputTensor": Data(t, sizes, data(t, math.prod(sizes), seed=7)),
                                              "SequenceLengthsTensor": Data(index, small, lengths),
                                              "OutputTensor": Result(t, sizes)}, compute, Axis=axis)
            every = types_of(suite.operator, "InputTensor") if (name, index) == ("rows", "UINT32") else WIDTHS[:1]
            suite.add(f"{name}-{index.lower()}", f"Along axis {axis}.", make, every, strided=index == "UINT32")
    return suite.group


def value_scale():
    suite = Suite("VALUE_SCALE_2D", "Scale * x plus a bias for each channel.")
    for channels, bias in ((1, [0.25]), (3, [0.25, -1.5, 3.0])):
        sizes = [2, channels, 2, 3]

        def make(t):
            def compute(arrays):
                return {"OutputTensor": {c: r32(r32(1.5 * x) + bias[c[1]]) for c, x in arrays["InputTensor"].items()}}
            return model(suite.operator, {"InputTensor": Data(t, sizes, data(t, math.prod(sizes), seed=8)),
                                          "OutputTensor": Result(t, sizes)}, compute, Scale=1.5, Bias=bias)
        suite.add(f"{channels}-channels", f"{channels} channels.", make, strided=True)
    return suite.group


def groups():
    return [*slice_suites(), *split_and_join(), tile(), *padding_suites(), *depth_suites(), reverse_subsequences(),
            value_scale()]
