"""Converts arrays of any library to operands that a device reads and writes.

On the CPU, everything becomes a NumPy array first. Operators handle strides of 0 and
more; arrays that an operator cannot read in place are copied. On a GPU, everything
becomes an address.
"""

from __future__ import annotations

import math
import operator
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from . import _anydml
from ._foreign import Interface, as_array
from ._tensor import CPU, CUDA, CUDA_HOST, FourBit, Tensor, TensorSpec, number_of, requested_number

Layout = tuple[int, tuple[int, ...], tuple[int, ...]]  # DML_TENSOR_DATA_TYPE, sizes, strides in elements
Region = tuple[int, int]  # address, bytes
_LARGEST = 2**32
_HOST = (CPU, CUDA_HOST)
# "FLOAT32" -> 32
_BITS = {number: int("".join(filter(str.isdigit, name)) or 0) for number, name in enumerate(_anydml.data_types())}


class Operand:
    """A tensor's memory, and the object that keeps it alive."""

    def __init__(self, layout: Layout, address: int, keep: Any):
        self.layout, self.address, self.keep = layout, address, keep

    @property
    def span(self) -> int:
        """Bytes from the first element to the end of the last."""
        number, sizes, strides = self.layout
        reach = sum((size - 1) * stride for size, stride in zip(sizes, strides))
        return packed_bytes(number, reach + 1)

    @property
    def region(self) -> Region:
        return self.address, self.span

    def overlaps(self, other: Operand) -> bool:
        """Rounded up to a multiple of 4 bytes, as in the library."""
        end, other_end = (operand.address + -(-operand.span // 4) * 4 for operand in (self, other))
        return self.address < other_end and other.address < end

    def same_region(self, other: Operand) -> bool:
        return self.region == other.region


def packed_bytes(number: int, count: int) -> int:
    return (count * _BITS[number] + 7) // 8


def is_four_bit(number: int) -> bool:
    return _BITS[number] == 4


def four_bit_operand(value: FourBit, packed_operand: Operand) -> Operand:
    """The same memory, reinterpreted from bytes."""
    if packed_bytes(value.number, value.size) > packed_operand.span:
        raise ValueError(f"a FourBit of shape {value.shape} has {packed_operand.span} bytes of packed elements; there must "
                         f"be {packed_bytes(value.number, value.size)}")
    return Operand(packed(value.number, value.shape or (1,)), packed_operand.address, packed_operand.keep)


def packed(number: int, shape: tuple[int, ...]) -> Layout:
    return number, shape, tuple(math.prod(shape[i + 1:]) for i in range(len(shape)))


def layout_of(shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...],
              what: str) -> Optional[Layout]:
    """None for a layout that no tensor can have: strides below 0, of part of an element, or of 2^32 and more."""
    number = number_of(dtype, what)
    elements = []
    for size, stride in zip(shape, strides):
        if size <= 1:
            stride = 0  # its value never matters
        if stride < 0 or stride % dtype.itemsize or stride // dtype.itemsize >= _LARGEST:
            return None
        elements.append(stride // dtype.itemsize)
    # An array without dimensions is a tensor with one element.
    return (number, shape, tuple(elements)) if shape else (number, (1,), (0,))


def _adapter_at(place: tuple[int, int]) -> str:
    """The adapter with this memory. If there is none, a name that leads to an error message: a missing GPU, or the
    CPU, which refuses the array."""
    known = _anydml.adapter_with_memory(*place) if 0 <= min(place) and max(place) < 2**31 else ""
    return known or (f"cuda:{place[1]}" if place[0] == CUDA else "cpu")


def device_name(values: list[Any]) -> str:
    """The device of the inputs: the first GPU that holds one of them, or the CPU."""
    for value in values:
        if isinstance(value, FourBit):
            value = value.packed
        if isinstance(value, Tensor):
            return value.device
        if not isinstance(value, np.ndarray) and hasattr(value, "__dlpack_device__"):
            place = _place(value, "an input")
            if place[0] not in _HOST:
                return _adapter_at(place)
    return "cpu"


def _place(value: Any, what: str) -> tuple[int, int]:
    """DLPack's device type and device number."""
    place = value.__dlpack_device__()
    try:
        kind, number = (operator.index(each) for each in place)
    except (TypeError, ValueError):
        raise TypeError(f"{what}: __dlpack_device__ returned {place!r}; it must be two ints, the type of the device "
                        "and its number") from None
    return kind, number


def _place_name(kind: int, number: int) -> str:
    return f"cuda:{number}" if kind == CUDA else "the host" if kind in _HOST else f"a device of DLPack's type {kind}"


def _imported(value: Any, what: str, place: tuple[int, int], **stream: int) -> _anydml.ImportedTensor:
    """The imported tensor, which must be on the device that it stated. (PyTorch calls pinned memory host memory in
    one of the two places only.)"""
    tensor = _anydml.import_tensor(value.__dlpack__(**stream), what)
    found = tensor.device
    if found != place and not (found[0] in _HOST and place[0] in _HOST):
        raise ValueError(f"{what} is on {_place_name(*place)} by __dlpack_device__ but on {_place_name(*found)} by "
                         "its capsule")
    return tensor


def host_array(value: Any, what: str) -> npt.NDArray[Any]:
    """The same memory as a NumPy array, or a new one from lists and numbers."""
    if not isinstance(value, np.ndarray) and hasattr(value, "__dlpack_device__"):
        place = _place(value, what)
        if place[0] not in _HOST:
            raise ValueError(f"{what} is on {_place_name(*place)} but the operator runs on cpu")
        tensor = _imported(value, what, place)
        if 0 in tensor.shape:  # has no address, which NumPy requires
            return np.empty(tensor.shape, tensor.type)
        item = int(tensor.type[2:])
        return np.asarray(Interface({
            "version": 3, "typestr": tensor.type, "shape": tensor.shape, "data": (tensor.address, False),
            "strides": tuple(stride * item for stride in tensor.strides)}, tensor))
    return as_array(value, what)


def host_operand(array: npt.NDArray[Any], what: str) -> Optional[Operand]:
    """None if the array would have to be copied."""
    layout = layout_of(array.shape, array.dtype, array.strides, what)
    if layout is None or not array.flags.aligned or not array.dtype.isnative:
        return None
    return Operand(layout, array.ctypes.data, array)


def host_input(value: Any, what: str) -> Operand:
    array = host_array(value, what)
    operand = host_operand(array, what)
    if operand is None:
        operand = host_operand(np.array(array, array.dtype.newbyteorder("="), order="C"), what)
        assert operand is not None
    return operand


def device_operand(device: _anydml.Device, value: Any, what: str, stream: int) -> Operand:
    """A tensor on the device. Earlier work on it in other streams precedes later work in `stream`."""
    if isinstance(value, Tensor):
        if value.device != device.id:
            raise ValueError(f"{what} is on {value.device} but the operator runs on {device.id}")
        memory = value._memory
        if value.nbytes > memory.bytes:
            raise ValueError(f"{what} has {value.nbytes} bytes by its shape but its memory has {memory.bytes}")
        layout = packed(number_of(value.dtype, what), value.shape or (1,))
        return Operand(layout, memory.address, memory.use_in(stream, False))
    place = _place(value, what)
    if place != device.dlpack_device:
        raise ValueError(f"{what} is on {_place_name(*place)} but the operator runs on {device.id}")
    tensor = _imported(value, what, place, stream=stream)
    item = int(tensor.type[2:])
    layout = layout_of(tensor.shape, np.dtype(tensor.type), tuple(s * item for s in tensor.strides), what)
    if layout is None:
        raise ValueError(f"{what} has strides {tensor.strides}; on a GPU they must be in [0, 2^32)")
    return Operand(layout, tensor.address, tensor)


def device_input(device: _anydml.Device, value: Any, what: str, stream: int) -> Operand:
    on_device = isinstance(value, Tensor) or (
        not isinstance(value, np.ndarray) and hasattr(value, "__dlpack_device__")
        and _place(value, what)[0] not in _HOST)
    if not on_device:
        operand = host_input(value, what)
        if 0 in operand.layout[1]:
            return operand  # the library refuses it before it reads the data
        operand.keep = device.upload(*operand.region, stream)
        operand.address = operand.keep.address
        return operand
    operand = device_operand(device, value, what, stream)
    if operand.address % 16 != 0:  # DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT
        operand.keep = device.duplicate(*operand.region, stream)
        operand.address = operand.keep.address
    return operand


def spec_operand(spec: TensorSpec, what: str) -> Operand:
    if isinstance(spec.dtype, str) or spec.strides is None:
        return Operand(packed(requested_number(spec.dtype, what), spec.shape or (1,)), 0, None)
    layout = layout_of(spec.shape, spec.dtype, spec.strides, what)
    if layout is None:
        raise ValueError(f"{what} has strides {spec.strides}; they must be multiples of "
                         f"{spec.dtype.itemsize} and at least 0")
    return Operand(layout, 0, None)
