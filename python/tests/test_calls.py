"""Calls through the fast path: results equal the slow path's, and memory is reused only when it is unreferenced."""

import gc
import threading

import numpy as np
import pytest
from gpus import NAME, OnGpu, OnGpuWithTable, aligned, pretended

import anydml as dml
from anydml import _anydml

LARGE = 1 << 18  # elements; results of this size use memory that is kept
A, B = np.arange(8, dtype=np.float32), np.ones(8, np.float32)


def compiled_add(a=A, b=B):
    return dml.Device("cpu").compile(dml.element_wise_add, a, b)


def short(operator, *inputs, out=None, stream=None):
    """Results of the fast path, which must be taken."""
    results = operator._quick(inputs, out, stream)
    assert results is not NotImplemented
    return results


def test_compiled_operators_take_the_short_way():
    add = compiled_add()
    assert short(add, A, B).tolist() == (A + 1).tolist() == add(A, B).tolist()
    place = np.zeros(8, np.float32)
    assert short(add, A, B, out=place) is place and short(add, A, B, out=[place]) is place
    assert place.tolist() == (A + 1).tolist()
    top = dml.Device("cpu").compile(dml.top_k1, A, axis=0, k=2, direction="decreasing")
    values, indices = short(top, A, out=(None, np.zeros(2, np.uint32)))
    assert values.tolist() == [7, 6] and indices.tolist() == [7, 6]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_every_type_takes_the_short_way(dtype):
    x = np.arange(6).astype(dtype).reshape(2, 3)
    copy = dml.Device("cpu").compile(dml.element_wise_identity, x)
    result = short(copy, x)
    assert result.dtype == x.dtype and (result == x).all()


def test_arrays_that_need_attention_take_the_long_way():
    add, place = compiled_add(), np.zeros(8, np.float32)
    subclass = A.view(type("Subclass", (np.ndarray,), {}))
    for a in (A[::-1], np.repeat(A, 2)[::2], A.astype(">f4"), A.tolist(), subclass, A.reshape(2, 4), A.astype("f8")):
        assert add._quick((a, B), None, None) is NotImplemented
    place.flags.writeable = False
    for out in (place, np.zeros(16, np.float32)[::2], A[:4], [place, place], "text"):
        assert add._quick((A, B), out, None) is NotImplemented
    assert add._quick((A,), None, None) is NotImplemented
    assert add(A[::-1], B).tolist() == (A[::-1] + 1).tolist()
    with pytest.raises(ValueError, match="out is read-only"):
        add(A, B, out=place)
    with pytest.raises(ValueError, match=r"b is float64 \(8,\) but was compiled as float32 \(8,\)"):
        add(A, B.astype("f8"))
    assert short(add, A, B).tolist() == (A + 1).tolist()  # failed calls leave it usable


def test_results_that_overlap_inputs():
    room = np.arange(9, dtype=np.float32)
    add = compiled_add()
    add(room[:8], B, out=room[1:])  # shifted by one: not in place, through a copy
    assert room.tolist() == [0, *range(1, 9)]
    assert add(room[:8], B, out=room[:8])[7] == 8  # in place
    one = np.zeros(2, np.uint32)
    x = np.array([[7, 9]], np.uint32)
    dml.top_k1(x, axis=1, k=1, direction="decreasing", out=(one[:1].reshape(1, 1), one[:1].reshape(1, 1)))


def test_data_errors():
    scatter = dml.Device("cpu").compile(dml.scatter_nd, A, np.array([[0]], np.int32), A[:1])
    for _ in range(3):
        with pytest.raises(IndexError, match=r"the tuple IndicesTensor\[0,:\] is \{9\}"):
            scatter(A, np.array([[9]], np.int32), A[:1])
        assert scatter(A, np.array([[3]], np.int32), A[7:])[3] == 7


def test_no_stream_on_the_cpu():
    for call in (compiled_add(), dml.element_wise_add):
        with pytest.raises(ValueError, match="ELEMENT_WISE_ADD: stream is given but the operator runs on cpu"):
            call(A, B, stream=1)
    with pytest.raises(ValueError, match="stream is given when the operator is run, not when it is compiled"):
        dml.Device("cpu").compile(dml.element_wise_add, A, B, stream=1)


# ---- Memory of results ----


def large_copy():
    x = np.zeros(LARGE, np.float32)
    return x, dml.Device("cpu").compile(dml.element_wise_identity, x)


