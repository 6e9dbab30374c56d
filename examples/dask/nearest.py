#!/usr/bin/env python3
"""The vectors that are most like a given one, among more than fit into memory.

    PYTHONPATH=build/python python3 examples/dask/nearest.py --vectors 5e6 --workers 2

They are made up here, chunk by chunk; da.from_npy_stack, da.from_zarr or da.map_blocks over files do the same for
real ones. On a cluster, pass the scheduler's address: --scheduler tcp://HOST:8786 (docs/scale.md).
"""

import argparse
import os

import dask.array as da
import numpy as np
from distributed import Client

import anydml.dask


def made(size, block_info=None):
    first, last = block_info[None]["array-location"][0]
    return np.random.default_rng(first).standard_normal((last - first, size), np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=float, default=1e6)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scheduler")
    options = parser.parse_args()
    os.environ["ANYDML_THREADS"] = "1"  # per worker
    chunks = da.core.normalize_chunks((100000, options.size), (int(options.vectors), options.size))
    vectors = da.map_blocks(made, options.size, chunks=chunks, dtype=np.float32, meta=np.empty((0, 0), np.float32))
    wanted = np.random.default_rng(7).standard_normal(options.size, np.float32)
    likeness = vectors.map_blocks(lambda some: some @ wanted, drop_axis=1, dtype=np.float32)
    local = dict(n_workers=options.workers, threads_per_worker=1, dashboard_address=None)
    with Client(options.scheduler) if options.scheduler else Client(**local):
        values, numbers = da.compute(*anydml.dask.top_k1(likeness, axis=0, k=5, direction="decreasing"))
    for value, number in zip(values, numbers):
        print(f"{value:8.3f}  vector {number}")


if __name__ == "__main__":
    main()
