"""Objects that describe their memory wrongly are refused with a message before they are used."""

import ctypes

import numpy as np
import pytest
from capsules import Liar
from gpus import pretended
from test_onnx import scale_and_add

import anydml as dml
import anydml.onnx
from anydml._arrays import host_array

X = np.arange(12, dtype=np.float32).reshape(3, 4)
HUGE = 2**31 - 1

# The error, its exception and its message.
LIES = [
    (dict(ndim=-1), ValueError, "has -1 dimensions; there must be between 0 and 32"),
    (dict(ndim=-2**31), ValueError, "has -2147483648 dimensions"),
    (dict(ndim=HUGE), ValueError, "has 2147483647 dimensions"),
    (dict(shape=(1,) * 33), ValueError, "has 33 dimensions"),
    (dict(shape=(1,) * 64), ValueError, "has 64 dimensions"),
    (dict(shape=(1,) * 4000), ValueError, "has 4000 dimensions"),
    (dict(shape=(1,) * 9), ValueError, "at most 8 dimensions, not 9|but was compiled as"),
    (dict(shape=None, ndim=2), ValueError, "has 2 dimensions but no sizes"),
    (dict(shape=(3, -4)), ValueError, "has size -4 in dimension 1; sizes must be at least 0"),
    (dict(shape=(-2**63, 4)), ValueError, "has size -9223372036854775808 in dimension 0"),
    (dict(shape=(2**62, 4)), ValueError, r"in dimension 0, with which it has more bytes than 2\^63 - 1"),
    (dict(shape=(2**32, 2**32)), ValueError, "more bytes than"),
    (dict(shape=(2**61,)), ValueError, "more bytes than"),
    (dict(shape=(0, 2**62, 2**62)), ValueError, "more bytes than"),
    (dict(shape=(3, 4), strides=(2**62, 1)), ValueError, "has stride 4611686018427387904 in dimension 0, with which"),
    (dict(shape=(3, 4), strides=(2**60, 1)), ValueError, "has stride|beyond the address space"),
    (dict(shape=(3, 4), strides=(-2**63, 1)), ValueError, "has stride -9223372036854775808 in dimension 0"),
    (dict(shape=(3, 4), strides=(-2**58, 1)), ValueError, "beyond the address space"),
    (dict(shape=(3, 4), strides=(2**59, 2**59)), ValueError, "has stride|beyond the address space"),
    (dict(shape=(2**40, 2**40), strides=(0, 0)), ValueError, "more bytes than"),
    (dict(data=None), ValueError, "has elements but no address"),
    (dict(data=None, byte_offset=64), ValueError, "has elements but no address"),
    (dict(byte_offset=2**64 - 1), ValueError, "has byte_offset 18446744073709551615, which leads beyond"),
    (dict(byte_offset=2**63 - 1), ValueError, "which leads beyond"),
    (dict(bits=0), TypeError, "data type that DirectML does not have"),
    (dict(bits=1), TypeError, "data type that DirectML does not have"),
    (dict(bits=24), TypeError, "data type that DirectML does not have"),
    (dict(bits=128), TypeError, "data type that DirectML does not have"),
    (dict(bits=8), TypeError, "data type that DirectML does not have"),
    (dict(lanes=0), TypeError, "data type that DirectML does not have"),
    (dict(lanes=4), TypeError, "data type that DirectML does not have"),
    (dict(lanes=65535), TypeError, "data type that DirectML does not have"),
    (dict(code=4), TypeError, "data type that DirectML does not have"),
    (dict(code=6), TypeError, "data type that DirectML does not have"),
    (dict(code=255), TypeError, "data type that DirectML does not have"),
    (dict(device_type=2), ValueError, "is on the host by __dlpack_device__ but on cuda:0 by its capsule"),
    (dict(device_type=0), ValueError, "but on a device of DLPack's type 0 by its capsule"),
    (dict(device_type=-7), ValueError, "but on a device of DLPack's type -7 by its capsule"),
    (dict(place=(-1, -1)), ValueError, "is on a device of DLPack's type -1"),
    (dict(place=(2**70, 0)), ValueError, "is on a device of DLPack's type"),
    (dict(place=(1,)), TypeError, r"__dlpack_device__ returned \(1,\); it must be two ints"),
    (dict(place=(1, 2, 3)), TypeError, "must be two ints"),
    (dict(place="no"), TypeError, "must be two ints"),
    (dict(place=None), TypeError, "must be two ints"),
    (dict(name=b"used_dltensor"), ValueError, "something else than an unused 'dltensor' capsule"),
    (dict(name=b"dltensor_versioned"), ValueError, "unused 'dltensor' capsule"),
    (dict(name=b""), ValueError, "unused 'dltensor' capsule"),
    (dict(name=None), ValueError, "unused 'dltensor' capsule"),
]


