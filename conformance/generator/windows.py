"""Windows that slide over images: pooling and its gradients, fold and unfold, local response normalization."""
import itertools
import math

from generator import elements
from generator.arithmetic import INF, NAN, is_float, quantized, r32
from generator.operation import Data, Result, made, model, types_of
from generator.suite import FLOATS, Suite, data


class Window:
    """A window with that many spatial dimensions."""

    def __init__(self, size, stride=None, start=None, end=None, dilation=None, output=None):
        count = len(size)
        self.size, self.stride = size, stride or [1] * count
        self.start, self.end = start or [0] * count, end or [0] * count
        self.dilation, self.output = dilation or [1] * count, output

    def output_of(self, spatial):
        """By the page's formula, plus the dilation that it omits; or as the client requests."""
        return self.output or [(n + a + b - (w - 1) * d - 1) // s + 1 for n, a, b, w, d, s in zip(
            spatial, self.start, self.end, self.size, self.dilation, self.stride)]

    def attributes(self, dilated):
        result = {"Strides": self.stride, "WindowSize": self.size, "StartPadding": self.start, "EndPadding": self.end}
        return {**result, "Dilations": self.dilation} if dilated else result

    def taps(self, spatial, place):
        """The positions that a window reads, in row-major order, including those in the padding."""
        for k in itertools.product(*map(range, self.size)):
            yield tuple(o * s - a + x * d for o, s, a, x, d in zip(place, self.stride, self.start, k, self.dilation))

    def valid(self, spatial, place):
        return [t for t in self.taps(spatial, place) if all(0 <= x < n for x, n in zip(t, spatial))]

    def divisor(self, spatial, place, padding):
        if not padding:
            return len(self.valid(spatial, place))
        return sum(all(-a <= x < n + b for x, a, n, b in zip(t, self.start, spatial, self.end))
                   for t in self.taps(spatial, place))


IMAGE, VOLUME = [2, 2, 5, 6], [1, 2, 3, 4, 4]
WINDOWS = {
    "2x2-stride-2": (IMAGE, Window([2, 2], [2, 2])),
    "3x3-padded": (IMAGE, Window([3, 3], None, [1, 1], [1, 1])),
    "3x2-one-sided": (IMAGE, Window([3, 2], [2, 1], [1, 0], [0, 1])),
    "overhanging": (IMAGE, Window([2, 4], [2, 3], None, None, None, [3, 2])),
    "global": (IMAGE, Window([5, 6])),
    "volume": (VOLUME, Window([2, 2, 3], [1, 2, 1], [0, 1, 1], [1, 0, 1])),
}
DILATED = {"dilated": (IMAGE, Window([2, 3], [1, 1], [1, 0], [0, 1], [2, 2])),
           "dilated-volume": (VOLUME, Window([2, 2, 2], None, None, None, [1, 2, 3]))}


def flat(c, sizes):
    result = 0
    for x, size in zip(c, sizes):
        result = result * size + x
    return result


def lowest(t):
    return -INF if is_float(t) else elements.limits(t)[0]


def largest(x, places):
    """The first NaN, or the first of the largest elements; None if there is none."""
    if not places:
        return None
    nan = [p for p in places if x[p] != x[p]]
    return nan[0] if nan else max(places, key=lambda p: x[p])  # the first of equal ones


def pooled(x, window, function):
    """An array of a function's results; it gets the positions that each window reads, and the window's position."""
    spatial = x.sizes[2:]
    return made([*x.sizes[:2], *window.output_of(spatial)],
                lambda n, c, *o: function([(n, c, *t) for t in window.valid(spatial, o)], o))


