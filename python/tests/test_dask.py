"""anydml.dask against the functions for one machine, whose bytes it promises, over chunks of every kind.

Longer than most files: all tests share the strategies for chunks."""

import math
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from layouts import FLOATS, INTEGERS, TYPES
from reference import same_bits
from test_onnx import number, scale_and_add, text, value_info

pytest.importorskip("dask.array", reason="dask is not installed")

import dask  # noqa: E402
import dask.array as da  # noqa: E402

import anydml as dml  # noqa: E402
import anydml.dask as ad  # noqa: E402
import anydml.onnx  # noqa: E402
from anydml.dask._exact_sum import exact_sum, merge_sums, rounded  # noqa: E402

SEEDS = range(int(os.environ.get("ANYDML_TEST_DASK_CASES", "12")))
SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1.0]


@pytest.fixture(autouse=True)
def _scheduler():
    with dask.config.set(scheduler="sync"):
        yield


def cut(rng, size):
    """A size divided into parts, some of them empty."""
    ends = np.sort(rng.integers(0, size + 1, rng.integers(0, 5)))
    return tuple(int(part) for part in np.diff([0, *ends, size]))


def in_chunks(rng, x):
    return da.from_array(x, chunks=tuple(cut(rng, size) for size in x.shape))


def numbers(rng, shape, dtype):
    """With ties, and for floating-point types with NaNs, infinities and zeros of both signs."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.choice(np.concatenate([rng.integers(info.min, info.max, 20, dtype, True),
                                          np.arange(3).astype(dtype)]), shape)
    x = (rng.standard_normal(shape) * 2.0**rng.integers(-3, 8)).astype(dtype)
    some = rng.random(shape)
    x = np.where(some < 0.3, np.round(x), x)
    return np.where(some < 0.05 * rng.integers(0, 4), rng.choice(SPECIAL, shape).astype(dtype), x).astype(dtype)


def case(seed, dtypes=TYPES, most=4):
    rng = np.random.default_rng(seed)
    shape = tuple(int(size) for size in rng.integers(1, 14, rng.integers(1, most + 1)))
    x = numbers(rng, shape, dtypes[rng.integers(len(dtypes))])
    return rng, x, in_chunks(rng, x)


def some_axes(rng, ndim):
    return [int(axis) for axis in rng.permutation(ndim)[:rng.integers(0, ndim + 1)]]


def check(result, expected):
    assert isinstance(result, da.Array)
    assert result.dtype == expected.dtype and result.shape == expected.shape
    computed = np.empty(expected.shape, expected.dtype)
    starts = [np.cumsum([0, *sizes]) for sizes in result.chunks]
    blocks = list(np.ndindex(result.numblocks))
    for block, chunk in zip(blocks, dask.get(result.dask, [(result.name, *block) for block in blocks])):
        assert isinstance(chunk, np.ndarray) and chunk.dtype == expected.dtype
        assert chunk.shape == tuple(sizes[i] for sizes, i in zip(result.chunks, block))
        computed[tuple(slice(at[i], at[i + 1]) for at, i in zip(starts, block))] = chunk
    assert same_bits(computed, expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_top_k1(seed):
    rng, x, chunked = case(seed)
    axis = int(rng.integers(-x.ndim, x.ndim))
    arguments = dict(axis=axis, k=int(rng.integers(1, x.shape[axis] + 1)),
                     direction=["increasing", "decreasing"][seed % 2], index_dtype=[None, np.uint64][seed // 2 % 2])
    for result, expected in zip(ad.top_k1(chunked, **arguments), dml.top_k1(x, **arguments)):
        check(result, expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_argmin_and_argmax(seed):
    rng, x, chunked = case(seed)
    axes, direction = some_axes(rng, x.ndim), ["increasing", "decreasing"][seed % 2]
    dtype = [np.uint32, np.int32, np.uint64, np.int64][seed % 4]
    for name in ("argmin", "argmax"):
        check(getattr(ad, name)(chunked, axes, direction, dtype=dtype),
              getattr(dml, name)(x, axes, direction, dtype=dtype))
        check(ad.reduce(chunked, name, axes), dml.reduce(x, name, axes))


@pytest.mark.parametrize("seed", SEEDS)
def test_extremes_and_hardmax(seed):
    rng, x, chunked = case(seed)
    axes = some_axes(rng, x.ndim)
    for name in ("max", "min"):
        check(ad.reduce(chunked, name, axes), dml.reduce(x, name, axes))
    if x.dtype.kind == "f":
        check(ad.hardmax(chunked, axes), dml.activation_hardmax1(x, axes))


@pytest.mark.parametrize("seed", SEEDS)
def test_integer_sums(seed):
    rng, x, chunked = case(seed, [dtype for dtype in INTEGERS if dtype.itemsize >= 4])
    axes = some_axes(rng, x.ndim)
    for name in ("sum", "l1", "sum_square", "multiply"):
        check(ad.reduce(chunked, name, axes), dml.reduce(x, name, axes))


# ---- Sums of floating-point numbers ----

def to_float32(value):
    """A fraction, rounded to the nearest, ties to even."""
    exponent = max(abs(value.numerator).bit_length() - value.denominator.bit_length() - 24, -149)
    while abs(value) >= Fraction(2)**(exponent + 24):
        exponent += 1
    whole = round(value / Fraction(2)**exponent) * Fraction(2)**exponent
    return np.float32(float(whole)) if abs(whole) < 2**128 else np.float32(math.copysign(math.inf, whole))


@pytest.mark.parametrize("seed", SEEDS)
def test_an_exact_sum_is_rounded_once(seed):
    rng = np.random.default_rng(seed)
    spread = int(rng.choice([0, 3, 30, 250]))
    x = np.ldexp(rng.integers(-2**24, 2**24, (3, 50)).astype(np.float64),
                 rng.integers(-149, -148 + spread, (3, 50)) + int(rng.integers(0, 104 + 149 - spread)) * (seed % 3 > 0))
    with np.errstate(over="ignore"):
        x = np.clip(x, -3e38, 3e38).astype(np.float32)
    if seed % 2:  # nearly everything cancels
        x[:, 25:] = -x[:, :25]
        x[:, 7] = np.float32(1e-45)
    expected = [to_float32(sum(map(Fraction, row.tolist()), Fraction(0))) for row in x]
    parts = [exact_sum(part) for part in np.split(x, [7, 7 + seed, 7 + seed], axis=1) if part.size]
    assert rounded(exact_sum(x)).tolist() == expected
    assert rounded(merge_sums(parts)).tolist() == expected
    assert rounded(merge_sums([merge_sums(parts[1:]), parts[0]])).tolist() == expected


def test_ties_and_ends_of_exact_sums():
    tiny, most = np.float32(2**-149), np.finfo(np.float32).max
    rows = {(1, 2**-24): 1, (1, 2**-24, tiny): 1 + 2**-23, (1 + 2**-23, 2**-24): 1 + 2**-22, (tiny, -tiny): 0,
            (-0.0, -0.0): 0, (most, most, -most): most, (most, 2**103): np.inf, (most, 2**102): most,
            (most, 2**103, -tiny): most, (-most, -most): -np.inf, (tiny,) * 3: 3 * tiny,
            (np.inf, 1): np.inf, (np.inf, -np.inf): np.nan, (np.nan, 1): np.nan, (-np.inf, most): -np.inf}
    for row, expected in rows.items():
        result = rounded(exact_sum(np.array([row], np.float32)))
        assert same_bits(result, np.array([expected], np.float32)), row


def test_many_numbers_carry():
    x = np.full((2, 70000), np.finfo(np.float32).max, np.float32)
    x[1] = 0.1
    x[0, 1::2] *= -1
    x[0, 0] = 1
    expected = [to_float32(sum(map(Fraction, row.tolist()), Fraction(0))) for row in x]
    assert rounded(exact_sum(x)).tolist() == expected


def test_many_rows():
    rng = np.random.default_rng(2)
    x = np.ldexp(rng.integers(-2**24, 2**24, (9000, 2)).astype(np.float32), np.arange(9000)[:, None] // 50 - 140)
    x[8500, 0] = np.inf
    with np.errstate(over="ignore"):
        assert same_bits(rounded(exact_sum(x)), (x[:, 0].astype(np.float64) + x[:, 1]).astype(np.float32) + np.float32(0))


@pytest.mark.parametrize("seed", SEEDS)
def test_float_sums_do_not_depend_on_chunks_and_are_as_on_one_machine(seed):
    rng, x, chunked = case(seed, FLOATS)
    axes = some_axes(rng, x.ndim)
    for name in ("sum", "average", "l1", "l2", "sum_square", "log_sum", "log_sum_exp", "multiply"):
        with np.errstate(all="ignore"):
            expected = dml.reduce(x, name, axes)
        result = ad.reduce(chunked, name, axes)
        whole = ad.reduce(da.from_array(x, chunks=-1), name, axes).compute()
        computed = result.compute()
        assert result.dtype == x.dtype and result.shape == expected.shape == computed.shape
        if name not in ("log_sum_exp", "multiply"):
            assert same_bits(computed, whole)
        slack = np.abs(x[np.isfinite(x)].astype(np.float64)).sum() if name in ("sum", "average") else 0
        tolerance = {2: 2e-3, 4: 1e-5}[x.dtype.itemsize]
        if name != "log_sum":  # near 1, where its digits are those of the sum's error
            assert (np.isnan(expected) == np.isnan(computed)).all()
            np.testing.assert_allclose(computed.astype(np.float64), expected.astype(np.float64), rtol=tolerance,
                                       atol=1e-6 * slack + 1e-6)


def test_sums_that_are_exact_are_the_same_bytes_as_on_one_machine():
    rng = np.random.default_rng(3)
    x = rng.integers(-1000, 1000, (40, 50, 6)).astype(np.float32)
    for name in ("sum", "average", "l1"):
        for axes in ([0], [1, 2], [0, 1, 2]):
            check(ad.reduce(in_chunks(rng, x), name, axes), dml.reduce(x, name, axes))


def test_products_need_no_room_on_the_way():
    x = np.array([1e38, 1e38, 1e38, 1e-38, 1e-38, 1e-38], np.float32).repeat(300)
    assert ad.reduce(da.from_array(x, chunks=7), "multiply", [0]).compute() == pytest.approx(1, rel=1e-4)
    x = np.append(x, np.float32([0, np.inf]))
    assert np.isnan(ad.reduce(da.from_array(x, chunks=7), "multiply", [0]).compute())


# ---- Softmax ----

@pytest.mark.parametrize("seed", SEEDS)
def test_softmax(seed):
    rng, x, chunked = case(seed, FLOATS)
    axes = some_axes(rng, x.ndim)
    for ours, theirs in ((ad.softmax, dml.activation_softmax1), (ad.log_softmax, dml.activation_log_softmax1)):
        expected = theirs(x, axes)
        results = [ours(chunked, axes, reread=reread) for reread in (True, False)]
        for result in results:
            assert result.dtype == x.dtype and result.chunks == chunked.chunks
        computed = [result.compute() for result in results]
        assert same_bits(*computed)
        assert (np.isnan(computed[0]) == np.isnan(expected)).all()
        tolerance = {2: 2e-3, 4: 1e-5}[x.dtype.itemsize]
        np.testing.assert_allclose(computed[0].astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=1e-6)


def test_softmax_of_large_numbers_and_infinities():
    x = np.array([[1e30, 1e30, -1e30], [-np.inf, 0, 0], [-np.inf] * 3, [np.inf, 0, 0], [np.nan, 0, 0]], np.float32)
    result = ad.softmax(da.from_array(x, chunks=(2, 1)), [1]).compute()
    assert result[:2].tolist() == [[0.5, 0.5, 0], [0, 0.5, 0.5]]
    assert (result[2:].view(np.uint32) == 0x7FC00000).all()
    sums = ad.reduce(da.from_array(x, chunks=(2, 1)), "log_sum_exp", [1]).compute()[:, 0]
    assert same_bits(sums, dml.reduce(x, "log_sum_exp", [1])[:, 0])
    assert sums[2:4].tolist() == [-np.inf, np.inf]


# ---- Scatter ----

@pytest.mark.parametrize("seed", SEEDS)
def test_scatter_nd(seed):
    rng, x, chunked = case(seed, TYPES + [np.dtype("float64")])
    count = int(rng.integers(1, x.ndim + 1))
    tuples = tuple(int(size) for size in rng.integers(1, 9, rng.integers(0, 3)))
    dtype = np.dtype(["int32", "int64", "uint32", "uint64"][seed % 4])
    lowest = -1 if dtype.kind == "i" else 0
    indices = np.stack([rng.integers(lowest * size, size, tuples) for size in x.shape[:count]], -1).astype(dtype)
    updates = numbers(rng, tuples + x.shape[count:], x.dtype)
    result = ad.scatter_nd(chunked, in_chunks(rng, indices), in_chunks(rng, updates))
    assert result.chunks == chunked.chunks
    check(result, dml.scatter_nd(x, indices, updates))


def test_scatter_in_several_stages_and_with_many_duplicates():
    rng = np.random.default_rng(1)
    x, indices = np.zeros(600, np.float32), rng.integers(-600, 600, (3000, 1))
    updates = np.arange(3000, dtype=np.float32)
    for source, target in ((7, 2), (200, 2), (7, 300), (60, 1000)):
        result = ad.scatter_nd(da.from_array(x, chunks=target), da.from_array(indices, chunks=(source, 1)),
                               da.from_array(updates, chunks=100))
        assert same_bits(result.compute(), dml.scatter_nd(x, indices, updates))
        chunks = len(x) // target + 2 * (len(indices) // source) + 40
        assert len(result.dask) < chunks * 3 * 20  # not the product


def test_scatter_says_which_tuple_is_out_of_range():
    x = da.zeros((4, 4), dtype=np.float32, chunks=2)
    indices = np.zeros((3, 5, 2), np.int32)
    indices[1, 4] = 1, 9
    result = ad.scatter_nd(x, da.from_array(indices, chunks=(1, 2, 1)), da.ones((3, 5), dtype=np.float32, chunks=2))
    with pytest.raises(IndexError, match=r"SCATTER_ND: the tuple IndicesTensor\[1,4,:\] is \{1,9\} but "
                                         r"InputTensor.Sizes\[1\] is 4; its component 1 must be in \[-4, 3\]"):
        result.compute()
    with pytest.raises(IndexError, match=r"IndicesTensor\[:\] is \{5\} .* must be in \[0, 3\]"):
        ad.scatter_nd(x, np.array([5], np.uint64), np.ones(4, np.float32)).compute()


# ---- Models ----

def model_inputs(rng, count=11):
    x, y = (rng.standard_normal((count, 3)).astype(np.float32) for _ in range(2))
    return x, y, anydml.onnx.load(scale_and_add()).run({"x": x, "y": y})["z"]


@pytest.mark.parametrize("batch", [None, 1, 4])
def test_map_model(batch):
    rng = np.random.default_rng(5)
    x, y, z = model_inputs(rng)
    chunks = ((4, 0, 5, 2), (2, 1))
    inputs = {"x": da.from_array(x, chunks=chunks), "y": da.from_array(y, chunks=3)}
    results = ad.map_model(scale_and_add(), inputs, batch=batch)
    assert list(results) == ["z"] and results["z"].chunks == (chunks[0], (3,))
    check(results["z"], z)


def test_map_model_of_a_file_with_an_input_that_is_the_same_for_all(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(scale_and_add(sizes=(2, 3)))
    x = np.arange(18, dtype=np.float32).reshape(6, 3)
    result = ad.map_model(path, {"x": da.from_array(x, chunks=(4, 3)), "y": np.ones((2, 3), np.float32)})["z"]
    check(result, x * np.float32([1, 2, 3]) + 1)


def test_map_model_finds_out_what_the_model_does_not_say():
    """The output's sizes are not in the model: one sample is run to find them."""
    graph = text(1, text(1, "x") + text(2, "z") + text(4, "Flatten")) + text(2, "test")
    graph += text(11, value_info("x", ("n", 2, 3))) + text(12, value_info("z", ("n", "m")))
    model = number(1, 8) + text(7, graph) + text(8, text(1, "") + number(2, 17))
    x = np.arange(30, dtype=np.float32).reshape(5, 2, 3)
    check(ad.map_model(model, {"x": da.from_array(x, chunks=2)})["z"], x.reshape(5, 6))


