"""What the Python peers share: the requests of worker.cc (load, check, time, unload) on
the standard input, answers as lines of JSON on the standard output."""

import json
import sys
import time


def parse(line):
    command, *words = line.split()
    return command, dict(word.split("=", 1) for word in words)


def sizes_of(words):
    return [int(size) for size in words["sizes"].split(",")]


def onnx_tensors(words):
    """Inputs and preallocated outputs of the models that onnx_model.py writes, by name."""
    import numpy as np

    sizes, dtype = sizes_of(words), words["type"]
    inputs = {"x": np.fromfile("input.bin", dtype).reshape(sizes)}
    if words["op"] == "topk":
        result = [int(words["k"]) if d == int(words["axis"]) else size for d, size in enumerate(sizes)]
        return inputs, {"v": np.zeros(result, dtype), "i": np.zeros(result, np.int64)}
    tuple_size = int(words["tuple"])
    inputs["i"] = np.fromfile("indices64.bin", np.int64).reshape(-1, tuple_size)
    inputs["u"] = np.fromfile("updates.bin", dtype).reshape([-1, *sizes[tuple_size:]])
    return inputs, {"y": inputs["x"] if words["in_place"] == "1" else np.zeros(sizes, dtype)}


def serve(hello, load):
    """load(words) returns {name: (function, outputs)}: what one run does, and what gives
    its outputs, [values] or [values, indices], as NumPy arrays."""
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
