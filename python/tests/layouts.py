"""Types, and the same values in every layout that an array can have."""

import numpy as np

INTEGERS = [np.dtype(name) for name in "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()]
FLOATS = [np.dtype("float16"), np.dtype("float32")]
INDICES = [np.dtype(name) for name in "int32 int64 uint32 uint64".split()]
TYPES = INTEGERS + FLOATS


def _unaligned(x):
    room = np.empty(x.nbytes + 1, np.uint8)
    view = room[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    return view


def _stepped(x, step):
    """Every second element of a longer array along each axis, forwards or backwards."""
    long = np.zeros([size * 2 for size in x.shape], x.dtype)
    view = long[(..., *(slice(None, None, step) for _ in x.shape))]
    view[...] = x
    return view


def _offset(x):
    room = np.empty(x.size + 3, x.dtype)
    view = room[3:].reshape(x.shape)
    view[...] = x
    return view


LAYOUTS = {
    "packed": np.ascontiguousarray,
    "fortran": np.asfortranarray,
    "stepped": lambda x: _stepped(x, 2),
    "backwards": lambda x: _stepped(x, -2),
    "offset": _offset,
    "unaligned": _unaligned,
    "swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
}
# Layouts that the library reads in place.
DIRECT = ["packed", "fortran", "stepped", "offset", "read-only"]
