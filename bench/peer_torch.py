"""PyTorch: topk (for K 1 also max), copy_ with index_put_ (for scalars also scatter_), and a case's
expression for everything else, all into preallocated outputs. Large tensors are NumPy's memory, which
asks for huge pages as ours does."""

import os

import torch

import peer


def load(words):
    runs = {"TOP_K1": top_k, "SCATTER_ND": scatter}
    return runs.get(words["op"], expression)(words)


def expression(words):
    arrays = peer.operands(words)
    tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
    run, outputs = peer.keep_result(eval(f"lambda: {words['torch']}", {"torch": torch, **tensors}), torch.Tensor,
                                    tensors["y"])
    run()  # an unsupported type shows here
    return {"torch": (run, outputs)}


def top_k(words):
    inputs, _ = peer.tensors_of(words)
    x = torch.from_numpy(peer.read("InputTensor", inputs["InputTensor"]))
    axis, k = int(words["Axis"]), int(words["K"])
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


def scatter(words):
    x, indices, updates, out = map(torch.from_numpy, peer.scatter_operands(words))
    in_place = "in_place" in words
    where = tuple(indices[:, d].contiguous() for d in range(indices.shape[1]))

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
