"""onnxruntime's Python package, with IOBinding: inputs and outputs are bound once, to
preallocated memory; in place: input and output are the same memory."""

import os

import onnxruntime

import peer


def load(words):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["BENCH_THREADS"])
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession("model.onnx", options, providers=["CPUExecutionProvider"])
    inputs, outputs = peer.onnx_tensors(words)
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_input(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
    for name, array in outputs.items():
        binding.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)

    def run(keep=(inputs, outputs)):  # the binding knows only their addresses
        session.run_with_iobinding(binding)

    return {"onnxruntime": (run, lambda: list(outputs.values()))}


peer.serve({"name": "onnxruntime", "version": onnxruntime.__version__}, load)
