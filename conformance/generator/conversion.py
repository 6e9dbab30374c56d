"""CAST, the quantisers, and what else is element-wise but not one function of equal types: ELEMENT_WISE_IF,
ELEMENT_WISE_ADD1 with its activations, ADAM_OPTIMIZER."""
import math

from generator import elements, numbers
from generator.arithmetic import divide, is_float, quantized, r32, truncated, wrapped
from generator.element_wise import ACTIVATIONS, GENERAL, number, values_of
from generator.operation import Data, Result, model, types_of
from generator.pack import CONTRACT, Group, Model
from generator.tensors import Tensor, padded

SIZES = [1, 2, 3, 4]


def converted(source, target, x):
    if is_float(target):
        return float(x)
    return truncated(target, x) if is_float(source) else wrapped(target, x)


def cast():
    group = Group("cast", CONTRACT, "CAST: from every data type to every other one. Floats are truncated and "
                                    "saturated, NaN becomes 0; integers keep their low bits; conversions to floats "
                                    "round.")
    types = types_of("CAST", "InputTensor")
    for source in types:
        for target in types:
            fields = {"InputTensor": Data(source, SIZES, values_of(source, GENERAL)),
                      "OutputTensor": Result(target, SIZES)}
            build = model("CAST", fields, lambda a: {"OutputTensor": {
                c: converted(source, target, x) for c, x in a["InputTensor"].items()}})
            group.add(f"{source.lower()}-to-{target.lower()}", f"{source} to {target}.", build)
    group.add("strided", "Both tensors in another layout, with gaps, which stay.",
              model("CAST", {"InputTensor": Data("FLOAT32", SIZES, GENERAL), "OutputTensor": Result("INT16", SIZES)},
                    lambda a: {"OutputTensor": {c: truncated("INT16", x) for c,
                                                x in a["InputTensor"].items()}}).relaid())
    return group


def selection():
    group = Group("element_wise_if", CONTRACT, "ELEMENT_WISE_IF: every data type, moved bit for bit by any non-zero "
                  "condition.")
    for data_type in types_of("ELEMENT_WISE_IF", "ATensor"):
        fields = {"ConditionTensor": Data("UINT8", SIZES, [0, 1, 255, 0, 2, 0, 128, 1] * 3),
                  "ATensor": Data(data_type, SIZES, values_of(data_type, GENERAL)),
                  "BTensor": Data(data_type, SIZES, list(reversed(values_of(data_type, GENERAL)))),
                  "OutputTensor": Result(data_type, SIZES)}

        def build():
            return model("ELEMENT_WISE_IF", fields, lambda a: {"OutputTensor": {
                c: a["ATensor"][c] if x else a["BTensor"][c] for c, x in a["ConditionTensor"].items()}})

        group.add(data_type.lower(), f"Elements of {data_type}.", build())
        if data_type in ("FLOAT32", "INT64"):
            group.add(f"{data_type.lower()}-strided", "Every tensor in another layout, with gaps.", build().relaid())
    return group


def fused():
    group = Group("element_wise_add1", CONTRACT, "ELEMENT_WISE_ADD1: the sum, followed by every activation that may "
                                                 "be fused, computed from the FLOAT32 sum.")
    a = [0.0, -1, 2.5, -0.25, 8, -3, 0.5, 1.5, -6, 0.75, 3, -2]
    b = [0.0, 0.5, -1, -1, 0.125, 3, 1, -2, 2, 0.25, -8, 2.5]
    not_fused = ("PARAMETERIZED_RELU", "SWISH", "HARD_SWISH", "RELU_GRAD")
    rows = {None: None, **{name: row for name, row in ACTIVATIONS.items() if name not in not_fused}}
    for name, row in rows.items():
        for data_type in ("FLOAT32", "FLOAT16"):
            given = {k: number(v) for k, v in row.attributes[0].items()} if row else {}
            fields = {"ATensor": Data(data_type, [1, 1, 3, 4], a), "BTensor": Data(data_type, [1, 1, 3, 4], b),
                      "OutputTensor": Result(data_type, [1, 1, 3, 4], row.ulps if row else 0)}

            def compute(arrays):
                sums = {c: r32(x + arrays["BTensor"][c]) for c, x in arrays["ATensor"].items()}
                return {"OutputTensor": {c: row.function(x, "FLOAT32", **given) if row else x for c, x in sums.items()}}

            activation = {"FusedActivation": {"Type": f"DML_OPERATOR_ACTIVATION_{name}", "Desc": row.attributes[0]}} \
                if row else {}
            group.add(f"{name.lower().replace('_', '-') if name else 'sum'}-{data_type.lower()}",
                      f"{name or 'Nothing'} fused.", model("ELEMENT_WISE_ADD1", fields, compute, **activation))
    return group


