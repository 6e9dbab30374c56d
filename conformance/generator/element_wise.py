"""The element-wise operators and activations: a row each, with what one element is computed from.

Functions get the elements of the inputs, the data type of the first one, and the attributes as FLOAT32 numbers."""
import dataclasses
import math

from generator import elements, numbers
from generator.arithmetic import (INF, NAN, divide, exp, expm1, gelu, half_to_even, ieee, is_float, maximum, minimum,
                                  power, r32, sigmoid, softplus, tanh, truncated, wrapped)
from generator.operation import Data, Result, in_place_field, is_output, model, types_of
from generator.pack import CONTRACT, OPERATORS, Group
from generator.tensors import Tensor

GENERAL = (0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.25, -7.75, 100.25, -1000, 6e-8, -0.001, INF, -INF, NAN,
           0.1, -0.3, 12.7, 60000, -60000)
UNIT = (0.0, -0.0, 1, -1, 0.5, -0.5, 0.25, -0.75, 0.999, -0.999, 0.001, -1e-4, 0.1, -0.3, 0.7, -0.9, 1.25, -2, INF,
        -INF, NAN, 6e-8, 0.6, 0.3)
POSITIVE = (0.0, 1, 0.5, 2, 0.1, 3, 10, 100, 1000, 60000, 6e-8, 0.001, 0.999, 1.001, 2.718, 7.5, INF, NAN, -1, -INF,
            0.25, 4, 9, 16)
BEYOND = (0.0, 1e-40, -1e-40, 3e38, -3e38, 1e-30, 1e10, -1e10, 1e-10, -1e-3, 88.5, -87.5, 89, -104, 710, 20, -20, 9.01,
          -9.01, 0.625, -0.2, 1e5, 33, -50)


@dataclasses.dataclass
class Row:
    function: object
    ulps: int = 0  # for FLOAT32
    data: tuple = GENERAL
    attributes: tuple = ({},)  # one model per type
    output: tuple = ()  # types of the output, if they differ from the first input's
    types: tuple = ()  # combinations of input types other than the same type for all
    second: tuple = ()  # data of the other inputs
    bits: bool = False  # acts on the bits, also of floats


