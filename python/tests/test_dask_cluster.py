"""anydml.dask with other schedulers: processes, a cluster of processes, and a cluster that loses a worker."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from reference import same_bits
from test_onnx import scale_and_add

pytest.importorskip("distributed", reason="distributed is not installed")

import dask  # noqa: E402
import dask.array as da  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402

import anydml as dml  # noqa: E402
import anydml.dask as ad  # noqa: E402
import anydml.onnx  # noqa: E402


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of three processes."""
    settings = {"distributed.comm.timeouts.connect": "60s", "distributed.worker.daemon": True}
    with dask.config.set(settings), LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0,
            local_directory=str(tmp_path_factory.mktemp("dask"))) as cluster, Client(cluster) as client:
        yield client


RNG = np.random.default_rng(11)
X = np.where(RNG.random((60, 40)) < 0.4, 1, RNG.standard_normal((60, 40))).astype(np.float32)
X[RNG.random((60, 40)) < 0.02] = np.nan
INDICES = RNG.integers(-60, 60, (500, 1))
UPDATES = RNG.standard_normal((500, 40)).astype(np.float32)
Y = np.nan_to_num(X)[:, :3].copy()


def everything(x, y):
    """Pairs of a lazy result and the result on one machine."""
    pairs = list(zip(ad.top_k1(x, 0, 7, "decreasing"), dml.top_k1(X, 0, 7, "decreasing")))
    pairs.append((ad.argmin(x, [0, 1], "decreasing"), dml.argmin(X, [0, 1], "decreasing")))
    pairs.append((ad.reduce(x, "max", [1]), dml.reduce(X, "max", [1])))
    pairs.append((ad.hardmax(x, [0]), dml.activation_hardmax1(X, [0])))
    pairs.append((ad.scatter_nd(x, da.from_array(INDICES, chunks=(120, 1)), da.from_array(UPDATES, chunks=90)),
                  dml.scatter_nd(X, INDICES, UPDATES)))
    pairs.append((ad.map_model(scale_and_add(), {"x": y, "y": y})["z"],
                  anydml.onnx.load(scale_and_add()).run({"x": Y, "y": Y})["z"]))
    for function in (lambda z: ad.reduce(z, "sum", [0]), lambda z: ad.softmax(z, [1])):
        pairs.append((function(x), function(da.from_array(X, chunks=x.chunks)).compute(scheduler="sync")))
    return pairs


def check(pairs, **options):
    for computed, (_, expected) in zip(dask.compute(*(lazy for lazy, _ in pairs), **options), pairs):
        assert same_bits(computed, expected)


def chunked():
    return da.from_array(X, chunks=(17, 9)), da.from_array(Y, chunks=(8, 3))


def test_threads():
    check(everything(*chunked()), scheduler="threads", num_workers=3)


def test_processes():
    check(everything(*chunked()), scheduler="processes", num_workers=2)


def test_a_cluster(client):
    check(everything(*chunked()))


def test_arrays_that_workers_hold(client):
    check(everything(*(each.persist() for each in chunked())))


def test_no_chunk_comes_to_the_client(client):
    """A compute returns the result's chunks only."""
    x = da.random.random((400, 1000), chunks=(100, 250)).astype(np.float32)
    futures = client.compute(ad.top_k1(x, 1, 3, "decreasing")[0].to_delayed().ravel().tolist())
    assert sum(np.asarray(chunk).nbytes for chunk in client.gather(futures)) == 400 * 3 * 4


def dies_once(chunk, marker):
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return chunk
    os.kill(os.getpid(), signal.SIGKILL)


def last_dies_once(chunk, marker, block_info=None):
    """By then other tasks are done, and their states are lost with the process."""
    location = block_info[0]["chunk-location"] if block_info else ()
    return dies_once(chunk, marker) if sum(location) == 5 else chunk


def test_a_worker_is_killed_in_the_middle(client, tmp_path):
    marker = tmp_path / "died"
    before = {info["pid"] for info in client.run(lambda: {"pid": os.getpid()}).values()}
    x, y = chunked()
    x = x.map_blocks(last_dies_once, marker=str(marker), dtype=x.dtype, meta=np.empty((0, 0), np.float32))
    check(everything(x, y))
    assert marker.exists()
    client.wait_for_workers(3, timeout=60)
    assert {info["pid"] for info in client.run(lambda: {"pid": os.getpid()}).values()} != before


LARGE = """
import resource, time
import dask, dask.array as da, numpy as np, anydml.dask as ad

def made(block_info=None):
    first, last = block_info[None]["array-location"][0]
    n = np.arange(first, last, dtype=np.uint32)
    return (n * np.uint32(2654435761)).view(np.int32).astype(np.float32)

x = da.map_blocks(made, chunks=((5_000_000,) * 200,), dtype=np.float32, meta=np.empty(0, np.float32))
assert x.shape == (10**9,)
scattered = ad.scatter_nd(x, da.arange(0, 10**9, 10**5, chunks=1000, dtype=np.int64).reshape(-1, 1),
                          da.zeros(10**4, dtype=np.float32, chunks=500))

def timed(name, lazy):
    start = time.monotonic()
    (result,) = dask.compute(lazy)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{name}: {time.monotonic() - start:.1f} s, most memory {most:.2f} GiB", flush=True)
    assert most < 4
    return result

with dask.config.set(scheduler="threads", num_workers=2):
    # All numbers are whole, so that Dask's sums of INT64 are exact.
    whole = x.astype(np.int64)
    expected = timed("Dask's own", [x.max(), whole.sum(), abs(whole).sum(), x.argmin(), da.topk(x, 10)])
    assert timed("max", ad.reduce(x, "max", [0])) == expected[0]
    assert timed("sum", ad.reduce(x, "sum", [0])) == np.float32(expected[1])
    assert timed("argmin", ad.argmin(x, [0])) == expected[3]
    values, indices = timed("top_k1", list(ad.top_k1(x, 0, 10, "decreasing")))
    assert (values == expected[4]).all() and (np.diff(indices.astype(np.int64)) > 0)[np.diff(values) == 0].all()
    assert [made({None: {"array-location": [(i, i + 1)]}})[0] for i in map(int, indices)] == values.tolist()
    assert abs(timed("softmax", ad.reduce(ad.softmax(x * np.float32(1e-9), [0]), "sum", [0])) - 1) < 1e-5
    n = np.arange(0, 10**9, 10**5, dtype=np.uint32)
    replaced = np.abs((n * np.uint32(2654435761)).view(np.int32).astype(np.float32).astype(np.int64)).sum()
    assert timed("scatter_nd", ad.reduce(scattered, "l1", [0])) == np.float32(expected[2] - replaced)
"""


@pytest.mark.skipif("ANYDML_TEST_LARGE" not in os.environ, reason="takes minutes: set ANYDML_TEST_LARGE")
def test_a_billion_elements_in_less_than_4_gib():
    print(subprocess.run([sys.executable, "-c", LARGE], check=True, text=True, stdout=subprocess.PIPE).stdout)
