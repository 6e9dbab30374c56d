"""REDUCE, ARGMIN and ARGMAX along axes that may be divided into chunks."""

# mypy: allow-untyped-calls, no-warn-return-any
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Optional, SupportsIndex

import dask.array as da
import numpy as np
import numpy.typing as npt
from dask.base import tokenize

from .. import _operators as ops
from .._tensor import dtype_of
from ._blocks import check, dask_array, merged, normalized, on_host, spec
from ._exact_sum import ExactSum, exact_sum, merge_sums, rounded

NDArray = npt.NDArray[Any]
Axes = tuple[int, ...]

# How the results of chunks are merged if that is exact: sums and products of integers wrap.
_MERGED_BY = {"max": "max", "min": "min", "sum": "sum", "l1": "sum", "sum_square": "sum", "multiply": "multiply"}
_PRODUCT_RUN = 512  # mantissas of at least 1/2 whose product is a normal number


def reduce(input: da.Array, function: str, axes: Sequence[SupportsIndex], *, dtype: Optional[npt.DTypeLike] = None,
           device: str = "cpu") -> da.Array:
    """:func:`anydml.reduce`, with its bytes for integers, ``"max"``, ``"min"``, ``"argmax"`` and ``"argmin"``.

    Sums of floating-point numbers (``"sum"``, ``"average"``, ``"l1"``, ``"l2"``, ``"sum_square"``, ``"log_sum"``)
    are the exact sum of the numbers, absolute values or squares, rounded once to FLOAT32: the same bytes however the
    array is cut. ``"multiply"`` and ``"log_sum_exp"`` of floating-point numbers are computed in FLOAT64, chunk by
    chunk: the same bytes for the same chunks.
    """
    x = dask_array(input, "REDUCE: input")
    compiled = check(ops.reduce, spec(x), function, axes, dtype=dtype)
    kind = function.lower()
    if kind in ("argmax", "argmin"):
        return _positions(x, "REDUCE", kind, axes, False, dtype_of(compiled._native.outputs[0][0]), device)
    return _reshaped(x, axes, lambda y, along: _reduced(y, kind, along, device))


def argmax(input: da.Array, axes: Sequence[SupportsIndex], direction: str = "increasing", *,
           dtype: Optional[npt.DTypeLike] = None, device: str = "cpu") -> da.Array:
    """:func:`anydml.argmax`: its bytes, however the array is cut."""
    return _checked_positions(input, "argmax", axes, direction, dtype, device)


def argmin(input: da.Array, axes: Sequence[SupportsIndex], direction: str = "increasing", *,
           dtype: Optional[npt.DTypeLike] = None, device: str = "cpu") -> da.Array:
    """:func:`anydml.argmin`: its bytes, however the array is cut."""
    return _checked_positions(input, "argmin", axes, direction, dtype, device)


def _reshaped(x: da.Array, axes: Sequence[Any], function: Callable[[da.Array, Axes], da.Array]) -> da.Array:
    """An array without dimensions is computed as one element."""
    y = x if x.ndim else x.reshape(1)
    result = function(y, normalized(axes, y.ndim))
    return result if x.ndim else result.reshape(())


def _reduced(x: da.Array, kind: str, axes: Axes, device: str) -> da.Array:
    name = f"anydml-reduce-{tokenize(x.name, kind, axes, device)}"
    first: Callable[..., Any]
    merge: Callable[[list[Any]], Any]
    finish: Callable[..., Any]
    if x.dtype.kind in "iu" or kind in ("max", "min"):
        first = partial(_first, kind=kind, axes=axes, device=device)
        merge = partial(_merge, kind=_MERGED_BY[kind], axes=axes, device=device)
        finish = _only
    elif kind == "multiply":
        first = partial(_first_product, axes=axes)
        merge, finish = _merge_products, partial(_finish_product, dtype=x.dtype)
    elif kind == "log_sum_exp":
        first = partial(first_exponentials, axes=axes, device=device)
        merge, finish = merge_exponentials, partial(_finish_log_sum_exp, dtype=x.dtype, device=device)
    else:
        count = math.prod(x.shape[axis] for axis in axes)
        first = partial(_first_sum, kind=kind, axes=axes)
        merge, finish = _merge_sums, partial(_finish_sum, kind=kind, count=count, dtype=x.dtype, device=device)
    (result,) = merged(x, axes, name, first, merge, finish, 1, (x.dtype,))
    return result


# ---- By the library only ----

def _first(chunk: NDArray, _: Axes, *, kind: str, axes: Axes, device: str) -> NDArray:
    return on_host(ops.reduce(chunk, kind, axes, device=device))


