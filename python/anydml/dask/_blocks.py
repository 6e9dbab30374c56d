"""Shared by all functions: checks of their arrays, and the graph of a tree of merges."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import dask.array as da
import numpy as np
import numpy.typing as npt
from dask.blockwise import BlockwiseDepDict, blockwise
from dask.highlevelgraph import HighLevelGraph

from .._compiled import CompiledOperator
from .._device import Device
from .._foreign import as_array
from .._tensor import TensorSpec

Coordinates = tuple[int, ...]
FAN_IN = 8  # states per merge
_LARGEST = 2**31  # a size for queries to the library


def dask_array(value: Any, what: str) -> da.Array:
    """Dask's array, or one over NumPy's, in this machine's order of bytes."""
    # Dask reads arrays in files (h5py, zarr, xarray) chunk by chunk; as_array would read them whole.
    is_in_chunks = hasattr(value, "chunks") or hasattr(value, "to_dask_array")
    array = da.asarray(value if is_in_chunks else as_array(value, what))
    if any(math.isnan(size) for sizes in array.chunks for size in sizes):
        raise ValueError(f"{what} has chunks of unknown sizes; its compute_chunk_sizes() finds them out")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def spec(array: da.Array, kept: Iterable[int] = ()) -> TensorSpec:
    """For the library's checks: without the sizes that do not matter, whose product may be too large for it."""
    kept = {dimension % max(array.ndim, 1) for dimension in kept}
    return TensorSpec([min(size, _LARGEST if d in kept else 1) for d, size in enumerate(array.shape)], array.dtype)


def check(function: Callable[..., Any], *arguments: Any, **attributes: Any) -> CompiledOperator:
    """Raises what the library says against it."""
    return Device("cpu").compile(function, *arguments, **attributes)


def normalized(axes: Sequence[Any], ndim: int) -> tuple[int, ...]:
    """In increasing order; they have been checked."""
    return tuple(sorted(operator.index(axis) % ndim for axis in axes))


def starts_of(chunks: Sequence[Sequence[int]]) -> list[list[int]]:
    return [[0, *itertools.accumulate(sizes)] for sizes in chunks]


def blocks_of(array: da.Array) -> Iterable[Coordinates]:
    """In row-major order."""
    return itertools.product(*(range(count) for count in array.numblocks))


def block_shape(array: da.Array, block: Coordinates) -> tuple[int, ...]:
    return tuple(sizes[i] for sizes, i in zip(array.chunks, block))


def on_host(result: Any) -> npt.NDArray[Any]:
    """What an operator gave on a GPU comes back, as chunks are the host's."""
    return np.asarray(result)


def array_of(name: str, tasks: dict[Any, Any], dependencies: Sequence[Any], chunks: Sequence[Sequence[int]],
             dtype: npt.DTypeLike) -> da.Array:
    graph = HighLevelGraph.from_collections(name, tasks, dependencies=dependencies)
    return da.Array(graph, name, tuple(map(tuple, chunks)), meta=np.empty((0,) * len(chunks), dtype))


def merged(array: da.Array, axes: tuple[int, ...], name: str, first: Callable[..., Any],
           merge: Callable[[list[Any]], Any], finish: Callable[..., tuple[npt.NDArray[Any], ...]],
           size: int, dtypes: Sequence[npt.DTypeLike]) -> tuple[da.Array, ...]:
    """Chunks along the axes become one, of that size.

    ``first(chunk, where it begins)`` makes a state of a chunk that has elements, ``merge`` one of some states in the
    order of their chunks, and ``finish`` the chunks of the results, one per type.
    """
    starts = starts_of(array.chunks)
    where = {block: tuple(starts[d][i] for d, i in enumerate(block)) for block in blocks_of(array)}
    # Dask fuses this with the tasks that make the chunks, so that a chunk and its state are one task.
    dimensions = tuple(f"d{d}" for d in range(array.ndim))
    begin = f"{name}-first"
    layer = blockwise(_state, begin, dimensions, array.name, dimensions, BlockwiseDepDict(where, array.numblocks),
                      dimensions, numblocks={array.name: array.numblocks}, first=first)
    graph = HighLevelGraph.from_collections(begin, layer, dependencies=[array])
    chunks = [(size,) if d in axes else sizes for d, sizes in enumerate(array.chunks)]
    tasks: dict[Any, Any] = {}
    groups: dict[Coordinates, list[Any]] = {}
    for block in blocks_of(array):
        group = groups.setdefault(tuple(0 if d in axes else i for d, i in enumerate(block)), [])
        if 0 not in block_shape(array, block):
            group.append((begin, *block))
    for block, states in groups.items():
        level = 0
        while len(states) > 1:
            parts = [states[i:i + FAN_IN] for i in range(0, len(states), FAN_IN)]
            states = [(f"{name}-merge-{level}", number, *block) for number in range(len(parts))]
            tasks.update((key, (merge, part)) for key, part in zip(states, parts))
            level += 1
        shape = tuple(sizes[i] for sizes, i in zip(chunks, block))
        tasks[(name, *block)] = (finish, states[0]) if states else (_empty, shape, list(dtypes))
    layers, dependencies = {**graph.layers, name: tasks}, {**graph.dependencies, name: {begin}}
    results = []
    for number, dtype in enumerate(dtypes):
        part = f"{name}-{number}"
        picked = {(part, *block): (operator.getitem, (name, *block), number) for block in groups}
        graph = HighLevelGraph({**layers, part: picked}, {**dependencies, part: {name}})
        results.append(da.Array(graph, part, tuple(map(tuple, chunks)), meta=np.empty((0,) * array.ndim, dtype)))
    return tuple(results)


def _state(chunk: npt.NDArray[Any], starts: Coordinates, first: Callable[..., Any]) -> Any:
    return first(chunk, starts) if chunk.size else None  # which is never read


def _empty(shape: tuple[int, ...], dtypes: Sequence[npt.DTypeLike]) -> tuple[npt.NDArray[Any], ...]:
    return tuple(np.empty(shape, dtype) for dtype in dtypes)
