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
_DIGITS = 11  # of the largest number 2**64 times, plus its carry
_COLUMNS = 1 << 40  # numbers that digits can take before they overflow
_ROWS = 1 << 12  # whose digits fit in the cache


class ExactSum(NamedTuple):
    """Digits are at most 2**35 in magnitude."""

    lowest: int  # the index of the first digit
    digits: npt.NDArray[np.int64]  # digits, sums
    special: Optional[Floats]  # of the infinities and NaNs, if there are any


def exact_sum(numbers: Floats) -> ExactSum:
    """Of every row."""
    blocks = [_of_some(np.ascontiguousarray(numbers[at:at + _ROWS])) for at in range(0, len(numbers), _ROWS)]
    if len(blocks) == 1:
        return blocks[0]
    lowest = min(block.lowest for block in blocks)
    end = max(block.lowest + len(block.digits) for block in blocks)
    digits = np.zeros((end - lowest, len(numbers)), np.int64)
    special = np.zeros(len(numbers), np.float32)
    for number, block in enumerate(blocks):
        some = slice(number * _ROWS, (number + 1) * _ROWS)
        digits[block.lowest - lowest:block.lowest - lowest + len(block.digits), some] = block.digits
        if block.special is not None:
            special[some] = block.special
    return ExactSum(lowest, digits, special if special.any() else None)


def _of_some(numbers: Floats) -> ExactSum:
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
    error = np.zeros_like(total)  # its sign is that of the error of `total`
    for number in range(len(state.digits) - 1, -1, -1):
        part = np.ldexp(state.digits[number].astype(np.float64), _BITS * (state.lowest + number) + _LOWEST)
        # Lower digits are less than this one's unit, and the error is a multiple of that unit.
        part[error != 0] = 0
        summed = total + part
        error = np.where(error != 0, error, (total - summed) + part)
        total = summed
    # FLOAT64 numbers with an error get an odd last bit, so that the second rounding does not see a tie.
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
