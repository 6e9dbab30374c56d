"""What the Python peers share: the requests of worker.cc (load, check, time, unload) on
the standard input, answers as lines of JSON on the standard output."""

import json
import sys
import time
import urllib.parse

import numpy as np

from tensor import LETTERS, file_of, tensors_of


def parse(line):
    command, *words = line.split()
    return command, {key: urllib.parse.unquote(value) for key, value in (word.split("=", 1) for word in words)}


def read(field, tensor):
    """An input's memory, as a packed array."""
    return np.fromfile(file_of(field), tensor.type).reshape(tensor.memory_sizes())


def operands(words):
    """The arrays that a case's expressions name: a, b, c... and y."""
    inputs, outputs = tensors_of(words)
    arrays = {}
    for letter, (field, tensor) in zip(LETTERS, inputs.items()):
        memory = read(field, tensor)
        strides = [stride * memory.itemsize for stride in tensor.all_strides()]
        arrays[letter] = np.lib.stride_tricks.as_strided(memory, tensor.sizes, strides)
    output = next(iter(outputs.values()))
    return {**arrays, "y": np.zeros(output.sizes, output.type)}


def keep_result(function, array_type, y):
    """What runs an expression, and what gives its outputs: the array that it returns, or y where it wrote."""
    kept = [y]

    def run():
        result = function()
        if isinstance(result, array_type):
            kept[0] = result

    return run, lambda: [np.ascontiguousarray(kept[0])]


def scatter_operands(words):
    """x, 64-bit indices (the peers take no others), updates and where the result goes."""
    inputs, _ = tensors_of(words)
    x, indices, updates = (read(field, tensor) for field, tensor in inputs.items())
    x = x.reshape(x.shape[x.ndim - int(words["InputDimensionCount"]):])
    indices = indices.reshape(-1, indices.shape[-1]).astype(np.int64)
    updates = updates.reshape([len(indices), *x.shape[indices.shape[1]:]])
    return x, indices, updates, x if words.get("in_place") else np.zeros_like(x)


def onnx_tensors(words):
    """Inputs and preallocated outputs of the models that onnx_model.py writes, by name."""
    inputs, outputs = tensors_of(words)
    if words["op"] == "SCATTER_ND":
        x, indices, updates, y = scatter_operands(words)
        return {"x": x, "i": indices, "u": updates}, {"y": y}
    if words["op"] == "TOP_K1":
        result = outputs["OutputIndexTensor"].sizes
        x = read("InputTensor", inputs["InputTensor"])
        return {"x": x}, {"v": np.zeros(result, x.dtype), "i": np.zeros(result, np.int64)}
    # Weights are in the model.
    fed = list(zip(LETTERS, inputs.items()))[:int(words.get("first_weight", len(inputs)))]
    return ({letter: read(field, tensor) for letter, (field, tensor) in fed},
            {"y": np.zeros(tensor.sizes, tensor.type) for tensor in outputs.values()})


def serve(hello, load, **more):
    """load(words) returns {name: (function, outputs)}: what one run does, and what gives
    its outputs, [values] or [values, indices], as NumPy arrays. `more`: other commands."""
    # Whatever a library prints must not end up between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    print(json.dumps(hello), file=answers, flush=True)
    runs = {}
    for line in sys.stdin:
        command, words = parse(line)
        try:
            answer = {}
            if command == "load":
                runs = load(words)
                answer = {"runs": list(runs)}
            elif command == "check":
                function, outputs = runs[words["run"]]
                function()
                for name, array in zip(("values", "indices"), outputs()):
                    array.tofile(f"{words['prefix']}.{name}.bin")
            elif command == "time":
                answer = {"ms": _time(runs[words["run"]][0], int(words["n"]), int(words["warm"]))}
            elif command == "unload":
                runs = {}
            elif command in more:
                more[command](words)
            else:
                answer = {"error": f"unknown command: {command}"}
        except Exception as error:  # the benchmark goes on without this cell
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        print(json.dumps(answer), file=answers, flush=True)


def _time(function, n, warm):
    clock = time.perf_counter
    times = []
    for i in range(warm + n):
        start = clock()
        function()
        end = clock()
        if i >= warm:
            times.append((end - start) * 1e3)
    return times