@pytest.mark.parametrize("change, sentence", [
    (dict(y=None), 'input "y" is missing'),
    (dict(q=np.zeros(3)), 'the model has no input "q"; it has x, y'),
    (dict(x=da.zeros((11, 4), dtype=np.float32)), 'input "x" is 11x4 of float32; the model takes nx3 of float32'),
    (dict(x=da.zeros((11, 3))), 'input "x" is 11x3 of float64; the model takes nx3 of float32'),
    (dict(y=da.zeros((5, 3), dtype=np.float32)), r'input "y" has the shape \(5, 3\) but "x" has \(11, 3\)'),
    (dict(batch=0), "batch is 0; it must be at least 1"),
])
def test_map_model_refuses_at_once(change, sentence):
    x = da.zeros((11, 3), dtype=np.float32, chunks=4)
    inputs = {"x": x, "y": x, **change}
    batch = inputs.pop("batch", None)
    with pytest.raises(ValueError, match=sentence):
        ad.map_model(scale_and_add(), {name: value for name, value in inputs.items() if value is not None}, batch=batch)


def test_chunks_fit_a_batch_that_the_model_fixes():
    x = da.zeros((8, 3), dtype=np.float32, chunks=3)
    with pytest.raises(ValueError, match=r'"x" has chunks of \[2, 3\] samples; the model takes 2 at a time'):
        ad.map_model(scale_and_add(sizes=(2, 3)), {"x": x, "y": x})


