"""NumPy: argmax for K 1, else argpartition and a sort of the K; assignment for scatter.
It has one thread, and allocates what these functions return."""

import numpy as np

import peer


def load(words):
    sizes = peer.sizes_of(words)
    x = np.fromfile("input.bin", words["type"]).reshape(sizes)
    return {"numpy": top_k(words, x) if words["op"] == "topk" else scatter(words, x)}


def top_k(words, x):
    axis, k = int(words["axis"]), int(words["k"])
    n = x.shape[axis]
    last = tuple(slice(n - k, n) if d == axis else slice(None) for d in range(x.ndim))
    result = []

    def run():
        if k == 1:
            indices = np.expand_dims(np.argmax(x, axis), axis)
        else:
            indices = np.argpartition(x, n - k, axis)[last]
            order = np.flip(np.argsort(np.take_along_axis(x, indices, axis), axis), axis)
            indices = np.take_along_axis(indices, order, axis)
        result[:] = [np.take_along_axis(x, indices, axis), indices.astype(np.int64, copy=False)]

    return run, lambda: [np.ascontiguousarray(array) for array in result]


def scatter(words, x):
    tuple_size = int(words["tuple"])
    in_place = words["in_place"] == "1"
    indices = np.fromfile("indices64.bin", np.int64).reshape(-1, tuple_size)
    where = tuple(np.ascontiguousarray(indices[:, d]) for d in range(tuple_size))
    updates = np.fromfile("updates.bin", words["type"]).reshape([len(indices), *x.shape[tuple_size:]])
    out = x if in_place else np.zeros_like(x)

    def run():
        if not in_place:
            np.copyto(out, x)
        out[where] = updates

    return run, lambda: [out]


peer.serve({"name": "numpy", "version": np.__version__}, load)