def address(array):
    return array.__array_interface__["data"][0]


def test_memory_of_results_is_used_again():
    x, copy = large_copy()
    first = copy(x)
    where = address(first)
    del first
    again = copy(x)
    assert address(again) == where and again.flags.writeable and again.flags.c_contiguous


@pytest.mark.parametrize("hold", [
    lambda r: r, lambda r: r[5:], lambda r: r.reshape(2, -1).T, lambda r: r.view(np.int32), lambda r: memoryview(r),
    lambda r: memoryview(r)[3:], lambda r: r.__dlpack__(), lambda r: np.from_dlpack(r), lambda r: iter(r),
    lambda r: r.flat, lambda r: r.ctypes, lambda r: np.frombuffer(r, np.uint8), lambda r: r.view(np.matrix),
])
def test_memory_that_somebody_holds_is_left_alone(hold):
    x, copy = large_copy()
    held = []
    for number in range(1, 9):
        x[:] = number
        result = copy(x)
        held.append((hold(result), address(result)))
        del result
        gc.collect()
    assert len({where for _, where in held}) == len(held)
    for number, (each, _) in enumerate(held, 1):
        if isinstance(each, np.ndarray) and each.dtype == np.float32:
            assert (each == number).all()
        elif isinstance(each, memoryview):
            assert (np.asarray(each) == number).all()


