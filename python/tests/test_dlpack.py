"""Arrays of other libraries, without a copy."""

import gc
import weakref

import numpy as np
import pytest

import anydml as dml
from anydml._arrays import host_array, host_input


class Exporter:
    """An object of another library that has only DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_any_exporter_is_read_where_it_is():
    for x in (X, X.T, X[1:, ::2]):
        assert host_input(Exporter(x), "x").address == x.ctypes.data
        assert (host_array(Exporter(x), "x") == x).all()
    values, _ = dml.top_k1(Exporter(X), axis=-1, k=1, direction="decreasing")
    assert values.tolist() == [[3], [7], [11]]


def test_any_exporter_is_written_where_it_is():
    place = Exporter(np.zeros((3, 4), np.float32))
    assert dml.element_wise_identity(X, out=place) is place
    assert (place.array == X).all()


def test_what_was_imported_is_given_back():
    x = X.copy()
    gone = weakref.ref(x)
    exporter = Exporter(x)
    dml.element_wise_identity(exporter)
    del x, exporter
    gc.collect()
    assert gone() is None


def test_capsules_are_used_once():
    class Twice(Exporter):
        capsule = None

        def __dlpack__(self, stream=None):
            self.capsule = self.capsule or super().__dlpack__()
            return self.capsule

    twice = Twice(X)
    dml.element_wise_identity(twice)
    with pytest.raises(ValueError, match="unused 'dltensor' capsule"):
        dml.element_wise_identity(twice)


def test_types_that_directml_has_not():
    with pytest.raises(TypeError, match="data type that DirectML does not have"):
        dml.element_wise_identity(Exporter(np.ones(2, np.complex64)))


def test_other_devices():
    class Elsewhere(Exporter):
        def __dlpack_device__(self):
            return 4, 0

    with pytest.raises(ValueError, match="input is on a device of DLPack's type 4 but the operator runs on cpu"):
        dml.element_wise_identity(Elsewhere(X))


def test_results_go_on_through_dlpack():
    assert (np.from_dlpack(dml.element_wise_identity(X)) == X).all()


def test_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    x = torch.randn(5, 7)
    values, indices = dml.top_k1(x, axis=1, k=3, direction="decreasing")
    expected = torch.topk(x, 3, dim=1)
    assert (torch.from_numpy(values) == expected.values).all()
    assert (torch.from_numpy(indices.astype(np.int64)) == expected.indices).all()
    assert host_input(x.t(), "x").address == x.data_ptr()

    place = torch.zeros(5, 7)
    dml.element_wise_identity(x, out=place)
    assert (place == x).all()
    index = torch.tensor([[1], [3]])
    expected = x.clone()
    expected[index[:, 0]] = 0
    assert (torch.from_numpy(dml.scatter_nd(x, index, torch.zeros(2, 7))) == expected).all()
    with pytest.raises(TypeError, match="data type that DirectML does not have"):
        dml.element_wise_identity(x.to(torch.bfloat16))
    with pytest.raises(ValueError, match=r"is 0"):
        dml.element_wise_identity(torch.zeros(0, 3))