# ---- Errors, laziness, meta ----

X = da.ones((6, 8), dtype=np.float32, chunks=(2, 3))


@pytest.mark.parametrize("call, kind, sentence", [
    (lambda: ad.top_k1(X, 1, 9, "decreasing"), ValueError,
     r"TOP_K1: K is 9 but InputTensor.Sizes\[Axis=1\] is 8; K must be in \[1, 8\]"),
    (lambda: ad.top_k1(X, 2, 1, "decreasing"), ValueError, r"axis is 2 but the input has 2 dimensions"),
    (lambda: ad.top_k1(X, "x", 1, "decreasing"), TypeError, "axis is 'x' but must be an int"),
    (lambda: ad.top_k1(X, 0, 1, "up"), ValueError, "AxisDirection"),
    (lambda: ad.top_k1(X.astype(bool), 0, 1, "increasing"), TypeError, "dtype bool"),
    (lambda: ad.top_k1(X[:0], 1, 1, "increasing"), ValueError, r"Sizes\[0\] is 0"),
    (lambda: ad.top_k1(X[X > 0], 0, 1, "increasing"), ValueError, "TOP_K1: input has chunks of unknown sizes"),
    (lambda: ad.top_k1(da.zeros(2**33, dtype=np.int8, chunks=2**30), 0, 1, "increasing"), ValueError,
     r"index_dtype is uint32 but the input has 8589934592 elements along axis 0"),
    (lambda: ad.reduce(X, "sum", [0, 0]), ValueError, "REDUCE"),
    (lambda: ad.reduce(X, "sum", [5]), ValueError, "axes is 5 but the input has 2 dimensions"),
    (lambda: ad.reduce(X, "total", [0]), ValueError, "Function"),
    (lambda: ad.reduce(X.astype(np.int8), "sum", [0]), ValueError, "DataType is INT8"),
    (lambda: ad.reduce(X.astype(np.float64), "max", [0]), ValueError, "FLOAT64"),
    (lambda: ad.argmax(X, [0], "increasing", dtype=np.int8), ValueError, "OutputTensor.DataType is INT8"),
    (lambda: ad.argmin(da.zeros((2**17, 2**16), dtype=np.int8, chunks=2**13), [0, 1]), ValueError,
     "ARGMIN: dtype is uint32 but the input has 8589934592 elements along axes"),
    (lambda: ad.softmax(X.astype(np.int32)), ValueError, "ACTIVATION_SOFTMAX1: .*INT32"),
    (lambda: ad.scatter_nd(X, np.zeros((3, 2), np.int32), np.ones(4, np.float32)), ValueError, "UpdatesTensor.Sizes"),
    (lambda: ad.scatter_nd(X, np.zeros((3, 2), np.float32), np.ones(3, np.float32)), ValueError, "FLOAT32"),
    (lambda: ad.scatter_nd(X, np.zeros((3, 3), np.int32), np.ones(3, np.float32)), ValueError, "index tuple, is 3"),
    (lambda: ad.scatter_nd(X, np.int32(1), np.ones(8, np.float32)), ValueError, "indices has no dimensions"),
    (lambda: ad.scatter_nd(X, np.zeros((3, 2), np.int32), np.ones((1, 3), np.float32)), ValueError,
     r"updates has the shape \(1, 3\) but must have \(3,\)"),
])
def test_errors_come_at_once(call, kind, sentence):
    with pytest.raises(kind, match=sentence):
        call()


