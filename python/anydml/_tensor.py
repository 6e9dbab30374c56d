"""Tensors on a GPU, descriptions of tensors, and the names of types."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from . import _anydml
from ._foreign import as_array

CPU, CUDA, CUDA_HOST = 1, 2, 3  # DLPack's device types
DEFAULT_STREAM = 1  # the default stream's number, for DLPack and CUDA

# "FLOAT32" -> 1, and "<f4" -> 1: from DirectML's and NumPy's names to values of DML_TENSOR_DATA_TYPE.
NUMBERS = {name: number for number, name in enumerate(_anydml.data_types())}
_NUMPY = {np.dtype(name.lower()).str: number for name, number in NUMBERS.items()
          if name not in ("UNKNOWN", "UINT4", "INT4")}
_DTYPES = {number: np.dtype(name) for name, number in _NUMPY.items()}


def number_of(dtype: np.dtype[Any], what: str) -> int:
    """The DML_TENSOR_DATA_TYPE of a NumPy type."""
    number = _NUMPY.get(dtype.newbyteorder("=").str)
    if number is None:
        hint = "; pass x.view(numpy.uint8)" if dtype == np.bool_ else ""
        raise TypeError(f"{what} has dtype {dtype}, which DirectML does not have{hint}")
    return number


def dtype_of(number: int) -> np.dtype[Any]:
    return _DTYPES[number]


def name_of(number: int) -> str:
    """As NumPy spells it, and "uint4" and "int4"."""
    return _anydml.data_types()[number].lower()


def requested_number(dtype: Any, what: str) -> int:
    """The DML_TENSOR_DATA_TYPE of a requested type: a NumPy type, "uint4" or "int4"."""
    if isinstance(dtype, str) and dtype in FourBit.RANGES:
        return NUMBERS[dtype.upper()]
    return number_of(np.dtype(dtype), what)


class FourBit:
    """Elements of four bits, which NumPy does not have: ``FourBit(values, "int4")``.

    "uint4" is for values in [0, 15], "int4" for [-8, 7]. ``packed`` has two of them in a byte, the first in its
    lower half; :meth:`numpy` gives them back as uint8 or int8. Operators take it as an array, and return it for
    results of these types.

    >>> dml.FourBit([[1, -8, 7]], "int4").packed.tolist()
    [129, 7]
    >>> dml.FourBit([[1, -8, 7]], "int4").numpy()
    array([[ 1, -8,  7]], dtype=int8)
    """

    RANGES = {"uint4": (0, 15), "int4": (-8, 7)}

    packed: Union[npt.NDArray[np.uint8], Tensor]

    def __init__(self, values: npt.ArrayLike, dtype: str):
        if dtype not in self.RANGES:
            raise ValueError(f"dtype is {dtype!r}; it must be 'uint4' or 'int4'")
        given = as_array(values, "values")
        if given.dtype.kind not in "iu":
            raise TypeError(f"values have dtype {given.dtype}; they must be integers")
        low, high = self.RANGES[dtype]
        wrong = given[(given < low) | (given > high)]
        if wrong.size:
            raise ValueError(f"a value is {wrong.flat[0]}; {dtype} holds {low} to {high}")
        self.shape, self.dtype = given.shape, dtype
        nibbles: npt.NDArray[np.uint8] = np.zeros(given.size + given.size % 2, np.uint8)
        nibbles[:given.size] = given.astype(np.int8, copy=False).reshape(-1).view(np.uint8) & 15
        self.packed = nibbles[::2] | np.left_shift(nibbles[1::2], np.uint8(4))

    @classmethod
    def over(cls, packed: Union[npt.NDArray[np.uint8], Tensor], shape: tuple[int, ...], number: int) -> FourBit:
        """Of bytes that are packed already."""
        tensor = object.__new__(cls)
        tensor.packed, tensor.shape, tensor.dtype = packed, shape, name_of(number)
        return tensor

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def number(self) -> int:
        return NUMBERS[self.dtype.upper()]

    def numpy(self) -> npt.NDArray[Any]:
        """The values, a byte each; from a GPU they are copied."""
        packed = self.packed.numpy() if isinstance(self.packed, Tensor) else self.packed
        values: npt.NDArray[Any] = np.stack([packed & 15, packed >> 4], axis=1).reshape(-1)[:self.size]
        if self.dtype == "int4":
            values = (values ^ 8).view(np.int8) - np.int8(8)
        return values.reshape(self.shape)

    def __array__(self, dtype: npt.DTypeLike = None, copy: Optional[bool] = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("elements of four bits have to be copied to become an array")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"FourBit({self.numpy().tolist()}, dtype={self.dtype!r})"


def _size(value: Any, what: str, least: int, end: int) -> int:
    number = operator.index(value)
    if not least <= number < end:
        raise ValueError(f"{what} has {number}; it must be in [{least}, {end})")
    return number


class TensorSpec:
    """The shape, type and strides of arrays that are to come, for :meth:`Device.compile`.

    Strides are in bytes as NumPy's are; without them the arrays are C-contiguous. Of a :class:`FourBit` they have to
    be left out.

    >>> dml.TensorSpec((2, 3), np.float16)
    TensorSpec((2, 3), dtype=float16, strides=(6, 2))
    """

    def __init__(self, shape: Sequence[int], dtype: npt.DTypeLike, strides: Optional[Sequence[int]] = None):
        self.shape = tuple(_size(size, "shape", 0, 2**63) for size in shape)
        self.dtype: Union[np.dtype[Any], str]
        self.strides: Optional[tuple[int, ...]] = None
        if isinstance(dtype, str) and dtype in FourBit.RANGES:
            self.dtype = dtype
            if strides is not None:
                raise ValueError(f"strides is {strides} but elements of {dtype} are packed; it must be left out")
            return
        self.dtype = np.dtype(dtype)
        if strides is None:
            strides = [math.prod(self.shape[i + 1:]) * self.dtype.itemsize for i in range(len(self.shape))]
        self.strides = tuple(_size(stride, "strides", -2**63, 2**63) for stride in strides)
        if len(self.strides) != len(self.shape):
            raise ValueError(f"strides is {self.strides} but shape is {self.shape}; they must be equally long")

    def __repr__(self) -> str:
        return f"TensorSpec({self.shape}, dtype={self.dtype}, strides={self.strides})"


class Tensor:
    """A packed array in the memory of a GPU, which an operator wrote.

    Other libraries take it through DLPack without a copy (``torch.from_dlpack(tensor)``);
    :meth:`numpy` copies it to the host. Either comes behind what the operator does in its stream.
    """

    def __init__(self, device: _anydml.Device, memory: _anydml.Memory, shape: tuple[int, ...],
                 dtype: np.dtype[Any]):
        self._device, self._memory = device, memory
        self.shape, self.dtype = shape, dtype

    @property
    def device(self) -> str:
        return self._device.id

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def numpy(self) -> npt.NDArray[Any]:
        """A copy on the host."""
        array: npt.NDArray[Any] = np.empty(self.shape, self.dtype)
        self._device.download(self._memory, self.nbytes, array.ctypes.data)
        return array

    def __array__(self, dtype: npt.DTypeLike = None, copy: Optional[bool] = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError(f"a tensor on {self.device} has to be copied to become an array")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device.dlpack_device

    def __dlpack__(self, *, stream: Optional[int] = None, max_version: Optional[tuple[int, int]] = None,
                   dl_device: Optional[tuple[int, int]] = None, copy: Optional[bool] = None) -> object:
        if copy or dl_device not in (None, self.__dlpack_device__()):
            raise BufferError("a tensor is exported where it is, and not copied")
        # The consumer's stream waits for ours, the host does not wait; -1: the consumer synchronizes itself.
        use = None if stream == -1 else self._memory.use_in(stream or DEFAULT_STREAM, True)
        return _anydml.export_tensor(self._memory, use, self.dtype.str, self.shape, self.__dlpack_device__())

    def __reduce__(self) -> Any:
        raise TypeError("a Tensor cannot be pickled or copied; numpy() gives an array that can")

    def __repr__(self) -> str:
        return f"Tensor({self.shape}, dtype={self.dtype}, device={self.device!r})"


_anydml.register_tensors(Tensor, [_DTYPES.get(number) for number in NUMBERS.values()])


def stream_number(stream: Any) -> int:
    """DLPack's number of a CUDA stream: of a handle, or of PyTorch's and CuPy's objects."""
    handle = getattr(stream, "cuda_stream", None)
    if handle is None:
        handle = getattr(stream, "ptr", stream)
    try:
        number = operator.index(handle)
    except TypeError:
        raise TypeError(f"stream is {stream!r} but must be a stream of PyTorch or CuPy, or its handle") from None
    if not 0 <= number < 2**64:
        raise ValueError(f"stream is {number} but must be a CUDA stream's handle")
    return number or DEFAULT_STREAM


Array = Union[npt.NDArray[Any], Tensor]  # or a FourBit, if requested
# A NumPy array, a Tensor, a FourBit, or any object with __dlpack__ (PyTorch, CuPy); TensorSpec when
# compiling.
ArrayLike = Any
OutArray = Any
