"""PyTorch: topk (for K 1 also max), and copy_ with index_put_ (for scalars also scatter_),
all into preallocated outputs. Large tensors are NumPy's memory, which asks for huge pages
as ours does."""

import os

import numpy as np
import torch

import peer


def load(words):
    x = torch.from_numpy(np.fromfile("input.bin", words["type"]).reshape(peer.sizes_of(words)))
    return top_k(words, x) if words["op"] == "topk" else scatter(words, x)


def top_k(words, x):
    axis, k = int(words["axis"]), int(words["k"])
    sizes = [k if d == axis else size for d, size in enumerate(x.shape)]
    values, indices = torch.empty(sizes, dtype=x.dtype), torch.empty(sizes, dtype=torch.int64)

    def outputs():
        return [values.numpy(), indices.numpy()]

    def run():
        torch.topk(x, k, axis, largest=True, sorted=True, out=(values, indices))

    def run_max():
        torch.max(x, axis, keepdim=True, out=(values, indices))

    run()  # an unsupported type shows here
    runs = {"torch": (run, outputs)}
    if k == 1:
        runs["torch.max"] = (run_max, outputs)
    return runs


def scatter(words, x):
    tuple_size = int(words["tuple"])
    in_place = words["in_place"] == "1"
    indices = torch.from_numpy(np.fromfile("indices64.bin", np.int64).reshape(-1, tuple_size))
    where = tuple(indices[:, d].contiguous() for d in range(tuple_size))
    updates = np.fromfile("updates.bin", words["type"]).reshape([len(indices), *x.shape[tuple_size:]])
    updates = torch.from_numpy(updates)
    out = x if in_place else torch.from_numpy(np.zeros(x.shape, words["type"]))

    def run():
        if not in_place:
            out.copy_(x)
        out.index_put_(where, updates)

    def run_scatter():
        if not in_place:
            out.copy_(x)
        out.scatter_(0, where[0], updates)

    runs = {"torch": (run, lambda: [out.numpy()])}
    if x.ndim == 1:
        runs["torch.scatter_"] = (run_scatter, lambda: [out.numpy()])
    return runs


threads = int(os.environ["BENCH_THREADS"])
torch.set_num_threads(threads)
torch.set_num_interop_threads(1)
torch.set_grad_enabled(False)
peer.serve({"name": "torch", "version": torch.__version__}, load)