def test_a_result_may_be_changed_by_who_has_it():
    x, copy = large_copy()
    result = copy(x)
    result.shape = (2, LARGE // 2)
    result.dtype = np.int32
    result.flags.writeable = False
    del result
    again = copy(x)
    assert again.shape == (LARGE,) and again.dtype == np.float32 and again.flags.writeable


def test_threads_share_the_short_way():
    x = np.zeros(LARGE, np.float32)
    add = compiled_add(x, x)
    small, failures = compiled_add(), []

    def work(number):
        mine, last = np.full(LARGE, number, np.float32), None
        for _ in range(30):
            result = add(mine, mine)
            if last is not None and not (last == 2 * number).all():
                failures.append(number)
            if not (result == 2 * number).all() or small(A, B)[7] != 8 or dml.element_wise_add(A, B)[3] != 4:
                failures.append(number)
            last = result
    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# ---- Functions ----


def cached(function, *arguments, **options):
    """Whether the call takes the fast path, after a first call."""
    function(*arguments, **options)
    ways = []
    original = _anydml.remember
    try:
        _anydml.remember = lambda *rest: ways.append(rest)
        result = function(*arguments, **options)
    finally:
        _anydml.remember = original
    return not ways, result


def test_functions_take_the_short_way():
    for call in (lambda: cached(dml.element_wise_add, A, B), lambda: cached(dml.element_wise_add, A, B, device="cpu"),
                 lambda: cached(dml.element_wise_add, A, B, device=dml.Device("cpu"))):
        short_way, result = call()
        assert short_way and result.tolist() == (A + 1).tolist()
    short_way, (values, _) = cached(dml.top_k1, A.reshape(2, 4), axis=-1, k=1, direction="decreasing")
    assert short_way and values.tolist() == [[3], [7]]
    assert cached(dml.top_k1, A, axis=0, k=1, direction="increasing")[1][0].tolist() == [0]
    place = np.zeros(8, np.float32)
    assert dml.element_wise_add(A, B, out=place) is place and place[7] == 8


def test_functions_tell_apart_what_looks_alike():
    x = np.array([-2.0, 2.0], np.float32)
    leaky = dml.activation_leaky_relu
    assert leaky(x, alpha=1)[0] == -2 and leaky(x, alpha=1.0)[0] == -2 and leaky(x, alpha=2.0)[0] == -4
    zero = [np.signbit(leaky(x, alpha=a)[0]) for a in (0.0, -0.0, 0.0)]
    assert zero == [True, False, True]
    top = dict(axis=0, direction="decreasing")
    assert dml.top_k1(A, k=1, **top)[0].shape == (1,)
    for wrong in (1.0, "1", None):
        with pytest.raises((TypeError, ValueError)):
            dml.top_k1(A, k=wrong, **top)
    assert dml.top_k1(A, k=2, **top)[0].shape == (2,)
    assert dml.top_k1(np.float32(3), k=1, **top)[0].tolist() in ([3], 3)
    assert dml.top_k1(A.reshape(8, 1), k=1, **top)[0].shape == (1, 1)
    for x in (A, A[::-1], np.repeat(A, 2)[::2], A[::-1], A.astype(">f4"), A):  # some of them are copied first
        assert dml.top_k1(x, k=1, **top)[1].tolist() == [int(np.argmax(x))]
    assert dml.top_k1(np.asfortranarray(A.reshape(2, 4)), k=1, **top)[0].tolist() == [[4, 5, 6, 7]]


def test_functions_remember_a_bounded_number():
    for count in range(1, 301):
        assert dml.element_wise_identity(np.ones(count, np.int8)).size == count
    assert cached(dml.element_wise_identity, np.ones(300, np.int8))[0]


def test_functions_after_the_device_was_removed():
    assert cached(dml.element_wise_add, A, B)[0]
    dml.Device("cpu")._native.remove()
    assert dml.element_wise_add(A, B)[7] == 8
    assert cached(dml.element_wise_add, A, B)[0]


# ---- Streams, on a pretended GPU ----


class Stream:
    def __init__(self, handle):
        self.cuda_stream = handle


@pytest.fixture
def gpu(monkeypatch, forget_functions):
    device = pretended()
    monkeypatch.setitem(dml.Device._devices, NAME, device)
    return device


def test_tensors_of_others_take_the_short_way(gpu):
    a, b = OnGpu(aligned(A)), OnGpu(aligned(B))
    add = gpu.compile(dml.element_wise_add, a, b)
    a.streams.clear()
    result = short(add, a, b)
    assert isinstance(result, dml.Tensor) and result.numpy().tolist() == (A + 1).tolist() and a.streams == [1]
    place = OnGpu(aligned(np.zeros(8, np.float32)))
    assert short(add, a, result, out=place, stream=77) is place
    assert place.array.tolist() == (2 * A + 1).tolist() and a.streams == [1, 77] and place.streams == [77]
    for wrong in (A, OnGpu(aligned(A, 4)), OnGpu(A.astype("f8")), OnGpu(A[::-1]), OnGpu(aligned(A), number=3), "text"):
        assert add._quick((wrong, b), None, None) is NotImplemented
    assert add(A, b).numpy().tolist() == (A + 1).tolist()


def test_tensors_of_others_are_looked_at_in_c(gpu):
    """Through the C functions of their type, so that their __dlpack__ is not called."""
    a, b = OnGpuWithTable(aligned(A)), OnGpuWithTable(aligned(B))
    add = gpu.compile(dml.element_wise_add, a, b)
    place = OnGpuWithTable(aligned(np.zeros(8, np.float32)))
    dml.element_wise_add(a, b)
    for current_stream in (0, 1, 77, 99):
        OnGpuWithTable.current_stream = current_stream
        a.streams.clear()
        b.streams.clear()
        for stream in (None, 77):
            assert short(add, a, b, stream=stream).numpy().tolist() == (A + 1).tolist()
            assert short(add, a, b, out=place, stream=stream) is place and place.array.tolist() == (A + 1).tolist()
            short_way, result = cached(dml.element_wise_add, a, b, stream=stream)
            assert short_way and result.numpy().tolist() == (A + 1).tolist()
        assert a.streams == b.streams == place.streams == []
    for wrong in (aligned(A, 4), A.astype("f8"), A[::-1], A[:4]):
        assert add._quick((OnGpuWithTable(wrong), b), None, None) is NotImplemented
    a.fails = True
    assert add._quick((a, b), None, None) is NotImplemented
    assert add(a, b).numpy().tolist() == (A + 1).tolist()  # falls back to __dlpack__
    a.fails, a.requires_grad = False, True
    a.streams.clear()
    assert short(add, a, b).numpy().tolist() == (A + 1).tolist() and a.streams == [1]


def test_functions_on_tensors_of_others_take_the_short_way(gpu):
    a, b = OnGpu(aligned(A)), OnGpu(aligned(B))
    short_way, result = cached(dml.element_wise_add, a, b)
    assert short_way and result.numpy().tolist() == (A + 1).tolist()
    assert a.streams[-1] == 1
    short_way, again = cached(dml.element_wise_add, result, b, stream=9)
    assert short_way and again.numpy().tolist() == (A + 2).tolist() and again._memory.stream == 9
    place = OnGpu(aligned(np.zeros(8, np.float32)))
    assert dml.element_wise_add(a, b, out=place) is place and place.array.tolist() == (A + 1).tolist()
    for x in (A, OnGpu(aligned(A, 4)), OnGpu(aligned(np.repeat(A, 2))[::2])):  # uploaded, copied, with strides
        assert dml.element_wise_add(x, b).numpy().tolist() == (A + 1).tolist()
        assert dml.element_wise_add(x, b).numpy().tolist() == (A + 1).tolist()
    with pytest.raises(ValueError, match="b is on cuda:3 but the operator runs on cuda:0"):
        dml.element_wise_add(a, OnGpu(aligned(B), number=3))
    with pytest.raises(ValueError, match="a is on cuda:0 but the operator runs on cpu"):
        dml.element_wise_add(a, b, device="cpu")


def test_streams(gpu):
    a, b = OnGpu(aligned(A)), OnGpu(aligned(B))
    add = gpu.compile(dml.element_wise_add, a, b)
    dml.element_wise_add(a, b)  # known from now on
    for stream, number in ((Stream(99), 99), (Stream(0), 1), (5, 5), (2, 2)):
        for call in (add, dml.element_wise_add):
            a.streams.clear()
            result = call(a, b, stream=stream)
            assert result._memory.stream == number and a.streams == [number]
            assert result.numpy().tolist() == (A + 1).tolist()
    result.__dlpack__(stream=-1)
    assert result._memory.stream == 2
    # The consumer's stream waits for ours, and only the consumer's use counts from here on.
    result.__dlpack__(stream=123)
    assert result._memory.stream == 123
    result.__dlpack__()
    assert result._memory.stream == 1
    add(result, b, stream=7)
    assert result._memory.stream == 7
    with pytest.raises(TypeError, match="stream is 'text' but must be a stream of PyTorch or CuPy, or its handle"):
        add(a, b, stream="text")
    with pytest.raises(ValueError, match="stream is -1 but must be a CUDA stream's handle"):
        add(a, b, stream=-1)


def test_memory_is_used_again_in_its_stream_only(gpu):
    a, b = OnGpu(aligned(A)), OnGpu(aligned(B))
    add = gpu.compile(dml.element_wise_add, a, b)
    result = add(a, b, stream=31)
    where = result._memory.address
    del result
    other = add(a, b, stream=32)
    assert other._memory.address != where
    again = add(a, b, stream=31)
    assert again._memory.address == where
    capsule = again.__dlpack__(stream=33)
    del again
    assert add(a, b, stream=33)._memory.address != where  # the capsule holds it
    del capsule
    assert add(a, b, stream=31)._memory.address != where
    found = [add(a, b, stream=33) for _ in range(3)]
    assert where in {each._memory.address for each in found}


def test_memory_of_an_export_that_lives_on(gpu):
    a, b = OnGpu(aligned(A)), OnGpu(aligned(B))
    add = gpu.compile(dml.element_wise_add, a, b)
    result = add(a, b, stream=41)
    where = result._memory.address
    capsule = result.__dlpack__(stream=42)
    add(result, b, stream=41)
    del result
    assert add(a, b, stream=41)._memory.address != where
    del capsule
    assert add(a, b, stream=42)._memory.address != where
    assert where in {each._memory.address for each in [add(a, b, stream=41) for _ in range(3)]}


def test_out_as_a_list_that_changes_meanwhile(gpu):
    class Changing(OnGpu):
        def __dlpack__(self, stream=None):
            outs.clear()
            return super().__dlpack__(stream)

    a, b = OnGpu(aligned(A)), OnGpu(aligned(B))
    add = gpu.compile(dml.element_wise_add, a, b)
    outs = [Changing(aligned(np.zeros(8, np.float32)))]
    assert short(add, a, b, out=outs).array.tolist() == (A + 1).tolist() and outs == []

    x, stop = np.zeros(LARGE, np.float32), threading.Event()
    copy, places = dml.Device("cpu").compile(dml.element_wise_identity, x), [None]

    def change():
        while not stop.is_set():
            places[0] = np.empty(LARGE, np.float32)
    thread = threading.Thread(target=change)
    thread.start()
    try:
        for number in range(30):
            x[:] = number
            assert (copy(x, out=places) == number).all()
    finally:
        stop.set()
        thread.join()
