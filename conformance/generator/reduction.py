"""Operators on sets of elements: softmax, reductions, scans."""
import math

from generator.arithmetic import INF, NAN, exp, is_float, maximum, minimum
from generator.operation import Data, Result, model, sum_bound, types_of
from generator.pack import OPERATORS, is_for
from generator.suite import FLOATS, Suite, data

SIZES = [2, 3, 2, 4]
COUNT = 48


def sets(array, axes):
    """The coordinates of the elements of each set in row-major order, by the coordinates of the result."""
    result = {}
    for c in array:
        result.setdefault(tuple(0 if d in axes else x for d, x in enumerate(c)), []).append(c)
    return result


def reduced_sizes(sizes, axes):
    return [1 if d in axes else size for d, size in enumerate(sizes)]


def softmax(values):
    top = highest(values)
    if math.isinf(top) or math.isnan(top):
        return [NAN] * len(values)
    terms = [exp(v - top) for v in values]
    return [t / math.fsum(terms) for t in terms]


def log_softmax(values):
    top = highest(values)
    if math.isinf(top) or math.isnan(top):
        return [NAN] * len(values)
    return [v - top - math.log(math.fsum(exp(v - top) for v in values)) for v in values]


def hardmax(values):
    place = arg(values, True, False)
    return [1.0 if i == place else 0.0 for i in range(len(values))]


def highest(values):
    return NAN if any(v != v for v in values) else max(values)


def arg(values, largest, last):
    """NaN counts as the minimum and as the maximum; among equal elements the first or the last."""
    order = range(len(values) - 1, -1, -1) if last else range(len(values))
    nan = [i for i in order if values[i] != values[i]]
    if nan:
        return nan[0]
    best = max(values) if largest else min(values)
    return next(i for i in order if values[i] == best)


def over_sets(function, axes):
    """A model's computation that maps each set of elements to as many results."""
    def compute(arrays):
        x, result = arrays["InputTensor"], {}
        for places in sets(x, axes).values():
            result.update(zip(places, function([x[c] for c in places])))
        return {"OutputTensor": result}
    return compute


def softmax_suites():
    specials = [0.5, -INF, 1, 2, -INF, -INF, -INF, -INF, INF, 1, 2, 3, NAN, 1, 2, 3, 100, -100, 0, 99.5, 5, 5, 5, 5]
    for name, function, text, bounds in (
            ("SOFTMAX", softmax, "shares of the exponentials", dict(ulps=16, absolute=1e-7)),
            ("LOG_SOFTMAX", log_softmax, "their logarithms", dict(ulps=16, absolute=2e-6)),
            ("HARDMAX", hardmax, "1 for the first largest element, 0 for the others", {})):
        def build(operator, sizes, axes, values, **attributes):
            return lambda t: model(operator, {
                "InputTensor": Data(t, sizes, values), "OutputTensor": Result(t, sizes, **bounds)},
                over_sets(function, axes), **attributes)

        old = Suite(f"ACTIVATION_{name}", f"{text}, along the last dimension.")
        new = Suite(f"ACTIVATION_{name}1", f"{text}, over any set of axes.")
        random = data("FLOAT32", COUNT, seed=3)
        old.add("rows", "Rows of five.", build(old.operator, [1, 1, 3, 5], [3], random[:15]), strided=True)
        old.add("row", "One dimension.", build(old.operator, [7], [0], random[:7]), types=FLOATS[:1])
        old.add("special", "Infinities and NaN.", build(old.operator, [6, 4], [1], specials))
        old.add("one", "Rows of one element.", build(old.operator, [1, 1, 4, 1], [3], random[:4]), types=FLOATS[:1])
        for axes in ([3], [0], [2], [1, 3], [3, 1, 2], [0, 1, 2, 3]):
            new.add("axes-" + "-".join(map(str, axes)), f"Over axes {axes}.",
                    build(new.operator, SIZES, axes, random, Axes=axes), strided=axes in ([3], [1, 3]))
        new.add("no-axes", "Without axes every element is a set.", build(new.operator, SIZES, [], random, Axes=[]),
                types=FLOATS[:1])
        new.add("special", "Infinities and NaN.", build(new.operator, [6, 4], [1], specials, Axes=[1]))
        new.add("long", "A row of 100 elements.",
                build(new.operator, [1, 100], [1], data("FLOAT32", 100, seed=8), Axes=[1]))
        yield from (old.group, new.group)


