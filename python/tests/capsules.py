"""Invalid DLPack capsules: every field can be set."""

import ctypes

import numpy as np

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Tensor(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
                ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Liar:
    """Describes an array of 3 x 4 float32, except for the given fields. Sizes and strides are lists, or None for
    null."""

    def __init__(self, shape=(3, 4), strides=None, name=b"dltensor", place=(1, 0), **fields):
        self.memory, self.place, self.name = np.arange(4096, dtype=np.float32), place, name
        self.shape, self.strides = (None if values is None else (ctypes.c_int64 * max(1, len(values)))(*values)
                                    for values in (shape, strides))
        self.tensor = Tensor(data=self.memory.ctypes.data, device_type=1, ndim=len(shape or ()), code=2, bits=32, lanes=1,
                             shape=ctypes.cast(self.shape, ctypes.c_void_p) if self.shape else None,
                             strides=ctypes.cast(self.strides, ctypes.c_void_p) if self.strides else None)
        for field, value in fields.items():
            setattr(self.tensor, field, value)

    def __dlpack__(self, stream=None):
        return _new(ctypes.addressof(self.tensor), self.name, None)

    def __dlpack_device__(self):
        return self.place
