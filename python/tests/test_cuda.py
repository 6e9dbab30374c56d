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


# ---- Streams of PyTorch's ----


def test_results_stay_in_a_stream(torch):
    """The call returns while the producer still works; whoever takes the result waits on the device."""
    producer, consumer = torch.cuda.Stream(), torch.cuda.Stream()
    x = torch.zeros(1 << 20, device="cuda")
    copy = dml.Device(GPU).compile(dml.element_wise_identity, x)
    for use in (copy, dml.element_wise_identity):
        use(x, stream=producer)
        torch.cuda.synchronize()
        with torch.cuda.stream(producer):
            x.zero_()
            torch.cuda._sleep(400_000_000)
            x.fill_(7)
            result = use(x, stream=producer)
            assert not producer.query(), "the host has waited"
        with torch.cuda.stream(consumer):
            assert bool((torch.from_dlpack(result) == 7).all())
    with torch.cuda.stream(producer):
        torch.cuda._sleep(20_000_000)
        x.fill_(8)
        assert (copy(x, stream=producer).numpy() == 8).all()


def test_results_in_a_stream_feed_others(torch):
    stream, x = torch.cuda.Stream(), torch.zeros(1 << 16, device="cuda")
    other = torch.cuda.Stream()
    add = dml.Device(GPU).compile(dml.element_wise_add, x, x)
    torch.cuda.synchronize()
    for number in range(1, 30):  # memory is used again all the time, in two streams and the default one
        with torch.cuda.stream(stream):
            torch.cuda._sleep(1_000_000)
            x.fill_(number)
            twice = add(x, x, stream=stream)
            four_times = add(twice, twice, stream=other)
            eight_times = add(four_times, four_times, stream=stream)
            assert (torch.from_dlpack(eight_times) == 8 * number).all()
        assert (add(twice, four_times).numpy() == 6 * number).all()


def test_memory_that_a_consumer_holds_is_left_alone(torch):
    x = torch.zeros(1 << 16, device="cuda")
    copy = dml.Device(GPU).compile(dml.element_wise_identity, x)
    for stream in (None, torch.cuda.current_stream()):
        held = []
        for number in range(20):
            x.fill_(number)
            held.append(torch.from_dlpack(copy(x, stream=stream))[5:])
        assert len({each.data_ptr() for each in held}) == len(held)
        assert all((each == number).all() for number, each in enumerate(held))


def test_errors_in_data_when_the_call_waits(torch):
    x, index = torch.zeros(4, device="cuda"), torch.tensor([[9]], device="cuda")
    scatter = dml.Device(GPU).compile(dml.scatter_nd, x, index, x[:1])
    for _ in range(2):
        with pytest.raises(IndexError, match=r"the tuple IndicesTensor\[0,:\] is \{9\}"):
            scatter(x, index, x[:1])
    scatter(x, index, x[:1], stream=torch.cuda.current_stream())  # nobody is there to be told


def test_calls_become_part_of_a_cuda_graph(torch):
    x, place = torch.ones(1000, device="cuda"), torch.empty(1000, device="cuda")
    add = dml.Device(GPU).compile(dml.element_wise_add, x, x)
    stream = torch.cuda.Stream()
    add(x, x, out=place, stream=stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        add(x, x, out=place, stream=stream)
    x.fill_(3)
    graph.replay()
    assert (place == 6).all()


def test_operators_with_temporary_memory(torch):
    """Which two threads, or two streams, must not share."""
    x = [torch.randn(64, 20000, device="cuda") for _ in range(4)]
    sort = dml.Device(GPU).compile(dml.top_k1, x[0], axis=1, k=20000, direction="increasing")
    streams = [torch.cuda.Stream() for _ in x]
    torch.cuda.synchronize()
    for _ in range(5):
        results = [sort(each, stream=stream)[0] for each, stream in zip(x, streams)]
        for each, result in zip(x, results):
            assert (torch.from_dlpack(result) == each.sort(dim=1).values).all()