def _merge(parts: list[NDArray], *, kind: str, axes: Axes, device: str) -> NDArray:
    return on_host(ops.reduce(np.concatenate(parts, axes[0]), kind, axes, device=device))


def _only(result: NDArray) -> tuple[NDArray]:
    return (result,)


# ---- Sums ----

def _rows(chunk: NDArray, axes: Axes) -> tuple[NDArray, tuple[int, ...]]:
    """A row of numbers for every result; the results' shape."""
    kept = [d for d in range(chunk.ndim) if d not in axes]
    shape = tuple(1 if d in axes else size for d, size in enumerate(chunk.shape))
    rows = chunk.transpose(*kept, *axes).reshape(math.prod(shape), -1)
    return rows, shape


def _first_sum(chunk: NDArray, _: Axes, *, kind: str, axes: Axes) -> tuple[ExactSum, tuple[int, ...]]:
    rows, shape = _rows(chunk, axes)
    rows = rows.astype(np.float32, copy=False)
    if kind == "l1":
        rows = np.abs(rows)
    elif kind in ("l2", "sum_square"):
        with np.errstate(over="ignore", under="ignore"):
            rows = rows * rows
    return exact_sum(rows), shape


def _merge_sums(parts: list[tuple[ExactSum, tuple[int, ...]]]) -> tuple[ExactSum, tuple[int, ...]]:
    return merge_sums([part for part, _ in parts]), parts[0][1]


def _finish_sum(state: tuple[ExactSum, tuple[int, ...]], *, kind: str, count: int, dtype: np.dtype[Any],
                device: str) -> tuple[NDArray]:
    total: Any = rounded(state[0]).reshape(state[1])
    if kind == "average":
        total = ops.element_wise_divide(total, np.full_like(total, count), device=device)
    elif kind == "l2":
        total = ops.element_wise_sqrt(total, device=device)
    elif kind == "log_sum":
        total = ops.element_wise_log(total, device=device)
    return (_rounded_to(on_host(total), dtype),)


def _rounded_to(numbers: NDArray, dtype: np.dtype[Any]) -> NDArray:
    with np.errstate(over="ignore", under="ignore"):
        result = numbers.astype(dtype)
    result[np.isnan(result)] = np.nan  # canonical
    return result


# ---- Products ----

Product = tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]  # mantissas, exponents


def _first_product(chunk: NDArray, _: Axes, *, axes: Axes) -> Product:
    rows, shape = _rows(chunk, axes)
    mantissas, exponents = _product(rows.astype(np.float64), np.zeros((1, 1), np.int64))
    return mantissas.reshape(shape), exponents.reshape(shape)


def _merge_products(parts: list[Product]) -> Product:
    mantissas, exponents = (np.stack([part[i].reshape(-1) for part in parts], axis=-1) for i in range(2))
    merged_mantissas, merged_exponents = _product(mantissas, exponents)
    shape = parts[0][0].shape
    return merged_mantissas.reshape(shape), merged_exponents.reshape(shape)


def _product(numbers: npt.NDArray[np.float64], exponents: npt.NDArray[np.int64]) -> Product:
    """The product of every row; exponents are kept separately, so that nothing overflows or underflows."""
    total = np.broadcast_to(exponents, (len(numbers), exponents.shape[1])).sum(axis=1)
    with np.errstate(invalid="ignore"):
        while True:
            numbers, more = np.frexp(numbers)
            total = total + more.sum(axis=1, dtype=np.int64)
            if numbers.shape[1] == 1:
                return numbers[:, 0], total
            numbers = np.multiply.reduceat(numbers, np.arange(0, numbers.shape[1], _PRODUCT_RUN), axis=1)


def _finish_product(state: Product, *, dtype: np.dtype[Any]) -> tuple[NDArray]:
    mantissas, exponents = state
    with np.errstate(over="ignore", under="ignore"):
        product = np.ldexp(mantissas, np.clip(exponents, -2000, 2000).astype(np.int32)).astype(np.float32)
    return (_rounded_to(product, dtype),)


# ---- Sums of exponentials ----

Exponentials = tuple[NDArray, npt.NDArray[np.float64]]  # the maximum as FLOAT32, the sum of e^(x - maximum)


def first_exponentials(chunk: NDArray, _: Axes, *, axes: Axes, device: str) -> Exponentials:
    x = chunk.astype(np.float32, copy=False)
    largest = on_host(ops.reduce(x, "max", axes, device=device))
    # If the maximum is infinite or NaN, the sum does not matter.
    below = np.subtract(x, np.where(np.isfinite(largest), largest, np.float32(0)))
    return largest, exponentials(below, device).sum(axis=axes, keepdims=True, dtype=np.float64)


