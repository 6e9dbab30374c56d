"""Tensors on a GPU: the machine's, or a simulated one if there is none."""

import threading

import numpy as np
import pytest
from gpus import NAME, OnGpu, aligned, moved, pretended
from layouts import LAYOUTS, TYPES
from reference import same_bits, top_k

import anydml as dml

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.fixture(params=["pretended", "real"])
def gpu(request, monkeypatch, forget_functions):
    if request.param == "real":
        if NAME not in dict(dml.adapters()):
            pytest.skip("there is no GPU")
        return dml.Device(NAME)
    device = pretended()
    monkeypatch.setitem(dml.Device._devices, NAME, device)
    return device


@pytest.fixture
def pretended_gpu(monkeypatch, forget_functions):
    monkeypatch.setitem(dml.Device._devices, NAME, pretended())


@pytest.mark.parametrize("name", LAYOUTS)
def test_numpy_arrays_are_uploaded(gpu, name):
    generator = np.random.default_rng(1)
    for dtype in TYPES:
        x = LAYOUTS[name](generator.integers(-9, 9, (3, 1, 5)).astype(dtype))
        for axis, k, direction in ((-1, 3, "increasing"), (0, 2, "decreasing"), (1, 1, "decreasing")):
            values, indices = dml.top_k1(x, axis=axis, k=k, direction=direction, device=gpu)
            assert isinstance(values, dml.Tensor) and values.device == NAME
            expected = top_k(x.astype(dtype), axis, k, direction)
            assert same_bits(values.numpy(), expected[0]) and same_bits(np.asarray(indices), expected[1])


def test_tensor(gpu):
    tensor = dml.element_wise_identity(X, device=NAME)
    assert (tensor.shape, tensor.dtype, tensor.ndim, tensor.size, tensor.nbytes) == ((2, 3, 4), X.dtype, 3, 24, 96)
    assert repr(tensor) == "Tensor((2, 3, 4), dtype=float32, device='cuda:0')"
    assert tensor.__dlpack_device__() == (2, 0)
    assert np.asarray(tensor, np.int16).tolist() == X.tolist()
    again = dml.element_wise_identity(tensor)  # stays in place
    assert isinstance(again, dml.Tensor) and (again.numpy() == X).all()
    with pytest.raises(ValueError, match="input is on cuda:0 but the operator runs on cpu"):
        dml.element_wise_identity(tensor, device="cpu")
    with pytest.raises(BufferError):
        tensor.__dlpack__(copy=True)
    with pytest.raises(BufferError):
        tensor.__dlpack__(dl_device=(1, 0))


def test_no_dimensions_and_nothing(gpu):
    assert dml.element_wise_identity(np.float32(3), device=gpu).numpy().tolist() == [3]
    with pytest.raises(ValueError, match=r"Sizes\[0\] is 0"):
        dml.element_wise_identity(np.zeros((0, 2), np.float32), device=gpu)


def test_index_out_of_range(gpu):
    with pytest.raises(IndexError, match=r"the tuple IndicesTensor\[1,:\] is \{9\}"):
        dml.scatter_nd(np.zeros(4, np.float32), np.array([[0], [9]], np.int32), np.ones(2, np.float32), device=gpu)


def test_out_is_a_tensor(gpu):
    place = dml.element_wise_identity(np.zeros((2, 3, 1), np.float32), device=gpu)
    values, _ = dml.top_k1(X, axis=2, k=1, direction="decreasing", out=[place, None], device=gpu)
    assert values is place and (place.numpy() == X[:, :, 3:]).all()
    with pytest.raises(ValueError, match="out is on the host but the operator runs on cuda:0"):
        dml.element_wise_identity(X, out=np.zeros_like(X), device=gpu)


def test_in_place(gpu):
    x = dml.element_wise_identity(np.zeros(4, np.float32), device=gpu)
    dml.scatter_nd(x, np.array([[2]]), np.ones(1, np.float32), out=x)
    assert x.numpy().tolist() == [0, 0, 1, 0]
    with pytest.raises(ValueError, match="share no memory with other tensors"):
        dml.top_k1(x, axis=0, k=4, direction="increasing", out=[x, None])


def test_compiled_operator(gpu):
    top = gpu.compile(dml.top_k1, X, axis=2, k=2, direction="decreasing")
    assert (top(X)[0].numpy() == X[:, :, :1:-1]).all()
    with pytest.raises(ValueError, match="on a GPU they must be the same"):
        top(np.asfortranarray(X))


def test_threads(gpu):
    top, failures = gpu.compile(dml.top_k1, X, axis=2, k=2, direction="decreasing"), []

    def work(seed):
        for _ in range(30):
            x = np.random.default_rng(seed).standard_normal(X.shape).astype(np.float32)
            if not same_bits(top(x)[0].numpy(), top_k(x, 2, 2, "decreasing")[0]):
                failures.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# ---- Other libraries' tensors, on the simulated GPU; test_cuda.py has PyTorch's on a real GPU ----


def test_tensors_of_others_are_read_where_they_are(pretended_gpu, monkeypatch):
    monkeypatch.setattr(dml.Device._devices[NAME]._native, "upload", None, raising=False)
    monkeypatch.setattr(dml.Device._devices[NAME]._native, "duplicate", None, raising=False)
    for array in (aligned(X), aligned(X).transpose(2, 0, 1), aligned(X)[:, ::2]):
        x = OnGpu(array)
        assert (dml.element_wise_identity(x).numpy() == array).all()
        assert set(x.streams) == {1, -1}  # the default stream waits for the producer; -1 only inspects


def test_tensors_at_odd_addresses_are_copied(pretended_gpu):
    for offset in (4, 8, 12):
        x = OnGpu(aligned(X, offset))
        assert (dml.element_wise_identity(x).numpy() == X).all()


def test_results_go_to_tensors_of_others(pretended_gpu):
    place = OnGpu(aligned(np.zeros((2, 3, 8), np.float32))[:, :, ::2])
    assert dml.element_wise_identity(OnGpu(aligned(X)), out=place) is place
    assert (place.array == X).all()
    with pytest.raises(ValueError, match="must begin at a multiple of 16 bytes"):
        dml.element_wise_identity(X, out=OnGpu(aligned(X, 4)), device=NAME)
    with pytest.raises(ValueError, match="strides .* on a GPU they must be in"):
        dml.element_wise_identity(OnGpu(X[::-1]))


def test_other_gpus(pretended_gpu):
    with pytest.raises(ValueError, match="updates is on cuda:3 but the operator runs on cuda:0"):
        dml.scatter_nd(OnGpu(aligned(X)), np.array([[0]]), OnGpu(X[:1], number=3))


def test_tensors_are_exported_where_they_are(pretended_gpu):
    class OnHost:  # the actual address of a simulated GPU's memory
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self):
            return moved(self.tensor.__dlpack__(), (1, 0))

        def __dlpack_device__(self):
            return 1, 0

    tensor = dml.element_wise_identity(X, device=NAME)
    imported = dml._anydml.import_tensor(tensor.__dlpack__(stream=5, max_version=(1, 0)), "tensor")
    assert imported.address == tensor._memory.address
    assert (imported.device, imported.shape, imported.strides, imported.type) == ((2, 0), (2, 3, 4), (12, 4, 1), "<f4")
    del tensor
    assert (dml._arrays.host_array(OnHost(dml.element_wise_identity(X, device=NAME)), "x") == X).all()
    tensor = dml.element_wise_identity(X, device=NAME)
    tensor.__dlpack__()  # a capsule without a consumer