def integers(data_type):
    low, high = elements.limits(data_type)
    values = [0, 1, 2, 3, 5, 7, 10, 41, 100, 64, 31, 8, low, high, low + 1, high - 1, high // 2, high // 3]
    values += [-1, -2, -3, -7, -10, -100] if low else [high // 5, 13, 200, 127, 128, 129]
    return values


def values_of(data_type, floats):
    return list(floats) if is_float(data_type) else integers(data_type)


def rounding(x, t, mode):
    if not math.isfinite(x):
        return x
    if mode == 0:
        return half_to_even(x)
    return math.copysign(math.floor(abs(x) + 0.5) if mode == 2 else math.floor(abs(x)), x)


def clip(x, t, low, high):
    if is_float(t):
        low, high = elements.rounded(t, low), elements.rounded(t, high)
    else:
        low, high = truncated(t, low), truncated(t, high)
    return maximum(low, minimum(x, high))


def clip_grad(x, dy, t, low, high):
    if is_float(t):
        low, high = elements.rounded(t, low), elements.rounded(t, high)
    else:
        low, high = truncated(t, low), truncated(t, high)
    return 0 if x <= low or x >= high else dy


def all_ones(t):
    return wrapped(t, -1)


def quotient(a, b, t):
    if is_float(t):
        return divide(a, b)
    return all_ones(t) if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a, b, t):
    if is_float(t):
        return ieee(math.fmod, a, b)
    return all_ones(t) if b == 0 else int(math.copysign(1, a)) * (abs(a) % abs(b))


def floor_remainder(a, b, t):
    if not is_float(t):
        return all_ones(t) if b == 0 else a % b
    rest = ieee(math.fmod, a, b)
    return r32(rest + b) if rest and (rest < 0) != (b < 0) else rest


def mean(a, b, t):
    return r32((a + b) / 2) if is_float(t) else int((a + b) / 2)


def raised(a, b, t):
    if is_float(t):
        return power(a, float(b))
    if isinstance(b, float):
        return truncated(t, power(float(a), b))
    if b < 0:
        return {1: 1, -1: -1 if b % 2 else 1, 0: all_ones(t)}.get(a, 0)
    return pow(a, b, 1 << 64) if a >= 0 else pow(a % (1 << 64), b, 1 << 64)


def shrunk(x, t, bias, threshold):
    y = x - bias if x > threshold else x + bias if x < -threshold else 0.0
    return r32(y) if is_float(t) else truncated(t, y)


def elu(x, t, a):
    return x if not x < 0 else a * expm1(x)


def softsign(x):
    return divide(x, r32(1 + abs(x)))


def hard(x, a, b):
    return maximum(0.0, minimum(r32(r32(a * x) + b), 1.0))


def both(a, b):
    return {"Alpha": a, "Beta": b}


def bounds(*pairs):
    return tuple({"Min": low, "Max": high} for low, high in pairs)


def unary(function, **options):
    return Row(lambda x, t: ieee(function, x), ulps=2, **options)


L = ("UINT8", "UINT32")
COMPARISON = dict(output=L)
MODES = [{"RoundingMode": f"DML_ROUNDING_MODE_{mode}"}
         for mode in ("HALVES_TO_NEAREST_EVEN", "TOWARD_ZERO", "TOWARD_INFINITY")]
INFINITIES = {"DML_IS_INFINITY_MODE_EITHER": (INF, -INF), "DML_IS_INFINITY_MODE_POSITIVE": (INF,),
              "DML_IS_INFINITY_MODE_NEGATIVE": (-INF,)}
MIXED_POWERS = tuple((t, t) for t in ("FLOAT32", "FLOAT16", "INT32", "INT16", "INT8", "UINT32", "UINT16", "UINT8")) + (
    ("FLOAT32", "INT32"), ("FLOAT16", "UINT8"), ("INT32", "FLOAT32"), ("INT8", "INT32"), ("FLOAT32", "FLOAT16"))

ELEMENT_WISE = {
    "ABS": Row(lambda x, t: abs(x)),
    "ACOS": unary(math.acos, data=UNIT),
    "ASIN": unary(math.asin, data=UNIT),
    "ATAN": unary(math.atan),
    "CEIL": Row(lambda x, t: math.copysign(math.ceil(x), x) if math.isfinite(x) else x),
    "COS": unary(math.cos),
    "EXP": Row(lambda x, t: exp(x), 2),
    "FLOOR": Row(lambda x, t: math.copysign(math.floor(x), x) if math.isfinite(x) else x),
    "LOG": Row(lambda x, t: -INF if x == 0 else ieee(math.log, x), 2, POSITIVE),
    "RECIP": Row(lambda x, t: divide(1.0, x)),
    "SIN": unary(math.sin),
    "SQRT": Row(lambda x, t: x if x == 0 else ieee(math.sqrt, x), data=POSITIVE),
    "TAN": unary(math.tan),
    "SIGN": Row(lambda x, t: 1 if x > 0 else -1 if x < 0 else 0),
    "ERF": unary(math.erf),
    "SINH": Row(lambda x, t: ieee(math.sinh, x, overflow=math.copysign(INF, x)), 2),
    "COSH": unary(math.cosh),
    "TANH": unary(math.tanh),
    "ASINH": unary(math.asinh),
    "ACOSH": unary(math.acosh, data=POSITIVE),
    "ATANH": Row(lambda x, t: math.copysign(INF, x) if abs(x) == 1 else ieee(math.atanh, x), 2, UNIT),
    "ROUND": Row(lambda x, t, RoundingMode: rounding(x, t, MODES.index({"RoundingMode": RoundingMode})),
                 attributes=tuple(MODES)),
    "NEGATE": Row(lambda x, t: -x),
    "CONSTANT_POW": Row(lambda x, t, Exponent: raised(x, Exponent, t), 4,
                        attributes=tuple({"Exponent": e} for e in (2.0, 0.5, -1.0, 3.0, 0.0))),
    "THRESHOLD": Row(lambda x, t, Min: clip(x, t, Min, INF), attributes=({"Min": 2.75},)),
    "CLIP": Row(lambda x, t, Min, Max: clip(x, t, Min, Max), attributes=bounds((-1.75, 5.25), (4, 1))),
    "CLIP1": Row(lambda x, t, Min, Max: clip(x, t, Min, Max), attributes=bounds((3, 40), (41, 1))),
    "ADD": Row(lambda a, b, t: a + b),
    "SUBTRACT": Row(lambda a, b, t: a - b),
    "MULTIPLY": Row(lambda a, b, t: a * b),
    "DIVIDE": Row(quotient),
    "MAX": Row(lambda a, b, t: maximum(a, b)),
    "MIN": Row(lambda a, b, t: minimum(a, b)),
    "MEAN": Row(mean),
    "POW": Row(raised, 4, types=MIXED_POWERS, second=(2, 0.5, -1, 3, 0, 1, -2.5, INF, 10, -3)),
    "MODULUS_TRUNCATE": Row(remainder),
    "MODULUS_FLOOR": Row(floor_remainder),
    "ATAN_YX": Row(lambda a, b, t: ieee(math.atan2, a, b), 2),
    "DIFFERENCE_SQUARE": Row(lambda a, b, t: r32(a - b) * r32(a - b) if is_float(t) else (a - b) * (a - b)),
    "LOGICAL_AND": Row(lambda a, b, t: a != 0 and b != 0),
    "LOGICAL_OR": Row(lambda a, b, t: a != 0 or b != 0),
    "LOGICAL_XOR": Row(lambda a, b, t: (a != 0) != (b != 0)),
    "LOGICAL_NOT": Row(lambda a, t: a == 0),
    "LOGICAL_EQUALS": Row(lambda a, b, t: a == b, **COMPARISON),
    "LOGICAL_GREATER_THAN": Row(lambda a, b, t: a > b, **COMPARISON),
    "LOGICAL_LESS_THAN": Row(lambda a, b, t: a < b, **COMPARISON),
    "LOGICAL_GREATER_THAN_OR_EQUAL": Row(lambda a, b, t: a >= b, **COMPARISON),
    "LOGICAL_LESS_THAN_OR_EQUAL": Row(lambda a, b, t: a <= b, **COMPARISON),
    "IS_NAN": Row(lambda x, t: x != x, output=L),
    "IS_INFINITY": Row(lambda x, t, InfinityMode: x in INFINITIES[InfinityMode], output=("UINT8",),
                       attributes=tuple({"InfinityMode": mode} for mode in INFINITIES)),
    "BIT_AND": Row(lambda a, b, t: a & b, bits=True),
    "BIT_OR": Row(lambda a, b, t: a | b, bits=True),
    "BIT_XOR": Row(lambda a, b, t: a ^ b, bits=True),
    "BIT_NOT": Row(lambda a, t: ~a, bits=True),
    "BIT_SHIFT_LEFT": Row(lambda a, b, t: a << b % (8 * elements.size_of(t))),
    "BIT_SHIFT_RIGHT": Row(lambda a, b, t: a >> b % (8 * elements.size_of(t))),
    "BIT_COUNT": Row(lambda a, t: bin(a % (1 << 8 * elements.size_of(t))).count("1"), bits=True, output=L),
    "CLIP_GRAD": Row(lambda x, dy, t, Min, Max: clip_grad(x, dy, t, Min, Max), attributes=bounds((-1.5, 12.7))),
    "CLIP_GRAD1": Row(lambda x, dy, t, Min, Max: clip_grad(x, dy, t, Min, Max), attributes=bounds((1, 100))),
}
ACTIVATIONS = {
    "ELU": Row(lambda x, t, Alpha: elu(x, t, Alpha), 4, attributes=({"Alpha": 1.0}, {"Alpha": 0.5})),
    "HARD_SIGMOID": Row(lambda x, t, Alpha, Beta: hard(x, Alpha, Beta), attributes=(both(0.2, 0.5),)),
    "IDENTITY": Row(lambda x, t: x),
    "LEAKY_RELU": Row(lambda x, t, Alpha: x if x >= 0 else Alpha * x, attributes=({"Alpha": 0.01},)),
    "LINEAR": Row(lambda x, t, Alpha, Beta: r32(r32(Alpha * x) + Beta), attributes=(both(0.3, -1.5),)),
    "PARAMETERIZED_RELU": Row(lambda x, slope, t: x if x >= 0 else slope * x),
    "PARAMETRIC_SOFTPLUS": Row(lambda x, t, Alpha, Beta: Alpha * softplus(Beta * x), 4, attributes=(both(0.5, 2),)),
    "RELU": Row(lambda x, t: maximum(x, 0.0 if is_float(t) else 0)),
    "SCALED_ELU": Row(lambda x, t, Alpha, Gamma: Gamma * x if x > 0 else Gamma * (Alpha * expm1(x)), 4,
                      attributes=({"Alpha": 1.5, "Gamma": 1.25},)),
    "SCALED_TANH": Row(lambda x, t, Alpha, Beta: Alpha * tanh(Beta * x), 4, attributes=(both(1.5, 0.5),)),
    "SIGMOID": Row(lambda x, t: sigmoid(x), 4),
    "SOFTPLUS": Row(lambda x, t, Steepness: softplus(Steepness * x) / Steepness, 4,
                    attributes=({"Steepness": 1.0}, {"Steepness": 4.0})),
    "SOFTSIGN": Row(lambda x, t: softsign(x)),
    "TANH": Row(lambda x, t: tanh(x), 2),
    "THRESHOLDED_RELU": Row(lambda x, t, Alpha: x if x > Alpha else 0.0, attributes=({"Alpha": 1.5},)),
    "SHRINK": Row(lambda x, t, Bias, Threshold: shrunk(x, t, Bias, Threshold),
                  attributes=({"Bias": 0.25, "Threshold": 0.5}, {"Bias": 2.0, "Threshold": 3.0})),
    "CELU": Row(lambda x, t, Alpha: maximum(0.0, x) + minimum(0.0, Alpha * expm1(x / Alpha)), 4,
                attributes=({"Alpha": 2.0},)),
    "GELU": Row(lambda x, t: gelu(x), 4),
    "SWISH": Row(lambda x, t, SigmoidInputScale: x * sigmoid(SigmoidInputScale * x), 4,
                 attributes=({"SigmoidInputScale": 1.0}, {"SigmoidInputScale": 2.0})),
    "HARD_SWISH": Row(lambda x, t, Alpha, Beta: x * hard(x, Alpha, Beta), attributes=(both(1 / 6, 0.5),)),
    "RELU_GRAD": Row(lambda x, dy, t: dy if x > 0 else 0),
}
TABLE = {**{f"ELEMENT_WISE_{name}": row for name, row in ELEMENT_WISE.items()},
         **{f"ACTIVATION_{name}": row for name, row in ACTIVATIONS.items()}}


def inputs_of(operator):
    return [f["name"] for f in OPERATORS[operator]["fields"] if f["kind"] == "input_tensor"]


def output_of(operator):
    return next(f["name"] for f in OPERATORS[operator]["fields"] if f["kind"] == "output_tensor")


def described(operator, attributes, data_type):
    """The attributes in the format of a model: those of unions with their type."""
    types = {f["name"]: f["type"] for f in OPERATORS[operator]["fields"]}
    result = {}
    for name, value in attributes.items():
        if types[name] == "scalar_union":
            member = data_type.replace("UINT", "UInt").replace("INT", "Int").replace("FLOAT", "Float")
            value = {"UInt16": elements.to_bits(data_type, value)} if data_type == "FLOAT16" else {member: value}
        result[name] = value
    if "MinMaxDataType" in types:
        result["MinMaxDataType"] = f"DML_TENSOR_DATA_TYPE_{data_type}"
    return result


def number(value):
    return r32(value) if isinstance(value, float) else value


def element_wise(operator, row, types, sizes, attributes, output=None, strides=None, floats=None, bits=False,
                 scale_bias=None):
    """One model: the function on every element."""
    fields, count = {}, math.prod(sizes)
    for i, (field, data_type) in enumerate(zip(inputs_of(operator), types)):
        values = values_of(data_type, row.second if i and row.second else floats or row.data)
        if i and not row.second:  # pairs other than an element with itself, and a few of these
            values = [values[p % len(values)] if p % 7 else values[k] for k, p in
                      enumerate(numbers.shuffled(len(values), seed=3 + i))]
        if i and row.second and not is_float(data_type):
            values = [2, 0, 1, 3, 5, 4, 7, 33, 10] + ([-1, -2] if data_type in elements.SIGNED else [])
        values = [values[k % len(values)] for k in range(count)]
        layout = strides if i == len(types) - 1 else None  # the last input's
        fields[field] = Data(data_type, sizes, values[:Tensor(data_type, sizes, layout).extent()], layout)
    target = output or types[0]
    fields[output_of(operator)] = Result(target, sizes, row.ulps)
    given = {name: number(value) for name, value in attributes.items()}

    def compute(arrays):
        def one(*xs):
            if scale_bias:
                xs = (r32(r32(xs[0] * scale_bias[0]) + scale_bias[1]), *xs[1:])
            return row.function(*xs, types[0], **given)

        results = map(one, *(array.values() for array in arrays.values()))
        return {output_of(operator): dict(zip(next(iter(arrays.values())), results))}

    more = {"ScaleBias": {"Scale": scale_bias[0], "Bias": scale_bias[1]}} if scale_bias else {}
    return model(operator, fields, compute, bits, **described(operator, attributes, types[0]), **more)


def bitwise(operator, row, data_type, sizes, output):
    """Acts on the stored bits: floats are treated as unsigned integers of their width."""
    raw = elements.bits_type(data_type) if is_float(data_type) else data_type
    made = element_wise(operator, row, [raw] * len(inputs_of(operator)), sizes, {}, output=output)
    for field, tensor in list(made.tensors.items()):
        if tensor.data_type == raw and not (is_output(operator, field) and output):
            tensor.data_type = data_type
            made.describe(field, tensor)
    return made


def combinations(operator, row):
    """Types of the inputs, and of the output if it differs: all of the first ones, then one of them."""
    fields = inputs_of(operator)
    types = row.types or [(t,) * len(fields) for t in types_of(operator, fields[0])]
    outputs = row.output or (None,)
    for i, given in enumerate(types):
        for output in outputs if i == 0 else (outputs[i % len(outputs)],):
            yield given, output


def attributes_for(row, operator, types, first):
    """Every set of attributes with the first types and with INT32, the first set with the others."""
    chosen = row.attributes if first or types[0] == "INT32" else row.attributes[:1]
    if operator.endswith("CONSTANT_POW") and not is_float(types[0]):
        return [given for given in chosen if given["Exponent"] == int(given["Exponent"])]
    return chosen


def named(attributes):
    parts = [str(value).lower().rpartition("mode_")[2] for value in attributes.values()]
    return "-".join(parts).replace("_", "-").replace(".0", "") if parts else ""


def group_of(operator, row):
    group = Group(operator.lower(), CONTRACT, f"{operator}: every data type, attributes, special values, strides, "
                  "in place" + (" (within the units in the last place that the contract allows)."
                                if row.ulps else "; exact."))
    sizes = [1, 2, 3, 4]
    for i, (types, output) in enumerate(combinations(operator, row)):
        for attributes in attributes_for(row, operator, types, i == 0):
            name = "-".join(t.lower() for t in dict.fromkeys(types)) + (f"-to-{output.lower()}" if output else "")
            name += f"-{named(attributes)}" if len(row.attributes) > 1 else ""
            claim = f"Elements of {' and '.join(dict.fromkeys(types))}, special ones among them."
            made = bitwise(operator, row, types[0], sizes, output) if row.bits else element_wise(
                operator, row, types, sizes, attributes, output)
            group.add(name, claim, made, since="1.0" if len(set(types)) == 1 else "3.0")
    variants(group, operator, row, sizes)
    return group


def variants(group, operator, row, sizes):
    """For the first types and attributes: ranks, layouts, in place, ScaleBias, extreme FLOAT32 numbers."""
    (types, output), attributes = next(iter(combinations(operator, row))), row.attributes[0]

    def plain(sizes=sizes, **options):
        if row.bits:
            return bitwise(operator, row, types[0], sizes, output)
        return element_wise(operator, row, types, sizes, attributes, output, **options)

    for rank in ([5], [1, 2, 1, 3, 1, 2, 1, 2]):
        group.add(f"{len(rank)}-dimensions", f"{len(rank)} dimensions.", plain(sizes=rank))
    group.add("strided", "Every tensor in another layout with gaps, which are not written.", plain().relaid())
    if not row.bits:
        group.add("broadcast", "One row of the last input for all.", plain(strides=[0, 0, 0, 1]))
    if where := in_place_field(operator, plain()):
        group.add("in-place", f"{where[0]} is written over {where[1]}.", plain().in_place(*where))
    if types[0] == "FLOAT32" and not row.bits:
        group.add("extremes", "Large, small and denormal numbers.", plain(floats=BEYOND))
    if any(f["name"] == "ScaleBias" for f in OPERATORS[operator]["fields"]):
        group.add("scale-bias", "The input is scaled and shifted first, with two roundings.",
                  plain(scale_bias=(0.5, 0.25)))
    zeros = [0.0, -0.0, 0.25, -0.25]
    if types[0] == "FLOAT32" and not row.bits and not row.ulps and not output:
        group.add("signs-of-zeros", "Zeros have the right sign.", plain(sizes=[1, 1, 2, 2], floats=zeros, bits=True))


def groups():
    return [group_of(operator, row) for operator, row in TABLE.items()]
