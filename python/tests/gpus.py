"""GPUs for tests: the machine's first one, and a pretended one, whose memory is the host's, for everything in the
package that does not depend on CUDA."""

import ctypes

import numpy as np

import anydml as dml

NAME = "cuda:0"

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class _Native:
    """The CPU's device under another name."""

    id = NAME

    def __init__(self):
        self._cpu = dml.Device("cpu")._native

    def __getattr__(self, name):
        return getattr(self._cpu, name)


def pretended():
    device = object.__new__(dml.Device)
    device._opened, device._compiled, device.id = _Native(), {}, NAME
    return device


class OnGpu:
    """Another library's tensor on the pretended GPU."""

    def __init__(self, array, number=0):
        self.array, self.number, self.streams = array, number, []

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        capsule = self.array.__dlpack__()
        place = ctypes.cast(_pointer(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int32))
        place[0], place[1] = self.__dlpack_device__()  # behind the address
        return capsule

    def __dlpack_device__(self):
        return 2, self.number


def aligned(array, offset=0):
    """The array in memory that begins `offset` bytes after a multiple of 16."""
    room = np.empty(array.nbytes + 32, np.uint8)
    start = -room.ctypes.data % 16 + offset
    view = room[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view
