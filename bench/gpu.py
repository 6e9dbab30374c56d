#!/usr/bin/env python3
"""Times AnyDML on a GPU against PyTorch and against the floor, in one run. See README.md.

Inputs are made by PyTorch and shared as files; every result is compared, bit for bit, with
that of AnyDML's CPU adapter before it is timed.
"""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

import numpy
import torch

import report
import run

# All copies of a case's buffers together are larger than this: several times the L2 cache.
ROTATED_BYTES = 256 << 20
MAX_COPIES = 64
LEAST_TIMINGS = 25


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    operator: str
    sizes: tuple
    target: str  # "1.4x" of the floor, or "12us"
    type: str = "float32"
    data: str = "random"
    axis: int = 0
    k: int = 0
    tuples: int = 0
    tuple: int = 0
    in_place: bool = False

    def words(self):
        words = {"op": "topk" if self.operator == "TOP_K1" else "scatter", "type": self.type, "data": self.data,
                 "sizes": ",".join(map(str, self.sizes))}
        if self.operator == "TOP_K1":
            return {**words, "axis": self.axis, "k": self.k}
        return {**words, "tuples": self.tuples, "tuple": self.tuple, "in_place": int(self.in_place)}

    def moved_bytes(self):
        """What must be read and written at the least; (input, all)."""
        element = numpy.dtype(self.type).itemsize
        elements = int(numpy.prod(self.sizes))
        if self.operator == "TOP_K1":
            results = elements // self.sizes[self.axis] * self.k
            return elements * element, elements * element + results * (element + 4)
        updates = self.tuples * int(numpy.prod(self.sizes[self.tuple:]))
        updated = self.tuples * self.tuple * 4 + 2 * updates * element
        # Updated elements are written once, whether the copy does it or the update.
        copied = 0 if self.in_place else 2 * elements * element - updates * element
        return elements * element, copied + updated


def _top_k(sizes, targets, type="float32", data="random", axis=None):
    axis = len(sizes) - 1 if axis is None else axis
    for k, target in targets.items():
        name = f"topk-{'x'.join(map(str, sizes))}-k{k}" + ("" if axis == len(sizes) - 1 else f"-axis{axis}")
        name += ("" if data == "random" else f"-{data}") + ("" if type == "float32" else f"-{type}")
        yield Case(name, "TOP_K1", sizes, target, type, data, axis, k)


def _scatter(name, sizes, tuples, tuple_size, target, in_place=False):
    yield Case(f"scatter-{name}" + ("-in-place" if in_place else ""), "SCATTER_ND", sizes, target,
               tuples=tuples, tuple=tuple_size, in_place=in_place)


def all_cases():
    million = 1000 * 1000
    shapes = [
        ((1, 1 << 27), {10: "1.4x", 256: "1.4x", 2048: "1.4x"}),
        ((1, 1 << 24), {10: "2.5x", 1000: "2.5x"}),
        ((1, million), {1: "12us", 10: "12us", 100: "12us", 1000: "12us", 100000: "35us"}),
        ((100, million), {10: "1.5x", 256: "1.5x", 2048: "1.5x"}),
        ((256, 128256), {1: "1.7x", 50: "1.7x", 1000: "1.7x"}),
        ((16384, 8192), {64: "1.5x"}),
        ((100000, 1024), {8: "1.5x"}),
        ((million, 64), {8: "1.6x"}),
        ((64, 32000), {1: "9us", 50: "9us", 1000: "9us"}),
        ((1000, 1000), {1: "7us", 10: "7us", 100: "7us", 500: "7us"}),
    ]
    cases = [case for sizes, targets in shapes for case in _top_k(sizes, targets)]
    cases += _top_k((4096, 65536), {16: "1.8x"}, axis=0)
    for type in ("float16", "int8", "int32", "int64"):
        for sizes, k in (((1, 1 << 27), 256), ((1, million), 100), ((256, 128256), 50), ((16384, 8192), 64),
                         ((million, 64), 8), ((1000, 1000), 10)):
            cases += _top_k(sizes, {k: "-"}, type=type)
    for data in ("ascending", "descending", "equal", "few", "nan", "close"):
        for sizes, k in (((1, 1 << 27), 256), ((1, million), 100), ((256, 128256), 50), ((16384, 8192), 64),
                         ((million, 64), 8), ((1000, 1000), 10)):
            cases += _top_k(sizes, {k: "3 x random"}, data=data)
    for in_place in (False, True):
        cases += _scatter("16777216-1000000-scalars", (1 << 24,), million, 1, "1.6x", in_place)
        cases += _scatter("65536x256-16384-rows", (65536, 256), 16384, 1, "1.2x", in_place)
        cases += _scatter("4096x4096-65536-pairs", (4096, 4096), 65536, 2, "1.2x", in_place)
        cases += _scatter("2^28-2^20-scalars", (1 << 28,), 1 << 20, 1, "1.1x", in_place)
        cases += _scatter("2^20x256-2^18-rows", (1 << 20, 256), 1 << 18, 1, "1.15x", in_place)
    cases += _scatter("8-4-scalars", (8,), 4, 1, "25us end to end")
    return cases


