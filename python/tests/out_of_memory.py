"""Run by test_memory.py with failing_memory.cc preloaded: every allocation of a call fails once. The call says so by a
MemoryError or does without, and what is called next works.

    out_of_memory.py NAME
"""

import ctypes
import sys

import gpus
import numpy as np
from capsules import Liar
from test_onnx import X, Y, scale_and_add

import anydml as dml
import anydml.onnx
from anydml import _anydml

A = np.arange(12, dtype=np.float32).reshape(3, 4)
LARGE = np.zeros((1024, 1024), np.float32)


class Calls:
    def __init__(self):
        self.device, self.calls = dml.Device("cpu"), 0
        self.renew()

    def renew(self):
        """Makes the objects again after a failure that removed a device."""
        self.copy = self.device.compile(dml.element_wise_identity, A)
        self.model = anydml.onnx.load(scale_and_add())
        self.model.run({"x": X, "y": Y})
        self.on_gpu = gpus.pretended().compile(dml.element_wise_identity, dml.TensorSpec((3, 4), np.float32))
        self.tensor = self.on_gpu(A)

    def fresh(self, rows=3):
        """An array of a shape for which nothing was compiled."""
        self.calls += 1
        return np.zeros((rows, self.calls + 2), np.float32)

    def fused(self):
        array = self.fresh()
        return dml.element_wise_add1(array, array, fused_activation=dml.Activation("ACTIVATION_RELU"))

    def model_of_other_sizes(self):
        array = np.zeros((len(self.fresh().T), 3), np.float32)
        return self.model.run({"x": array, "y": array})


NAMES = {
    "adapters": lambda calls: dml.adapters(),
    "open_device": lambda calls: _anydml.open_device("cpu"),
    "operators": lambda calls: (_anydml.operators(), _anydml.data_types()),
    "properties": lambda calls: (calls.copy.explanation, calls.copy.implementation, calls.copy._native.outputs,
                                 calls.device.description, calls.device.feature_level),
    "compile": lambda calls: calls.device.compile(dml.top_k1, calls.fresh(), axis=0, k=1, direction="decreasing"),
    "function": lambda calls: dml.element_wise_identity(calls.fresh()),
    "function-two-outputs": lambda calls: dml.top_k1(calls.fresh(), axis=0, k=1, direction="decreasing"),
    "function-fused": lambda calls: calls.fused(),
    "function-known": lambda calls: dml.element_wise_identity(A),
    "function-large": lambda calls: dml.element_wise_identity(LARGE),
    "four-bit": lambda calls: dml.dequantize(dml.FourBit([[1, 2, 3]], "uint4"), [
        np.ones((1, 1), np.float32), dml.FourBit([[0]], "uint4")], quantization_type="scale_zero_point"),
    "run-other-strides": lambda calls: calls.copy(np.asfortranarray(A)),
    "run-out": lambda calls: calls.copy(A, out=np.zeros((4, 3), np.float32).T),
    "dlpack": lambda calls: calls.copy(Liar(), out=Liar()),
    "index-error": lambda calls: dml.scatter_nd(A, np.array([[7]], np.int32), A[:1]),
    "value-error": lambda calls: dml.top_k1(A, axis=0, k=9, direction="decreasing"),
    "capsule-error": lambda calls: dml.element_wise_identity(Liar(ndim=99)),
    "model-load": lambda calls: anydml.onnx.load(scale_and_add()),
    "model-load-error": lambda calls: anydml.onnx.load(scale_and_add()[:-9]),
    "model-signature": lambda calls: (calls.model.inputs, calls.model.outputs),
    "model-run": lambda calls: calls.model.run({"x": X, "y": Y}),
    "model-run-other-sizes": lambda calls: calls.model_of_other_sizes(),
    "model-run-error": lambda calls: calls.model.run({"x": X}),
    "model-profile": lambda calls: calls.model.profile({"x": X, "y": Y}),
    "gpu-run": lambda calls: calls.on_gpu(A),
    "gpu-run-out": lambda calls: calls.on_gpu(calls.tensor, out=calls.on_gpu(A)),
    "gpu-unaligned": lambda calls: calls.on_gpu(gpus.OnGpu(gpus.aligned(A, 4))),
    "gpu-numpy": lambda calls: calls.tensor.numpy(),
    "gpu-dlpack": lambda calls: calls.tensor.__dlpack__(),
}
ERRORS = {"index-error": IndexError, "value-error": ValueError, "capsule-error": ValueError,
          "model-load-error": ValueError, "model-run-error": ValueError}


def attempt(call, calls, expected):
    """Whether it failed because memory ran out. A simulated GPU that was removed cannot be opened again."""
    try:
        call(calls)
    except MemoryError:
        return True
    except expected:
        pass
    except RuntimeError as error:
        if "no adapter 'cuda:0'" not in str(error):
            raise
        return True
    return False


def main(name):
    memory = ctypes.CDLL(None)
    memory.anydml_test_fail_after.argtypes = [ctypes.c_int64]
    memory.anydml_test_succeed.restype = ctypes.c_bool
    call, calls, expected = NAMES[name], Calls(), ERRORS.get(name, ())
    for _ in range(2):  # objects that are made once per process exist after the first run
        assert not attempt(call, calls, expected)
    count = failures = 0
    while True:
        memory.anydml_test_fail_after(count)
        try:
            failed = attempt(call, calls, expected)
        finally:
            happened = memory.anydml_test_succeed()
        if not happened:
            break
        count += 1
        failures += failed
        if failed and attempt(call, calls, expected):
            calls.renew()
    assert not failed and not attempt(call, calls, expected)
    print(count, failures)


if __name__ == "__main__":
    main(sys.argv[1])
