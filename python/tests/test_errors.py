"""Every failure raises an exception with a message, and the next call works."""

import numpy as np
import pytest

import anydml as dml

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def top(x=X, axis=-1, k=2, direction="decreasing", **more):
    return dml.top_k1(x, axis=axis, k=k, direction=direction, **more)


@pytest.fixture(autouse=True)
def _works_afterwards():
    yield
    assert top(axis=0, k=1)[0].tolist() == [[8, 9, 10, 11]]


CASES = [
    (dict(k=5), ValueError, r"TOP_K1: K is 5 but InputTensor.Sizes\[Axis=1\] is 4; K must be in \[1, 4\]"),
    (dict(k=0), ValueError, r"K must be in \[1, 4\]"),
    (dict(k=-1), ValueError, "'-1' is negative"),
    (dict(k=2**40), ValueError, "is out of range"),
    (dict(k=1.5), TypeError, "TOP_K1: k is 1.5 but must be an int"),
    (dict(k=None), ValueError, "TOP_K1: K is missing"),
    (dict(axis=2), ValueError, r"axis is 2 but the input has 2 dimensions; it must be in \[-2, 1\]"),
    (dict(axis=-3), ValueError, "axis is -3"),
    (dict(axis="x"), TypeError, "axis is 'x' but must be an int"),
    (dict(direction="sideways"), ValueError, "AxisDirection"),
    (dict(direction=1), TypeError, "direction is 1 but must be a str"),
    (dict(x=X.astype(np.float64)), ValueError, r"DataType is FLOAT64, allowed at .*x.astype\('float32'\)"),
    (dict(x=X > 3), TypeError, r"TOP_K1: input has dtype bool.*x.view\(numpy.uint8\)"),
    (dict(x=X.astype(object)), TypeError, "dtype object"),
    (dict(x=X.astype(np.complex64)), TypeError, "dtype complex64"),
    (dict(x=np.array(["a"])), TypeError, "dtype <U1"),
    (dict(x=np.zeros((1,) * 9, np.float32)), ValueError, "at most 8 dimensions, not 9"),
    (dict(x=np.zeros((0, 4), np.float32)), ValueError, r"Sizes\[0\] is 0; sizes must be at least 1"),
    (dict(x=np.zeros((4, 0), np.float32)), ValueError, r"is 0"),
    (dict(index_dtype=np.int8), ValueError, "OutputIndexTensor.DataType is INT8, allowed"),
    (dict(index_dtype="nonsense"), TypeError, "nonsense"),
    (dict(device="tpu:0"), RuntimeError, "there is no adapter 'tpu:0'; there is"),
    (dict(out=X), ValueError, "out must be a sequence of 2"),
    (dict(out=[np.zeros((3, 3), np.float32), None]), ValueError, r"\{3,3\} but must be \{3,2\}: the sizes of InputTensor"),
    (dict(out=[np.zeros((3, 2), np.int32), None]), ValueError, "DataType is INT32 but .* is FLOAT32"),
    (dict(out=[np.zeros((2, 3), np.float32)[::-1], None]), ValueError, r"\{2,3\} but must be \{3,2\}"),
    (dict(out=[np.broadcast_to(np.float32(0), (3, 2)), None]), ValueError, "out is read-only"),
]


@pytest.mark.parametrize("change, kind, sentence", CASES)
def test_top_k1(change, kind, sentence):
    with pytest.raises(kind, match=sentence):
        top(**change)


def test_output_that_overlaps_itself():
    place = np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (3, 2), (0, 4))
    with pytest.raises(ValueError, match="no two elements of an output may share memory"):
        top(out=[place, None])


def test_index_out_of_range_names_the_first_tuple():
    x = np.zeros((4, 4), np.float32)
    indices = np.array([[0, 0], [1, 9], [7, 7]], np.int32)
    with pytest.raises(IndexError, match=r"SCATTER_ND: the tuple IndicesTensor\[1,:\] is \{1,9\} but "
                                         r"InputTensor.Sizes\[1\] is 4; its component 1 must be in \[-4, 3\]"):
        dml.scatter_nd(x, indices, np.ones(3, np.float32))
    with pytest.raises(IndexError, match=r"SCATTER_ELEMENTS: IndicesTensor\[0,1\] is 4"):
        dml.scatter_elements(x[:1], np.array([[3, 4]], np.uint32), np.ones((1, 2), np.float32), axis=1)


def test_a_failure_is_not_the_next_call_s():
    with pytest.raises(ValueError):
        top(k=9)
    dml.scatter_nd(X, np.array([[0, 0]], np.int32), np.ones(1, np.float32))


def test_shapes_that_do_not_fit():
    with pytest.raises(ValueError, match="UpdatesTensor.Sizes is"):
        dml.scatter_nd(X, np.array([[0, 0]], np.int32), np.ones(2, np.float32))
    with pytest.raises(ValueError, match="dimensions"):
        dml.scatter_elements(X, np.array([0], np.int32), np.ones(1, np.float32), axis=0)


def test_no_gpu_says_why():
    if any(name.startswith("cuda") for name, _ in dml.adapters()):
        pytest.skip("there is a GPU")
    with pytest.raises(RuntimeError, match="there is no adapter 'cuda:0'; .*no GPU: "):
        dml.Device("cuda:0")


def test_unknown_arguments():
    with pytest.raises(TypeError):
        top(speed=11)