def per_tensor(group, operator, types, scales, zeros, values, compute, scale_type, output):
    """A scale and a zero point for all elements, for each row, and no zero point."""
    for layout, strides, count in (("per-tensor", [0, 0, 0, 0], 1), ("per-row", [0, 0, 1, 0], 3), ("full", None, 24)):
        for with_zero in (True, False):
            fields = {"InputTensor": Data(types[0], SIZES, values),
                      "ScaleTensor": Data(scale_type, SIZES, (scales * 8)[:count], strides)}
            if with_zero:
                fields["ZeroPointTensor"] = Data(types[1], SIZES, (zeros * 8)[:count], strides)
            fields["OutputTensor"] = Result(output, SIZES)
            name = "-".join(dict.fromkeys(t.lower() for t in (types[0], scale_type, output)))
            group.add(f"{name}-{layout}" + ("" if with_zero else "-without-zero-point"),
                      f"{types[0]} to {output}, {layout.replace('-', ' ')}.", model(operator, fields, compute),
                      since="1.0" if with_zero else "6.2")


def linear():
    quantize = Group("element_wise_quantize_linear", CONTRACT, "ELEMENT_WISE_QUANTIZE_LINEAR: the quotient to the "
                     "nearest integer, halves to even, then the zero point (0 if there is none), saturated.")
    dequantize = Group("element_wise_dequantize_linear", CONTRACT, "ELEMENT_WISE_DEQUANTIZE_LINEAR: the exact "
                                                                   "difference from the zero point (0 if there is "
                                                                   "none) times the scale, rounded once.")
    for source, scale_type in (("FLOAT32", "FLOAT32"), ("FLOAT16", "FLOAT16"), ("INT32", "FLOAT32")):
        for target in ("UINT8", "INT8"):
            values = [0, 1, -1, 3, -3, 5, -5, 7, 10, -10, 127, -127, 128, -128, 255, 256, 300, -300, 31, -31, 63, 65,
                      2, 9]
            if is_float(source):
                values = [v / 2 for v in values[:-2]] + [math.inf, -math.inf]

            def compute(arrays, target=target):
                zero = arrays.get("ZeroPointTensor")
                return {"OutputTensor": {
                    c: quantized(target, r32(divide(r32(x), arrays["ScaleTensor"][c])), zero[c] if zero else 0)
                    for c, x in arrays["InputTensor"].items()}}

            per_tensor(quantize, "ELEMENT_WISE_QUANTIZE_LINEAR", (source, target), [0.5, 0.25, 2.0], [3, 10, 0], values,
                       compute, scale_type, target)
    for source in types_of("ELEMENT_WISE_DEQUANTIZE_LINEAR", "InputTensor"):
        for scale_type in ("FLOAT32", "FLOAT16") if source in ("UINT8", "INT32") else ("FLOAT32",):
            values = numbers.mixed(24, -120 if source in elements.SIGNED else 0, 120, seed=5)

            def compute(arrays):
                zero = arrays.get("ZeroPointTensor")
                return {"OutputTensor": {c: (x - (zero[c] if zero else 0)) * arrays["ScaleTensor"][c]
                                         for c, x in arrays["InputTensor"].items()}}

            per_tensor(dequantize, "ELEMENT_WISE_DEQUANTIZE_LINEAR", (source, source), [0.1, 0.25, 3.0], [3, 10, 0],
                       values, compute, scale_type, scale_type)
    return [quantize, dequantize]


def quantized_add():
    group = Group("element_wise_quantized_linear_add", CONTRACT, "ELEMENT_WISE_QUANTIZED_LINEAR_ADD: both sides as "
                  "FLOAT32 numbers, their sum quantised again; absent zero points are 0.")
    for a_type, b_type, out in (("UINT8", "UINT8", "UINT8"), ("INT8", "INT8", "INT8"), ("UINT8", "INT8", "INT8")):
        for zeros in (True, False):
            def side(data_type, name, values, scale, zero):
                fields = {f"{name}Tensor": Data(data_type, SIZES, values),
                          f"{name}ScaleTensor": Data("FLOAT32", [1] * 4, [scale])}
                if zeros:
                    fields[f"{name}ZeroPointTensor"] = Data(data_type, [1] * 4, [zero])
                return fields

            low = -128 if a_type == "INT8" else 0
            fields = {**side(a_type, "A", numbers.mixed(24, low, low + 255, 2), 0.5, 12),
                      **side(b_type, "B", numbers.mixed(24, 0, 127, 3), 0.1, 100),
                      "OutputScaleTensor": Data("FLOAT32", [1] * 4, [0.75])}
            if zeros:
                fields["OutputZeroPointTensor"] = Data(out, [1] * 4, [7])
            fields["OutputTensor"] = Result(out, SIZES)

            def compute(arrays):
                def zero(name):
                    array = arrays.get(f"{name}ZeroPointTensor")
                    return next(iter(array.values())) if array else 0

                def real(name, c):
                    scale = next(iter(arrays[f"{name}ScaleTensor"].values()))
                    return r32((arrays[f"{name}Tensor"][c] - zero(name)) * scale)

                scale = next(iter(arrays["OutputScaleTensor"].values()))
                return {"OutputTensor": {c: quantized(out, r32(r32(real("A", c) + real("B", c)) / scale),
                                                      zero("Output"))
                                         for c in arrays["ATensor"]}}

            group.add(f"{a_type.lower()}-{b_type.lower()}" + ("" if zeros else "-without-zero-points"),
                      f"{a_type} plus {b_type}.", model("ELEMENT_WISE_QUANTIZED_LINEAR_ADD", fields, compute))
    return group