def make_elements(case, sizes):
    """On the GPU."""
    count = int(numpy.prod(sizes))
    dtype = getattr(torch, case.type)
    if case.data == "random" and not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        return torch.randint(limits.min, limits.max, sizes, dtype=dtype, device="cuda")
    if case.data == "ascending":
        x = torch.arange(count, device="cuda").float().reshape(sizes)
    elif case.data == "descending":
        x = torch.arange(count, 0, -1, device="cuda").float().reshape(sizes)
    elif case.data == "equal":
        x = torch.full(sizes, 1.5, device="cuda")
    elif case.data == "few":  # 256 distinct values
        x = torch.randint(0, 256, sizes, device="cuda").float()
    elif case.data == "nan":
        x = torch.full(sizes, float("nan"), device="cuda")
    elif case.data == "close":  # 1.0 with random low 12 bits
        x = (torch.randint(0, 4096, sizes, dtype=torch.int32, device="cuda") + 0x3F800000).view(torch.float32)
    else:
        x = torch.randn(sizes, device="cuda")
    return x.to(dtype)


def to_file(tensor, name):
    tensor.cpu().numpy().tofile(name)


class TorchCase:
    """The same in PyTorch: functions of a copy's number."""

    def __init__(self, case, copies):
        torch.manual_seed(1)
        self.case = case
        x = make_elements(case, case.sizes)
        to_file(x, "input.bin")
        self.x = [x] + [x.clone() for _ in range(copies - 1)]
        if case.operator == "TOP_K1":
            return
        indices = torch.stack([torch.randint(0, case.sizes[d], (case.tuples,), device="cuda")
                               for d in range(case.tuple)], 1)
        to_file(indices.to(torch.int32), "indices.bin")
        updates = make_elements(case, (case.tuples, *case.sizes[case.tuple:]))
        to_file(updates, "updates.bin")
        self.where = tuple(indices[:, d].contiguous() for d in range(case.tuple))
        self.updates = updates
        self.out = [y if case.in_place else torch.empty_like(y) for y in self.x]

    def __call__(self, i):
        case = self.case
        if case.operator == "TOP_K1":
            return torch.topk(self.x[i], case.k, case.axis, largest=True, sorted=True)
        if not case.in_place:
            self.out[i].copy_(self.x[i])
        self.out[i].index_put_(self.where, self.updates)
        return self.out[i]


