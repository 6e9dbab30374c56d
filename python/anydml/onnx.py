"""ONNX models.

    model = anydml.onnx.load("model.onnx", device="cpu")
    outputs = model.run({"x": x})
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Optional, Union

import numpy as np
import numpy.typing as npt

from . import _anydml
from ._arrays import host_array

# TensorProto.DataType, as far as NumPy has them.
_TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
          10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64}
_NUMBERS = {np.dtype(dtype): number for number, dtype in _TYPES.items()}


class Value(NamedTuple):
    """An input or output. A size that the model leaves open is None, and so is a shape."""

    name: str
    dtype: Optional[np.dtype[Any]]
    shape: Optional[tuple[Optional[int], ...]]


def _values(signatures: list[tuple[str, int, Optional[list[Optional[int]]]]]) -> list[Value]:
    return [Value(name, np.dtype(_TYPES[number]) if number in _TYPES else None, None if shape is None else tuple(shape))
            for name, number, shape in signatures]


class Model:
    """A model on a device, compiled for the sizes that it meets. Threads may share it; they take turns."""

    def __init__(self, native: _anydml.OnnxModel):
        self._native = native

    @property
    def inputs(self) -> list[Value]:
        return _values(self._native.inputs)

    @property
    def outputs(self) -> list[Value]:
        return _values(self._native.outputs)

    def run(self, inputs: dict[str, Any]) -> dict[str, npt.NDArray[Any]]:
        """Arrays, or what speaks DLPack on the host, by the inputs' names."""
        arrays = {}
        for name, value in inputs.items():
            array = host_array(value, name)
            array = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
            if array.dtype not in _NUMBERS:
                raise TypeError(f"input {name!r} has data type {array.dtype}, which no tensor has")
            arrays[name] = array
        given = {name: (_NUMBERS[array.dtype], list(array.shape), array.ctypes.data, array.nbytes)
                 for name, array in arrays.items()}
        return {name: np.frombuffer(data, _TYPES[number]).reshape(shape) for name, number, shape, data
                in self._native.run(given)}


def load(model: Union[str, os.PathLike[str], bytes, Any], device: str = "cpu") -> Model:
    """From a file, a file's bytes or an ``onnx.ModelProto``."""
    if isinstance(model, (str, os.PathLike)):
        return Model(_anydml.OnnxModel(os.fspath(model), None, device))
    contents = model if isinstance(model, bytes) else model.SerializeToString()
    return Model(_anydml.OnnxModel("", contents, device))
