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

# TensorProto.DataType, for the types that NumPy has.
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


class Profile(list[dict[str, Any]]):
    """The nodes of the compiled graphs, the slowest first: ``nodes`` (those of the model that became one),
    ``implementation``, ``seconds``, ``calls``. As text it is a table. `seconds` are the whole run's."""

    def __init__(self, seconds: float, rows: list[tuple[str, float, int]]):
        super().__init__()
        self.seconds = seconds
        for text, taken, calls in sorted(rows, key=lambda row: -row[1]):
            names, _, implementation = text.removesuffix(")").rpartition(" (")
            self.append({"nodes": names.split(" + "), "implementation": implementation, "seconds": taken,
                         "calls": calls})

    def __str__(self) -> str:
        share = 100 / self.seconds if self.seconds > 0 else 0
        lines = [f"a run of {self.seconds * 1e3:.3f} ms, by the nodes of the compiled graphs:"]
        lines += [f"{row['seconds'] * 1e3:9.3f} ms {row['seconds'] * share:5.1f} % {row['calls']:5}x  "
                  f"{' + '.join(row['nodes'])} ({row['implementation']})" for row in self]
        outside = max(0.0, self.seconds - sum(row["seconds"] for row in self))
        lines.append(f"{outside * 1e3:9.3f} ms {outside * share:5.1f} %         outside of nodes")
        return "\n".join(lines)


class Model:
    """A model on a device, compiled for the sizes that it meets. Threads may share it; they take turns.

    Names of the model that are not UTF-8 are escaped (``"\\xff"``), and inputs are given by these names."""

    def __init__(self, native: _anydml.OnnxModel):
        self._native = native
        self._latest: Optional[dict[str, npt.NDArray[Any]]] = None

    @property
    def inputs(self) -> list[Value]:
        return _values(self._native.inputs)

    @property
    def outputs(self) -> list[Value]:
        return _values(self._native.outputs)

    def run(self, inputs: dict[str, Any]) -> dict[str, npt.NDArray[Any]]:
        """Arrays, or what speaks DLPack on the host, by the inputs' names."""
        arrays = _packed(inputs)
        outputs = self._native.run(_addresses(arrays))
        self._latest = arrays
        return {name: np.frombuffer(data, _TYPES[number]).reshape(shape) for name, number, shape, data in outputs}

    def profile(self, inputs: Optional[dict[str, Any]] = None) -> Profile:
        """Where the time of a run goes, of these inputs or of those of the latest ``run``. Meanwhile nothing else of
        this process should be executed: it would be counted, too."""
        arrays = self._latest if inputs is None else _packed(inputs)
        if arrays is None:
            raise ValueError("inputs are needed: the model has not been run yet")
        return Profile(*self._native.profile(_addresses(arrays)))

    def __reduce__(self) -> Any:
        raise TypeError("a Model cannot be pickled or copied; load it where it is needed")


def _packed(inputs: dict[str, Any]) -> dict[str, npt.NDArray[Any]]:
    arrays = {}
    for name, value in inputs.items():
        if not isinstance(name, str):
            raise TypeError(f"the name {name!r} of an input is not a str")
        array = host_array(value, name)
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
        if array.dtype not in _NUMBERS:
            raise TypeError(f"input {name!r} has data type {array.dtype}, which no tensor has")
        arrays[name] = array
    return arrays


def _addresses(arrays: dict[str, npt.NDArray[Any]]) -> dict[bytes, tuple[int, list[int], int, int]]:
    return {name.encode(errors="backslashreplace"): (_NUMBERS[array.dtype], list(array.shape), array.ctypes.data, array.nbytes)
            for name, array in arrays.items()}


def load(model: Union[str, os.PathLike[str], bytes, Any], device: str = "cpu") -> Model:
    """From a file, a file's bytes or an ``onnx.ModelProto``."""
    if isinstance(model, (str, os.PathLike)):
        path = os.fsencode(model)
        if b"\0" in path:
            raise ValueError(f"the path {path!r} has a null character in it")
        return Model(_anydml.load_model(path, None, device))
    contents = model if isinstance(model, bytes) else model.SerializeToString()
    return Model(_anydml.load_model(b"", contents, device))
