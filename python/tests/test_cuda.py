"""PyTorch's tensors on a GPU, without copies and in the right order. Skipped if there is no GPU."""

import ctypes
import gc
import subprocess
import sys
import threading

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
    # Transposed, stepped, broadcast; and with odd start elements, which are copied.
    for view in (x.permute(2, 0, 1), x[:, ::2], x[:1].expand(3, 9, 5), x[1:, 1:], x.flatten()[1:]):
        result = torch.from_dlpack(dml.element_wise_identity(view))
        assert (result == view).all()


@pytest.mark.parametrize("side_stream", [False, True])
def test_after_what_the_producer_has_queued(torch, side_stream):
    """A long kernel writes the operator's input; without an order between the streams the operator reads zeros."""
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


# ---- PyTorch's streams ----


def test_results_stay_in_a_stream(torch):
    """The call returns while the producer still works; the consumer of the result waits on the device."""
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
    for number in range(1, 30):  # memory is reused constantly, in two streams and the default one
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
    # The call does not wait, so it raises no error.
    scatter(x, index, x[:1], stream=torch.cuda.current_stream())


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


def test_operators_with_temporary_memory_become_part_of_a_cuda_graph(torch):
    x = torch.randn(64, 20000, device="cuda")
    sort = dml.Device(GPU).compile(dml.top_k1, x, axis=1, k=20000, direction="increasing")
    places, stream = (torch.empty_like(x), torch.empty(64, 20000, dtype=torch.uint32, device="cuda")), torch.cuda.Stream()
    sort(x, out=places, stream=stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        sort(x, out=places, stream=stream)
        sort(x, out=places, stream=stream)
    x.normal_()
    other = torch.randn(64, 20000, device="cuda")
    for _ in range(3):
        again = sort(other, stream=stream)  # has its own memory
        graph.replay()
    assert (places[0] == x.sort(dim=1).values).all()
    assert (torch.from_dlpack(again[0]) == other.sort(dim=1).values).all()


def test_several_operators_with_temporary_memory_become_part_of_a_cuda_graph(torch):
    """Each has its own memory from the call before the capture; nothing can be allocated during the capture."""
    x, stream = torch.randn(64, 20000, device="cuda"), torch.cuda.Stream()
    sorts, places = [], []
    for direction in ("increasing", "decreasing"):
        sorts.append(dml.Device(GPU).compile(dml.top_k1, x, axis=1, k=20000, direction=direction))
        places.append((torch.empty_like(x), torch.empty(64, 20000, dtype=torch.uint32, device="cuda")))
    torch.cuda.synchronize()
    for _ in range(2):  # also after other calls have reserved memory again
        for sort, place in zip(sorts, places):
            sort(x, out=place, stream=stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for sort, place in zip(sorts, places):
                sort(x, out=place, stream=stream)
        x.normal_()
        graph.replay()
        expected = x.sort(dim=1).values
        assert (places[0][0] == expected).all() and (places[1][0] == expected.flip(1)).all()
        torch.cuda.synchronize()


def test_operators_with_temporary_memory(torch):
    """Two threads or two streams must not share the temporary memory."""
    x = [torch.randn(64, 20000, device="cuda") for _ in range(4)]
    sort = dml.Device(GPU).compile(dml.top_k1, x[0], axis=1, k=20000, direction="increasing")
    streams = [torch.cuda.Stream() for _ in x]
    torch.cuda.synchronize()
    for _ in range(5):
        results = [sort(each, stream=stream)[0] for each, stream in zip(x, streams)]
        for each, result in zip(x, results):
            assert (torch.from_dlpack(result) == each.sort(dim=1).values).all()


def test_memory_of_an_export_that_lives_on(torch):
    """Work that a consumer enqueues late in its stream reads the memory before it is reused."""
    one, other, x = torch.cuda.Stream(), torch.cuda.Stream(), torch.zeros(1 << 20, device="cuda")
    something_else = torch.full_like(x, -1)
    copy = dml.Device(GPU).compile(dml.element_wise_identity, x)
    for number in range(1, 6):
        x.fill_(number)
        result = copy(x, stream=one)
        with torch.cuda.stream(other):
            taken = torch.from_dlpack(result)
        copy(result, stream=one)
        with torch.cuda.stream(other):
            torch.cuda._sleep(20_000_000)
            seen = taken.clone()
        del result, taken
        for _ in range(4):
            copy(something_else, stream=one)
        other.synchronize()
        assert (seen == number).all()


def test_every_thread_has_a_stream_of_number_two(torch):
    x = torch.zeros(1 << 20, device="cuda")
    copy, own = dml.Device(GPU).compile(dml.element_wise_identity, x), torch.cuda.ExternalStream(2)
    seen, addresses = [], []

    def work(number):
        mine = torch.full((1 << 20,), float(number), device="cuda")
        with torch.cuda.stream(own):
            for _ in range(20):
                torch.cuda._sleep(1_000_000)
                result = copy(mine, stream=2)
                addresses.append((number, result._memory.address))
                seen.append((number, torch.from_dlpack(result).clone()))
        own.synchronize()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((each == number).all() for number, each in seen)
    places = [{where for number, where in addresses if number == thread} for thread in range(3)]
    assert not places[0] & places[1] and not places[1] & places[2], "threads have used each other's memory"


def test_streams_that_are_gone(torch):
    """Handles are reused; the work in their earlier streams is complete before the memory is reused."""
    x = torch.zeros(1 << 16, device="cuda")
    add = dml.Device(GPU).compile(dml.element_wise_add, x, x)
    torch.cuda.synchronize()
    for number in range(1, 20):
        handle = ctypes.c_void_p()
        assert int(torch.cuda.cudart().cudaStreamCreate(ctypes.addressof(handle))) == 0
        with torch.cuda.stream(torch.cuda.ExternalStream(handle.value)):
            torch.cuda._sleep(2_000_000)
            x.fill_(number)
            results = [add(x, x, stream=handle.value) for _ in range(4)]
            taken = torch.from_dlpack(results[3])
            taken.add_(1)
        assert int(torch.cuda.cudart().cudaStreamDestroy(handle.value)) == 0
        assert (results[0].numpy() == 2 * number).all()
        assert (add(results[1], results[2]).numpy() == 4 * number).all()
        del taken  # the package learns that the export has ended after its stream is gone
        assert (add(results[2], results[3]).numpy() == 4 * number + 1).all()


def test_tensors_with_gradients(torch):
    x = torch.zeros(8, device="cuda")
    copy, wrong = dml.Device(GPU).compile(dml.element_wise_identity, x), torch.zeros(8, device="cuda", requires_grad=True)
    for call in (lambda: copy(wrong), lambda: copy(x, out=wrong), lambda: dml.element_wise_identity(wrong)):
        with pytest.raises(BufferError, match="grad"):
            call()
    assert copy(wrong.detach()).numpy().tolist() == [0] * 8


def test_forked_processes(torch):
    code = """if True:
        import os, sys, torch, anydml as dml
        x = torch.zeros(8, device="cuda")
        copy = dml.Device("cuda:0").compile(dml.element_wise_identity, x)
        result = copy(x)
        child = os.fork()
        if child == 0:
            for use in (lambda: copy(result), lambda: result.numpy(), lambda: result.__dlpack__()):
                try:
                    use()
                    print("nothing was said")
                except RuntimeError as error:
                    assert "forkserver" in str(error), error
            del result, copy
            sys.stdout.flush()
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
