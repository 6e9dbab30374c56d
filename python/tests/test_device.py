"""Devices, cached operators, threads and processes."""

import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from layouts import LAYOUTS
from reference import same_bits, top_k

import anydml as dml

SPEC = dml.TensorSpec((3, 4), np.float32)
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def compile_top(spec=SPEC, **more):
    return dml.Device("cpu").compile(dml.top_k1, spec, axis=1, k=2, direction="decreasing", **more)


def test_one_device_per_name():
    device = dml.Device("cpu")
    assert dml.Device() is device and dml.Device("CPU") is device
    assert pickle.loads(pickle.dumps(device)) is device
    assert repr(device) == "Device('cpu')" and device.id == "cpu"
    assert device.feature_level == "6.4" and device.description
    assert "cpu" in dict(dml.adapters())


def test_compiled_operator():
    top = compile_top()
    values, indices = top(X)
    assert values.tolist() == [[3, 2], [7, 6], [11, 10]] and (indices == [3, 2]).all()
    values, _ = top(-X)
    assert values.tolist() == [[0, -1], [-4, -5], [-8, -9]]
    assert top.implementation.startswith("cpu.") and top.implementation in top.explanation
    assert "TOP_K1" in repr(top)


@pytest.mark.parametrize("name", LAYOUTS)
def test_compiled_operator_on_other_layouts(name):
    values, _ = compile_top()(LAYOUTS[name](X))
    assert values.tolist() == [[3, 2], [7, 6], [11, 10]]
    strided = compile_top(dml.TensorSpec((3, 4), np.float32, strides=(4, 12)))  # Fortran order
    values, _ = strided(LAYOUTS[name](X))
    assert values.tolist() == [[3, 2], [7, 6], [11, 10]]


def test_compiled_operator_writes_to_out():
    top = compile_top()
    place = np.zeros((3, 4), np.float32)
    values, _ = top(X, out=[place[:, ::2], None])
    assert place.tolist() == [[3, 0, 2, 0], [7, 0, 6, 0], [11, 0, 10, 0]]
    assert np.shares_memory(values, place)


def test_compiled_operator_says_what_does_not_fit():
    top = compile_top()
    with pytest.raises(ValueError, match=r"input is float32 \(4, 3\) but was compiled as float32 \(3, 4\)"):
        top(X.T)
    with pytest.raises(ValueError, match="input is int32"):
        top(X.astype(np.int32))
    with pytest.raises(TypeError, match="compiled for 1 inputs but got 2"):
        top(X, X)
    with pytest.raises(ValueError, match="out is given when the operator is run"):
        compile_top(out=[X, X])
    with pytest.raises(ValueError, match="K is 2 but"):
        compile_top(dml.TensorSpec((3, 1), np.float32))


def test_specs():
    with pytest.raises(ValueError, match="they must be equally long"):
        dml.TensorSpec((2, 3), np.int8, strides=(1,))
    with pytest.raises(ValueError, match="must be multiples of 4"):
        compile_top(dml.TensorSpec((3, 4), np.float32, strides=(2, 4)))


def test_specs_are_for_compile_only():
    """They have no memory: an operator that ran on one would bind nothing and remove the device."""
    spec = dml.TensorSpec((3,), np.float32)
    sentence = r"input is a TensorSpec, which only Device.compile takes; it must be an array"
    with pytest.raises(TypeError, match="ELEMENT_WISE_IDENTITY: " + sentence):
        dml.element_wise_identity(spec)
    copy = dml.Device("cpu").compile(dml.element_wise_identity, spec)
    with pytest.raises(TypeError, match=sentence):
        copy(spec)
    with pytest.raises(TypeError, match="out is of type TensorSpec; it must be an array"):
        dml.element_wise_identity(np.ones(3, np.float32), out=spec)
    assert copy(np.ones(3, np.float32)).tolist() == [1, 1, 1]


def test_a_removed_device_is_opened_anew():
    device, x = dml.Device("cpu"), np.ones(3, np.float32)
    copy, lost = device.compile(dml.element_wise_identity, x), device._native
    dml.element_wise_identity(x)  # which the device caches
    lost.remove()
    assert lost.removed
    assert copy(x).tolist() == [1, 1, 1]
    assert dml.element_wise_identity(x).tolist() == [1, 1, 1]
    assert device.compile(dml.element_wise_identity, x)(x).tolist() == [1, 1, 1]
    assert dml.Device("cpu") is device and device._native is not lost and not device._native.removed


def test_threads_share_a_device_and_an_operator():
    top, failures = compile_top(dml.TensorSpec((50, 40), np.float32)), []

    def work(seed):
        generator = np.random.default_rng(seed)
        for _ in range(40):
            x = generator.standard_normal((50, 40)).astype(np.float32)
            expected = top_k(x, 1, 2, "decreasing")
            mine = (top(x), dml.top_k1(x, axis=1, k=2, direction="decreasing"))
            if not all(same_bits(a, b) for result in mine for a, b in zip(result, expected)):
                failures.append(seed)
            try:  # each thread must get its own error
                dml.scatter_nd(x, np.array([[seed + 100]], np.int32), x[:1])
                failures.append("no error")
            except IndexError as error:
                if f"is {{{seed + 100}}}" not in str(error):
                    failures.append(str(error))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_other_threads_run_meanwhile():
    """While an operator runs, another thread counts, which it could not if the operator held the GIL."""
    x = np.random.default_rng(0).integers(0, 1 << 30, 1 << 24, dtype=np.int32)
    sort = dml.Device("cpu").compile(dml.top_k1, x, axis=0, k=x.size, direction="increasing")
    running, counts = threading.Event(), []

    def count():
        running.wait()
        while running.is_set():
            counts.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    running.set()
    start = time.perf_counter()
    sort(x)
    end = time.perf_counter()
    running.clear()
    thread.join()
    assert sum(start < moment < end for moment in counts) >= 5, f"{end - start} s, {len(counts)} counts"


