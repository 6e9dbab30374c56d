"""Models of any operator, from its inputs and a function that computes its outputs."""
import itertools
import math

from generator import elements
from generator.arithmetic import is_float, stored
from generator.pack import OPERATORS, Model
from generator.tensors import Tensor


class Array(dict):
    """Elements by coordinates."""

    def __init__(self, sizes, values=()):
        super().__init__(zip(itertools.product(*map(range, sizes)), values))
        self.sizes = list(sizes)


def made(sizes, function):
    """An array whose elements are a function of their coordinates."""
    return Array(sizes, (function(*c) for c in itertools.product(*map(range, sizes))))


def is_output(operator, field):
    kinds = {f["name"]: f["kind"] for f in OPERATORS[operator]["fields"]}
    return kinds[field.partition("[")[0]] == "output_tensor"


def buffer_name(field):
    return field.replace("Tensors", "").replace("Tensor", "").replace("[", "").replace("]", "").lower()


class Data:
    """An input: its elements in row-major order, or, with strides, in the order of memory."""

    def __init__(self, data_type, sizes, values, strides=None):
        self.tensor = Tensor(data_type, sizes, strides)
        convert = (lambda v: elements.rounded(data_type, float(v))) if is_float(data_type) else int
        self.values = [convert(value) for value in values]
        if len(self.values) != self.tensor.extent():
            raise ValueError(f"{len(self.values)} values for {self.tensor.extent()} places")


class Result:
    """An output, and how far it may be from the computed result (for floats)."""

    def __init__(self, data_type, sizes, ulps=0, absolute=0.0, convert=stored):
        self.tensor = Tensor(data_type, sizes)
        self.tolerance = tolerance(data_type, ulps, absolute)
        self.convert = convert


def tolerance(data_type, ulps, absolute=0.0):
    """Computed in FLOAT32 and rounded once, a FLOAT16 is at most one unit off."""
    if not is_float(data_type) or not (ulps or absolute):
        return {}
    return {"ulps": min(ulps, 1) if data_type == "FLOAT16" else ulps, "absolute": absolute}


def model(operator, fields, compute, bits=False, **attributes):
    """`fields`: Data or Result by field, in any order. `compute` gets Arrays by field and returns those of the
    results, not rounded. With `bits`, buffers hold floats as integers, so that the sign of a zero counts."""
    result = Model(operator)
    arrays = {}
    for field, data in fields.items():
        if isinstance(data, Data):
            values = data.values
            raw = bits and is_float(data.tensor.data_type)
            if raw:
                values = [elements.to_bits(data.tensor.data_type, value) for value in values]
            result.bind(field, data.tensor, buffer_name(field), values, bits=raw)
            arrays[field] = Array(data.tensor.sizes, data.tensor.read(data.values).values())
    result.attributes(**attributes)
    outcome = compute(arrays)
    for field, expected in fields.items():
        if isinstance(expected, Result):
            data_type, raw = expected.tensor.data_type, bits and is_float(expected.tensor.data_type)
            after = {c: expected.convert(data_type, value) for c, value in outcome[field].items()}
            if len(after) != expected.tensor.count():
                raise ValueError(f"{operator}: {field} has {len(after)} elements")
            if raw:
                after = {c: elements.to_bits(data_type, value) for c, value in after.items()}
            result.bind_output(field, expected.tensor, buffer_name(field), after, bits=raw)
            if expected.tolerance and not raw:
                result.tolerate(buffer_name(field), **expected.tolerance)
    return result


def sum_bound(magnitudes):
    """The error bound of a sum in FLOAT32: the contract's n * 2^-24 times the sum of the magnitudes."""
    magnitudes = [abs(m) for m in magnitudes if math.isfinite(m)]
    return float(f"{len(magnitudes) * 2.0**-24 * sum(magnitudes):.2g}")


def types_of(operator, field):
    """All types of the newest feature level."""
    tables = OPERATORS[operator]["tensorSupport"]
    newest = max(tables, key=lambda table: tuple(map(int, table["level"].split("."))))
    return [t for row in newest["tensors"] if row["tensor"] == field for t in row["types"]]


def dimension_counts(operator, field):
    tables = OPERATORS[operator]["tensorSupport"]
    newest = max(tables, key=lambda table: tuple(map(int, table["level"].split("."))))
    low, _, high = next(row["dimensionCounts"] for row in newest["tensors"] if row["tensor"] == field).partition(" to ")
    return int(low), int(high or low)


def in_place_field(operator, made_model):
    """The first input that the first output may overwrite; None if there is none."""
    if not OPERATORS[operator]["inPlace"]:
        return None
    output = next(f for f in made_model.tensors if is_output(operator, f))
    for field, tensor in made_model.tensors.items():
        target = made_model.tensors[output]
        if not is_output(operator, field) and (tensor.data_type, tensor.sizes, tensor.strides) == (
                target.data_type, target.sizes, target.strides):
            return output, field
    return None
