"""Products of matrices and convolutions, for floats and integers."""
import itertools
import math

from generator.arithmetic import quantized, r32
from generator.element_wise import ACTIVATIONS, clip, number
from generator.operation import Data, Result, made, model
from generator.suite import FLOATS, Suite, data

PLAIN, TRANSPOSED = "DML_MATRIX_TRANSFORM_NONE", "DML_MATRIX_TRANSFORM_TRANSPOSE"


def swapped(sizes):
    return [*sizes[:-2], sizes[-1], sizes[-2]]


def matrix(array, transposed):
    """Reads [..., row, column] from a matrix that may be transposed."""
    return (lambda c, r, k: array[(*c, k, r)]) if transposed else (lambda c, r, k: array[(*c, r, k)])


def activated(activation):
    """Attributes of a fused activation, and its function on all elements."""
    if activation is None:
        return {}, lambda values: values
    if activation == "CLIP":
        given = {"Min": -1.5, "Max": 2.0}
        desc = {"Type": "DML_OPERATOR_ELEMENT_WISE_CLIP", "Desc": given}
        return {"FusedActivation": desc}, lambda values: {c: clip(v, "FLOAT32", -1.5, 2.0) for c, v in values.items()}
    row = ACTIVATIONS[activation]
    given = {k: number(v) for k, v in row.attributes[0].items()}
    desc = {"Type": f"DML_OPERATOR_ACTIVATION_{activation}", "Desc": row.attributes[0]}
    return {"FusedActivation": desc}, lambda values: {c: row.function(v, "FLOAT32", **given) for c, v in values.items()}


def gemm():
    suite = Suite("GEMM", "Alpha * A * B + Beta * C, transposed or not, in batches, and then an activation.")

    def build(batch, m, k, n, trans_a=False, trans_b=False, alpha=1.0, beta=0.0, with_c=False, activation=None):
        def make(t):
            a_sizes, b_sizes, out = [*batch, m, k], [*batch, k, n], [*batch, m, n]
            fields = {"ATensor": Data(t, swapped(a_sizes) if trans_a else a_sizes, data(t, math.prod(a_sizes), seed=2)),
                      "BTensor": Data(t, swapped(b_sizes) if trans_b else b_sizes, data(t, math.prod(b_sizes), seed=3))}
            if with_c:
                fields["CTensor"] = Data(t, out, data(t, math.prod(out), seed=4))
            more, finish = activated(activation)

            def compute(arrays):
                a, b = matrix(arrays["ATensor"], trans_a), matrix(arrays["BTensor"], trans_b)

                def one(*c):
                    *outer, row, column = c
                    y = r32(alpha) * math.fsum(a(outer, row, i) * b(outer, i, column) for i in range(k))
                    return y + r32(beta) * arrays["CTensor"][c] if with_c and beta else y
                return {"OutputTensor": finish(made(out, one))}

            fields["OutputTensor"] = Result(t, out, ulps=16 + 2 * k, absolute=2e-5)
            return model("GEMM", fields, compute, TransA=TRANSPOSED if trans_a else PLAIN,
                         TransB=TRANSPOSED if trans_b else PLAIN, Alpha=alpha, Beta=beta, **more)
        return make

    for trans_a, trans_b in itertools.product((False, True), repeat=2):
        suite.add("plain" + ("-a-transposed" if trans_a else "") + ("-b-transposed" if trans_b else ""), "3x5 by 5x4.",
                  build([1, 1], 3, 5, 4, trans_a, trans_b), strided=True)
    suite.add("batches", "Six products.", build([2, 3], 2, 3, 4), strided=True)
    suite.add("two-dimensions", "Without batches.", build([], 4, 3, 5, False, True), since="4.0")
    suite.add("scaled", "Alpha, Beta and C.", build([1, 2], 3, 4, 3, alpha=0.5, beta=-2.0, with_c=True), strided=True)
    suite.add("beta-0", "C is not read.", build([1, 1], 2, 3, 2, beta=0.0, with_c=True))
    suite.add("long", "100 terms.", build([1, 1], 2, 100, 3))
    suite.add("wide", "17x9 by 9x33.", build([1, 1], 17, 9, 33), FLOATS[:1])
    suite.add("vector", "One row.", build([1, 1], 1, 7, 9, False, True))
    for activation in ("RELU", "SIGMOID", "LEAKY_RELU", "GELU", "TANH", "LINEAR"):
        suite.add(f"fused-{activation.lower().replace('_', '-')}", f"{activation} fused.",
                  build([1, 1], 3, 4, 5, beta=1.0, with_c=True, activation=activation))
    suite.add("fused-clip", "CLIP fused.", build([1, 1], 3, 4, 5, activation="CLIP"), since="6.0")
    return suite.group


