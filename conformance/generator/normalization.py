"""Normalizations by the mean, the variance or the norm of sets of elements."""
import math

from generator.arithmetic import r32
from generator.element_wise import ACTIVATIONS, number
from generator.operation import Array, Data, Result, model
from generator.reduction import SIZES, over_sets, sets, total
from generator.suite import FLOATS, Suite, data


def batch_suites():
    """Statistics over the dimensions in which the parameters have size 1."""
    epsilon = r32(1e-3)

    def at(array, c):
        return array[tuple(0 if size == 1 else x for x, size in zip(c, array.sizes))]

    def fields(t, sizes, small, names, positive=()):
        result = {"InputTensor": Data(t, sizes, data(t, math.prod(sizes), seed=2))}
        for i, name in enumerate(names):
            shape = sizes if name in ("InputGradientTensor", "FusedAddTensor") else small
            low = 1 if name in positive else -20
            result[name] = Data(t, shape, data(t, math.prod(shape), seed=20 + i, low=low, high=30, divisor=11))
        return result

    shapes = (("per-channel", SIZES, [1, 3, 1, 1]), ("per-row", SIZES, [1, 1, 2, 4]),
              ("per-tensor", SIZES, [1, 1, 1, 1]),
              ("full", SIZES, SIZES), ("two-dimensions", [4, 6], [1, 6]))
    near = dict(ulps=16, absolute=2e-5)
    plain = Suite("BATCH_NORMALIZATION",
                  "Scale * (x - Mean) / sqrt(Variance + Epsilon) + Bias, parameters broadcast where "
                  "their size is 1.")
    rows = {None: None, **{name: ACTIVATIONS[name] for name in ("RELU", "SIGMOID", "LEAKY_RELU")}}
    for name, sizes, small in shapes:
        for activation, row in rows.items() if name == "per-channel" else [(None, None)]:
            given = {k: number(v) for k, v in row.attributes[0].items()} if row else {}

            def make(t):
                def compute(a):
                    def one(c, x):
                        mean, variance, scale, bias = (at(a[f"{n}Tensor"], c) for n in ("Mean", "Variance", "Scale",
                                                                                        "Bias"))
                        y = scale * (x - mean) / math.sqrt(variance + epsilon) + bias
                        return row.function(y, "FLOAT32", **given) if row else y
                    return {"OutputTensor": {c: one(c, x) for c, x in a["InputTensor"].items()}}

                more = {"FusedActivation": {"Type": f"DML_OPERATOR_ACTIVATION_{activation}",
                                            "Desc": row.attributes[0]}} \
                    if row else {}
                return model("BATCH_NORMALIZATION", {
                    **fields(t, sizes, small, ("MeanTensor", "VarianceTensor", "ScaleTensor", "BiasTensor"),
                             ("VarianceTensor",)), "OutputTensor": Result(t, sizes, **near)}, compute,
                    Spatial=True, Epsilon=1e-3, **more)

            plain.add(name + (f"-{activation.lower().replace('_', '-')}" if row else ""),
                      f"Parameters {name.replace('-', ' ')}" + (f", {activation} fused." if row else "."), make,
                      strided=not row, since="4.0")
    yield plain.group

    training = Suite("BATCH_NORMALIZATION_TRAINING",
                     "mean and biased variance of each set, and the normalised input; a "
                     "tensor may be added.")
    for name, sizes, small in shapes[:3]:
        for added in (False, True):
            def make(t):
                axes = [d for d, size in enumerate(small) if size == 1]

                def compute(a):
                    x, mean, variance = a["InputTensor"], {}, {}
                    for key, places in sets(x, axes).items():
                        mean[key] = math.fsum(x[c] for c in places) / len(places)
                        variance[key] = math.fsum((x[c] - mean[key]) ** 2 for c in places) / len(places)
                    output = {}
                    for key, places in sets(x, axes).items():
                        for c in places:
                            output[c] = at(a["ScaleTensor"], c) * (x[c] - mean[key]) / math.sqrt(
                                variance[key] + epsilon) + at(a["BiasTensor"], c)
                            if added:
                                output[c] += a["FusedAddTensor"][c]
                    return {"OutputTensor": output, "OutputMeanTensor": mean, "OutputVarianceTensor": variance}

                return model("BATCH_NORMALIZATION_TRAINING", {
                    **fields(t, sizes, small, ("ScaleTensor", "BiasTensor") + (("FusedAddTensor",) if added else ())),
                    "OutputTensor": Result(t, sizes, **near), "OutputMeanTensor": Result(t, small, **near),
                    "OutputVarianceTensor": Result(t, small, **near)}, compute, Epsilon=1e-3)

            training.add(name + ("-with-sum" if added else ""), f"Statistics {name.replace('-', ' ')}.", make,
                         strided=added)
    yield training.group

    for operator, trained in (("BATCH_NORMALIZATION_GRAD", False), ("BATCH_NORMALIZATION_TRAINING_GRAD", True)):
        suite = Suite(operator, "gradients of the input, the scale and the bias" +
                      (", with the mean and variance of the input." if trained else ", with a given mean and variance."))
        for name, sizes, small in shapes[:3]:
            def make(t):
                axes = [d for d, size in enumerate(small) if size == 1]

                def compute(a):
                    x, dy = a["InputTensor"], a["InputGradientTensor"]
                    dx, ds, db = {}, {}, {}
                    for key, places in sets(x, axes).items():
                        mean, variance, scale = (a[f"{n}Tensor"][key] for n in ("Mean", "Variance", "Scale"))
                        root = math.sqrt(variance + epsilon)
                        db[key] = math.fsum(dy[c] for c in places)
                        ds[key] = math.fsum(dy[c] * (x[c] - mean) for c in places) / root
                        # The page's terms, for the given mean.
                        g = db[key] / len(places)
                        m = math.fsum(dy[c] * (x[c] - mean) for c in places) / len(places)
                        for c in places:
                            dx[c] = scale / root * (dy[c] - g - (x[c] - mean) * m / (variance + epsilon)) if trained \
                                else dy[c] * scale / root
                    return {"OutputGradientTensor": dx, "OutputScaleGradientTensor": ds, "OutputBiasGradientTensor": db}

                result = fields(t, sizes, small, ("InputGradientTensor", "MeanTensor", "VarianceTensor", "ScaleTensor"),
                                ("VarianceTensor",))
                if trained:  # the statistics of the input itself
                    x = Array(sizes, result["InputTensor"].values)
                    parts = list(sets(x, axes).values())
                    means = [math.fsum(x[c] for c in p) / len(p) for p in parts]
                    variances = [math.fsum((x[c] - m) ** 2 for c in p) / len(p) for p, m in zip(parts, means)]
                    result["MeanTensor"], result["VarianceTensor"] = Data(t, small, means), Data(t, small, variances)
                wide = dict(ulps=16, absolute=1e-4)
                return model(operator, {
                    **result, "OutputGradientTensor": Result(t, sizes, **wide),
                    "OutputScaleGradientTensor": Result(t, small, **wide),
                    "OutputBiasGradientTensor": Result(t, small, **wide)}, compute, Epsilon=1e-3)

            suite.add(name, f"Parameters {name.replace('-', ' ')}.", make, strided=True)
        yield suite.group