def exponentials(x: NDArray, device: str) -> NDArray:
    """In the same memory where that can be."""
    return on_host(ops.element_wise_exp(x, out=x if device == "cpu" else None, device=device))


def merge_exponentials(parts: list[Exponentials]) -> Exponentials:
    maxima = np.stack([part[0] for part in parts])
    largest = maxima.max(axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        # A part without finite numbers is relative to 0, and so is the result if such a part determines it.
        scales = np.exp(np.where(np.isneginf(maxima), 0, maxima - largest).astype(np.float64))
        scales = np.where(np.isfinite(largest), scales, 1)
        sums = np.stack([part[1] for part in parts]) * scales
    return largest, sums.sum(axis=0)


def _finish_log_sum_exp(state: Exponentials, *, dtype: np.dtype[Any], device: str) -> tuple[NDArray]:
    largest, sums = state
    logarithms = on_host(ops.element_wise_log(sums.astype(np.float32), device=device))
    with np.errstate(invalid="ignore"):
        result = np.where(np.isfinite(largest), largest + logarithms, largest)
    return (_rounded_to(result, dtype),)


# ---- Positions of extremes ----

Extremes = tuple[NDArray, npt.NDArray[np.uint64]]  # values, positions among all elements along the axes


def _checked_positions(input: Any, kind: str, axes: Sequence[Any], direction: str, dtype: Optional[npt.DTypeLike],
                       device: str) -> da.Array:
    operator = ops.argmax if kind == "argmax" else ops.argmin
    x = dask_array(input, f"{kind.upper()}: input")
    compiled = check(operator, spec(x), axes, direction, dtype=dtype)
    return _positions(x, kind.upper(), kind, axes, direction.lower() == "decreasing",
                      dtype_of(compiled._native.outputs[0][0]), device)


def _positions(x: da.Array, operator: str, kind: str, axes: Sequence[Any], last: bool, dtype: np.dtype[Any],
               device: str) -> da.Array:
    return _reshaped(x, axes, lambda y, along: positions_of(y, operator, kind, along, last, dtype, device))


def positions_of(x: da.Array, operator: str, kind: str, axes: Axes, last: bool, dtype: np.dtype[Any],
                 device: str) -> da.Array:
    """Of the extremes: row-major among the elements along the axes."""
    count = math.prod(x.shape[axis] for axis in axes)
    if count - 1 > np.iinfo(dtype).max:
        raise ValueError(f"{operator}: dtype is {dtype} but the input has {count} elements along axes {list(axes)}; "
                         f"their positions need int64 or uint64")
    name = f"anydml-{kind}-{tokenize(x.name, axes, last, dtype, device)}"
    sizes = tuple(x.shape[axis] for axis in axes)
    (result,) = merged(x, axes, name,
                       partial(_first_extremes, kind=kind, axes=axes, sizes=sizes, last=last, device=device),
                       partial(_merge_extremes, kind=kind, last=last), partial(_finish_positions, dtype=dtype),
                       1, (dtype,))
    return result


def _first_extremes(chunk: NDArray, starts: Axes, *, kind: str, axes: Axes, sizes: tuple[int, ...], last: bool,
                    device: str) -> Extremes:
    operator = ops.argmax if kind == "argmax" else ops.argmin
    local = on_host(operator(chunk, axes, "decreasing" if last else "increasing", dtype=np.uint64, device=device))
    # From the position in the chunk to coordinates, and from these to the position in the whole array.
    coordinates = np.unravel_index(local.astype(np.intp), [chunk.shape[axis] for axis in axes]) if axes else ()
    where = list(np.indices(local.shape, sparse=True))
    positions = np.zeros(local.shape, np.uint64)
    for axis, size, coordinate in zip(axes, sizes, coordinates):
        where[axis] = coordinate
        positions = positions * np.uint64(size) + (coordinate + starts[axis]).astype(np.uint64)
    return chunk[tuple(where)], positions


def _merge_extremes(parts: list[Extremes], *, kind: str, last: bool) -> Extremes:
    values, positions = parts[0]
    for others, places in parts[1:]:
        better = others > values if kind == "argmax" else others < values
        equal = others == values
        if values.dtype.kind == "f":  # NaN counts as larger than all numbers
            better |= np.isnan(others) & ~np.isnan(values)
            better &= ~np.isnan(values)
            equal |= np.isnan(others) & np.isnan(values)
        taken = better | (equal & (places > positions if last else places < positions))
        values, positions = np.where(taken, others, values), np.where(taken, places, positions)
    return values, positions


def _finish_positions(state: Extremes, *, dtype: np.dtype[Any]) -> tuple[NDArray]:
    return (state[1].astype(dtype),)