def max_suites():
    few = [1.5, -2, INF, -INF, NAN, 3] * 20
    for operator, indices, dilated in (("MAX_POOLING", (None,), False),
                                       ("MAX_POOLING1", (None, "UINT32", "UINT64"), False),
                                       ("MAX_POOLING2", (None, "UINT32", "UINT64"), True)):
        suite = Suite(operator, "the largest element of each window; padding never is" +
                      (", and its index in the whole input." if len(indices) > 1 else "."))
        for name, (sizes, window) in {**WINDOWS, **(DILATED if dilated else {})}.items():
            for index in indices:
                def build(values=None):
                    def make(t):
                        x = values or data(t, math.prod(sizes), seed=3, low=-9, high=9, divisor=1)
                        out = [*sizes[:2], *window.output_of(sizes[2:])]

                        def compute(arrays):
                            a = arrays["InputTensor"]
                            best = pooled(a, window, lambda places, o: largest(a, places))
                            return {"OutputTensor": {c: lowest(t) if p is None else a[p] for c, p in best.items()},
                                    "OutputIndicesTensor": {c: 0 if p is None else flat(p, sizes)
                                                            for c, p in best.items()}}

                        fields = {"InputTensor": Data(t, sizes, x), "OutputTensor": Result(t, out)}
                        if index:
                            fields["OutputIndicesTensor"] = Result(index, out)
                        return model(operator, fields, compute, **window.attributes(dilated))
                    return make

                word = f"-{index.lower()}-indices" if index else ""
                every = types_of(operator, "InputTensor") if name == "3x3-padded" and index == indices[-1] else \
                    ("FLOAT32", "FLOAT16", "UINT8")[:1 + (index != "UINT64") + (index is None)]
                suite.add(name + word, f"Windows {name.replace('-', ' ')}.", build(), every,
                          strided=name in ("3x2-one-sided", "volume"))
                if name == "3x3-padded":
                    suite.add(f"special{word}", "Infinities and NaN.", build(few[:math.prod(sizes)]))
        yield suite.group


def average_suites():
    for operator, dilated in (("AVERAGE_POOLING", False), ("AVERAGE_POOLING1", True)):
        suite = Suite(operator, "the mean of each window; padding counts as zeros or not at all, overhangs never.")
        for name, (sizes, window) in {**WINDOWS, **(DILATED if dilated else {})}.items():
            for padding in (False, True):
                def make(t):
                    spatial = sizes[2:]

                    def compute(arrays):
                        a = arrays["InputTensor"]
                        return {"OutputTensor": pooled(a, window, lambda places, o: math.fsum(
                            a[p] for p in places) / (window.divisor(spatial, o, padding) or 1))}

                    return model(operator, {
                        "InputTensor": Data(t, sizes, data(t, math.prod(sizes), seed=4)),
                        "OutputTensor": Result(t, [*sizes[:2], *window.output_of(spatial)], ulps=16, absolute=2e-6)},
                        compute, IncludePadding=padding, **window.attributes(dilated))

                suite.add(name + ("-with-padding" if padding else ""), f"Windows {name.replace('-', ' ')}.", make,
                          strided=name in ("3x2-one-sided", "volume"))
        yield suite.group


def lp_suites():
    for operator, dilated in (("LP_POOLING", False), ("LP_POOLING1", True)):
        suite = Suite(operator, "the P-norm of each window.")
        for name, (sizes, window) in {**WINDOWS, **(DILATED if dilated else {})}.items():
            for p in (1, 2, 3):
                def make(t):
                    def compute(arrays):
                        a = arrays["InputTensor"]
                        return {"OutputTensor": pooled(a, window, lambda places, o: math.fsum(
                            abs(a[q]) ** p for q in places) ** (1 / p))}

                    return model(operator, {
                        "InputTensor": Data(t, sizes, data(t, math.prod(sizes), seed=5)),
                        "OutputTensor": Result(t, [*sizes[:2], *window.output_of(sizes[2:])], ulps=16, absolute=2e-6)},
                        compute, P=p, **window.attributes(dilated))

                suite.add(f"{name}-p-{p}", f"P {p}, windows {name.replace('-', ' ')}.", make,
                          FLOATS if p == 2 else FLOATS[:1], strided=p == 2 and name in ("3x2-one-sided", "volume"))
        yield suite.group


