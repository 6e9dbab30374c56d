"""onnxruntime's Python package, with IOBinding: inputs and outputs are bound once, to
preallocated memory; in place: input and output are the same memory."""

import os

import numpy as np
import onnxruntime

import peer


def load(words):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ["BENCH_THREADS"])
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession("model.onnx", options, providers=["CPUExecutionProvider"])
    sizes = peer.sizes_of(words)
    feeds = {"x": np.fromfile("input.bin", words["type"]).reshape(sizes)}
    if words["op"] == "topk":
        axis, k = int(words["axis"]), int(words["k"])
        result = [k if d == axis else size for d, size in enumerate(sizes)]
        outputs = {"v": np.empty(result, words["type"]), "i": np.empty(result, np.int64)}
    else:
        tuple_size = int(words["tuple"])
        feeds["i"] = np.fromfile("indices64.bin", np.int64).reshape(-1, tuple_size)
        feeds["u"] = np.fromfile("updates.bin", words["type"]).reshape([-1, *sizes[tuple_size:]])
        outputs = {"y": feeds["x"] if words["in_place"] == "1" else np.zeros(sizes, words["type"])}
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
    for name, array in outputs.items():
        binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)

    def run(keep=(feeds, outputs)):
        session.run_with_iobinding(binding)

    return {"onnxruntime": (run, lambda: list(outputs.values()))}


peer.serve({"name": "onnxruntime", "version": onnxruntime.__version__}, load)
