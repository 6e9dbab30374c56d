"""ONNX models on batches in chunks."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import functools
import hashlib
import operator
import os
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional, Union

import dask.array as da
import numpy as np
import numpy.typing as npt
from dask.base import tokenize

from .. import onnx
from .._foreign import as_array
from ._blocks import array_of, dask_array

NDArray = npt.NDArray[Any]
_KEPT = 4  # models per process


class _Source(NamedTuple):
    """Where a worker gets the model from: a file, or bytes in the graph."""

    path: Optional[str]
    contents: Optional[bytes]
    digest: str
    device: str


def map_model(model: Union[str, os.PathLike[str], bytes, Any], inputs: Mapping[str, Any], *,
              batch: Optional[int] = None, device: str = "cpu") -> dict[str, da.Array]:
    """The outputs of an ONNX model, by name, for samples along the first dimension of Dask's arrays.

    ``model`` is the name of a file that every worker can read, or a file's bytes or an ``onnx.ModelProto``, which are
    sent to each worker once. Inputs that are no arrays of Dask are the same in every run. The chunks of a batch are
    run one by one, in runs of ``batch`` samples where that is given or the model fixes it; a worker keeps the models
    that it has loaded.

    What comes out for a chunk are the bytes that :meth:`anydml.onnx.Model.run` gives for its samples.
    """
    source = _source_of(model, device)
    loaded = _load(source)
    arrays = {name: dask_array(value, f"input {name!r}") for name, value in inputs.items() if isinstance(value, da.Array)}
    constants = {name: as_array(value, name) for name, value in inputs.items() if name not in arrays}
    batch = _checked_batch(loaded, arrays, constants, batch)
    samples = next(iter(arrays.values())).chunks[0]
    arrays = {name: array.rechunk((samples, *(-1 for _ in array.shape[1:]))) for name, array in arrays.items()}
    outputs = _outputs(loaded, arrays, constants, batch)

    token = tokenize([(name, array.name) for name, array in arrays.items()], list(constants.items()), source.digest,
                     device, batch)
    name, shared = f"anydml-model-{token}", f"anydml-model-source-{token}"
    tasks: dict[Any, Any] = {shared: (_Shared, source, constants, batch, outputs)}
    for number, size in enumerate(samples):
        chunks = [[each, (array.name, number, *(0 for _ in array.shape[1:]))] for each, array in arrays.items()]
        tasks[name, number] = (_run, shared, chunks, size)
    base = array_of(name, tasks, list(arrays.values()), (samples,), np.float32)
    results = {}
    for output, (shape, dtype) in outputs.items():
        part = f"{name}-{output}"
        picked = {(part, number, *(0 for _ in shape)): (operator.getitem, (name, number), output)
                  for number in range(len(samples))}
        results[output] = array_of(part, picked, [base], (samples, *((size,) for size in shape)), dtype)
    return results


def _source_of(model: Any, device: str) -> _Source:
    if isinstance(model, (str, os.PathLike)):
        path = os.path.abspath(os.fspath(model))
        stamp = os.stat(path)
        return _Source(path, None, f"{path}:{stamp.st_size}:{stamp.st_mtime_ns}", device)
    contents = model if isinstance(model, bytes) else model.SerializeToString()
    return _Source(None, contents, hashlib.sha256(contents).hexdigest(), device)


class _ByDigest:
    """A source as a key of the cache."""

    def __init__(self, source: _Source):
        self.source = source

    def __hash__(self) -> int:
        return hash((self.source.digest, self.source.device))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByDigest) and (self.source.digest, self.source.device) == (
            other.source.digest, other.source.device)


def _load(source: _Source) -> onnx.Model:
    return _loaded(_ByDigest(source))


@functools.lru_cache(_KEPT)
def _loaded(key: _ByDigest) -> onnx.Model:
    source = key.source
    return onnx.load(source.contents if source.path is None else source.path, source.device)


# ---- The model's inputs and outputs ----

def _sizes(shape: Any) -> str:
    return "x".join("n" if size is None else str(size) for size in shape)


def _checked_batch(model: onnx.Model, arrays: dict[str, da.Array], constants: dict[str, NDArray],
                   batch: Optional[int]) -> Optional[int]:
    """The number of samples per run, if it is fixed."""
    if not arrays:
        raise ValueError("none of the inputs is an array of Dask")
    if batch is not None and operator.index(batch) < 1:
        raise ValueError(f"batch is {batch}; it must be at least 1")
    names = [value.name for value in model.inputs]
    for name in (*arrays, *constants):
        if name not in names:
            raise ValueError(f'the model has no input "{name}"; it has {", ".join(names)}')
    first = next(iter(arrays))
    for value in model.inputs:
        if value.name in constants:
            continue
        if value.name not in arrays:
            raise ValueError(f'input "{value.name}" is missing: {_sizes(value.shape or ())} of {value.dtype}')
        array = arrays[value.name]
        if array.ndim == 0 or array.shape[0] != arrays[first].shape[0]:
            raise ValueError(f'input "{value.name}" has the shape {array.shape} but "{first}" has '
                             f'{arrays[first].shape}; the first dimension is the batch, which must be the same')
        fits = value.shape is None or (len(value.shape) == array.ndim and all(
            size is None or size == given for size, given in zip(value.shape[1:], array.shape[1:])))
        if not fits or value.dtype not in (None, array.dtype):
            raise ValueError(f'input "{value.name}" is {_sizes(array.shape)} of {array.dtype}; the model takes '
                             f'{_sizes(value.shape or ())} of {value.dtype}')
        fixed = value.shape[0] if value.shape else None
        if fixed is not None:
            if batch not in (None, fixed) or any(size % fixed for size in array.chunks[0]):
                raise ValueError(f'input "{value.name}" has chunks of {sorted(set(array.chunks[0]))} samples'
                                 f'{"" if batch is None else f" and batch is {batch}"}; the model takes {fixed} at a '
                                 f'time, of which chunks must be multiples')
            batch = fixed
    return batch


def _outputs(model: onnx.Model, arrays: dict[str, da.Array], constants: dict[str, NDArray],
             batch: Optional[int]) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Sample shapes and types: from the model, or from a run on a few zeros."""
    outputs: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
    for value in model.outputs:
        sizes = (None,) if value.shape is None or value.dtype is None else value.shape[1:]
        known = tuple(size for size in sizes if size is not None)
        if len(known) < len(sizes) or not value.shape or value.dtype is None:
            break
        outputs[value.name] = known, value.dtype
    else:
        return outputs
    zeros = {name: np.zeros((batch or 1, *array.shape[1:]), array.dtype) for name, array in arrays.items()}
    found = model.run({**zeros, **constants})
    return {name: (result.shape[1:], result.dtype) for name, result in found.items()}


