"""NumPy arrays of what programs pass. NumPy 1.24 trusts ``__array_interface__`` and ``__array_struct__``: it reads any number of
dimensions into room for 32. So this is the only place where NumPy converts objects that are not its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_MOST_DIMENSIONS = 32  # of an array, before NumPy's version 2
_MISSING = object()
# Types that have no interface to memory.
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Interface:
    """Memory of somebody else, as NumPy reads it; the array keeps this object, and with it the memory."""

    def __init__(self, interface: dict[str, Any], keep: Any):
        self.__array_interface__, self.keep = interface, keep


def as_array(value: Any, what: str) -> npt.NDArray[Any]:
    """The same memory as a NumPy array, if the value has any, or a new array of its numbers."""
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ndarray):
        return np.asarray(value)  # a subclass may override shape and strides
    return np.asarray(_readable(value, what, 0))


def dimensions_of(value: Any, what: str) -> int:
    """The number of dimensions, without importing a capsule: 0 for an object that has nothing but one."""
    dimensions = getattr(value, "ndim", None)
    if isinstance(dimensions, int):
        return dimensions
    return 0 if hasattr(value, "__dlpack__") else as_array(value, what).ndim


def _readable(value: Any, what: str, depth: int) -> Any:
    """The value, with objects that NumPy would read unchecked replaced by arrays."""
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    if isinstance(value, (*_PLAIN, np.generic)) and type(value).__module__ in ("builtins", "numpy"):
        return value
    if isinstance(value, (list, tuple)):
        return _readable_list(list(value), what, depth)
    interface = getattr(value, "__array_interface__", _MISSING)
    if interface is not _MISSING:
        return np.asarray(Interface(_checked(interface, what), value))
    if hasattr(value, "__array__"):
        array = value.__array__()
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{what}: __array__ returned {type(array).__name__}; it must be a NumPy array")
        return np.asarray(array)
    try:
        return np.asarray(memoryview(value))
    except TypeError:
        pass
    if hasattr(value, "__len__") and hasattr(value, "__getitem__") and not isinstance(value, (str, dict, set)):
        return _readable_list([value[i] for i in range(len(value))], what, depth)
    for convert in (int, float):
        special = getattr(type(value), "__index__" if convert is int else "__float__", None)
        if special is not None:
            return convert(value)
    raise TypeError(f"{what} is of type {type(value).__name__}; it must be an array, a number or a list of numbers")


def _readable_list(values: list[Any], what: str, depth: int) -> list[Any]:
    if depth >= _MOST_DIMENSIONS:
        raise ValueError(f"{what} has lists that are nested more than {_MOST_DIMENSIONS} deep")
    if set(map(type, values)) <= {bool, int, float}:
        return values
    return [_readable(value, what, depth + 1) for value in values]


def _checked(interface: Any, what: str) -> dict[str, Any]:
    """A copy."""
    if not isinstance(interface, dict):
        raise TypeError(f"{what}: __array_interface__ is of type {type(interface).__name__}; it must be a dict")
    copy = dict(interface)
    shape = copy.get("shape")
    if not isinstance(shape, tuple):
        raise TypeError(f"{what}: the shape in __array_interface__ is of type {type(shape).__name__}; it must be a tuple")
    if len(shape) > _MOST_DIMENSIONS:
        raise ValueError(f"{what} has {len(shape)} dimensions; there must be between 0 and {_MOST_DIMENSIONS}")
    return copy