def quantized_average():
    suite = Suite("QUANTIZED_LINEAR_AVERAGE_POOLING",
                  "the mean of the values that the elements represent, quantised again; scales and zero points for "
                  "all or per channel.")
    for name, (sizes, window) in {**WINDOWS, **DILATED}.items():
        for padding in (False, True):
            channels = name in ("3x3-padded", "volume")
            small = [1, 2] + [1] * (len(sizes) - 2) if channels else [1] * len(sizes)
            for zeros in (True, False):
                def make(t):
                    spatial = sizes[2:]
                    fields = {"InputTensor": Data(t, sizes, data(t, math.prod(sizes), seed=6)),
                              "InputScaleTensor": Data("FLOAT32", small, [0.5, 2.0][:math.prod(small)]),
                              "OutputScaleTensor": Data("FLOAT32", small, [0.25, 1.0][:math.prod(small)]),
                              "OutputTensor": Result(t, [*sizes[:2], *window.output_of(spatial)])}
                    if zeros:
                        fields["InputZeroPointTensor"] = Data(t, small, [3, 10][:math.prod(small)])
                        fields["OutputZeroPointTensor"] = Data(t, small, [20, 5][:math.prod(small)])

                    def compute(arrays):
                        a = arrays["InputTensor"]

                        def parameter(tensor, c):
                            return arrays[tensor][tuple(0 if s == 1 else i for i, s in zip(c, small))] \
                                if tensor in arrays else 0

                        def one(n, c, *o):
                            at = (n, c, *o)
                            places = [(n, c, *p) for p in window.valid(spatial, o)]
                            zero = parameter("InputZeroPointTensor", at)
                            mean = sum(a[p] - zero for p in places) * parameter("InputScaleTensor", at) / (
                                window.divisor(spatial, o, padding) or 1)
                            return quantized(t, mean / parameter("OutputScaleTensor", at),
                                             parameter("OutputZeroPointTensor", at))

                        return {"OutputTensor": made([*sizes[:2], *window.output_of(spatial)], one)}

                    return model(suite.operator, fields, compute, IncludePadding=padding, **window.attributes(True))

                suite.add(name + ("-with-padding" if padding else "") + ("" if zeros else "-without-zero-points"),
                          f"Windows {name.replace('-', ' ')}.", make, ("UINT8", "INT8") if zeros else ("UINT8",),
                          strided=zeros and padding and name == "3x2-one-sided")
    return suite.group