def dynamic():
    group = Group("dynamic_quantize_linear", CONTRACT, "DYNAMIC_QUANTIZE_LINEAR: the range contains 0, the zero point "
                  "is rounded; all zeros have scale 1.")
    cases = {"both-signs": [0.5, -1.25, 3, 2.25, -0.75, 1, 0, 2.5], "positive": [2, 3.5, 4, 5.25, 6, 3, 9, 2.5],
             "negative": [-2, -3.5, -4, -5.25, -1, -3, -9, -2.5], "zeros": [0.0] * 8}
    for name, values in cases.items():
        for data_type, target in (("FLOAT32", "UINT8"), ("FLOAT32", "INT8"), ("FLOAT16", "UINT8")):
            low, high = elements.limits(target)

            def compute(arrays):
                x = arrays["InputTensor"]
                least, most = min(*x.values(), 0.0), max(*x.values(), 0.0)
                scale = r32(r32(most - least) / (high - low)) or 1.0
                zero = max(low, min(high, round(r32(low - r32(least / scale)))))
                one = (0, 0, 0, 0)
                return {"OutputTensor": {c: quantized(target, r32(v / scale), zero) for c, v in x.items()},
                        "OutputScaleTensor": {one: scale}, "OutputZeroPointTensor": {one: zero}}

            fields = {"InputTensor": Data(data_type, [1, 1, 2, 4], values),
                      "OutputTensor": Result(target, [1, 1, 2, 4]), "OutputScaleTensor": Result("FLOAT32", [1] * 4),
                      "OutputZeroPointTensor": Result(target, [1] * 4)}
            group.add(f"{name}-{data_type.lower()}-{target.lower()}", f"{name.replace('-', ' ').capitalize()}.",
                      model("DYNAMIC_QUANTIZE_LINEAR", fields, compute))
    return group


def nibbles(values):
    """Four-bit elements as bytes: the first of two is in the lower half."""
    values = [v % 16 for v in values] + [0] * (len(values) % 2)
    return [low | high << 4 for low, high in zip(values[::2], values[1::2])]


def limits(data_type):
    return {"UINT4": (0, 15), "INT4": (-8, 7)}.get(data_type) or elements.limits(data_type)


def blocks():
    """QUANTIZE and DEQUANTIZE: scales and zero points for blocks of elements."""
    quantize = Group("quantize", CONTRACT, "QUANTIZE: a scale for each block, 8 and 4 bits; an absent zero point is "
                                           "the middle of an unsigned type.")
    dequantize = Group("dequantize", CONTRACT, "DEQUANTIZE: the inverse, with the same blocks and zero points.")
    for integer in ("UINT8", "INT8", "UINT4", "INT4"):
        for real in ("FLOAT32", "FLOAT16"):
            for name, small in (("per-tensor", [1, 1]), ("per-row", [4, 1]), ("blocks", [2, 2])):
                for with_zero in (True, False):
                    full = f"{integer.lower()}-{real.lower()}-{name}" + ("" if with_zero else "-without-zero-point")
                    claim = f"{integer} and {real}, {name.replace('-', ' ')}."
                    if real == "FLOAT16" and name == "per-row":
                        continue
                    for group, operator in ((quantize, "QUANTIZE"), (dequantize, "DEQUANTIZE")):
                        group.add(full, claim, block_model(operator, integer, real, small, with_zero))
    return [quantize, dequantize]


