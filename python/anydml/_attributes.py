"""From Python values to the text that the library reads attributes from."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, Union

import numpy as np

from . import _anydml
from ._foreign import dimensions_of
from ._tensor import requested_number

Nested = tuple[str, list[tuple[str, str]]]  # operator, (field, text)
Value = Union[str, list[Nested]]


class Activation:
    """An operator to be fused into another one: ``Activation("activation_linear", Alpha=2, Beta=1)``.

    Its attributes have the names of DirectML's fields.
    """

    def __init__(self, name: str, **attributes: Any):
        self.name, self.attributes = name.upper(), attributes

    def nested(self) -> Nested:
        return self.name, [(field, _field(value)) for field, value in self.attributes.items()]

    def __repr__(self) -> str:
        given = "".join(f", {field}={value!r}" for field, value in self.attributes.items())
        return f"Activation({self.name!r}{given})"


def _field(value: Any) -> str:
    """An activation's: a number, or several of them, such as the Axes of ACTIVATION_SOFTMAX1."""
    return _array(_number)(value) if dimensions_of(value, "an attribute") > 0 else _number(value)


def _number(value: Any) -> str:
    return _integer(value) if hasattr(value, "__index__") else _float(value)


def _integer(value: Any) -> str:
    return str(operator.index(value))


def _float(value: Any) -> str:
    return repr(float(value))


def _bool(value: Any) -> str:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError("not a bool")
    return "true" if value else "false"


def _enum(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a str")
    return value.upper()


def _array(convert: Callable[[Any], str]) -> Callable[[Iterable[Any]], str]:
    return lambda values: "[" + ",".join([convert(value) for value in values]) + "]"


def _dtype(value: Any) -> str:
    return _anydml.data_types()[requested_number(value, "the argument")]


def _activation(value: Any) -> Nested:
    if isinstance(value, str):
        return Activation(value).nested()
    if not isinstance(value, Activation):
        raise TypeError("not an Activation")
    return value.nested()


# By the schema's field type: the required value, for the error message.
_CONVERT: dict[str, tuple[Callable[[Any], Value], str]] = {
    "uint": (_integer, "an int"),
    "int": (_integer, "an int"),
    "float": (_float, "a float"),
    "bool": (_bool, "a bool"),
    "enum": (_enum, "a str"),
    "uint_array": (_array(_integer), "a sequence of ints"),
    "int_array": (_array(_integer), "a sequence of ints"),
    "float_array": (_array(_float), "a sequence of floats"),
    "scale_bias": (_array(_float), "two floats, scale and bias"),
    "size_2d": (_array(_integer), "two ints, width and height"),
    "scalar_union": (_number, "a number"),
    "dtype": (_dtype, "a NumPy data type"),
    "operator_desc": (lambda value: [_activation(value)], "an Activation"),
    "operator_desc_array": (lambda values: [_activation(value) for value in values], "Activations"),
}


def to_text(op: str, kind: str, name: str, value: Any, ndim: int) -> Value:
    """`ndim` is the number of dimensions of the first input, to which axes refer."""
    try:
        if kind == "axis":
            return str(_axis(op, name, value, ndim))
        if kind == "axes":
            return "[" + ",".join(str(_axis(op, name, axis, ndim)) for axis in value) + "]"
        convert, _ = _CONVERT[kind]
        return convert(value)
    except TypeError as error:
        wanted = {"axis": "an int", "axes": "a sequence of ints"}.get(kind) or _CONVERT[kind][1]
        raise TypeError(f"{op}: {name} is {value!r} but must be {wanted}") from error


def _axis(op: str, name: str, value: Any, ndim: int) -> int:
    axis = operator.index(value)
    if ndim == 0:  # without an input, the library reports the error; it accepts no negative axes
        return max(axis, 0)
    if not -ndim <= axis < ndim:
        raise ValueError(f"{op}: {name} is {axis} but the input has {ndim} dimensions; "
                         f"it must be in [{-ndim}, {ndim - 1}]")
    return axis % ndim
