"""PyTorch's tensors on a GPU, without copies and in the right order. Skipped where there is none."""

import gc

import numpy as np
import pytest
from gpus import NAME as GPU

import anydml as dml

pytestmark = pytest.mark.skipif(GPU not in dict(dml.adapters()), reason="there is no GPU")
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.fixture
def torch():
    module = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not module.cuda.is_available():
        pytest.skip("PyTorch has no CUDA")
    return module


def test_torch_in_and_out_without_a_copy(torch):
    x = torch.randn(64, 1000, device="cuda")
    values, indices = dml.top_k1(x, axis=1, k=10, direction="decreasing")
    taken = torch.from_dlpack(values)
    assert taken.data_ptr() == values._memory.address and taken.is_cuda
    assert (taken == torch.topk(x, 10, dim=1).values).all()
    place = torch.empty(64, 10, device="cuda")
    assert dml.top_k1(x, axis=1, k=10, direction="decreasing", out=[place, None])[0] is place
    assert (place == taken).all()


def test_exported_memory_outlives_the_tensor(torch):
    taken = torch.from_dlpack(dml.element_wise_identity(X, device=GPU))
    gc.collect()
    for _ in range(50):
        dml.element_wise_identity(X + 1, device=GPU)
    assert (taken.cpu().numpy() == X).all()


def test_torch_views(torch):
    x = torch.arange(4 * 9 * 5, dtype=torch.float32, device="cuda").reshape(4, 9, 5)
    # Transposed, stepped, broadcast; and beginning at odd elements, which is copied.
    for view in (x.permute(2, 0, 1), x[:, ::2], x[:1].expand(3, 9, 5), x[1:, 1:], x.flatten()[1:]):
        result = torch.from_dlpack(dml.element_wise_identity(view))
        assert (result == view).all()


@pytest.mark.parametrize("side_stream", [False, True])
def test_after_what_the_producer_has_queued(torch, side_stream):
    """A long kernel writes what the operator reads; without an order between the streams it reads zeros."""
    stream = torch.cuda.Stream() if side_stream else torch.cuda.current_stream()
    with torch.cuda.stream(stream):
        x = torch.zeros(1 << 20, device="cuda")
        for _ in range(20):
            stream.synchronize()
            x.zero_()
            torch.cuda._sleep(20_000_000)
            x.fill_(7)
            result = torch.from_dlpack(dml.element_wise_identity(x))
            assert bool((result == 7).all())


def test_in_place(torch):
    x = torch.zeros(8, device="cuda")
    dml.scatter_nd(x, torch.tensor([[2]], device="cuda"), torch.ones(1, device="cuda"), out=x)
    assert x.tolist() == [0, 0, 1, 0, 0, 0, 0, 0]
    with pytest.raises(ValueError, match="share no memory"):
        dml.top_k1(x, axis=0, k=8, direction="increasing", out=[x, None])


def test_cupy():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    x = cupy.arange(24, dtype=cupy.float32).reshape(2, 3, 4)
    for view in (x, x.transpose(2, 0, 1), x[:, 1:], x[:, :, 1:]):
        result = cupy.from_dlpack(dml.element_wise_identity(view))
        assert bool((result == view).all())
    with pytest.raises(ValueError, match="on a GPU they must be in"):
        dml.element_wise_identity(x[::-1])