def product(values):
    result = values[0] * 0 + 1
    for v in values:
        result *= v
    return result


def fold(function):
    def apply(values):
        result = values[0]
        for v in values[1:]:
            result = function(result, v)
        return result
    return apply


def log_sum_exp(values):
    top = highest(values)
    return top if math.isinf(top) or top != top else top + math.log(math.fsum(exp(v - top) for v in values))


def total(values):
    return math.fsum(values) if isinstance(values[0], float) and all(map(math.isfinite, values)) else sum(values)


def logarithm(x):
    return -INF if x == 0 else NAN if x < 0 else math.log(x) if math.isfinite(x) else x


# The function, and whether it is exact for floats, too.
REDUCTIONS = {
    "AVERAGE": (lambda v: total(v) / len(v), False),
    "L1": (lambda v: total([abs(x) for x in v]), False),
    "L2": (lambda v: math.sqrt(total([x * x for x in v])), False),
    "LOG_SUM": (lambda v: logarithm(total(v)), False),
    "LOG_SUM_EXP": (log_sum_exp, False),
    "MAX": (fold(maximum), True),
    "MIN": (fold(minimum), True),
    "MULTIPLY": (product, False),
    "SUM": (total, False),
    "SUM_SQUARE": (lambda v: total([x * x for x in v]), False),
}


def reduction_types(function):
    """From the newest level's table for this function."""
    tables = [t for t in OPERATORS["REDUCE"]["tensorSupport"] if is_for(t, {"Function": function})]
    newest = max(tables, key=lambda t: tuple(map(int, t["level"].split("."))))
    return next(row["types"] for row in newest["tensors"] if row["tensor"] == "InputTensor")


def reduce_suite():
    suite = Suite("REDUCE", "twelve functions over any set of axes; integers wrap.")
    for name, (function, exact) in REDUCTIONS.items():
        def build(axes, values, sizes=SIZES):
            def make(t):
                x = values(t)
                worst = max(sum_bound([v * v if name in ("L2", "SUM_SQUARE") else v for v in
                                       [w for w in x if is_float(t)]] or [0]), 1e-6)
                bounds = {} if exact else dict(ulps=16 + 2 * len(x), absolute=worst)

                def compute(arrays):
                    a = arrays["InputTensor"]
                    return {"OutputTensor": {c: function([a[p] for p in places])
                                             for c, places in sets(a, axes).items()}}

                return model("REDUCE", {"InputTensor": Data(t, sizes, x),
                                        "OutputTensor": Result(t, reduced_sizes(sizes, axes), **bounds)},
                             compute, Function=f"DML_REDUCE_FUNCTION_{name}", Axes=axes)
            return make

        short = name.lower().replace("_", "-")
        small = dict(low=1, high=30) if name == "LOG_SUM" else dict(low=-12, high=12) if name == "MULTIPLY" else {}
        for axes in ([3], [0, 2], [0, 1, 2, 3]):
            types = reduction_types(name) if axes == [3] else ("FLOAT32",)
            suite.add(f"{short}-axes-" + "-".join(map(str, axes)), f"{name} over axes {axes}.",
                      build(axes, lambda t: data(t, COUNT, seed=4, **small)), types, strided=axes == [0, 2])
        suite.add(f"{short}-no-axes", f"{name} of each element.",
                  build([], lambda t: data(t, COUNT, seed=5, **small)), ("FLOAT32",))
        specials = [1, INF, 2, 3, -INF, 1, -2, 0.5, NAN, 1, 2, 3, 0.0, -0.0, 0.0, 0.0]
        if name not in ("MULTIPLY", "LOG_SUM"):
            suite.add(f"{short}-special", f"{name} of infinities and NaN.",
                      build([1], lambda t: specials, [4, 4]), ("FLOAT32",))
    for name, largest in (("ARGMAX", True), ("ARGMIN", False)):
        for index in ("UINT32", "INT64"):
            suite.add(f"{name.lower()}-{index.lower()}", f"The first index of the extreme, as {index}.",
                      arg_model("REDUCE", [1, 3], largest, False, index, Function=f"DML_REDUCE_FUNCTION_{name}"),
                      ("FLOAT32", "INT8"))
    return suite.group


