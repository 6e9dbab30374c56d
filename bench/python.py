#!/usr/bin/env python3
"""What a call from Python costs, beside NumPy's and PyTorch's for the same: python3 bench/python.py

On small arrays, where all of it is overhead, and on a large one, where memory for the result is used again.
PYTHONPATH names the package (build/python after ./dev build)."""

import argparse
import time

import numpy as np

import anydml as dml

try:
    import torch
except ImportError:
    torch = None


def microseconds(function, seconds):
    """The best of some rounds: what the call costs when nobody disturbs it."""
    function()
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < seconds / 20:
        function()
        calls += 1
    best = float("inf")
    for _ in range(15):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        best = min(best, time.perf_counter() - start)
    return best / calls * 1e6


class Report:
    def __init__(self, seconds):
        self.seconds = seconds

    def __call__(self, what, **calls):
        times = {name: microseconds(function, self.seconds) for name, function in calls.items()}
        print(f"{what:32}" + "".join(f"  {name} {value:9.2f}" for name, value in times.items()), flush=True)


def on_cpu(report):
    device = dml.Device("cpu")
    for count in (8, 1 << 22):
        a, b = np.arange(count, dtype=np.float32), np.ones(count, np.float32)
        add, out = device.compile(dml.element_wise_add, a, b), np.empty_like(a)
        calls = {"compiled": lambda: add(a, b), "out=": lambda: add(a, b, out=out),
                 "function": lambda: dml.element_wise_add(a, b), "numpy": lambda: a + b}
        if torch:
            x, y = torch.from_numpy(a), torch.from_numpy(b)
            calls["torch"] = lambda: x + y
        report(f"cpu add, {count} float32", **calls)
    x = np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32)
    top = device.compile(dml.top_k1, x, axis=1, k=4, direction="decreasing")
    calls = {"compiled": lambda: top(x), "function": lambda: dml.top_k1(x, axis=1, k=4, direction="decreasing"),
             "numpy": lambda: np.argsort(x, axis=1)[:, -4:]}
    if torch:
        y = torch.from_numpy(x)
        calls["torch"] = lambda: torch.topk(y, 4)
    report("cpu top 4 of 4 x 16", **calls)


def on_gpu(report, name):
    device, stream = dml.Device(name), torch.cuda.current_stream()

    def both(call):
        """With the host waiting for every call, and with results that stay in the stream."""
        def waited():
            call()
            torch.cuda.synchronize()
        return waited

    x, y = torch.arange(8.0, device="cuda"), torch.ones(8, device="cuda")
    add, out = device.compile(dml.element_wise_add, x, y), torch.empty(8, device="cuda")
    report(f"{name} add, 8 float32", compiled=lambda: add(x, y), stream=lambda: add(x, y, stream=stream),
           **{"out=": lambda: add(x, y, out=out)}, function=lambda: dml.element_wise_add(x, y),
           torch=lambda: x + y, torch_waited=both(lambda: x + y))
    x = torch.randn(64, 1000, device="cuda")
    top = device.compile(dml.top_k1, x, axis=1, k=10, direction="decreasing")
    report(f"{name} top 10 of 64 x 1000", compiled=lambda: top(x), stream=lambda: top(x, stream=stream),
           function=lambda: dml.top_k1(x, axis=1, k=10, direction="decreasing"), torch=lambda: torch.topk(x, 10),
           torch_waited=both(lambda: torch.topk(x, 10)))
    data, indices = torch.zeros(1000, device="cuda"), torch.arange(64, device="cuda").reshape(64, 1)
    updates = torch.ones(64, device="cuda")
    scatter = device.compile(dml.scatter_nd, data, indices, updates)
    report(f"{name} scatter_nd, 64 in 1000", compiled=lambda: scatter(data, indices, updates),
           stream=lambda: scatter(data, indices, updates, stream=stream),
           function=lambda: dml.scatter_nd(data, indices, updates),
           torch=lambda: data.index_put((indices[:, 0],), updates))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.4, help="for each figure")
    report = Report(parser.parse_args().seconds)
    print("microseconds a call, the best of 15 rounds")
    on_cpu(report)
    gpus = [name for name, _ in dml.adapters() if name.startswith("cuda")]
    if torch is None:
        print("PyTorch is not installed: no figures of it, and none of a GPU")
    elif not gpus or not torch.cuda.is_available():
        print("no GPU that both PyTorch and AnyDML can use")
    else:
        on_gpu(report, gpus[0])


if __name__ == "__main__":
    main()