def at(arrays, field, c):
    """A parameter that is broadcast if its size is 1; 0 if it is absent."""
    if field not in arrays:
        return 0
    array = arrays[field]
    return array[tuple(0 if size == 1 else x for x, size in zip(c, array.sizes))]


def integer_matrices():
    plain = Suite("MATRIX_MULTIPLY_INTEGER", "products of 8-bit integers minus their zero points, in 32 bits.")
    linear = Suite("QUANTIZED_LINEAR_MATRIX_MULTIPLY", "the same, scaled and quantised again.")
    floats = Suite("MATRIX_MULTIPLY_INTEGER_TO_FLOAT", "the same, as floats, with a bias.")
    shapes = (("scalars", [1, 1], [1, 1, 1, 1], [1, 1, 1, 1]),
              ("per-row-and-column", [1, 1], [1, 1, 3, 1], [1, 1, 1, 4]),
              ("batches", [2, 2], [1, 1, 1, 1], [1, 1, 1, 4]))
    for a_type, b_type in itertools.product(("UINT8", "INT8"), repeat=2):
        for name, batch, a_small, b_small in shapes:
            for zeros in (True, False):
                m, k, n = 3, 5, 4
                a_sizes, b_sizes, out = [*batch, m, k], [*batch, k, n], [*batch, m, n]

                def products():
                    fields = {"ATensor": Data(a_type, a_sizes, data(a_type, math.prod(a_sizes), seed=5)),
                              "BTensor": Data(b_type, b_sizes, data(b_type, math.prod(b_sizes), seed=6))}
                    if zeros:
                        fields["AZeroPointTensor"] = Data(a_type, a_small, data(a_type, math.prod(a_small), 7, 0, 20))
                        fields["BZeroPointTensor"] = Data(b_type, b_small, data(b_type, math.prod(b_small), 8, 0, 20))
                    return fields

                def total(arrays, c):
                    *outer, row, column = c
                    za, zb = at(arrays, "AZeroPointTensor", c), at(arrays, "BZeroPointTensor", c)
                    return sum((arrays["ATensor"][(*outer, row, i)] - za) * (arrays["BTensor"][(*outer, i,
                                                                                                column)] - zb)
                               for i in range(k))

                def scales(t, *names):
                    values = {"AScaleTensor": (a_small, [0.5, 0.25, 1.0]),
                              "BScaleTensor": (b_small, [0.125, 1.0, 0.5, 2.0]),
                              "OutputScaleTensor": ([1, 1, 1, 1], [4.0])}
                    return {name: Data(t, values[name][0],
                                       values[name][1][:math.prod(values[name][0])]) for name in names}

                def make(_):
                    return model(plain.operator, {**products(), "OutputTensor": Result("INT32", out)},
                                 lambda arrays: {"OutputTensor": made(out, lambda *c: total(arrays, c))})

                def make_linear(t):
                    fields = {**products(), **scales("FLOAT32", "AScaleTensor", "BScaleTensor", "OutputScaleTensor")}
                    if zeros:
                        fields["OutputZeroPointTensor"] = Data(t, [1, 1, 1, 1], [9])

                    def compute(arrays):
                        return {"OutputTensor": made(out, lambda *c: quantized(
                            t, total(arrays, c) * at(arrays, "AScaleTensor", c) * at(arrays, "BScaleTensor", c) /
                            at(arrays, "OutputScaleTensor", c), at(arrays, "OutputZeroPointTensor", c)))}
                    return model(linear.operator, {**fields, "OutputTensor": Result(t, out)}, compute)

                def make_floats(t):
                    fields = {**products(), **scales(t, "AScaleTensor", "BScaleTensor")}
                    if zeros:
                        fields["BiasTensor"] = Data(t, out, data(t, math.prod(out), seed=9))

                    def compute(arrays):
                        return {"OutputTensor": made(out, lambda *c: total(arrays, c) * at(
                            arrays, "AScaleTensor", c) * at(arrays, "BScaleTensor", c) + at(arrays, "BiasTensor", c))}
                    return model(floats.operator, {**fields, "OutputTensor": Result(t, out, ulps=4, absolute=1e-5)},
                                 compute)

                full = f"{name}-{a_type.lower()}-{b_type.lower()}" + ("" if zeros else "-without-zero-points")
                claim = f"{a_type} by {b_type}, zero points {'as ' + name.replace('-', ' ') if zeros else 'absent'}."
                strided = zeros and a_type != b_type
                plain.add(full, claim, make, ("INT32",), strided=strided)
                linear.add(full, claim, make_linear, ("UINT8", "INT8") if zeros else ("INT8",), strided=strided)
                floats.add(full, claim, make_floats, FLOATS if zeros else FLOATS[:1], strided=strided)
    return [plain.group, linear.group, floats.group]