def arg_model(operator, axes, largest, last, index, values=None, sizes=SIZES, **attributes):
    def make(t):
        x = values or data(t, COUNT, seed=6, low=-5, high=5, divisor=1)

        def compute(arrays):
            a = arrays["InputTensor"]
            return {"OutputTensor": {c: arg([a[p] for p in places], largest, last)
                                     for c, places in sets(a, axes).items()}}

        return model(operator, {"InputTensor": Data(t, sizes, x),
                                "OutputTensor": Result(index, reduced_sizes(sizes, axes))}, compute,
                     Axes=axes, **attributes)
    return make


def arg_suites():
    for operator, largest in (("ARGMAX", True), ("ARGMIN", False)):
        suite = Suite(operator, "the first or last index of the extreme, over any set of axes, of every index type.")
        for word, last in (("increasing", False), ("decreasing", True)):
            direction = {"AxisDirection": f"DML_AXIS_DIRECTION_{word.upper()}"}
            suite.add(f"types-{word}", "Many equal elements.",
                      arg_model(operator, [3], largest, last, "UINT32", **direction), types_of(operator, "InputTensor"))
            for index in ("INT32", "INT64", "UINT64"):
                suite.add(f"{index.lower()}-{word}", f"Indices of type {index}.",
                          arg_model(operator, [1], largest, last, index, **direction), ("FLOAT16",))
            for axes in ([0], [3, 1], [0, 1, 2, 3]):
                suite.add("axes-" + "-".join(map(str, axes)) + f"-{word}", "The place in the block of these axes.",
                          arg_model(operator, axes, largest, last, "UINT32", **direction), ("FLOAT32",), strided=True)
            suite.add(f"no-axes-{word}", "Always 0.",
                      arg_model(operator, [], largest, last, "UINT32", **direction), ("FLOAT32",))
            suite.add(f"special-{word}", "NaN is the extreme; infinities; zeros are equal.", arg_model(
                operator, [1], largest, last, "UINT32",
                [1, NAN, 2, NAN, INF, 1, -INF, 2, 0.0, -0.0, 0.0, -0.0, -INF, -INF, INF, INF], [4, 4], **direction))
        yield suite.group


def scan_suites():
    for operator, function, first, flag in (("CUMULATIVE_SUMMATION", lambda a, b: a + b, 0, "HasExclusiveSum"),
                                            ("CUMULATIVE_PRODUCT", lambda a, b: a * b, 1, "HasExclusiveProduct")):
        suite = Suite(operator, "along an axis in both directions, with or without the element itself; also in place.")
        for axis, sizes in ((3, SIZES), (0, SIZES), (1, SIZES), (0, [12])):
            for word, backward in (("increasing", False), ("decreasing", True)):
                for exclusive in (False, True):
                    def make(t):
                        few = dict(low=-12, high=12) if first else {}
                        x = data(t, math.prod(sizes), seed=7, **few)

                        def compute(arrays):
                            a, result = arrays["InputTensor"], {}
                            for places in sets(a, [axis]).values():
                                running = first
                                for c in reversed(places) if backward else places:
                                    after = function(running, a[c])
                                    result[c] = running if exclusive else after
                                    running = after
                            return {"OutputTensor": result}

                        bound = sum_bound(x if is_float(t) and not first else [0]) or 1e-6
                        return model(operator, {"InputTensor": Data(t, sizes, x),
                                                "OutputTensor": Result(t, sizes, ulps=16, absolute=bound)}, compute,
                                     Axis=axis, AxisDirection=f"DML_AXIS_DIRECTION_{word.upper()}", **{flag: exclusive})

                    plain = axis == 3 and not backward and not exclusive
                    suite.add(f"axis-{axis}-of-{len(sizes)}-{word}" + ("-exclusive" if exclusive else ""),
                              f"Along axis {axis}.", make,
                              types_of(operator, "InputTensor") if plain else ("FLOAT32", "INT32")[:1 + exclusive],
                              strided=axis == 3)
        yield suite.group


def groups():
    return [*softmax_suites(), reduce_suite(), *arg_suites(), *scan_suites()]
