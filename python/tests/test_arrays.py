"""Which arrays are used in place, which are copied, and where results are written."""

import ctypes
import mmap

import numpy as np
import pytest
from layouts import DIRECT, LAYOUTS
from reference import same_bits, top_k
from strategies import arrays, st

from hypothesis import given

import anydml as dml
from anydml._arrays import host_input

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("name", LAYOUTS)
def test_no_copy_where_the_library_can_read_it(name):
    x = LAYOUTS[name](X)
    assert (host_input(x, "x").address == x.ctypes.data) == (name in DIRECT)


def test_broadcast_and_strides_of_single_elements_are_no_copy():
    for x in (np.broadcast_to(X, (5, 2, 3, 4)), X[:, 1:2][:, ::-1], np.lib.stride_tricks.as_strided(X, (1,), (-3,))):
        assert host_input(x, "x").address == x.ctypes.data


def guarded(x, before):
    """A copy of x that begins or ends at the edge of accessible memory."""
    page = mmap.PAGESIZE
    pages = -(-x.nbytes // page) + 2
    memory = mmap.mmap(-1, pages * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for guard in (start, start + (pages - 1) * page):
        assert protect(guard, page, 0) == 0
    offset = page if before else (pages - 1) * page - x.nbytes
    result = np.frombuffer(memory, x.dtype, x.size, offset).reshape(x.shape)
    result[...] = x
    return result


@given(x=arrays(), before=st.booleans())
def test_no_byte_beside_an_array_is_touched(x, before):
    values, indices = top_k(x, -1, 1, "increasing")
    place = guarded(np.zeros_like(values), before)
    result = dml.top_k1(guarded(x, before), axis=-1, k=1, direction="increasing",
                        out=(place, guarded(np.zeros_like(indices), before)))
    assert result[0] is place
    assert same_bits(result[0], values) and same_bits(result[1], indices)


@pytest.mark.parametrize("name", [name for name in LAYOUTS if name != "read-only"])
def test_out_of_any_layout(name):
    place = LAYOUTS[name](np.zeros((2, 3, 1), np.float32))
    values, indices = dml.top_k1(X, axis=-1, k=1, direction="decreasing", out=[place, None])
    assert values is place
    assert (place == X[:, :, 3:]).all() and (indices == 3).all()


def test_out_leaves_gaps_alone():
    room = np.full((2, 8), -1, np.float32)
    dml.element_wise_identity(np.ones((2, 4), np.float32), out=room[:, ::2])
    assert (room[:, ::2] == 1).all() and (room[:, 1::2] == -1).all()


def test_outputs_that_interleave_or_touch():
    room = np.zeros((2, 2), np.uint32)
    x = np.array([[7, 9], [8, 5]], np.uint32)
    dml.top_k1(x, axis=1, k=1, direction="decreasing", out=(room[:, :1], room[:, 1:]))
    assert room.tolist() == [[9, 1], [8, 0]]


def test_in_place():
    x = np.arange(8, dtype=np.float32)
    result = dml.scatter_nd(x, np.array([[2], [5]], np.int64), np.array([20, 50], np.float32), out=x)
    assert result is x and x.tolist() == [0, 1, 20, 3, 4, 50, 6, 7]


def test_output_that_overlaps_an_input():
    x = np.arange(9, dtype=np.float32)
    dml.element_wise_identity(x[:-1], out=x[1:])
    assert x.tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7]
    small = np.arange(8, dtype=np.int8)  # neighbours within four bytes
    dml.element_wise_identity(small[:3], out=small[3:6])
    assert small.tolist() == [0, 1, 2, 0, 1, 2, 6, 7]


def test_lists_and_numbers_become_arrays():
    assert dml.top_k1([3, 1, 2], axis=0, k=1, direction="decreasing")[0].tolist() == [3]


def test_inputs_are_not_written():
    x = np.arange(8, dtype=np.float32)
    dml.scatter_nd(x, np.array([[0]], np.int32), np.array([9], np.float32))
    assert x[0] == 0