def test_nothing_is_computed_before_it_is_asked_for():
    def fail(block):
        raise AssertionError("computed")

    x = X.map_blocks(fail, dtype=X.dtype, meta=X._meta)
    wide = da.zeros((2**17, 2**17), dtype=np.float32, chunks=2**12)
    for y in (x, wide):
        ad.top_k1(y, 1, 3, "increasing")
        ad.reduce(y, "sum", [0])
        ad.softmax(y, [1])
        ad.scatter_nd(y, np.zeros((3, 1), np.int32), da.ones((3, y.shape[1]), dtype=np.float32, chunks=2**12))
    values, indices = ad.top_k1(wide, -1, 3, "increasing")
    assert values._meta.dtype == np.float32 and indices._meta.dtype == np.uint32
    assert values.chunks == (wide.chunks[0], (3,))


def test_numbers_without_dimensions():
    x = da.from_array(np.array(3, np.float32))
    assert ad.reduce(x, "sum", [0]).compute() == 3 and ad.reduce(x, "sum", [0]).shape == ()
    assert ad.softmax(x, [0]).compute() == 1
    assert ad.top_k1(x, 0, 1, "increasing")[0].compute().tolist() == [3]
    assert ad.scatter_nd(x, np.array([0]), np.array(5, np.float32)).compute() == 5


def test_a_chunk_and_its_state_are_one_task():
    x = da.ones(6400, dtype=np.float32, chunks=100) + 1
    for function in (lambda: ad.reduce(x, "sum", [0]), lambda: ad.top_k1(x, 0, 1, "increasing")[0]):
        (optimized,) = dask.optimize(function())
        assert len(dict(optimized.dask)) <= 64 + 9 + 2  # chunks, merges, the result
    (optimized,) = dask.optimize(ad.softmax(x, [0]))
    assert len(dict(optimized.dask)) <= 2 * 64 + 9 + 10


def test_the_same_call_is_the_same_graph():
    assert ad.reduce(X, "sum", [0]).name == ad.reduce(X, "sum", [0]).name
    assert ad.reduce(X, "sum", [0]).name != ad.reduce(X, "sum", [1]).name


def test_importing_anydml_does_not_need_dask():
    code = "import sys; sys.modules['dask'] = None; import anydml; print('anydml.dask' in sys.modules); import anydml.dask"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "False\n"
    assert run.stderr.splitlines()[-1].startswith("ImportError: anydml.dask needs Dask (Debian: python3-dask")
