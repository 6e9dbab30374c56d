"""Arrays of every type and layout, for hypothesis."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

INTEGERS = [np.dtype(name) for name in "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()]
FLOATS = [np.dtype("float16"), np.dtype("float32")]
INDICES = [np.dtype(name) for name in "int32 int64 uint32 uint64".split()]
TYPES = INTEGERS + FLOATS


def shapes(most=8, side=5):
    return hnp.array_shapes(min_dims=1, max_dims=most, min_side=1, max_side=side).filter(
        lambda shape: np.prod(shape) <= 3000)


def arrays(dtypes=TYPES, shape=None):
    return st.sampled_from(dtypes).flatmap(lambda dtype: hnp.arrays(dtype, shapes() if shape is None else shape))


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
# Those that the library reads where they are.
DIRECT = ["packed", "fortran", "stepped", "offset", "read-only"]


@st.composite
def laid_out(draw, values, names=tuple(LAYOUTS)):
    return LAYOUTS[draw(st.sampled_from(names))](draw(values))
