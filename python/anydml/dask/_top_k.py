"""TOP_K1 along an axis that may be divided into chunks."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

from functools import partial
from typing import Any, Optional, SupportsIndex

import dask.array as da
import numpy as np
import numpy.typing as npt
from dask.base import tokenize

from .. import _operators as ops
from .._tensor import dtype_of
from ._blocks import check, dask_array, merged, normalized, on_host, spec

Best = tuple[npt.NDArray[Any], npt.NDArray[Any]]  # values, positions in the whole array


def top_k1(input: da.Array, axis: SupportsIndex, k: SupportsIndex, direction: str, *,
           index_dtype: Optional[npt.DTypeLike] = None, device: str = "cpu") -> tuple[da.Array, da.Array]:
    """:func:`anydml.top_k1`: its bytes, ties and NaNs included, however the array is cut.

    The results have one chunk along the axis. An axis of 2**32 elements and more needs ``index_dtype=np.uint64``.
    """
    x = dask_array(input, "TOP_K1: input")
    if x.ndim == 0:
        x = x.reshape(1)
    kept = [axis] if isinstance(axis, (int, np.integer)) else []
    compiled = check(ops.top_k1, spec(x, kept), axis=axis, k=k, direction=direction, index_dtype=index_dtype)
    (along,), count = normalized([axis], x.ndim), int(k)
    indices = dtype_of(compiled._native.outputs[1][0])
    if x.shape[along] - 1 > np.iinfo(indices).max:
        raise ValueError(f"TOP_K1: index_dtype is {indices} but the input has {x.shape[along]} elements along axis "
                         f"{along}; their indices need uint64")
    name = f"anydml-top_k1-{tokenize(x.name, along, count, direction, indices, device)}"
    options = dict(axis=along, k=count, direction=direction, device=device)
    values, positions = merged(x, (along,), name, partial(_first, dtype=indices, **options),
                               partial(_merge, **options), _finish, count, (x.dtype, indices))
    return values, positions


def _first(chunk: npt.NDArray[Any], starts: tuple[int, ...], *, axis: int, k: int, direction: str, device: str,
           dtype: np.dtype[Any]) -> Best:
    values, indices = ops.top_k1(chunk, axis, min(k, chunk.shape[axis]), direction, device=device)
    positions = on_host(indices).astype(dtype)
    positions += dtype.type(starts[axis])
    return on_host(values), positions


def _merge(parts: list[Best], *, axis: int, k: int, direction: str, device: str) -> Best:
    # Equal elements are in the order of their positions: within each part, and parts are in order.
    values = np.concatenate([part[0] for part in parts], axis)
    positions = np.concatenate([part[1] for part in parts], axis)
    best, places = ops.top_k1(values, axis, min(k, values.shape[axis]), direction, device=device)
    return on_host(best), np.take_along_axis(positions, on_host(places).astype(np.intp), axis)


def _finish(best: Best) -> Best:
    return best