def name_of(lie):
    return ",".join(f"{field}={value}"[:40] for field, value in lie.items())


lies = pytest.mark.parametrize("lie, kind, sentence", LIES, ids=[name_of(lie) for lie, _, _ in LIES])


@lies
def test_a_capsule_that_lies(lie, kind, sentence):
    copy = dml.Device("cpu").compile(dml.element_wise_identity, X)
    for call in (dml.element_wise_identity, copy, lambda value: dml.element_wise_identity(X, out=value),
                 lambda value: copy(X, out=value), lambda value: dml.join([X, value], axis=0)):
        with pytest.raises(kind, match=sentence):
            call(Liar(**lie))


@pytest.mark.parametrize("lie", [lie for lie, _, _ in LIES if not {"place", "device_type"} & set(lie)] +
                         [dict(device_type=kind) for kind in (-7, 0, 1, 3)], ids=name_of)
def test_a_capsule_on_a_gpu_that_lies(forget_functions, lie):
    copy = pretended().compile(dml.element_wise_identity, dml.TensorSpec((3, 4), np.float32))
    assert copy(Liar(device_type=2, place=(2, 0))).numpy().tolist() == X.tolist()
    for call in (copy, lambda value: copy(Liar(device_type=2, place=(2, 0)), out=value)):
        with pytest.raises((TypeError, ValueError)) as error:
            call(Liar(**{"device_type": 2, "place": (2, 0), **lie}))
        assert str(error.value)


def test_a_capsule_that_lies_to_a_model():
    model = anydml.onnx.load(scale_and_add())
    for lie in (dict(ndim=HUGE), dict(shape=(1,) * 64), dict(data=None), dict(shape=(2**62, 4)), dict(strides=(2**60, 1))):
        with pytest.raises(ValueError, match="x has "):
            model.run({"x": Liar(**lie), "y": X})


def test_capsules_at_the_edges():
    def read(**fields):
        liar = Liar(**fields)
        return host_array(liar, "x").tolist()

    assert read(shape=()) == 0 and read(shape=(), byte_offset=20) == 5
    assert read(shape=None) == 0
    assert read(shape=(2, 2), strides=(-1, -4), byte_offset=32) == [[8, 4], [7, 3]]
    assert read(shape=(1, 2), strides=(2**62, 3)) == [[0, 3]]  # of one element: it has no meaning
    assert read(shape=(2, 0), data=None, strides=(2**62, -2**63)) == [[], []]
    assert read(shape=(2,), strides=(0,)) == [0, 0]
    assert host_array(Liar(shape=(1,) * 32), "x").shape == (1,) * 32
    for place in ((1, 5), (3, 0)):  # pinned memory is host memory
        assert read(place=place, shape=(1,)) == [0]
    assert dml.element_wise_identity(Liar(shape=(2, 2), strides=(-1, -4), byte_offset=32)).tolist() == [[8, 4], [7, 3]]


def test_a_capsule_that_is_refused_is_not_used_and_others_are_once():
    given_back = []
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(given_back.append)
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.argtypes = [ctypes.py_object, ctypes.c_char_p]
    for lie, unused in ((dict(ndim=HUGE), 1), (dict(lanes=2), 1), ({}, 0)):
        liar = Liar(**lie, deleter=ctypes.cast(deleter, ctypes.c_void_p))
        capsule = liar.__dlpack__()
        liar.__dlpack__ = None
        holder = type("Holder", (), {"__dlpack__": lambda self, stream=None: capsule,
                                     "__dlpack_device__": lambda self: (1, 0)})()
        try:
            dml.element_wise_identity(holder)
        except (TypeError, ValueError):
            assert unused
        assert valid(capsule, b"dltensor") == unused and len(given_back) == 1 - unused


@pytest.mark.parametrize("made", [None, 3, "dltensor", object(), np.zeros(3)])
def test_something_else_than_a_capsule(made):
    holder = type("Holder", (), {"__dlpack__": lambda self, stream=None: made, "__dlpack_device__": lambda self: (1, 0)})()
    with pytest.raises(ValueError, match="ELEMENT_WISE_IDENTITY: input: __dlpack__ returned something else"):
        dml.element_wise_identity(holder)