def mean_variance(operator, sizes, axes, small, use_mean, use_variance, parameters, activation=None, **attributes):
    """`parameters`: which of Scale and Bias are present."""
    epsilon = r32(attributes.get("Epsilon", 1e-3))
    row = ACTIVATIONS[activation] if activation else None
    given = {k: number(v) for k, v in row.attributes[0].items()} if row else {}

    def make(t):
        result = {"InputTensor": Data(t, sizes, data(t, math.prod(sizes), seed=12))}
        for i, name in enumerate(parameters):
            values = data(t, math.prod(small), seed=30 + i, low=-20, high=30, divisor=11)
            result[f"{name}Tensor"] = Data(t, small, values)

        def compute(a):
            x, output = a["InputTensor"], {}
            for places in sets(x, axes).values():
                mean = math.fsum(x[c] for c in places) / len(places) if use_mean else 0.0
                variance = math.fsum((x[c] - mean) ** 2 for c in places) / len(places)
                for c in places:
                    y = (x[c] - mean) / (math.sqrt(variance + epsilon) if use_variance else 1)
                    for name in parameters:
                        p = a[f"{name}Tensor"]
                        v = p[tuple(0 if size == 1 else i for i, size in zip(c, p.sizes))]
                        y = y * v if name == "Scale" else y + v
                    output[c] = row.function(y, "FLOAT32", **given) if row else y
            return {"OutputTensor": output}

        more = {"FusedActivation": {"Type": f"DML_OPERATOR_ACTIVATION_{activation}", "Desc": row.attributes[0]}} \
            if row else {}
        return model(operator, {**result, "OutputTensor": Result(t, sizes, ulps=16, absolute=2e-5)}, compute,
                     **attributes, **more)
    return make