def torch_times(function, copies, n):
    """Milliseconds per call, by events around a replayed graph of one call per copy."""
    for i in range(copies):
        function(i)
    torch.cuda.synchronize()
    replay = capture(function, copies) or (lambda: [function(i) for i in range(copies)])
    times = []
    for i in range(n + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        replay()
        end.record()
        torch.cuda.synchronize()
        if i >= 3:
            times.append(begin.elapsed_time(end) / copies)
    return times


def capture(function, copies):
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = [function(i) for i in range(copies)]
        return lambda keep=kept: graph.replay()
    except RuntimeError:  # something in it cannot be captured
        torch.cuda.synchronize()
        return None


def timings_for(estimate_ms, copies):
    return max(LEAST_TIMINGS, min(100, int(60 / max(estimate_ms * copies, 1e-3))))


def compare(case, gpu, judge):
    """Raises unless both adapters give the same bytes."""
    judge.request("load", case.words(), copies=1)
    outputs = ["values", "indices"] if case.operator == "TOP_K1" else ["values"]
    judge.request("check", run="anydml", prefix="expected")
    judge.request("unload")
    gpu.request("check", run="anydml", prefix="got")
    for name in outputs:
        if pathlib.Path(f"expected.{name}.bin").read_bytes() != pathlib.Path(f"got.{name}.bin").read_bytes():
            raise run.WorkerError(f"{case.name}: the {name} differ from those of the CPU adapter")


def measure(case, gpu, judge, bandwidth, options):
    input_bytes, moved = case.moved_bytes()
    copies = max(1, min(MAX_COPIES, -(-ROTATED_BYTES // max(input_bytes, 1))))
    peer = TorchCase(case, copies)
    torch.cuda.synchronize()
    implementation = gpu.request("load", case.words(), copies=copies)["implementation"]
    if not options.no_check:
        compare(case, gpu, judge)
    estimate = gpu.request("device", n=3, warm=3)["ms"][-1]
    n = timings_for(estimate, copies)
    ours = gpu.request("device", n=n, warm=3)["ms"]
    torch_ms = statistics.median(torch_times(peer, copies, min(n, 50)))
    ours += gpu.request("device", n=n, warm=3)["ms"]
    end_to_end = gpu.request("time", run="anydml", n=50, warm=10)["ms"]
    gpu.request("unload")
    del peer
    torch.cuda.empty_cache()
    return {"case": case.name, "operator": case.operator, "type": case.type, "implementation": implementation,
            "target": case.target, "ours_us": 1e3 * statistics.median(ours), "floor_us": 1e3 * moved / bandwidth,
            "torch_us": 1e3 * torch_ms, "end_to_end_us": 1e3 * statistics.median(end_to_end), "timings": len(ours)}


def line(record):
    return (f"{record['case']:44} {record['ours_us']:9.2f} us  {record['ours_us'] / record['floor_us']:6.2f} x floor  "
            f"{record['ours_us'] / record['torch_us']:5.2f} x torch  end to end {record['end_to_end_us']:8.1f}  "
            f"{record['implementation']} (target {record['target']})")


def markdown(records, bandwidth):
    text = [f"Machine: {torch.cuda.get_device_name()}, a copy in its memory moves {bandwidth / 1e9:.2f} TB/s  ",
            f"Date: {datetime.date.today().isoformat()}  ",
            f"Libraries: torch {torch.__version__} with CUDA {torch.version.cuda}  ",
            "Run: `python3 bench/gpu.py --docs`  ", "",
            "Microseconds, medians of at least 50 timings by the device's clock (a replayed list with one dispatch",
            "on each copy of the buffers); `end to end`: `ExecuteCommandLists`, `Signal` and the wait for the fence.",
            "The floor is the bytes that must be moved at a copy's speed.", "",
            "| case | AnyDML | floor | x floor | asked for | torch | x torch | end to end | implementation |",
            "|---|--:|--:|--:|--:|--:|--:|--:|---|"]
    for r in records:
        text.append(f"| {r['case']} | **{r['ours_us']:.1f}** | {r['floor_us']:.1f} | {r['ours_us'] / r['floor_us']:.2f} | "
                    f"{r['target']} | {r['torch_us']:.1f} | {r['ours_us'] / r['torch_us']:.2f} | "
                    f"{r['end_to_end_us']:.1f} | {r['implementation']} |")
    return "\n".join(text) + "\n"


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/gpu.py", description="Times AnyDML on a GPU, PyTorch and the floor.",
                                     allow_abbrev=False)
    parser.add_argument("--filter", metavar="REGEX", default="", help="only the cases whose name matches")
    parser.add_argument("--adapter", default="cuda:0", help="which GPU (cuda:0)")
    parser.add_argument("--no-check", action="store_true", help="do not compare with the CPU adapter")
    parser.add_argument("--list", action="store_true", help="list the cases and end")
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, default=run.ROOT / "build" / "bench" / "gpu",
                        help="where results.md and results.json go (build/bench/gpu)")
    parser.add_argument("--docs", action="store_true", help="also put the results into docs/benchmarks.md")
    parser.add_argument("--machine", metavar="NAME", default="gpu", help="the machine's name there")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no case after this time")
    parser.add_argument("--worker", metavar="FILE", type=pathlib.Path,
                        default=run.ROOT / "build" / "bin" / "anydml-bench-worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = parse_arguments()
    chosen = [case for case in all_cases() if re.search(options.filter, case.name)]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    options.out = options.out.resolve()
    worker = str(options.worker.resolve())
    start, records, failures = time.monotonic(), [], 0
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="anydml-bench-", dir=memory) as folder:
        os.chdir(folder)
        here = pathlib.Path(folder)
        gpu = run.Worker([worker], here, 1, {"ANYDML_ADAPTER": options.adapter})
        judge = run.Worker([worker], here, os.cpu_count(), {"ANYDML_ADAPTER": "cpu"})
        try:
            bandwidth = gpu.request("bandwidth")["bytes_per_ms"]
            for case in chosen:
                if time.monotonic() - start > options.seconds:
                    run.say(f"bench: {options.seconds} s are over; left out: {case.name}")
                    continue
                try:
                    records.append(measure(case, gpu, judge, bandwidth, options))
                    run.say(line(records[-1]))
                except run.WorkerError as error:
                    run.say(f"bench: {case.name}: {error}")
                    failures += 1
        finally:
            gpu.stop()
            judge.stop()
            os.chdir(run.ROOT)
    report.write_file(options.out / "results.json", json.dumps(records, indent=1) + "\n")
    report.write_file(options.out / "results.md", markdown(records, bandwidth))
    if options.docs:
        report.write_docs(options.out, run.ROOT / "docs", options.machine)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
