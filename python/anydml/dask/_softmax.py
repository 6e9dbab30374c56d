"""Softmax and related functions along axes that may be divided into chunks."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, SupportsIndex

import dask.array as da
import numpy as np
import numpy.typing as npt
from dask.base import tokenize
from dask.graph_manipulation import bind

from .. import _operators as ops
from ._blocks import array_of, block_shape, blocks_of, check, dask_array, merged, normalized, on_host, spec, starts_of
from ._reduce import Exponentials, exponentials, first_exponentials, merge_exponentials, positions_of

NDArray = npt.NDArray[Any]
Axes = tuple[int, ...]


def softmax(input: da.Array, axes: Sequence[SupportsIndex] = (-1,), *, reread: bool = True,
            device: str = "cpu") -> da.Array:
    """:func:`anydml.activation_softmax1`.

    Chunks that are cut along the axes are needed twice: for their maxima and sums, and when those of all chunks are
    known. With ``reread`` they are computed or read again then, so that none has to wait in memory; without, what
    computes them runs once. The second is the right one for arrays that are persisted or fit into memory.
    """
    return _softmax("ACTIVATION_SOFTMAX1", ops.activation_softmax1, input, axes, reread, device)


def log_softmax(input: da.Array, axes: Sequence[SupportsIndex] = (-1,), *, reread: bool = True,
                device: str = "cpu") -> da.Array:
    """:func:`anydml.activation_log_softmax1`; see :func:`softmax`."""
    return _softmax("ACTIVATION_LOG_SOFTMAX1", ops.activation_log_softmax1, input, axes, reread, device)


def hardmax(input: da.Array, axes: Sequence[SupportsIndex] = (-1,), *, device: str = "cpu") -> da.Array:
    """:func:`anydml.activation_hardmax1`: its bytes, however the array is cut."""
    x = dask_array(input, "ACTIVATION_HARDMAX1: input")
    check(ops.activation_hardmax1, spec(x), axes)
    if x.ndim == 0:
        return hardmax(x.reshape(1), axes, device=device).reshape(())
    along = normalized(axes, x.ndim)
    positions = positions_of(x, "ACTIVATION_HARDMAX1", "argmax", along, False, np.dtype(np.uint64), device)
    name = f"anydml-hardmax-{tokenize(x.name, along, device)}"
    starts = starts_of(x.chunks)
    write = partial(_write_ones, axes=along, sizes=tuple(x.shape[axis] for axis in along), dtype=x.dtype)
    tasks = {(name, *block): (write, (positions.name, *_reduced(block, along)), block_shape(x, block),
                              tuple(starts[d][i] for d, i in enumerate(block)))
             for block in blocks_of(x)}
    return array_of(name, tasks, [positions], x.chunks, x.dtype)


def _softmax(operator: str, function: Callable[..., Any], input: Any, axes: Sequence[Any], reread: bool,
             device: str) -> da.Array:
    x = dask_array(input, f"{operator}: input")
    check(function, spec(x), axes)
    if x.ndim == 0:
        return _softmax(operator, function, x.reshape(1), axes, reread, device).reshape(())
    along = normalized(axes, x.ndim)
    if all(x.numblocks[axis] == 1 for axis in along):
        return x.map_blocks(_whole, function=function, axes=along, device=device, meta=x._meta)
    name = f"anydml-{operator.lower()}-{tokenize(x.name, along, device)}"
    largest, sums = merged(x, along, name, partial(first_exponentials, axes=along, device=device), merge_exponentials,
                           _both, 1, (np.float32, np.float32))
    again = bind(x, [largest, sums]) if reread else x  # read again after these are known
    return da.map_blocks(_finish, again, largest, sums, is_log=function is ops.activation_log_softmax1, device=device,
                         chunks=x.chunks, meta=x._meta)


def _reduced(block: Axes, axes: Axes) -> Axes:
    return tuple(0 if d in axes else i for d, i in enumerate(block))


def _whole(chunk: NDArray, function: Callable[..., Any], axes: Axes, device: str) -> NDArray:
    return on_host(function(chunk, axes, device=device)) if chunk.size else chunk


def _both(state: Exponentials) -> Exponentials:
    return state[0], state[1].astype(np.float32)


def _finish(chunk: NDArray, largest: NDArray, sums: NDArray, is_log: bool, device: str) -> NDArray:
    if chunk.size == 0:
        return chunk
    x = chunk.astype(np.float32, copy=False)
    with np.errstate(all="ignore"):
        result = np.subtract(x, largest)
        if is_log:
            result -= on_host(ops.element_wise_log(sums, device=device))
        else:
            result = exponentials(result, device)
            result *= 1 / sums
        is_finite = np.isfinite(largest)
        if not is_finite.all():  # a set with NaN or +infinity, or with -infinity only: NaN, as on one machine
            result = np.where(is_finite, result, np.float32(np.nan))
        return result.astype(chunk.dtype, copy=False)


def _write_ones(positions: NDArray, shape: tuple[int, ...], starts: Axes, *, axes: Axes, sizes: tuple[int, ...],
                dtype: np.dtype[Any]) -> NDArray:
    result = np.ones(shape, bool)
    rest = positions
    for axis, size in zip(reversed(axes), reversed(sizes)):
        rest, coordinates = np.divmod(rest, np.uint64(size))
        along = np.arange(starts[axis], starts[axis] + shape[axis], dtype=np.uint64)
        result &= along.reshape([-1 if d == axis else 1 for d in range(len(shape))]) == coordinates
    return result.astype(dtype)