def mvn_suites():
    both = ("Scale", "Bias")
    old = Suite("MEAN_VARIANCE_NORMALIZATION", "over height and width and, with CrossChannel, the channels.")
    for cross in (False, True):
        for variance in (True, False):
            name = ("cross-channel" if cross else "per-channel") + ("" if variance else "-mean-only")
            axes = [1, 2, 3] if cross else [2, 3]
            for parameters, word in (((), ""), (both, "-scaled")):
                old.add(name + word, f"Over axes {axes}.", mean_variance(
                    old.operator, SIZES, axes, [1, 3, 1, 1], True, variance, parameters, CrossChannel=cross,
                    NormalizeVariance=variance, Epsilon=1e-3), strided=bool(parameters))
    old.add("bias-only", "Bias without Scale.", mean_variance(
        old.operator, SIZES, [2, 3], [1, 3, 1, 1], True, True, ("Bias",), CrossChannel=False, NormalizeVariance=True,
        Epsilon=1e-3), since="5.2")
    old.add("relu", "RELU fused.", mean_variance(
        old.operator, SIZES, [2, 3], [1, 3, 1, 1], True, True, both, "RELU", CrossChannel=False, NormalizeVariance=True,
        Epsilon=1e-3))
    yield old.group

    newer = Suite("MEAN_VARIANCE_NORMALIZATION1", "over any set of axes, Scale and Bias broadcast if their size is 1.")
    newest = Suite("MEAN_VARIANCE_NORMALIZATION2", "with or without the mean (RMS normalisation) and the division.")
    for axes, sizes, small in (([3], SIZES, [1, 1, 1, 4]), ([1, 2, 3], SIZES, SIZES), ([0, 2], SIZES, [1, 3, 1, 1]),
                               ([2, 0], SIZES, [1, 1, 1, 1]), ([1], [3, 20], [1, 20])):
        name = "axes-" + "-".join(map(str, axes)) + f"-of-{len(sizes)}"
        for variance in (True, False):
            newer.add(name + ("" if variance else "-mean-only"), f"Over axes {axes}.", mean_variance(
                newer.operator, sizes, axes, small, True, variance, both, Axes=axes, NormalizeVariance=variance,
                Epsilon=1e-3), strided=variance, since="4.0")
        for mean in (True, False):
            for variance in (True, False):
                newest.add(name + ("" if mean else "-without-mean") + ("" if variance else "-without-variance"),
                           f"Over axes {axes}.", mean_variance(
                               newest.operator, sizes, axes, small, mean, variance, both if mean else ("Scale",),
                               Axes=axes, UseMean=mean, UseVariance=variance, Epsilon=1e-3),
                           FLOATS if variance else FLOATS[:1], strided=variance)
    newer.add("no-axes", "Without axes the variance is 0.", mean_variance(
        newer.operator, SIZES, [], [1, 3, 1, 1], True, True, both, Axes=[], NormalizeVariance=True, Epsilon=1e-3),
        FLOATS[:1], since="4.0")
    for suite, more in ((newer, dict(NormalizeVariance=True)), (newest, dict(UseMean=True, UseVariance=True))):
        suite.add("without-parameters", "Neither Scale nor Bias.", mean_variance(
            suite.operator, SIZES, [1, 2, 3], [1], True, True, (), Axes=[1, 2, 3], Epsilon=1e-3, **more))
        suite.add("sigmoid", "SIGMOID fused.", mean_variance(
            suite.operator, SIZES, [3], [1, 1, 1, 4], True, True, both, "SIGMOID", Axes=[3], Epsilon=1e-3, **more),
            since="4.0")
    yield from (newer.group, newest.group)


def lp_normalization():
    suite = Suite("LP_NORMALIZATION", "each element divided by the norm along an axis; zeros stay zeros.")
    for p in (1, 2):
        for axis, sizes in ((3, SIZES), (1, SIZES), (0, [9])):
            def make(t):
                x = data(t, math.prod(sizes), seed=13)
                if axis == 3:
                    x[4:8] = [0.0] * 4

                def compute(a):
                    def norm(values):
                        length = total([abs(v) ** p for v in values]) ** (1 / p)
                        return [v / max(length, r32(1e-5)) for v in values]
                    return over_sets(norm, [axis])(a)

                return model("LP_NORMALIZATION", {"InputTensor": Data(t, sizes, x),
                                                  "OutputTensor": Result(t, sizes, ulps=16, absolute=1e-6)}, compute,
                             Axis=axis, Epsilon=1e-5, P=p)

            suite.add(f"p-{p}-axis-{axis}-of-{len(sizes)}", f"P {p} along axis {axis}.", make, strided=axis == 1)
    return suite.group


def groups():
    return [*batch_suites(), *mvn_suites(), lp_normalization()]