# Input and filter sizes, and attributes that differ from 1 and 0.
CONVOLUTIONS = {
    "3x3": ([1, 2, 5, 6], [3, 2, 3, 3], {}),
    "padded": ([2, 2, 4, 5], [2, 2, 3, 3], dict(StartPadding=[1, 1], EndPadding=[1, 1])),
    "one-sided": ([1, 2, 5, 5], [2, 2, 2, 3], dict(StartPadding=[1, 0], EndPadding=[0, 2], Strides=[2, 1])),
    "strided-windows": ([1, 1, 7, 8], [2, 1, 3, 2], dict(Strides=[2, 3])),
    "dilated": ([1, 2, 7, 6], [2, 2, 3, 2], dict(Dilations=[2, 3])),
    "1x1": ([2, 3, 3, 3], [4, 3, 1, 1], {}),
    "groups": ([1, 4, 5, 5], [6, 2, 3, 3], dict(GroupCount=2, StartPadding=[1, 1], EndPadding=[1, 1])),
    "depthwise": ([1, 3, 5, 5], [3, 1, 3, 3], dict(GroupCount=3, StartPadding=[1, 1], EndPadding=[1, 1])),
    "line": ([2, 2, 9], [3, 2, 3], dict(Strides=[2], StartPadding=[1], EndPadding=[1])),
}
VOLUMES = {"volume": ([1, 2, 3, 4, 4], [2, 2, 2, 3, 2], dict(StartPadding=[0, 1, 0], EndPadding=[1, 1, 1]))}


def spatial_attributes(count, given):
    return {"Strides": [1] * count, "Dilations": [1] * count, "StartPadding": [0] * count, "EndPadding": [0] * count,
            "GroupCount": 1, **given}


def forward_sizes(spatial, kernel, a):
    return [(n + s + e - (w - 1) * d - 1) // st + 1 for n, w, d, s, e, st in zip(
        spatial, kernel, a["Dilations"], a["StartPadding"], a["EndPadding"], a["Strides"])]


def forward_terms(c, x_sizes, w_sizes, outputs, a, flipped=False):
    """The terms of one output: positions of the input and of the filter. Padding is left out."""
    n, oc, *p = c
    group = oc // (outputs // a["GroupCount"])
    for ic in range(w_sizes[1]):
        for k in itertools.product(*map(range, w_sizes[2:])):
            place = [o * st - s + i * d for o, st, s, i,
                     d in zip(p, a["Strides"], a["StartPadding"], k, a["Dilations"])]
            if all(0 <= q < size for q, size in zip(place, x_sizes[2:])):
                tap = [w - 1 - i for w, i in zip(w_sizes[2:], k)] if flipped else k
                yield (n, group * w_sizes[1] + ic, *place), (oc, ic, *tap)


