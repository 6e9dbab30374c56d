"""Arrays of every type, shape and layout, for hypothesis."""

import numpy as np
import pytest
from layouts import LAYOUTS, TYPES

pytest.importorskip("hypothesis", reason="hypothesis is not installed")

from hypothesis import strategies as st  # noqa: E402
from hypothesis.extra import numpy as hnp  # noqa: E402


def shapes(most=8, side=5):
    return hnp.array_shapes(min_dims=1, max_dims=most, min_side=1, max_side=side).filter(
        lambda shape: np.prod(shape) <= 3000)


def arrays(dtypes=TYPES, shape=None):
    return st.sampled_from(dtypes).flatmap(lambda dtype: hnp.arrays(dtype, shapes() if shape is None else shape))


@st.composite
def laid_out(draw, values, names=tuple(LAYOUTS)):
    return LAYOUTS[draw(st.sampled_from(names))](draw(values))
