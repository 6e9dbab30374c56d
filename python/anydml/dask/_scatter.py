"""SCATTER_ND into an array in chunks: updates are sent to their target chunks."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
import numpy.typing as npt
from dask.base import tokenize

from .. import _operators as ops
from .._tensor import TensorSpec
from ._blocks import Coordinates, array_of, blocks_of, check, dask_array, on_host, starts_of

NDArray = npt.NDArray[Any]
# Some updates: the number of the target chunk, the position in the row-major order of all updates, the
# indices inside the chunk, the value.
Updates = tuple[NDArray, NDArray, NDArray, NDArray]
_WAYS = 16  # parts that updates are split into at one time
_LARGEST = 2**32


def scatter_nd(input: da.Array, indices: da.Array, updates: da.Array, *, device: str = "cpu") -> da.Array:
    """:func:`anydml.scatter_nd`: its bytes, duplicate targets included, however the arrays are cut.

    The result has the input's chunks. Updates are kept until all of them are sorted by chunk; the input streams by.
    An index out of range is an IndexError when the result is computed.
    """
    x, where, values = (dask_array(each, f"SCATTER_ND: {name}")
                        for each, name in ((input, "input"), (indices, "indices"), (updates, "updates")))
    if x.ndim == 0:
        return scatter_nd(x.reshape(1), where, values, device=device).reshape(())
    if where.ndim == 0:
        raise ValueError("SCATTER_ND: indices has no dimensions; its last one is the index tuple")
    _check(x, where, values)
    tuples, count = where.ndim - 1, where.shape[-1]
    where = where.rechunk({tuples: -1})
    values = values.rechunk((*where.chunks[:-1], *x.chunks[count:]))
    name = f"anydml-scatter_nd-{tokenize(x.name, where.name, values.name, device)}"

    starts = starts_of(where.chunks[:-1])
    locate = partial(_locate, sizes=where.shape[:-1], shape=x.shape[:count], chunks=x.chunks[:count])
    tasks: dict[Any, Any] = {}
    sources = list(itertools.product(*(range(n) for n in where.numblocks[:-1])))
    for number, block in enumerate(sources):
        tasks[f"{name}-located", number] = (locate, (where.name, *block, 0),
                                            tuple(starts[d][i] for d, i in enumerate(block)))
    targets = math.prod(x.numblocks[:count])
    came: dict[Coordinates, list[list[Any]]] = {}
    for behind in itertools.product(*(range(n) for n in x.numblocks[count:])):
        for number, block in enumerate(sources):
            tasks[(f"{name}-updates", *behind, number)] = (_with_values, (f"{name}-located", number),
                                                           (values.name, *block, *behind), tuples)
        came[behind] = _add_routes(tasks, name, behind, len(sources), targets)
    apply = partial(_apply, device=device)
    for block in blocks_of(x):
        target = _row_major(block[:count], x.numblocks[:count])
        tasks[(name, *block)] = (apply, (x.name, *block), came[block[count:]][target])
    return array_of(name, tasks, [x, where, values], x.chunks, x.dtype)


def _check(x: da.Array, indices: da.Array, updates: da.Array) -> None:
    shapes = [x.shape, indices.shape, updates.shape]
    count = indices.shape[-1]
    fits = max(math.prod(shape) for shape in shapes) < _LARGEST
    expected = indices.shape[:-1] + x.shape[count:]
    if not fits and 0 < count <= x.ndim and updates.shape == expected:
        shapes = [tuple(min(size, 1) for size in shape) for shape in (x.shape, indices.shape[:-1])]
        shapes[1] += (count,)
        shapes.append(shapes[1][:-1] + shapes[0][count:])
        fits = True
    if fits:
        check(ops.scatter_nd, *(TensorSpec(shape, each.dtype) for shape, each in zip(shapes, (x, indices, updates))))
    if updates.shape != expected:
        raise ValueError(f"SCATTER_ND: updates has the shape {updates.shape} but must have {expected}: the sizes of "
                         f"indices without the tuple, then those of input behind the dimensions that a tuple addresses")


def _row_major(coordinates: Coordinates, sizes: Sequence[int]) -> int:
    position = 0
    for coordinate, size in zip(coordinates, sizes):
        position = position * size + coordinate
    return position


def _add_routes(tasks: dict[Any, Any], name: str, behind: Coordinates, sources: int,
                targets: int) -> list[list[Any]]:
    """From every source to every target in some stages, each of which joins and splits _WAYS ways: for each target
    the keys of what has come.

    Stage s has a node for every _WAYS**s sources and every _WAYS**(stages - s) targets, so that the number of tasks
    grows with the chunks (and the stages), not with their square.
    """
    stages = 1
    while _WAYS**stages < max(sources, targets):
        stages += 1
    for stage in range(stages):
        group, part = _WAYS**stage, _WAYS**(stages - stage - 1)
        for g, b in itertools.product(range(-(-sources // group)), range(-(-targets // (part * _WAYS)))):
            if stage == 0:
                came: list[Any] = [(f"{name}-updates", *behind, g)]
            else:
                before = range(g * _WAYS, min(g * _WAYS + _WAYS, -(-sources // (group // _WAYS))))
                came = [(f"{name}-part-{stage - 1}", *behind, each, b) for each in before]
            first = b * _WAYS
            parts = min(_WAYS, -(-targets // part) - first)
            node = (f"{name}-split-{stage}", *behind, g, b)
            tasks[node] = (_split, came, part, first, parts)
            for each in range(parts):
                tasks[(f"{name}-part-{stage}", *behind, g, first + each)] = (operator.getitem, node, each)
    last = range(-(-sources // _WAYS**(stages - 1)))
    return [[(f"{name}-part-{stages - 1}", *behind, each, target) for each in last] for target in range(targets)]


# ---- Tasks ----

def _locate(indices: NDArray, starts: Coordinates, *, sizes: tuple[int, ...], shape: tuple[int, ...],
            chunks: Sequence[Sequence[int]]) -> tuple[NDArray, NDArray, NDArray]:
    """Updates without their values."""
    positions = np.zeros((1,), np.int64)
    for start, size, length in zip(starts, sizes, indices.shape):
        positions = np.add.outer(positions * size, np.arange(start, start + length, dtype=np.int64)).reshape(-1)
    components = indices.reshape(len(positions), len(shape))
    _refuse_out_of_range(components, indices.shape[:-1], starts, shape)
    targets = np.zeros(len(positions), np.int64)
    local = np.empty(components.shape, np.int64)
    for d, size in enumerate(shape):
        component = components[:, d].astype(np.int64)
        component[component < 0] += size
        ends = np.cumsum(chunks[d])
        chunk = np.searchsorted(ends, component, side="right")
        targets = targets * len(ends) + chunk
        local[:, d] = component - (ends - chunks[d])[chunk]
    return targets, positions, local


def _refuse_out_of_range(components: NDArray, tuples: tuple[int, ...], starts: Coordinates,
                         shape: tuple[int, ...]) -> None:
    is_signed = components.dtype.kind == "i"
    limits = np.array(shape, np.int64 if is_signed else np.uint64)
    bad = components >= limits
    if is_signed:
        bad |= components < -limits
    if not bad.any():
        return
    row = int(bad.any(axis=1).argmax())
    component = int(bad[row].argmax())
    size = shape[component]
    place = [int(i) + start for i, start in zip(np.unravel_index(row, tuples), starts)] if tuples else []
    raise IndexError(f"SCATTER_ND: the tuple IndicesTensor[{''.join(f'{i},' for i in place)}:] is "
                     f"{{{','.join(map(str, components[row]))}}} but InputTensor.Sizes[{component}] is {size}; its "
                     f"component {component} must be in [{-size if is_signed else 0}, {size - 1}]")


def _with_values(located: tuple[NDArray, NDArray, NDArray], values: NDArray, tuples: int) -> Updates:
    return (*located, values.reshape(len(located[1]), *values.shape[tuples:]))


def _joined(parts: list[Updates]) -> Updates:
    if len(parts) == 1:
        return parts[0]
    targets, positions, local, values = (np.concatenate([part[i] for part in parts]) for i in range(4))
    return targets, positions, local, values


def _split(parts: list[Updates], size: int, first: int, count: int) -> list[Updates]:
    """Splits by the number of the chunk divided by `size`, from `first` upwards."""
    updates = _joined(parts)
    number = (updates[0] // size - first).astype(np.uint8)
    order = np.argsort(number, kind="stable")
    ends = np.cumsum(np.bincount(number, minlength=count))
    split = []
    for part in range(count):
        some = order[ends[part - 1] if part else 0:ends[part]]
        split.append((updates[0][some], updates[1][some], updates[2][some], updates[3][some]))
    return split


def _apply(chunk: NDArray, parts: list[Updates], *, device: str) -> NDArray:
    _, positions, local, values = _joined(parts)
    if chunk.size == 0 or len(positions) == 0:
        return chunk
    order = np.argsort(positions)
    return on_host(ops.scatter_nd(chunk, local[order], values[order], device=device))
