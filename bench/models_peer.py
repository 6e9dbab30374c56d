"""What bench/models.py needs NumPy for, each as a process: `inputs MODEL FOLDER GIVEN` writes random inputs
(GIVEN: JSON with the sizes of some, or a number), `time MODEL FOLDER SECONDS` runs the model in onnxruntime, once ours
has left its outputs there, and writes them, `compare MODEL FOLDER` tells how far ours differ from those, as a part of
the largest."""

import json
import os
import sys
import time

import numpy as np

import onnx_model


def inputs(path, folder, given):
    random, given = np.random.default_rng(1), json.loads(given)
    for name, type, sizes in onnx_model.signature(open(path, "rb").read())[0]:
        if isinstance(given.get(name), int):
            np.save(f"{folder}/{name}.npy", np.full(sizes, given[name], type))
            continue
        sizes = given.get(name, sizes)
        values = random.integers(0, 1000, sizes) if type == "int64" else random.standard_normal(sizes) * 0.5
        np.save(f"{folder}/{name}.npy", values.astype(type))
    return {}


def timed(path, folder, seconds):
    import peer_ort_c

    given, wanted = onnx_model.signature(open(path, "rb").read())
    arrays = {name: np.load(f"{folder}/{name}.npy") for name, _, _ in given}
    results = {name: np.zeros(np.load(f"{folder}/anydml-{name}.npy").shape, type) for name, type, _ in wanted}
    api = peer_ort_c.Api()
    begin = time.perf_counter()
    session = peer_ort_c.Session(api, arrays, results, path)
    session.run()
    first, times = time.perf_counter() - begin, []
    end = time.perf_counter() + float(seconds)
    while len(times) < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        session.run()
        times.append(time.perf_counter() - begin)
    for name, array in results.items():
        np.save(f"{folder}/onnxruntime-{name}.npy", array)
    return {"first": first, "median": sorted(times)[len(times) // 2], "version": api.version}


def compare(path, folder):
    worst = 0.0
    for name, _, _ in onnx_model.signature(open(path, "rb").read())[1]:
        ours, theirs = (np.load(f"{folder}/{who}-{name}.npy").astype(np.float64) for who in ("anydml", "onnxruntime"))
        worst = max(worst, float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30)))
    return {"difference": worst}


if __name__ == "__main__":
    os.environ.setdefault("BENCH_THREADS", "1")
    print(json.dumps({"inputs": inputs, "time": timed, "compare": compare}[sys.argv[1]](*sys.argv[2:])))