def block_model(operator, integer, real, small, with_zero):
    sizes, (low, high) = [4, 8], limits(integer)
    scales = [(0.5, 0.25, 1.5, 2.0)[i % 4] for i in range(math.prod(small))]
    middle = 0 if low else (high + 1) // 2
    zeros = [(low + high) // 2 + i for i in range(math.prod(small))] if with_zero else [middle] * math.prod(small)

    def at(c, values):
        block = [c[d] * small[d] // sizes[d] for d in range(2)]
        return values[block[0] * small[1] + block[1]]

    four, places = integer in ("UINT4", "INT4"), Tensor("UINT8", sizes)
    if operator == "QUANTIZE":
        inputs = [v / 4 for v in numbers.mixed(32, -70, 70, seed=9)]
        data = dict(zip(places.coordinates(), inputs))
        results = {c: max(low, min(high, round(r32(x / at(c, scales))) + at(c, zeros))) for c, x in data.items()}
    else:
        inputs = numbers.mixed(32, low, high, seed=11)
        data = dict(zip(places.coordinates(), inputs))
        results = {c: (x - at(c, zeros)) * at(c, scales) for c, x in data.items()}

    def packed(values):
        return nibbles(values) if four else list(values)

    quantization = [Tensor(real, small), Tensor(integer, small)][:1 + with_zero]
    built = Model(operator)
    source, target = (real, integer) if operator == "QUANTIZE" else (integer, real)
    bind_packed(built, "InputTensor", Tensor(source, sizes), packed(inputs) if source == integer else inputs)
    for i, tensor in enumerate(quantization):
        bind_packed(built, f"QuantizationTensors[{i}]", tensor, [scales, packed(zeros)][i])
    after = [results[c] for c in places.coordinates()]
    after = packed(after) if target == integer else [elements.rounded(real, v) for v in after]
    bind_packed(built, "OutputTensor", Tensor(target, sizes), [elements.UNTOUCHED] * len(after))
    built.outputs["output"] = after + built.values["output"][len(after):]
    return built.attributes(QuantizationType="DML_QUANTIZATION_TYPE_SCALE" + ("_ZERO_POINT" if with_zero else ""))


def bind_packed(built, field, tensor, values):
    """Binds four-bit elements as a buffer of bytes."""
    name = field.replace("Tensors[0]", "scale").replace("Tensors[1]", "zero").replace("Tensor", "").lower()
    built.resources[name] = "UINT8" if tensor.data_type in ("UINT4", "INT4") else tensor.data_type
    built.values[name] = padded(values, built.resources[name])
    built.describe(field, tensor)
    built.bindings[field] = name


def adam():
    group = Group("adam_optimizer", CONTRACT, "ADAM_OPTIMIZER: both moments and the parameters, for several steps, "
                                              "in place and not in place.")
    names = ("InputParametersTensor", "InputFirstMomentTensor", "InputSecondMomentTensor", "GradientTensor")
    outputs = ("OutputParametersTensor", "OutputFirstMomentTensor", "OutputSecondMomentTensor")
    rate, beta1, beta2, epsilon = (r32(v) for v in (0.01, 0.9, 0.999, 1e-7))
    for data_type in ("FLOAT32", "FLOAT16"):
        for step in (1, 2, 100):
            def compute(arrays):
                x, m, v, g = (arrays[name] for name in names)
                m2 = {c: beta1 * m[c] + (1 - beta1) * g[c] for c in x}
                v2 = {c: beta2 * v[c] + (1 - beta2) * g[c] ** 2 for c in x}
                alpha = math.sqrt(1 - beta2**step) / (1 - beta1**step)
                return {outputs[0]: {c: x[c] - rate * alpha * m2[c] / (math.sqrt(v2[c]) + epsilon) for c in x},
                        outputs[1]: m2, outputs[2]: v2}

            def build():
                fields = {name: Data(data_type, SIZES, [(abs(v) if "Second" in name else v) / 64 for v in
                                                        numbers.mixed(24, -100, 100, seed=i + 3)])
                          for i, name in enumerate(names)}
                fields["TrainingStepTensor"] = Data("UINT32", [1] * 4, [step])
                # 1 - Beta is rounded, too, and 1 - Beta^T loses digits.
                fields.update({name: Result(data_type, SIZES, ulps=8, absolute=2e-6) for name in outputs})
                return model("ADAM_OPTIMIZER", fields, compute, LearningRate=0.01, Beta1=0.9, Beta2=0.999, Epsilon=1e-7)

            group.add(f"{data_type.lower()}-step-{step}", f"Step {step}.", build())
            if step == 2:
                group.add(f"{data_type.lower()}-strided", "Every tensor in another layout.", build().relaid())
                inside = build()
                for output, source in zip(outputs, names):
                    inside.in_place(output, source)
                group.add(f"{data_type.lower()}-in-place", "Each output over its input.", inside)
    return group


def groups():
    return [cast(), selection(), fused(), *linear(), quantized_add(), dynamic(), *blocks(), adam()]