def backward_terms(c, x_sizes, w_sizes, outputs, a, flipped=False):
    n, oc, *p = c
    inner = outputs // a["GroupCount"]
    channels = x_sizes[1] // a["GroupCount"]
    for ic in range(oc // inner * channels, oc // inner * channels + channels):
        for k in itertools.product(*map(range, w_sizes[2:])):
            offsets = [o + s - i * d for o, s, i, d in zip(p, a["StartPadding"], k, a["Dilations"])]
            if any(o % st for o, st in zip(offsets, a["Strides"])):
                continue
            place = [o // st for o, st in zip(offsets, a["Strides"])]
            if all(0 <= q < size for q, size in zip(place, x_sizes[2:])):
                tap = [w - 1 - i for w, i in zip(w_sizes[2:], k)] if flipped else k
                yield (n, ic, *place), (ic, oc % inner, *tap)


def convolution():
    suite = Suite("CONVOLUTION",
                  "forward and transposed, as a convolution or a correlation, in groups, with an activation.")
    for name, (x_sizes, w_sizes, given) in {**CONVOLUTIONS, **VOLUMES}.items():
        count = len(x_sizes) - 2
        a = spatial_attributes(count, given)
        for backward in (False, True):
            outputs = w_sizes[0]
            if backward:  # the filter's first dimension is the input's channels
                filter_sizes = [x_sizes[1], outputs // a["GroupCount"], *w_sizes[2:]]
                spatial = [(n - 1) * st + (w - 1) * d + 1 - s - e for n, st, w, d, s, e in zip(
                    x_sizes[2:], a["Strides"], w_sizes[2:], a["Dilations"], a["StartPadding"], a["EndPadding"])]
            else:
                filter_sizes, spatial = w_sizes, forward_sizes(x_sizes[2:], w_sizes[2:], a)
            out = [x_sizes[0], outputs, *spatial]
            terms = backward_terms if backward else forward_terms
            for flipped in (False, True) if name in ("padded", "one-sided", "groups") else (False,):
                for activation in (None, "RELU", "SIGMOID", "CLIP") if name == "padded" and not flipped else (None,):
                    biased = name != "3x3"

                    def make(t):
                        more, finish = activated(activation)
                        fields = {"InputTensor": Data(t, x_sizes, data(t, math.prod(x_sizes), seed=10)),
                                  "FilterTensor": Data(t, filter_sizes, data(t, math.prod(filter_sizes), seed=11))}
                        if biased:
                            fields["BiasTensor"] = Data(t, [1, outputs] + [1] * count, data(t, outputs, seed=12))

                        def compute(arrays):
                            x, w = arrays["InputTensor"], arrays["FilterTensor"]
                            return {"OutputTensor": finish(made(out, lambda *c: math.fsum(
                                x[p] * w[q] for p, q in terms(c, x_sizes, filter_sizes, outputs, a, flipped)) +
                                at(arrays, "BiasTensor", (0, c[1], *[0] * count))))}

                        fields["OutputTensor"] = Result(t, out, ulps=64, absolute=1e-4)
                        return model("CONVOLUTION", fields, compute, OutputPadding=[0] * count,
                                     Mode="DML_CONVOLUTION_MODE_" + ("CONVOLUTION" if flipped else "CROSS_CORRELATION"),
                                     Direction="DML_CONVOLUTION_DIRECTION_" + ("BACKWARD" if backward else "FORWARD"),
                                     **a, **more)

                    suite.add(name + ("-backward" if backward else "") + ("-flipped" if flipped else "") + (
                        f"-{activation.lower()}" if activation else ""), f"{name.replace('-', ' ').capitalize()}.",
                              make,
                        FLOATS if not flipped and not activation else FLOATS[:1],
                        strided=name in ("one-sided", "groups", "line") and not flipped,
                        since="6.0" if activation == "CLIP" else "1.0")
    return suite.group


def integer_convolutions():
    plain = Suite("CONVOLUTION_INTEGER",
                  "sums of products of 8-bit integers minus their zero points, in 32 bits; padding "
                  "adds nothing.")
    linear = Suite("QUANTIZED_LINEAR_CONVOLUTION", "the same with a bias, scaled and quantised again.")
    for name, (x_sizes, w_sizes, given) in CONVOLUTIONS.items():
        count = len(x_sizes) - 2
        a = spatial_attributes(count, given)
        out = [x_sizes[0], w_sizes[0], *forward_sizes(x_sizes[2:], w_sizes[2:], a)]
        outputs = w_sizes[0]
        for x_type, w_type in (("UINT8", "UINT8"), ("UINT8", "INT8"), ("INT8", "INT8")):
            for zeros in (True, False) if name == "padded" else (True,):
                per_channel = name in ("padded", "groups")
                scalar, channels = [1] * (count + 2), [1, outputs if per_channel else 1] + [1] * count

                def products():
                    fields = {"InputTensor": Data(x_type, x_sizes, data(x_type, math.prod(x_sizes), seed=13)),
                              "FilterTensor": Data(w_type, w_sizes, data(w_type, math.prod(w_sizes), seed=14))}
                    if zeros:
                        fields["InputZeroPointTensor"] = Data(x_type, scalar, [7])
                        fields["FilterZeroPointTensor"] = Data(w_type, channels,
                                                               data(w_type, math.prod(channels), 15, 0, 9))
                    return fields

                def total(arrays, c):
                    channel = (0, c[1], *[0] * count)
                    zx, zw = at(arrays, "InputZeroPointTensor", channel), at(arrays, "FilterZeroPointTensor", channel)
                    return sum((arrays["InputTensor"][p] - zx) * (arrays["FilterTensor"][q] - zw)
                               for p, q in forward_terms(c, x_sizes, w_sizes, outputs, a))

                def make(_):
                    return model(plain.operator, {**products(), "OutputTensor": Result("INT32", out)},
                                 lambda arrays: {"OutputTensor": made(out, lambda *c: total(arrays, c))}, **a)

                def make_linear(t):
                    fields = {**products(), "InputScaleTensor": Data("FLOAT32", scalar, [0.5]),
                              "FilterScaleTensor": Data("FLOAT32", channels,
                                                        [0.25, 0.125, 1, 0.5, 0.25, 2][:math.prod(channels)]),
                              "OutputScaleTensor": Data("FLOAT32", scalar, [16.0])}
                    if zeros:
                        fields["OutputZeroPointTensor"] = Data(t, scalar, [11])
                        fields["BiasTensor"] = Data("INT32", [1, outputs] + [1] * count,
                                                    [-300, 1000, 50, 7, -80, 20][:outputs])

                    def compute(arrays):
                        def one(*c):
                            channel = (0, c[1], *[0] * count)
                            product = total(arrays, c) + at(arrays, "BiasTensor", channel)
                            return quantized(t, product * 0.5 * at(arrays, "FilterScaleTensor", channel) / 16.0,
                                             at(arrays, "OutputZeroPointTensor", channel))
                        return {"OutputTensor": made(out, one)}
                    return model(linear.operator, {**fields, "OutputTensor": Result(t, out)}, compute, **a)

                full = f"{name}-{x_type.lower()}-{w_type.lower()}" + ("" if zeros else "-without-zero-points")
                claim = f"{x_type} by {w_type}, {name.replace('-', ' ')}."
                strided = x_type != w_type and name in ("one-sided", "groups")
                plain.add(full, claim, make, ("INT32",), strided=strided)
                linear.add(full, claim, make_linear, ("UINT8", "INT8") if x_type != w_type else (x_type,),
                           strided=strided)
    return [plain.group, linear.group]


def groups():
    return [gemm(), *integer_matrices(), convolution(), *integer_convolutions()]