def unpooling():
    suite = Suite("MAX_UNPOOLING",
                  "elements written at their indices, zeros elsewhere; the last one wins, and elements out of range "
                  "are dropped.")
    for index in ("UINT32", "UINT64"):
        for name, indices in (("distinct", [0, 3, 9, 14, 15, 17, 30, 24]), ("duplicates", [3, 3, 9, 9, 9, 17, 3, 24]),
                              ("out-of-range", [0, 32, 9, 1000, 15, 4294967295, 30, 24])):
            def make(t):
                def compute(arrays):
                    result = {c: 0 for c in itertools.product(range(1), range(2), range(4), range(4))}
                    for c, i in arrays["IndicesTensor"].items():
                        if i < 32:
                            result[0, i // 16, i // 4 % 4, i % 4] = arrays["InputTensor"][c]
                    return {"OutputTensor": result}

                return model(suite.operator, {
                    "InputTensor": Data(t, [1, 2, 2, 2], data(t, 8, seed=8)),
                    "IndicesTensor": Data(index, [1, 2, 2, 2], indices), "OutputTensor": Result(t, [1, 2, 4, 4])},
                             compute)

            suite.add(f"{name}-{index.lower()}", f"Indices {name.replace('-', ' ')}.", make,
                      types_of(suite.operator, "InputTensor") if (name, index) == ("distinct", "UINT32") else
                      ("FLOAT32",), strided=index == "UINT64")
    return suite.group


def gradient_suites():
    average = Suite("AVERAGE_POOLING_GRAD", "each gradient is spread over its window.")
    peak = Suite("MAX_POOLING_GRAD", "each gradient goes to the first largest element of its window.")
    for name, (sizes, window) in {**WINDOWS, **DILATED}.items():
        spatial, small = sizes[2:], [*sizes[:2], *window.output_of(sizes[2:])]
        near = dict(ulps=16, absolute=2e-6)
        for padding in (False, True) if name in WINDOWS else ():
            def make(t):
                def compute(arrays):
                    dy, result = arrays["InputGradientTensor"], made(sizes, lambda *c: 0.0)
                    for (n, c, *o), g in dy.items():
                        for p in window.valid(spatial, o):
                            result[(n, c, *p)] += g / window.divisor(spatial, o, padding)
                    return {"OutputGradientTensor": result}

                return model(average.operator, {
                    "InputGradientTensor": Data(t, small, data(t, math.prod(small), seed=9)),
                    "OutputGradientTensor": Result(t, sizes, **near)}, compute, IncludePadding=padding,
                    **window.attributes(False))

            average.add(name + ("-with-padding" if padding else ""), f"Windows {name.replace('-', ' ')}.", make,
                        strided=name in ("3x2-one-sided", "volume"))

        def make(t):
            def compute(arrays):
                x, dy, result = arrays["InputTensor"], arrays["InputGradientTensor"], made(sizes, lambda *c: 0.0)
                for (n, c, *o), g in dy.items():
                    result[largest(x, [(n, c, *p) for p in window.valid(spatial, o)])] += g
                return {"OutputGradientTensor": result}

            return model(peak.operator, {
                "InputTensor": Data(t, sizes, data(t, math.prod(sizes), seed=10, low=-4, high=4, divisor=1)),
                "InputGradientTensor": Data(t, small, data(t, math.prod(small), seed=9)),
                "OutputGradientTensor": Result(t, sizes, **near)}, compute, **window.attributes(True))

        peak.add(name, f"Windows {name.replace('-', ' ')}, with equal elements.", make,
                 strided=name in ("3x2-one-sided", "volume"))
    return [average.group, peak.group]


FOLDS = {
    "line": ([2, 2, 7], Window([3], [2], [1], [0])),
    "2x2": ([1, 2, 4, 5], Window([2, 2], [1, 2])),
    "padded": ([2, 1, 4, 4], Window([2, 3], [2, 1], [1, 1], [0, 1])),
    "dilated": ([1, 2, 5, 6], Window([2, 2], [1, 2], None, None, [3, 2])),
    "volume": ([1, 1, 3, 3, 4], Window([2, 1, 2], [1, 2, 2], [0, 0, 1], [1, 0, 1])),
}


def fold_suites():
    fold = Suite("FOLD", "columns added into an image.")
    unfold = Suite("UNFOLD", "windows of an image as columns; zeros outside.")
    for name, (image, window) in FOLDS.items():
        spatial = image[2:]
        blocks = window.output_of(spatial)
        columns = [image[0], image[1] * math.prod(window.size), math.prod(blocks)]
        attributes = {"WindowSizes": window.size, "Strides": window.stride, "Dilations": window.dilation,
                      "StartPadding": window.start, "EndPadding": window.end}

        def cells():
            """The coordinates of columns with those in the image, or None."""
            for n, c in itertools.product(range(image[0]), range(image[1])):
                for column, o in enumerate(itertools.product(*map(range, blocks))):
                    for k, p in enumerate(window.taps(spatial, o)):
                        inside = all(0 <= x < size for x, size in zip(p, spatial))
                        yield (n, c * math.prod(window.size) + k, column), (n, c, *p) if inside else None

        def make_fold(t):
            def compute(arrays):
                result = made(image, lambda *c: 0)
                for column, p in cells():
                    if p:
                        result[p] += arrays["InputTensor"][column]
                return {"OutputTensor": result}

            return model("FOLD", {"InputTensor": Data(t, columns, data(t, math.prod(columns), seed=11)),
                                  "OutputTensor": Result(t, image, ulps=8, absolute=2e-6)}, compute, **attributes)

        def make_unfold(t):
            return model("UNFOLD", {"InputTensor": Data(t, image, data(t, math.prod(image), seed=12)),
                                    "OutputTensor": Result(t, columns)},
                         lambda arrays: {"OutputTensor": {column: arrays["InputTensor"][p] if p else 0
                                                          for column, p in cells()}}, **attributes)

        sums = [t for t in types_of("FOLD", "InputTensor") if t != "FLOAT64"]
        fold.add(name, f"Blocks {name}.", make_fold, sums if name == "padded" else FLOATS[:1], strided=True)
        unfold.add(name, f"Blocks {name}.", make_unfold, types_of("UNFOLD", "InputTensor") if name == "padded" else
                   FLOATS[:1], strided=True)
    return [fold.group, unfold.group]


def lrn_suites():
    plain = Suite("LOCAL_RESPONSE_NORMALIZATION", "each element divided by a power of the squares around it, in "
                                                  "channels or in the plane.")
    gradient = Suite("LOCAL_RESPONSE_NORMALIZATION_GRAD", "the gradient of that.")
    sizes = [2, 4, 3, 4]
    alpha, beta, bias = r32(0.5), r32(0.75), r32(1.5)
    for cross in (True, False):
        for n in (1, 2, 3, 4):
            def around(c):
                """The positions over which c's sum extends."""
                low, high = (n - 1) // 2, n // 2
                axes = [1] if cross else [2, 3]
                ranges = [range(max(0, c[d] - low), min(sizes[d], c[d] + high + 1)) if d in axes else [c[d]]
                          for d in range(4)]
                return itertools.product(*ranges)

            def sums(x):
                return {c: bias + alpha / n * math.fsum(x[p] ** 2 for p in around(c)) for c in x}

            attributes = dict(CrossChannel=cross, LocalSize=n, Alpha=0.5, Beta=0.75, Bias=1.5)
            name = ("channels" if cross else "plane") + f"-{n}"

            def make(t):
                def compute(arrays):
                    x = arrays["InputTensor"]
                    return {"OutputTensor": {c: x[c] * s ** -beta for c, s in sums(x).items()}}
                return model(plain.operator, {"InputTensor": Data(t, sizes, data(t, 96, seed=14)),
                                              "OutputTensor": Result(t, sizes, ulps=16, absolute=1e-6)}, compute,
                             **attributes)

            def make_gradient(t):
                def compute(arrays):
                    x, dy = arrays["InputTensor"], arrays["InputGradientTensor"]
                    s, result = sums(x), {}
                    for c in x:
                        result[c] = dy[c] * s[c] ** -beta
                    for j in x:  # added to each element of its window
                        for i in around(j):
                            result[i] -= 2 * alpha * beta / n * x[i] * dy[j] * x[j] * s[j] ** (-beta - 1)
                    return {"OutputGradientTensor": result}
                return model(gradient.operator, {
                    "InputTensor": Data(t, sizes, data(t, 96, seed=14)),
                    "InputGradientTensor": Data(t, sizes, data(t, 96, seed=15)),
                    "OutputGradientTensor": Result(t, sizes, ulps=32, absolute=1e-5)}, compute, **attributes)

            plain.add(name, f"{n} wide.", make, strided=n == 3)
            gradient.add(name, f"{n} wide.", make_gradient, strided=n == 3)
    return [plain.group, gradient.group]


def groups():
    return [*max_suites(), *average_suites(), *lp_suites(), quantized_average(), unpooling(), *gradient_suites(),
            *fold_suites(), *lrn_suites()]