# ---- Tasks ----

class _Shared:
    """The part that all runs share."""

    def __init__(self, source: _Source, constants: dict[str, NDArray], batch: Optional[int],
                 outputs: dict[str, tuple[tuple[int, ...], np.dtype[Any]]]):
        self.source, self.constants, self.batch, self.outputs = source, constants, batch, outputs


def _run(shared: _Shared, chunks: list[tuple[str, NDArray]], size: int) -> dict[str, NDArray]:
    if size == 0:
        return {name: np.empty((0, *shape), dtype) for name, (shape, dtype) in shared.outputs.items()}
    model = _load(shared.source)
    step = shared.batch or size
    runs = [_run_some(model, shared, {name: chunk[at:at + step] for name, chunk in chunks}, min(step, size - at))
            for at in range(0, size, step)]
    return {name: np.concatenate([run[name] for run in runs]) if len(runs) > 1 else runs[0][name]
            for name in shared.outputs}


def _run_some(model: onnx.Model, shared: _Shared, samples: dict[str, NDArray], count: int) -> dict[str, NDArray]:
    results = model.run({**samples, **shared.constants})
    for name, (shape, _) in shared.outputs.items():
        if results[name].shape != (count, *shape):
            raise ValueError(f'output "{name}" is {_sizes(results[name].shape)} for a batch of {count}; it must be '
                             f'{_sizes((count, *shape))}')
    return results