def python(code, **variables):
    done = subprocess.run([sys.executable, "-c", "import numpy as np, anydml as dml, os\n" + code],
                          env={**os.environ, **variables}, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


USE = "dml.element_wise_identity(np.ones(3, np.float32))"


@pytest.mark.parametrize("code", [
    USE,
    f"import threading\nthreads = [threading.Thread(target=lambda: {USE}) for _ in range(4)]\n"
    "[t.start() for t in threads]",
    f"import threading, time\nt = threading.Thread(target=lambda: [{USE} for _ in range(10**9)], daemon=True)\n"
    "t.start(); time.sleep(0.2)",
    "import threading, time\nx = np.ones(3, np.float32)\n"
    "copy = dml.Device('cpu').compile(dml.element_wise_identity, x)\n"
    "t = threading.Thread(target=lambda: [copy(x) for _ in range(10**9)], daemon=True)\nt.start(); time.sleep(0.05)",
    "keep = dml.Device('cpu').compile(dml.element_wise_identity, np.ones(3, np.float32))",
    f"import sys; sys.keep = dml.Device('cpu'); {USE}; raise SystemExit(0)",
])
def test_the_interpreter_ends(code):
    assert python(code) == (0, "", "")


def test_forked_processes():
    fork = ("pid = os.fork()\n"
            "if pid == 0:\n"
            f"    try: print({USE}.sum())\n"
            "    except RuntimeError as error: print(error)\n"
            "    raise SystemExit(0)\n"
            "print('ended', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))")
    code, text, _ = python(fork)  # the child of a process without devices may open one
    assert (code, text) == (0, "3.0\nended 0\n")
    code, text, _ = python(f"{USE}\n{fork}")
    assert code == 0 and "start it with the 'spawn' or 'forkserver' method" in text and "ended 0" in text


FORKING = """
import sys, threading, time
from gpus import NAME, pretended

x, spec = np.ones(1000, np.float32), dml.TensorSpec((77,), np.float32)
cpu, gpu = dml.Device("cpu"), pretended()
dml.Device._devices[NAME] = gpu
copy = cpu.compile(dml.element_wise_identity, x)
tensor = dml.element_wise_identity(x, device=gpu)
capsule = tensor.__dlpack__()

def work():
    while True:
        dml.element_wise_identity(x, device=gpu).numpy(), copy(x)

threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
for _ in range(5):
    child = os.fork()
    if child == 0:
        for use in (lambda: copy(x), lambda: copy(x, out=x), lambda: tensor.numpy(), lambda: tensor.__dlpack__(),
                    lambda: dml.element_wise_identity(tensor), lambda: dml.Device("cpu"), lambda: cpu.compile(
                        dml.element_wise_identity, spec), lambda: dml.onnx.load(b"")):
            try:
                use()
                print("nothing was said")
            except RuntimeError as error:
                assert "forkserver" in str(error), error
        del tensor, capsule, copy
        sys.exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
os._exit(0)
"""


def test_forked_processes_and_what_their_parents_had():
    """Every use of the parent's objects gives an error message, also if other threads of the parent were inside the
    library."""
    assert python(FORKING) == (0, "0\n" * 5, "")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="how much memory there is cannot be seen")
def test_memory_that_is_kept_makes_way():
    code, text, errors = python(
        "import resource\n"
        "native, size = dml.Device('cpu')._native, 200 << 20\n"
        "kept = [native.allocate(size + (i << 22), 0, False) for i in range(3)]\n"
        "del kept\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (150 << 20), -1))\n"
        "memory = native.allocate(500 << 20, 0, False)\n"
        "print('there')\n"
        "try: native.allocate(4 << 30, 0, False)\n"
        "except MemoryError: print('none')")
    assert (code, text, errors) == (0, "there\nnone\n", "")


def test_feature_level_of_the_environment():
    code, text, _ = python("print(dml.Device('cpu').feature_level)\n"
                           "try: dml.top_k1(np.ones(3, np.int64), axis=0, k=1, direction='increasing')\n"
                           "except ValueError as error: print(error)", ANYDML_FEATURE_LEVEL="3.0")
    assert code == 0 and text.startswith("3.0\n") and "INT64, allowed at feature level 3.0" in text


def test_refusals_at_an_early_level_speak_of_what_was_given():
    code, text, _ = python("try: dml.top_k1(np.ones(3, np.float32), axis=0, k=5, direction='increasing')\n"
                           "except ValueError as error: print(error)", ANYDML_FEATURE_LEVEL="2.1")
    assert (code, text) == (0, "TOP_K1: K is 5 but InputTensor.Sizes[Axis=0] is 3; K must be in [1, 3]\n")


@pytest.mark.parametrize("device", [3, object(), b"cpu"])
def test_a_device_that_is_no_name(device):
    with pytest.raises(TypeError, match="must be the name of an adapter"):
        dml.element_wise_identity(np.ones(2, np.float32), device=device)
