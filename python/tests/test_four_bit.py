"""Four-bit elements: how they are packed, and how they enter and leave operators."""

import ctypes

import numpy as np
import pytest

import anydml as dml
import gpus
from anydml._arrays import packed
from anydml._compiled import CompiledOperator
from anydml._tensor import NUMBERS


@pytest.mark.parametrize("dtype, low, high", [("uint4", 0, 15), ("int4", -8, 7)])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (2, 3, 4)])
def test_values_come_back(dtype, low, high, shape):
    values = np.random.default_rng(0).integers(low, high, shape, endpoint=True)
    tensor = dml.FourBit(values, dtype)
    assert (tensor.shape, tensor.dtype, tensor.size, tensor.ndim) == (shape, dtype, values.size, values.ndim)
    assert tensor.packed.dtype == np.uint8 and tensor.packed.shape == ((values.size + 1) // 2,)
    for array in (tensor.numpy(), np.asarray(tensor)):
        assert array.dtype == (np.int8 if dtype == "int4" else np.uint8)
        assert array.shape == shape and (array == values).all()


def test_the_first_is_in_the_lower_half():
    assert dml.FourBit([1, 2, 3], "uint4").packed.tolist() == [0x21, 0x03]
    assert dml.FourBit([-1, -8], "int4").packed.tolist() == [0x8F]
    assert dml.FourBit(np.arange(8, dtype=np.int8)[::-2], "uint4").packed.tolist() == [0x57, 0x13]
    assert repr(dml.FourBit([[1, -1]], "int4")) == "FourBit([[1, -1]], dtype='int4')"


@pytest.mark.parametrize("values, dtype, kind, sentence", [
    ([16], "uint4", ValueError, "a value is 16; uint4 holds 0 to 15"),
    ([0, -1], "uint4", ValueError, "a value is -1; uint4"),
    (8, "int4", ValueError, "a value is 8; int4 holds -8 to 7"),
    (np.array([-9], np.int64), "int4", ValueError, "a value is -9"),
    ([1.0], "int4", TypeError, "values have dtype float64; they must be integers"),
    ([1], "int8", ValueError, "dtype is 'int8'; it must be 'uint4' or 'int4'"),
])
def test_wrong_values(values, dtype, kind, sentence):
    with pytest.raises(kind, match=sentence):
        dml.FourBit(values, dtype)


@pytest.fixture(params=["cpu", "pretended"])
def device(request):
    return dml.Device("cpu") if request.param == "cpu" else gpus.pretended()


def test_operators_see_the_type(device):
    with pytest.raises(ValueError, match="TOP_K1: InputTensor.DataType is INT4, allowed at feature level"):
        dml.top_k1(dml.FourBit([1, 2, 3], "int4"), axis=0, k=1, direction="increasing", device=device)
    with pytest.raises(ValueError, match="OutputIndexTensor.DataType is UINT4, allowed"):
        dml.top_k1(np.ones(3, np.float32), axis=0, k=1, direction="increasing", index_dtype="uint4", device=device)
    with pytest.raises(ValueError, match="InputTensor.DataType is UINT4"):
        device.compile(dml.top_k1, dml.TensorSpec((3,), "uint4"), axis=0, k=1, direction="increasing")
    with pytest.raises(ValueError, match=r"strides is \(1,\) but elements of uint4 are packed"):
        dml.TensorSpec((3,), "uint4", strides=(1,))
    with pytest.raises(TypeError, match="out is a FourBit; results of four bits are always new"):
        dml.element_wise_identity(np.ones(3, np.uint8), out=dml.FourBit([1, 2, 3], "uint4"), device=device)


class _Copy:
    """A compiled operator that copies bytes."""

    outputs = [packed(NUMBERS["INT4"], (1, 5))]
    implementation = "test.copy"

    def run(self, inputs, outputs, stream, wait):
        ctypes.memmove(outputs[0], inputs[0], 3)

    def may_run_in_place(self, *_):
        return False


def test_in_and_out(device):
    copy = CompiledOperator("COPY", device, ["input"], [packed(NUMBERS["INT4"], (1, 5))], lambda places: _Copy(), 1)
    given = dml.FourBit([[1, -8, 7, -1, 5]], "int4")
    result = copy(given)
    assert isinstance(result, dml.FourBit) and result.numpy().tolist() == given.numpy().tolist()
    assert isinstance(result.packed, np.ndarray if device.id == "cpu" else dml.Tensor)
    assert copy(result).numpy().tolist() == given.numpy().tolist()  # without a copy
    with pytest.raises(ValueError, match=r"input is uint4 \(1, 5\) but was compiled as int4 \(1, 5\)"):
        copy(dml.FourBit([[1, 2, 3, 4, 5]], "uint4"))
