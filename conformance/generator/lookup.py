"""Lookup of elements by indices, and the indices of elements."""
import itertools
import math

from generator import elements, numbers
from generator.arithmetic import is_float
from generator.operation import Array, Data, Result, made, model, types_of
from generator.suite import FLOATS, WIDTHS, Suite, data


def index_into(i, size):
    """Negative indices count from the end; indices still out of range are clamped."""
    return max(0, min(size - 1, i + size if i < 0 else i))


INDEX_TYPES = ("UINT32", "UINT64", "INT32", "INT64")


def gather_suites():
    gather = Suite("GATHER", "slices along an axis; negative indices count from the end, others are clamped.")
    for name, sizes, axis, count, shape, indices in (
            ("rows", [1, 1, 4, 3], 2, 1, [1, 1, 1, 5], [0, 3, 1, 1, 2]),
            ("columns", [1, 2, 3, 4], 3, 1, [1, 1, 1, 2], [3, 0]),
            ("scalar", [1, 2, 3, 4], 2, 0, [1, 1, 1, 1], [2]), ("matrix-of-indices", [1, 1, 5, 2], 2, 2, [1, 1, 2, 3],
                                                                [4, 0, 2, 1, 1, 3]),
            ("line", [6], 0, 1, [3], [5, 0, 2]), ("clamped", [1, 1, 4, 3], 2, 1, [1, 1, 1, 4], [4, 100, 3, 0])):
        for index in INDEX_TYPES:
            signed = index.startswith("INT")
            given = [i - 4 if signed and name in ("rows", "clamped") and k % 2 else i for k, i in enumerate(indices)]
            meaningful = shape[len(shape) - count:] if count else []
            full = [*sizes[:axis], *meaningful, *sizes[axis + 1:]]
            surplus = len(full) - len(sizes)
            out = full[surplus:] if surplus > 0 else [1] * -surplus + full

            def make(t):
                def compute(arrays):
                    x, idx = arrays["InputTensor"], list(arrays["IndicesTensor"].values())

                    def one(*c):
                        c = [0] * surplus + list(c) if surplus > 0 else list(c)[-surplus:]
                        place = 0
                        for v, n in zip(c[axis:axis + count], meaningful):
                            place = place * n + v
                        return x[(*c[:axis], index_into(idx[place], sizes[axis]), *c[axis + count:])]
                    return {"OutputTensor": made(out, one)}
                return model("GATHER", {"InputTensor": Data(t, sizes, data(t, math.prod(sizes), seed=9)),
                                        "IndicesTensor": Data(index, shape, given), "OutputTensor": Result(t, out)},
                             compute, Axis=axis, IndexDimensions=count)
            every = types_of("GATHER", "InputTensor") if (name, index) == ("rows", "INT64") else WIDTHS[:1]
            gather.add(f"{name}-{index.lower()}", f"{name.replace('-', ' ').capitalize()}.", make, every,
                       strided=index == "UINT32")
    yield gather.group

    elements_suite = Suite("GATHER_ELEMENTS", "each index says from which place along the axis an element is taken.")
    for axis, length in ((3, 2), (2, 6), (0, 1)):
        for index in INDEX_TYPES:
            sizes = [2, 2, 3, 4]
            shape = [length if d == axis else n for d, n in enumerate(sizes)]
            low = -sizes[axis] - 1 if index.startswith("INT") else 0

            def make(t):
                def compute(arrays):
                    x = arrays["InputTensor"]
                    return {"OutputTensor": {c: x[tuple(index_into(i, sizes[axis]) if d == axis else v
                                                        for d, v in enumerate(c))]
                                             for c, i in arrays["IndicesTensor"].items()}}
                return model("GATHER_ELEMENTS", {
                    "InputTensor": Data(t, sizes, data(t, math.prod(sizes), seed=10)),
                    "IndicesTensor": Data(index, shape, numbers.mixed(math.prod(shape), low, sizes[axis] + 1, seed=5)),
                    "OutputTensor": Result(t, shape)}, compute, Axis=axis)
            every = types_of("GATHER_ELEMENTS", "InputTensor") if (axis, index) == (3, "UINT32") else WIDTHS[:1]
            elements_suite.add(f"axis-{axis}-{index.lower()}", f"Along axis {axis}.", make, every,
                               strided=index == "INT32")
    yield elements_suite.group
    yield from gather_nd_suites()


