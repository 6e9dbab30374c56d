"""Sums of FLOAT32 numbers that are rounded once, at the end.

Their bytes depend neither on the order of the numbers nor on how they are cut into parts. A sum is held in digits of
36 bits, as many as its numbers touch: a NumPy array per digit, an element per sum.
"""

from __future__ import annotations

from typing import NamedTuple, Optional

import numpy as np
import numpy.typing as npt

from .. import _anydml

Floats = npt.NDArray[np.float32]
_BITS, _LOWEST = 36, -149  # digit j counts multiples of 2**(36 * j - 149), and all FLOAT32 are multiples of 2**-149
_DIGITS = 11  # of the largest number 2**64 times, and its carry
_COLUMNS = 1 << 40  # that digits take before they overflow


class ExactSum(NamedTuple):
    """Digits are at most 2**35 in magnitude."""

    lowest: int  # which digit the first one is
    digits: npt.NDArray[np.int64]  # digits, sums
    special: Optional[Floats]  # of the infinities and NaNs, where there are any


def exact_sum(numbers: Floats) -> ExactSum:
    """Of every row."""
    numbers = np.ascontiguousarray(numbers)
    rows, columns = numbers.shape
    assert columns < _COLUMNS
    digits = np.zeros((rows, _DIGITS), np.int64)
    special = np.zeros(rows, np.float32)
    _anydml.add_exactly(numbers.ctypes.data, rows, columns, digits.ctypes.data, _DIGITS, special.ctypes.data)
    digits = np.ascontiguousarray(digits.T)
    _carry(digits)
    return _trimmed(0, digits, special if special.any() else None)


def merge_sums(sums: list[ExactSum]) -> ExactSum:
    lowest = min(each.lowest for each in sums)
    end = max(each.lowest + len(each.digits) for each in sums)
    digits = np.zeros((min(end + 1, _DIGITS) - lowest, sums[0].digits.shape[1]), np.int64)
    special: Optional[Floats] = None
    for each in sums:
        digits[each.lowest - lowest:each.lowest - lowest + len(each.digits)] += each.digits
        if each.special is not None:
            with np.errstate(invalid="ignore"):
                special = each.special if special is None else special + each.special
    _carry(digits)
    return _trimmed(lowest, digits, special)


def rounded(state: ExactSum) -> Floats:
    """To the nearest FLOAT32, ties to even; 0 is positive, NaN is 0x7FC00000."""
    total = np.zeros(state.digits.shape[1], np.float64)
    error = np.zeros_like(total)  # its sign is that of what `total` lacks
    for number in range(len(state.digits) - 1, -1, -1):
        part = np.ldexp(state.digits[number].astype(np.float64), _BITS * (state.lowest + number) + _LOWEST)
        # Lower digits are less than the unit of this one, of which an error is a multiple.
        part[error != 0] = 0
        summed = total + part
        error = np.where(error != 0, error, (total - summed) + part)
        total = summed
    # FLOAT64 numbers that lack something get an odd last bit, so that no second rounding takes them for a tie.
    even = (total.view(np.int64) & 1) == 0
    total = np.where((error != 0) & even, np.nextafter(total, np.copysign(np.inf, error)), total)
    with np.errstate(over="ignore"):
        result = total.astype(np.float32)
    result[result == 0] = 0
    if state.special is not None:
        result = np.where(state.special == 0, result, state.special)
        result[np.isnan(result)] = np.float32(np.nan)
    return result


def _carry(digits: npt.NDArray[np.int64]) -> None:
    for number in range(len(digits) - 1):
        carried = (digits[number] + (1 << _BITS - 1)) >> _BITS
        digits[number] -= carried << _BITS
        digits[number + 1] += carried


def _trimmed(lowest: int, digits: npt.NDArray[np.int64], special: Optional[Floats]) -> ExactSum:
    used = np.flatnonzero(digits.any(axis=1))
    first, end = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 1)
    return ExactSum(lowest + first, digits[first:end].copy(), special)
