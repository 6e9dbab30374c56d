"""Every call raises a MemoryError when memory runs out."""

import os
import subprocess
import sys

import pytest
from out_of_memory import NAMES
from test_device import python

PRELOADED = os.environ.get("ANYDML_FAILING_MEMORY", "")


def fail(name):
    """The number of failed allocations, and how many of them caused errors."""
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-m", "out_of_memory", name], capture_output=True,
                          text=True, timeout=300, env={**os.environ, "LD_PRELOAD": PRELOADED})
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-3000:]}"
    return [int(word) for word in done.stdout.split()]


@pytest.mark.skipif(not PRELOADED, reason="ANYDML_FAILING_MEMORY does not name what is preloaded")
@pytest.mark.parametrize("name", NAMES)
def test_every_allocation_fails_once(name):
    count, failures = fail(name)
    if count == 0 and fail("adapters")[0] == 0:
        pytest.skip("the module was linked with a static libstdc++: its allocations cannot be made to fail")
    assert count >= failures > 0


BIG = ("import resource, anydml.onnx\n"
       "from test_onnx import scale_and_add\n"
       "x = np.ones((1 << 24, 3), np.float32)\n"
       "model = dml.onnx.load(scale_and_add())\n"
       "copy = dml.Device('cpu').compile(dml.element_wise_identity, x)\n"
       "{before}\n"
       "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
       "for room in range(0, 900, 90):\n"
       "    resource.setrlimit(resource.RLIMIT_AS, (used + (room << 20), -1))\n"
       "    try: {use}\n"
       "    except MemoryError as error: print('none')\n"
       "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))\n")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="how much memory there is cannot be seen")
@pytest.mark.parametrize("before, use", [
    ("pass", "dml.element_wise_identity(x)"),
    ("pass", "copy(x)"),
    ("pass", "model.run({'x': x, 'y': x})"),
    ("model.run({'x': x[:1], 'y': x[:1]})", "model.run({'x': x, 'y': x})"),
    ("pass", "dml.top_k1(x, axis=0, k=3, direction='increasing')"),
    ("pass", "dml.Device('cpu')._native.allocate(900 << 20, 0, False)"),
    ("pass", "dml.Device('cpu')._native.upload(x.ctypes.data, x.nbytes, 0)"),
])
def test_large_arrays_without_memory(before, use):
    code, text, errors = python(BIG.format(before=before, use=use))
    assert (code, errors) == (0, "") and text.startswith("none\n")
