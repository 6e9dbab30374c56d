"""GPUs for tests: the machine's first one, and a simulated one with host memory, for everything in the package that
does not depend on CUDA."""

import ctypes

import numpy as np

import anydml as dml

NAME = "cuda:0"

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class _Native:
    """The CPU's device under another name."""

    id = NAME
    runs_on_host = False
    dlpack_device = (2, 0)

    def __init__(self):
        self._cpu = dml.Device("cpu")._native

    def __getattr__(self, name):
        return getattr(self._cpu, name)


def pretended():
    device = object.__new__(dml.Device)
    device._opened, device._compiled, device.id = _Native(), {}, NAME
    return device


def moved(capsule, place):
    """The capsule, changed to state that the tensor is on the GPU."""
    behind_the_address = _pointer(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)
    found = ctypes.cast(behind_the_address, ctypes.POINTER(ctypes.c_int32))
    found[0], found[1] = place
    return capsule


class OnGpu:
    """Another library's tensor on the simulated GPU."""

    def __init__(self, array, number=0):
        self.array, self.number, self.streams = array, number, []

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return moved(self.array.__dlpack__(), self.__dlpack_device__())

    def __dlpack_device__(self):
        return 2, self.number


class _Table(ctypes.Structure):
    """DLPack's C functions, as far as they are called."""

    View = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    CurrentStream = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
                ("others", ctypes.c_void_p * 3), ("view", View), ("current_stream", CurrentStream)]


_TENSOR_BYTES = 48  # of a DLTensor
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class OnGpuWithTable(OnGpu):
    """The same, with a type that has DLPack's C functions, as PyTorch's has since 2.10."""

    current_stream = 0
    requires_grad = False
    fails = False

    @_Table.View
    @staticmethod
    def _view(address, out):
        tensor = ctypes.cast(address, ctypes.py_object).value
        if tensor.fails:
            return -1
        tensor.kept = OnGpu.__dlpack__(tensor)
        tensor.streams.pop()
        ctypes.memmove(out, _pointer(tensor.kept, b"dltensor"), _TENSOR_BYTES)
        return 0

    @_Table.CurrentStream
    @staticmethod
    def _current_stream(kind, number, out):
        assert (kind, number) == (2, 0)
        out[0] = OnGpuWithTable.current_stream
        return 0

    _older = _Table(1, 3, None, (ctypes.c_void_p * 3)(), _view, _current_stream)
    _newer = _Table(2, 0, ctypes.addressof(_older))
    _name = b"dlpack_exchange_api"  # which the capsule does not keep
    __dlpack_c_exchange_api__ = _new_capsule(ctypes.addressof(_newer), _name, None)


def aligned(array, offset=0):
    """The array in memory that begins `offset` bytes after a multiple of 16."""
    room = np.empty(array.nbytes + 32, np.uint8)
    start = -room.ctypes.data % 16 + offset
    view = room[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view