class Interface:
    """`__array_interface__` returns `good` at first, and later the wrong description."""

    def __init__(self, good=0, **wrong):
        self.memory, self.good, self.wrong = np.arange(4096, dtype=np.float32), good, wrong

    @property
    def __array_interface__(self):
        interface = {"version": 3, "typestr": "<f4", "shape": (3, 4), "data": (self.memory.ctypes.data, False)}
        self.good -= 1
        return interface if self.good >= 0 else {**interface, **self.wrong}


@pytest.mark.parametrize("wrong", [
    dict(shape=(1,) * 33), dict(shape=(1,) * 64), dict(shape=(1,) * 5000), dict(shape=(-1, 4)), dict(shape=(2**62, 4)),
    dict(shape=None), dict(shape=(3.5,)), dict(typestr="nonsense"), dict(typestr=7), dict(data=3), dict(data=(None, 1, 2)),
    dict(strides=(1,)), dict(strides=(2**70, 4)), dict(strides=3), dict(shape=(1,) * 9)])
def test_an_interface_that_lies(wrong):
    assert dml.element_wise_identity(Interface()).tolist() == X.tolist()
    for call in (dml.element_wise_identity, lambda value: dml.element_wise_identity(X, out=value)):
        with pytest.raises((TypeError, ValueError, OverflowError)) as error:
            call(Interface(**wrong))
        assert str(error.value)


def test_an_interface_is_asked_once():
    """The checked description is the one that is used."""
    for good in range(1, 4):
        assert host_array(Interface(good, shape=(1,) * 64), "x").tolist() == X.tolist()


def test_a_four_bit_tensor_without_its_elements():
    tensor = dml.FourBit([[1, 2, 3]], "uint4")
    scale, zero = np.ones((1, 1), np.float32), dml.FourBit([[0]], "uint4")
    for shape in ((1 << 20,), (1, 5), (2**31, 2**31)):
        tensor.shape = shape
        with pytest.raises(ValueError, match="a FourBit of shape .* has 2 bytes of packed elements; there must be"):
            dml.dequantize(tensor, [scale, zero], quantization_type="scale_zero_point")


def test_a_tensor_without_its_elements(forget_functions):
    gpu = pretended()
    copy = gpu.compile(dml.element_wise_identity, dml.TensorSpec((1 << 20,), np.float32))
    tensor = gpu.compile(dml.element_wise_identity, dml.TensorSpec((4,), np.float32))(np.ones(4, np.float32))
    room = tensor._memory.bytes
    tensor.shape = (1 << 20,)
    assert tensor.nbytes > room
    for use in (tensor.numpy, tensor.__dlpack__, lambda: copy(tensor), lambda: copy(np.ones(1 << 20, np.float32), out=tensor)):
        with pytest.raises(ValueError, match=str(room)):
            use()


class Late:
    """An object whose interface is None on the first read and wrong on the second."""

    def __init__(self):
        self.asked = 0

    @property
    def __array_interface__(self):
        self.asked += 1
        return None if self.asked == 1 else Interface(shape=(1,) * 500).__array_interface__


LIE = Interface(shape=(1,) * 500)


@pytest.mark.parametrize("call", [
    lambda: dml.element_wise_identity([LIE]), lambda: dml.element_wise_identity([[1.0], (LIE,)]),
    lambda: dml.element_wise_identity(Late()), lambda: dml.FourBit(LIE, "int4"), lambda: dml.FourBit([LIE], "int4"),
    lambda: dml.Activation("activation_linear", Alpha=LIE, Beta=1).nested(),
    lambda: dml.Device("cpu").compile(dml.element_wise_identity, dml.TensorSpec((1,), np.float32))([LIE])])
def test_an_interface_anywhere(call):
    with pytest.raises((TypeError, ValueError)) as error:
        call()
    assert str(error.value)


class LyingArray(np.ndarray):
    """An array whose attributes say that it has more elements than it has."""

    shape, strides, ctypes = property(lambda self: (64,)), property(lambda self: (1,)), None


def test_an_array_of_a_subclass_that_lies():
    memory = np.arange(3, dtype=np.uint8)
    liar = memory.view(LyingArray)
    assert dml.element_wise_identity(liar).tolist() == [0, 1, 2]
    assert dml.element_wise_identity(np.array([7, 8, 9], np.uint8), out=liar) is liar
    assert memory.tolist() == [7, 8, 9]


def test_lists_that_are_nested_too_deep():
    nested = 1.0
    for _ in range(40):
        nested = [nested]
    with pytest.raises(ValueError, match="nested more than 32 deep"):
        dml.element_wise_identity(nested)


@pytest.mark.parametrize("value", [object(), {1.0}, {"a": 1.0}, lambda: None])
def test_what_is_no_array(value):
    with pytest.raises(TypeError, match="input"):
        dml.element_wise_identity(value)
