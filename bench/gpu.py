#!/usr/bin/env python3
"""Times AnyDML on a GPU against PyTorch and against the floor, in one run. See README.md.

Longer than most files: its table of cases belongs to it.

Inputs are made by PyTorch and shared as files; every result is compared before it is timed: bit for bit with
that of AnyDML's CPU adapter or, of functions that are not exact, with what PyTorch works out in float64.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

import torch

import graphs
import published
import report
import run
from cases import GROUPS, Case, cell, elementwise, scatter, top_k
from tensor import LETTERS, Tensor, file_of

# AnyDML's products of FLOAT32 are of FLOAT32; PyTorch rounds those of convolutions to TF32 unless told not to.
torch.backends.cudnn.allow_tf32 = False
torch.backends.cuda.matmul.allow_tf32 = False

# All copies of a case's buffers together are larger than this: several times the L2 cache.
ROTATED_BYTES = 256 << 20
MAX_COPIES = 64
LEAST_TIMINGS = 25
# What a case's `true` is written with.
TRUE = {name: getattr(torch, name) for name in ("exp", "tanh", "sin", "log", "clip", "erf", "erfc", "sqrt", "amax",
                                                "tile")}
TRUE["join"] = torch.cat
# Of operators that are not element-wise: sizes, and what is asked for of FLOAT32 and FLOAT16.
_ROWS, _IMAGES = (4096, 16384), (32, 64, 112, 112)
CELLS = {
    "reduce": {"sum-rows": {_ROWS: ("70us", "36us")}, "sum-columns": {_ROWS: ("70us", "36us")},
               "max-rows": {_ROWS: ("70us", "36us")}, "argmax-rows": {_ROWS: ("72us", "40us")}},
    "softmax": {"softmax": {_ROWS: ("155us", "80us")}, "log-softmax": {_ROWS: ("155us", "80us")}},
    "normalization": {"layer": {(8, 1024, 4096): ("75us", "42us")}, "rms": {(8, 1024, 4096): ("75us", "42us")},
                      "batch": {_IMAGES: ("1.3x", "1.3x")}},
    "move": {"transpose": {(8192, 8192): ("150us", "80us")},
             "transpose-0213": {(64, 512, 16, 128): ("150us", "80us")}, "nchw-to-nhwc": {_IMAGES: ("1.3x", "1.3x")},
             "every-second-row": {(8192, 8192): ("1.3x", "1.3x")},
             "every-second-column": {(8192, 8192): ("1.3x", "1.3x")},
             "join-rows": {(8192, 8192): ("1.3x", "1.3x")}, "join-columns": {(8192, 8192): ("1.3x", "1.3x")},
             "tile": {(4096, 4096): ("1.3x", "1.3x")}, "pad": {_IMAGES: ("1.3x", "1.3x")}},
    "pooling": {"max-3x3": {_IMAGES: ("45us", "26us")}, "average-3x3": {_IMAGES: ("45us", "26us")},
                "average-global": {_IMAGES: ("1.3x", "1.3x")}},
    "resample": {"bilinear-x2": {_IMAGES: ("160us", "85us")}, "nearest-x2": {_IMAGES: ("1.3x", "1.3x")}},
    "gather": {"rows": {(65536, 1024, 65536): ("140us", "72us")}},
    "scan": {"rows": {_ROWS: ("170us", "95us")}, "columns": {_ROWS: ("170us", "95us")}},
    # 0.95 of PyTorch's rates (2.11, without TF32): of 8192^3 50.8 and 658 TFLOP/s, of 4096^3 50.4 and 655.
    "gemm": {"nt": {(8192, 8192, 8192): ("22780us", "1759us"), (4096, 4096, 4096): ("2870us", "221us"),
                    (1024, 1024, 1024): ("61us", "7.5us"), (1, 4096, 4096): ("23.5us", "11us"),
                    (128, 3072, 768): ("23us", "5.5us")}},
    "convolution": {"3x3": {(32, 64, 56, 56, 64): ("249us", "27us"), (32, 256, 14, 14, 256): ("173us", "19us"),
                            (1, 512, 7, 7, 512): ("113us", "13us")},
                    "1x1": {(32, 256, 56, 56, 64): ("122us", "19us")},
                    "7x7-stride-2": {(1, 3, 224, 224, 64): ("18us", "16us")},
                    "transposed-4x4": {(8, 256, 32, 32, 128): ("torch", "torch")},
                    "depthwise-3x3": {(32, 960, 28, 28, 960): ("70us", "40us")}},
    # 520 TFLOP/s of FLOAT16; one token against 2048, whose floor is reading them.
    "attention": {"heads-of-128": {(8, 32, 2048, 2048, 128): ("-", "1057us"), (64, 32, 1, 2048, 128): ("1150us", "580us")},
                  "heads": {(1, 12, 128, 128, 64): ("16.8us", "6.4us")}},
}
# The same of few elements.
SMALL = {"reduce": (256, 256), "softmax": (256, 256), "normalization": (256, 256), "move": (256, 256),
         "scan": (256, 256), "gemm": (64, 64, 64), "convolution": (1, 16, 14, 14, 16),
         "pooling": (1, 16, 64, 64), "resample": (1, 16, 32, 32), "gather": (1024, 64, 1024)}
SMALL_IMAGES = (1, 16, 64, 64)


def elementwise_cases():
    sizes = (1 << 13, 1 << 13)
    yield from (elementwise(name, sizes, type, data="random", target=target) for name, type, target in (
        ("add", "float32", "205us"), ("add", "float16", "103us"), ("gelu", "float32", "140us"),
        ("gelu", "float16", "75us"), ("cast-to-float16", "float32", "1.15x"),
        ("cast-from-float16", "float16", "1.15x")))
    yield from (elementwise("add", sizes, type, layout, data="random", target="1.3x")
                for type in ("float32", "float16") for layout in ("row", "column", "transposed"))
    # A scale and a zero point for all. PyTorch allocates what these return.
    for type in ("float32", "float16"):
        real, small = Tensor(type, sizes, data="random"), Tensor("uint8", sizes, data="random")
        scale, zero = Tensor(type, sizes, (0, 0), "scale"), Tensor("uint8", sizes, (0, 0), "zero")
        for name, first, output, expression in (
                ("quantize", real, small, "torch.quantize_per_tensor(a, 0.0625, 10, torch.quint8)"),
                ("dequantize", small, real, "torch._make_per_tensor_quantized_tensor(a, 0.0625, 10).dequantize()")):
            yield Case(f"elementwise-{name}-8192x8192" + ("-float16" if type == "float16" else ""),
                       f"ELEMENT_WISE_{name.upper()}_LINEAR",
                       {"InputTensor": first, "ScaleTensor": scale, "ZeroPointTensor": zero},
                       {"OutputTensor": Tensor(output.type, sizes)}, groups=("elementwise",), target="1.15x",
                       torch=expression if type == "float32" else "")


def other_cases():
    for group, names in CELLS.items():
        for name, shapes in names.items():
            for i, type in enumerate(("float32", "float16")):
                for sizes, targets in shapes.items():
                    yield cell(group, name, sizes, type, target=targets[i])
                    if group == "convolution":
                        yield cell(group, name, sizes, type, "nhwc", target=targets[i])
                if group in SMALL:
                    few = SMALL_IMAGES if len(sizes) == 4 and len(SMALL[group]) == 2 else SMALL[group]
                    yield cell(group, name, few, type, target="5us")


def graph_cases():
    for type in ("float32", "float16"):
        for length in (5, 20):
            yield graphs.chain(length, 4096, 4096, type=type, ulps=0, absolute=0, target="1.3x")
        for batch in (1, 32):
            yield graphs.conv_bn_relu(batch, 64, 56, type, target="torch")
            yield graphs.inverted_residual(batch, 24, 56, type, target="torch")
            yield graphs.bottleneck(batch, 256, 56, type, target="torch")
        yield graphs.transformer(128, 768, type, target="torch")


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
    random = {"data": "random"}
    cases = [top_k(sizes, k, target=target, **random) for sizes, targets in shapes for k, target in targets.items()]
    cases.append(top_k((4096, 65536), 16, axis=0, target="1.8x", **random))
    for type in ("float16", "int8", "int32", "int64"):
        for sizes, k in (((1, 1 << 27), 256), ((1, million), 100), ((256, 128256), 50), ((16384, 8192), 64),
                         ((million, 64), 8), ((1000, 1000), 10)):
            cases.append(top_k(sizes, k, type=type, target="-", **random))
    for data in ("ascending", "descending", "equal", "few", "nan", "close"):
        for sizes, k in (((1, 1 << 27), 256), ((1, million), 100), ((256, 128256), 50), ((16384, 8192), 64),
                         ((million, 64), 8), ((1000, 1000), 10)):
            cases.append(top_k(sizes, k, data=data, target="3 x random"))
    for in_place in (False, True):
        cases += [scatter(name, sizes, tuples, size, in_place=in_place, target=target, **random)
                  for name, sizes, tuples, size, target in (
                      ("16777216-1000000-scalars", (1 << 24,), million, 1, "1.6x"),
                      ("65536x256-16384-rows", (65536, 256), 16384, 1, "1.2x"),
                      ("4096x4096-65536-pairs", (4096, 4096), 65536, 2, "1.2x"),
                      ("2^28-2^20-scalars", (1 << 28,), 1 << 20, 1, "1.1x"),
                      ("2^20x256-2^18-rows", (1 << 20, 256), 1 << 18, 1, "1.15x"))]
    cases.append(scatter("8-4-scalars", (8,), 4, 1, target="25us end to end", **random))
    return [*cases, *elementwise_cases(), *other_cases(), *graph_cases()]


def make_memory(tensor):
    """A tensor's elements as they lie in memory, on the GPU."""
    sizes, data = (tensor.span(),), tensor.data
    count = sizes[0]
    if data.startswith("below-"):
        limits = [int(limit) for limit in data.split("-")[1:]]
        columns = [torch.randint(0, limit, (count // len(limits),), device="cuda") for limit in limits]
        return torch.stack(columns, 1).flatten().to(torch.int32)
    dtype = getattr(torch, tensor.type)
    if data == "random" and not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        return torch.randint(limits.min, limits.max, sizes, dtype=dtype, device="cuda")
    constants = {"equal": 1.5, "scale": 0.0625, "zero": 10, "nan": float("nan")}
    if data in constants:
        x = torch.full(sizes, constants[data], device="cuda")
    elif data == "small":
        x = 0.03 * torch.randn(sizes, device="cuda")
    elif data == "positive":
        x = 0.5 + 3.5 * torch.rand(sizes, device="cuda")
    elif data == "ascending":
        x = torch.arange(count, device="cuda").float()
    elif data == "descending":
        x = torch.arange(count, 0, -1, device="cuda").float()
    elif data == "few":  # 256 distinct values
        x = torch.randint(0, 256, sizes, device="cuda").float()
    elif data == "close":  # 1.0 with random low 12 bits
        x = (torch.randint(0, 4096, sizes, dtype=torch.int32, device="cuda") + 0x3F800000).view(torch.float32)
    else:
        x = torch.randn(sizes, device="cuda")
    return x.to(dtype)


def to_file(tensor, name):
    tensor.cpu().contiguous().numpy().tofile(name)


class TorchCase:
    """The same in PyTorch: functions of a copy's number."""

    def __init__(self, case, copies):
        torch.manual_seed(1)
        self.case = case
        memories = [make_memory(tensor) for tensor in case.inputs.values()]
        for field, memory in zip(case.inputs, memories):
            to_file(memory, file_of(field))
        if case.operator == "TOP_K1":
            self.call = self.top_k
            self.x = self.copies(memories[0].reshape(case.sizes), copies)
        elif case.operator == "SCATTER_ND":
            self.call = self.scatter
            self.x = self.copies(memories[0].reshape(case.sizes), copies)
            indices = memories[1].reshape(-1, case.inputs["IndicesTensor"].sizes[-1]).long()
            self.where = tuple(column.contiguous() for column in indices.unbind(1))
            self.updates = memories[2].reshape(len(indices), *case.sizes[indices.shape[1]:])
            self.out = [y if case.in_place else torch.empty_like(y) for y in self.x]
        else:
            sets = zip(*(self.copies(memory, copies) for memory in memories))
            self.names = [self.operands(memories) for memories in sets]
            function = eval(f"lambda {', '.join(self.names[0])}: {case.torch or None}", {"torch": torch})
            if case.operator == "GRAPH":
                torch._dynamo.reset()  # it gives up after eight functions that look alike
                function = torch.compile(function)
            self.call = lambda i: function(**self.names[i])

    def __call__(self, i):
        return self.call(i)

    @staticmethod
    def copies(memory, count):
        return [memory] + [memory.clone() for _ in range(count - 1)]

    def operands(self, memories):
        """What the case's expressions name: a, b, c... and y."""
        names = {letter: torch.as_strided(memory, tensor.sizes, tensor.all_strides())
                 for letter, memory, tensor in zip(LETTERS, memories, self.case.inputs.values())}
        output = next(iter(self.case.outputs.values()))
        return {**names, "y": torch.empty(output.sizes, dtype=getattr(torch, output.type), device="cuda")}

    def true(self):
        names = {name: tensor.double() for name, tensor in self.names[0].items() if name != "y"}
        return eval(self.case.true, {**TRUE, **names})

    def top_k(self, i):
        return torch.topk(self.x[i], self.case.k, self.case.attributes["Axis"], largest=True, sorted=True)

    def scatter(self, i):
        if not self.case.in_place:
            self.out[i].copy_(self.x[i])
        self.out[i].index_put_(self.where, self.updates)
        return self.out[i]


def torch_times(function, copies, n):
    """Milliseconds per call, by events around one call per copy: replayed as a graph or not,
    whichever is faster (copies are slower in a graph, small kernels are faster)."""
    for i in range(copies):
        function(i)
    torch.cuda.synchronize()
    ways = [lambda: [function(i) for i in range(copies)], capture(function, copies)]
    return min((time_replays(way, copies, n) for way in ways if way), key=statistics.median)


def torch_median(case, peer, copies, n):
    """Microseconds; None where PyTorch does not have it."""
    if not case.torch and case.operator not in ("TOP_K1", "SCATTER_ND"):
        return None
    try:
        return 1e3 * statistics.median(torch_times(peer, copies, n))
    except (RuntimeError, TypeError) as error:  # an unknown type, or arguments that this version does not have
        run.say(f"bench: PyTorch refuses {case.name}: {str(error).splitlines()[0]}")
        return None


def time_replays(replay, copies, n):
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


def copy_bandwidth(gpu):
    """Bytes that are read and written per millisecond: the better of PyTorch's copy and ours."""
    x = torch.ones(1 << 28, device="cuda")
    y = torch.empty_like(x)
    times = torch_times(lambda _: y.copy_(x), 1, LEAST_TIMINGS)
    theirs = 2 * x.nbytes / statistics.median(times)
    ours = gpu.request("bandwidth")["bytes_per_ms"]
    run.say(f"bench: copies move {ours / 1e9:.2f} TB/s (AnyDML), {theirs / 1e9:.2f} TB/s (PyTorch)")
    return max(ours, theirs)


def timings_for(estimate_ms, copies):
    return max(LEAST_TIMINGS, min(100, int(60 / max(estimate_ms * copies, 1e-3))))


def compare_numbers(case, true, judge):
    """Of the result in files; `true` is in float64."""
    to_file(true, "true.bin")
    judge.request("expect", case.words(), file="true.bin")
    verdict = judge.request("compare", prefix="got")["verdict"]
    if verdict != "equal":
        raise run.WorkerError(f"{case.name}: {verdict}")


def compare(case, peer, gpu, judge):
    """Raises unless both adapters give the same bytes or, where the case allows a difference, the result is as close to
    the true one; that of the CPU adapter where PyTorch is not asked for it."""
    gpu.request("check", run="anydml", prefix="got")
    if case.ulps and case.true:
        return compare_numbers(case, peer.true(), judge)
    judge.request("load", case.words(), copies=1)
    judge.request("check", run="anydml", prefix="expected")
    judge.request("unload")
    if case.ulps:
        values = pathlib.Path("expected.values.bin").read_bytes()
        dtype = getattr(torch, next(iter(case.outputs.values())).type)
        return compare_numbers(case, torch.frombuffer(bytearray(values), dtype=dtype).double(), judge)
    for name in ("values", "indices")[:len(case.outputs)]:
        if pathlib.Path(f"expected.{name}.bin").read_bytes() != pathlib.Path(f"got.{name}.bin").read_bytes():
            raise run.WorkerError(f"{case.name}: the {name} differ from those of the CPU adapter")


def measure(case, gpu, judge, bandwidth, options):
    copies = max(1, min(MAX_COPIES, -(-ROTATED_BYTES // sum(tensor.bytes() for tensor in case.inputs.values()))))
    peer = TorchCase(case, copies)
    torch.cuda.synchronize()
    implementation = gpu.request("load", case.words(), copies=copies)["implementation"]
    if not options.no_check:
        compare(case, peer, gpu, judge)
    estimate = gpu.request("device", n=3, warm=3)["ms"][-1]
    n = timings_for(estimate, copies)
    ours = gpu.request("device", n=n, warm=3)["ms"]
    torch_us = torch_median(case, peer, copies, min(n, LEAST_TIMINGS))
    ours += gpu.request("device", n=n, warm=3)["ms"]
    end_to_end = gpu.request("time", run="anydml", n=50, warm=10)["ms"]
    gpu.request("unload")
    del peer
    torch.cuda.empty_cache()
    return {"case": case.name, "operator": case.operator, "type": case.type, "implementation": implementation,
            "target": case.target, "ours_us": 1e3 * statistics.median(ours),
            "floor_us": 1e3 * case.moved_bytes() / bandwidth,
            "torch_us": torch_us, "end_to_end_us": 1e3 * statistics.median(end_to_end), "timings": len(ours)}


def microseconds(us):
    return f"{us:.1f}" if us else "-"


def by_torch(record):
    return f"{record['ours_us'] / record['torch_us']:.2f}" if record["torch_us"] else "-"


def line(record):
    return (f"{record['case']:44} {record['ours_us']:9.2f} us  {record['ours_us'] / record['floor_us']:6.2f} x floor  "
            f"{by_torch(record):>5} x torch  end to end {record['end_to_end_us']:8.1f}  "
            f"{record['implementation']} (target {record['target']})")


def markdown(records, bandwidth, options):
    given = (("group", options.group), ("filter", options.filter), ("implementation", options.implementation))
    chosen = "".join(f" --{name} {value}" for name, value in given if value)
    text = [f"Machine: {torch.cuda.get_device_name()}, a copy in its memory moves {bandwidth / 1e9:.2f} TB/s  ",
            f"Date: {datetime.date.today().isoformat()}  ",
            f"Libraries: torch {torch.__version__} with CUDA {torch.version.cuda} ({report.commit(run.ROOT)})  ",
            f"Run: `python3 bench/gpu.py{chosen}{' --no-check' if options.no_check else ''}`  ", "",
            "Microseconds, medians of at least 50 timings by the device's clock (a replayed list with one dispatch",
            "on each copy of the buffers); `end to end`: `ExecuteCommandLists`, `Signal` and the wait for the fence.",
            "The floor is the bytes that must be moved at a copy's speed.", "",
            "| case | AnyDML | floor | x floor | goal | torch | x torch | end to end | implementation |",
            "|---|--:|--:|--:|--:|--:|--:|--:|---|"]
    for r in records:
        text.append(f"| {r['case']} | **{r['ours_us']:.1f}** | {r['floor_us']:.1f} | {r['ours_us'] / r['floor_us']:.2f} | "
                    f"{r['target']} | {microseconds(r['torch_us'])} | {by_torch(r)} | "
                    f"{r['end_to_end_us']:.1f} | {r['implementation']} |")
    return "\n".join(text) + "\n"


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/gpu.py", description="Times AnyDML on a GPU, PyTorch and the floor.",
                                     allow_abbrev=False)
    parser.add_argument("--group", choices=GROUPS, help="only the cases of this group")
    parser.add_argument("--filter", metavar="REGEX", default="", help="only the cases whose name matches")
    parser.add_argument("--adapter", default="cuda:0", help="which GPU (cuda:0)")
    parser.add_argument("--implementation", metavar="NAME", help="forces one of AnyDML's; cases it cannot do are refused")
    parser.add_argument("--no-check", action="store_true", help="do not compare with the CPU adapter")
    parser.add_argument("--list", action="store_true", help="list the cases and end")
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, default=run.ROOT / "build" / "bench" / "gpu",
                        help="where results.md and results.json go (build/bench/gpu)")
    parser.add_argument("--docs", action="store_true", help="also put the results into docs/benchmarks")
    parser.add_argument("--machine", metavar="NAME", default="gpu", help="the machine's name there")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no case after this time")
    parser.add_argument("--worker", metavar="FILE", type=pathlib.Path,
                        default=run.ROOT / "build" / "bin" / "anydml-bench-worker", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = parse_arguments()
    chosen = [case for case in all_cases()
              if options.group in (None, *case.groups) and re.search(options.filter, case.name)]
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
        forced = {"ANYDML_IMPLEMENTATION": options.implementation} if options.implementation else {}
        gpu = run.Worker([worker], here, 1, {"ANYDML_ADAPTER": options.adapter, **forced})
        judge = run.Worker([worker], here, os.cpu_count(), {"ANYDML_ADAPTER": "cpu"})
        try:
            bandwidth = copy_bandwidth(gpu)
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
    published.write_file(options.out / "results.json", json.dumps(records, indent=1) + "\n")
    published.write_file(options.out / "results.md", markdown(records, bandwidth, options))
    if options.docs:
        published.publish(options.out, run.ROOT / "docs", options.machine)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
