"""The operators against NumPy, over types, shapes, axes and layouts."""

import numpy as np
import pytest
from layouts import INDICES, INTEGERS, LAYOUTS, TYPES
from reference import same_bits, scatter_elements, scatter_nd, top_k
from strategies import arrays, hnp, laid_out, shapes, st

from hypothesis import given

import anydml as dml

DIRECTIONS = st.sampled_from(["increasing", "decreasing"])


@given(x=laid_out(arrays()), data=st.data(), direction=DIRECTIONS)
def test_top_k1(x, data, direction):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1), label="axis")
    k = data.draw(st.integers(1, x.shape[axis]), label="k")
    values, indices = dml.top_k1(x, axis=axis, k=k, direction=direction)
    expected_values, expected_indices = top_k(x.astype(x.dtype.newbyteorder("=")), axis, k, direction)
    assert same_bits(values, expected_values)
    assert same_bits(indices, expected_indices)


def test_top_k_is_top_k1_decreasing_with_any_index_type():
    x = np.array([[1, 5, 5, 2]], np.int16)
    values, indices = dml.top_k(x, 1, 3, index_dtype=np.uint64)
    assert values.tolist() == [[5, 5, 2]]
    assert indices.tolist() == [[1, 2, 3]] and indices.dtype == np.uint64


def test_broadcast_input_is_not_expanded():
    x = np.broadcast_to(np.array([2, 1, 3], np.float32), (4, 1000, 3))
    values, _ = dml.top_k1(x, axis=-1, k=2, direction="increasing")
    assert (values == [1, 2]).all() and values.shape == (4, 1000, 2)


@st.composite
def scatter_nd_cases(draw):
    x = draw(arrays(TYPES + [np.dtype("float64")], shapes(4)))
    count = draw(st.integers(1, x.ndim))
    positions = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=4))
    index_type = draw(st.sampled_from(INDICES))
    lowest = -1 if index_type.kind == "i" else 0
    columns = [draw(hnp.arrays(index_type, positions, elements=st.integers(lowest * x.shape[d], x.shape[d] - 1)))
               for d in range(count)]
    updates = draw(hnp.arrays(x.dtype, positions + x.shape[count:]))
    return x, np.stack(columns, axis=-1).astype(index_type), updates


@given(case=scatter_nd_cases(), names=st.tuples(*[st.sampled_from(list(LAYOUTS))] * 3))
def test_scatter_nd(case, names):
    expected = scatter_nd(*case)
    assert same_bits(dml.scatter_nd(*(LAYOUTS[name](part) for name, part in zip(names, case))), expected)


@st.composite
def scatter_elements_cases(draw):
    x = draw(arrays(TYPES + [np.dtype("float64")], shapes(4)))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    shape = list(x.shape)
    shape[axis] = draw(st.integers(1, 6))
    index_type = draw(st.sampled_from(INDICES))
    lowest = -x.shape[axis] if index_type.kind == "i" else 0
    indices = draw(hnp.arrays(index_type, tuple(shape), elements=st.integers(lowest, x.shape[axis] - 1)))
    return x, indices, draw(hnp.arrays(x.dtype, tuple(shape))), axis


@given(case=scatter_elements_cases(), names=st.tuples(*[st.sampled_from(list(LAYOUTS))] * 3))
def test_scatter_elements(case, names):
    *tensors, axis = case
    given_tensors = [LAYOUTS[name](part) for name, part in zip(names, tensors)]
    assert same_bits(dml.scatter_elements(*given_tensors, axis=axis), scatter_elements(*case))


def test_scatter_is_scatter_elements():
    assert dml.scatter is dml.scatter_elements


@given(x=laid_out(arrays(INTEGERS)))
def test_identity(x):
    assert (dml.element_wise_identity(x) == x).all()


@pytest.mark.parametrize("value", [np.float32(3), np.array(3, np.float32)])
def test_no_dimensions(value):
    result = dml.element_wise_identity(value, scale_bias=(2, 1))
    assert result.shape == () and result == 7


def test_large_arrays_use_all_threads_and_stay_right():
    x = np.random.default_rng(1).standard_normal((64, 20000)).astype(np.float32)
    values, indices = dml.top_k1(x, axis=1, k=10, direction="decreasing")
    expected_values, expected_indices = top_k(x, 1, 10, "decreasing")
    assert same_bits(values, expected_values) and same_bits(indices, expected_indices)