def gather_nd_suites():
    for operator in ("GATHER_ND", "GATHER_ND1"):
        suite = Suite(operator, "slices by tuples of indices" + (", of each batch." if operator[-1] == "1" else "."))
        cases = [("elements", [3, 4], [2, 2], 0), ("slices", [3, 2, 4], [3, 1], 0), ("pairs", [2, 3, 4], [2, 3, 2], 0)]
        if operator == "GATHER_ND1":
            cases += [("batches", [2, 3, 4], [2, 2, 1], 1), ("two-batches", [2, 2, 5], [2, 2, 3, 1], 2),
                      ("batches-of-pairs", [2, 3, 4, 2], [2, 2, 2], 1)]
        for name, data_sizes, index_sizes, batch in cases:
            for index in INDEX_TYPES:
                length = index_sizes[-1]
                full = index_sizes[:-1] + data_sizes[batch + length:]
                rank = max(4, len(full), len(data_sizes), len(index_sizes))
                x_sizes, i_sizes, out = ([1] * (rank - len(s)) + s for s in (data_sizes, index_sizes, full))
                low = -2 if index.startswith("INT") else 0
                given = numbers.mixed(math.prod(index_sizes), low, 3, seed=6)

                def make(t):
                    def compute(arrays):
                        x = Array(data_sizes, arrays["InputTensor"].values())
                        idx = Array(index_sizes, arrays["IndicesTensor"].values())

                        def one(*c):
                            c = c[rank - len(full):]
                            outer, rest = c[:len(index_sizes) - 1], c[len(index_sizes) - 1:]
                            place = [index_into(idx[(*outer, k)], data_sizes[batch + k]) for k in range(length)]
                            return x[(*outer[:batch], *place, *rest)]
                        return {"OutputTensor": made(out, one)}
                    more = {"BatchDimensionCount": batch} if operator == "GATHER_ND1" else {}
                    return model(operator, {
                        "InputTensor": Data(t, x_sizes, data(t, math.prod(data_sizes), seed=11)),
                        "IndicesTensor": Data(index, i_sizes, given), "OutputTensor": Result(t, out)}, compute,
                        InputDimensionCount=len(data_sizes), IndicesDimensionCount=len(index_sizes), **more)
                every = types_of(operator, "InputTensor") if (name, index) == ("slices", "UINT32") else WIDTHS[:1]
                suite.add(f"{name}-{index.lower()}", f"{name.replace('-', ' ').capitalize()}.", make, every,
                          strided=index == "INT64")
        yield suite.group


def one_hot():
    suite = Suite("ONE_HOT",
                  "the second value at the index, the first elsewhere; indices out of range set no element.")
    for axis, out in ((3, [1, 1, 4, 3]), (1, [1, 3, 2, 2]), (0, [5])):
        small = [1 if d == axis else n for d, n in enumerate(out)]
        for index in INDEX_TYPES:
            given = ([0, 2, 3, 1] if index.startswith("U") else [-1, 0, -3, -4])[:math.prod(small)]

            def make(t):
                def compute(arrays):
                    off, on = list(arrays["ValuesTensor"].values())[:2]

                    def one(*c):
                        i = arrays["IndicesTensor"][tuple(0 if d == axis else v for d, v in enumerate(c))]
                        return on if c[axis] == (i + out[axis] if i < 0 else i) else off
                    return {"OutputTensor": made(out, one)}
                return model("ONE_HOT", {"IndicesTensor": Data(index, small, given),
                                         "ValuesTensor": Data(t, [1] * (len(out) - 1) + [2], [5, 41]),
                                         "OutputTensor": Result(t, out)}, compute, Axis=axis)
            every = types_of("ONE_HOT", "ValuesTensor") if (axis, index) == (3, "UINT32") else WIDTHS[:1]
            suite.add(f"axis-{axis}-{index.lower()}", f"Along axis {axis}.", make, every, strided=index == "INT32")
    return suite.group


def nonzero():
    """Rows after the last one are not written and keep their contents."""
    suite = Suite("NONZERO_COORDINATES",
                  "the coordinates of the elements that are not zero, in order, and their number; the rest is not "
                  "written.")
    for name, sizes, columns in (("matrix", [1, 1, 3, 4], 2), ("matrix-all-columns", [1, 1, 3, 4], 4),
                                 ("line", [9], 1), ("cube", [2, 3, 2], 3)):
        for kind in ("some", "none", "all"):
            count = math.prod(sizes)
            values = {"some": [0, 3, 0, 0, 1, 7, 0, 2, 0, 0, 0, 5][:count], "none": [0] * count,
                      "all": [1] * count}[kind]
            shape = [1] * max(0, len(sizes) - 2) + [count, columns]

            def make(t):
                x = [float(v) for v in values] if is_float(t) else values
                if is_float(t) and kind == "some":
                    x[0], x[2] = -0.0, math.nan

                def compute(arrays):
                    found = [c for c, v in arrays["InputTensor"].items() if v != 0]
                    places = {}
                    for row, column in itertools.product(range(count), range(columns)):
                        at = (0,) * (len(shape) - 2) + (row, column)
                        places[at] = found[row][column - columns] if row < len(found) else elements.UNTOUCHED
                    return {"OutputCountTensor": {(0,) * len(sizes): len(found)}, "OutputCoordinatesTensor": places}
                return model(suite.operator, {
                    "InputTensor": Data(t, sizes, x), "OutputCountTensor": Result("UINT32", [1] * len(sizes)),
                    "OutputCoordinatesTensor": Result("UINT32", shape)}, compute)
            every = types_of(suite.operator, "InputTensor") if (name, kind) == ("matrix", "some") else FLOATS[:1]
            suite.add(f"{name}-{kind}", f"{kind.capitalize()} of {count}.", make, every, strided=kind == "some")
    return suite.group


def groups():
    return [*gather_suites(), one_hot(), nonzero()]
