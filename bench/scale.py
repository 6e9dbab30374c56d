#!/usr/bin/env python3
"""What anydml.dask costs as data and workers grow, on this machine.

    PYTHONPATH=build/python python3 bench/scale.py --elements 1e8 --workers 1,2

Every worker is a process with one thread. The array is made chunk by chunk where it is needed and never all there;
"make" is that alone. Dask's columns are its own function, where it has one. CPU s are those of all workers together, which
say more than seconds where others use the machine, too; what is moved is what workers sent to each other.
"""

import argparse
import os
import time

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import anydml.dask as ad


def numbers(block_info=None):
    """The same for every run: a hash of the position, as a number in [-0.5, 0.5)."""
    shape = block_info[None]["chunk-shape"]
    first = block_info[None]["array-location"]
    row = np.arange(first[0][0], first[0][1], dtype=np.uint32)[:, None] * np.uint32(2654435769)
    column = np.arange(first[1][0], first[1][1], dtype=np.uint32) * np.uint32(2246822519)
    mixed = row + column
    mixed ^= mixed >> np.uint32(15)
    mixed *= np.uint32(2654435761)
    return (mixed.view(np.int32).reshape(shape) * np.float32(2**-32)).astype(np.float32)


def one_of(chunk):
    return chunk[:1, :1]


def works(rows, columns, chunk):
    """Name -> (ours, Dask's or None), lazy."""
    x = da.map_blocks(numbers, chunks=da.core.normalize_chunks(chunk, (rows, columns)), dtype=np.float32,
                      meta=np.empty((0, 0), np.float32))
    updates = max(rows // 100, 1)
    where = da.map_blocks(lambda n: (n * 7919) % rows, da.arange(updates, chunks=max(updates // 16, 1)), dtype=np.int64)
    values = da.ones((updates, columns), dtype=np.float32, chunks=(max(updates // 16, 1), chunk[1]))
    return {
        "make": (None, x.map_blocks(one_of, chunks=tuple((1,) * n for n in x.numblocks))),
        "top_k1, k = 100, all rows": (ad.top_k1(x, 0, 100, "decreasing"), da.topk(x, 100, axis=0)),
        "reduce max": (ad.reduce(x, "max", [0, 1]), x.max()),
        "reduce sum": (ad.reduce(x, "sum", [0, 1]), x.sum()),
        "argmin": (ad.argmin(x, [0]), x.argmin(axis=0)),
        "softmax": (ad.softmax(x, [0]).map_blocks(one_of, chunks=tuple((1,) * n for n in x.numblocks)), None),
        "scatter_nd, 1 % of the rows": (
            ad.scatter_nd(x, where[:, None], values).map_blocks(one_of, chunks=tuple((1,) * n for n in x.numblocks)),
            None),
    }


def spent(client):
    """Processor seconds of the workers, and bytes that they have sent to each other, so far."""
    def of(dask_worker):
        name = "transfer_outgoing_log" if hasattr(dask_worker, "transfer_outgoing_log") else "outgoing_transfer_log"
        return time.process_time(), sum(entry["total"] for entry in getattr(dask_worker, name))
    return np.sum(list(client.run(of).values()), axis=0)


def timed(lazy, client, repeat):
    """Seconds, processor seconds of all workers together, MB moved: of the run that took least of the processors."""
    runs = []
    for _ in range(repeat):
        before, start = spent(client), time.monotonic()
        dask.compute(lazy)
        seconds = time.monotonic() - start
        processor, sent = spent(client) - before
        runs.append((processor, seconds, sent / 1e6))
    processor, seconds, sent = min(runs)
    return [f"{value:.2f}" for value in (seconds, processor, sent)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=float, default=1e8, help="of the array, which has 1000 columns (1e8)")
    parser.add_argument("--chunk-rows", type=int, default=4000, help="rows of a chunk (4000: 16 MB)")
    parser.add_argument("--workers", default="1,2", help="numbers of workers (1,2)")
    parser.add_argument("--repeat", type=int, default=2, help="runs of each (2)")
    parser.add_argument("--only", default="", help="names that contain this")
    options = parser.parse_args()
    columns = 1000
    rows = int(options.elements) // columns
    os.environ["ANYDML_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    print(f"{rows} x {columns} FLOAT32, chunks of {options.chunk_rows} x {columns}, "
          f"{-(-rows // options.chunk_rows)} of them\n")
    print("| | workers | s | CPU s | MB moved | Dask: s | CPU s | MB moved |\n|---|---:|---:|---:|---:|---:|---:|---:|")
    for count in map(int, options.workers.split(",")):
        with LocalCluster(n_workers=count, threads_per_worker=1, processes=True, dashboard_address=None,
                          memory_limit="4GB") as cluster, Client(cluster) as client:
            for name, (ours, theirs) in works(rows, columns, (options.chunk_rows, columns)).items():
                if options.only not in name:
                    continue
                cells = [cell for lazy in (ours, theirs) for cell in
                         (timed(lazy, client, options.repeat) if lazy is not None else [""] * 3)]
                print(f"| {name} | {count} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
