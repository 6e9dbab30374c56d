"""onnxruntime's C API, from the library inside the npm package, called through ctypes: what
the Node.js binding adds (a copy of every output, JavaScript) is not in these times. Inputs
and outputs are preallocated; in place: input and output are the same memory."""

import ctypes
import glob
import os
import platform

import numpy as np

import onnx_model
import peer

# Positions in the table of functions, which the API only ever appends to.
GET_ERROR_MESSAGE, CREATE_ENV, CREATE_SESSION, RUN, CREATE_SESSION_OPTIONS = 2, 3, 7, 9, 10
SET_INTRA_OP_THREADS, SET_INTER_OP_THREADS, CREATE_TENSOR, CREATE_CPU_MEMORY_INFO = 24, 25, 49, 69
RELEASE_STATUS, RELEASE_SESSION, RELEASE_VALUE, RELEASE_SESSION_OPTIONS = 93, 95, 96, 100
API_VERSION = 11

POINTER, SIZE = ctypes.c_void_p, ctypes.c_size_t


class ApiBase(ctypes.Structure):
    _fields_ = [("get_api", ctypes.CFUNCTYPE(POINTER, ctypes.c_uint32)),
                ("get_version", ctypes.CFUNCTYPE(ctypes.c_char_p))]


class Api:
    def __init__(self):
        folder = {"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]
        pattern = f"onnxruntime-node/bin/*/linux/{folder}/libonnxruntime.so.1"
        found = glob.glob(os.path.join(os.environ["BENCH_NODE_MODULES"], pattern))
        if not found:
            raise SystemExit("onnxruntime-node is not installed")
        self.library = ctypes.CDLL(found[0])
        self.library.OrtGetApiBase.restype = ctypes.POINTER(ApiBase)
        base = self.library.OrtGetApiBase().contents
        self.version = base.get_version().decode()
        self.table = ctypes.cast(base.get_api(API_VERSION), ctypes.POINTER(POINTER))
        self.environment = self.create(CREATE_ENV, [ctypes.c_int, ctypes.c_char_p], 4, b"bench")
        self.memory = self.create(CREATE_CPU_MEMORY_INFO, [ctypes.c_int, ctypes.c_int], 0, 0)

    def function(self, position, result, arguments):
        return ctypes.CFUNCTYPE(result, *arguments)(self.table[position])

    def check(self, status):
        if status:
            text = self.function(GET_ERROR_MESSAGE, ctypes.c_char_p, [POINTER])(status).decode()
            self.release(RELEASE_STATUS, status)
            raise RuntimeError(text)

    def call(self, position, types, *arguments):
        self.check(self.function(position, POINTER, types)(*arguments))

    def create(self, position, types, *arguments):
        out = POINTER()
        self.call(position, [*types, ctypes.POINTER(POINTER)], *arguments, ctypes.byref(out))
        return out

    def release(self, position, what):
        self.function(position, None, [POINTER])(what)


class Session:
    """Of one model; `tensors` are (name, array)."""

    def __init__(self, api, inputs, outputs, path="model.onnx"):
        self.api = api
        options = api.create(CREATE_SESSION_OPTIONS, [])
        api.call(SET_INTRA_OP_THREADS, [POINTER, ctypes.c_int], options, int(os.environ["BENCH_THREADS"]))
        api.call(SET_INTER_OP_THREADS, [POINTER, ctypes.c_int], options, 1)
        self.session = api.create(CREATE_SESSION, [POINTER, ctypes.c_char_p, POINTER], api.environment,
                                  path.encode(), options)
        api.release(RELEASE_SESSION_OPTIONS, options)
        self.arrays = [*inputs.values(), *outputs.values()]
        self.values = [self.tensor(array) for array in self.arrays]
        names = [name.encode() for name in [*inputs, *outputs]]
        count = len(inputs)
        run = api.function(RUN, POINTER, [POINTER, POINTER, POINTER, POINTER, SIZE, POINTER, SIZE, POINTER])
        self.lists = [(ctypes.c_char_p * count)(*names[:count]), (POINTER * count)(*self.values[:count]),
                      (ctypes.c_char_p * len(outputs))(*names[count:]), (POINTER * len(outputs))(*self.values[count:])]
        arguments = [self.session, None, self.lists[0], self.lists[1], count, self.lists[2], len(outputs),
                     self.lists[3]]

        def call():
            status = run(*arguments)
            if status:
                api.check(status)

        self.run = call

    def tensor(self, array):
        sizes = (ctypes.c_int64 * array.ndim)(*array.shape)
        types = [POINTER, POINTER, SIZE, POINTER, SIZE, ctypes.c_int]
        return self.api.create(CREATE_TENSOR, types, self.api.memory, array.ctypes.data, array.nbytes, sizes,
                               array.ndim, onnx_model.TYPES[str(array.dtype)])

    def __del__(self):
        for value in self.values:
            self.api.release(RELEASE_VALUE, value)
        self.api.release(RELEASE_SESSION, self.session)


def load(words):
    inputs, outputs = peer.onnx_tensors(words)
    session = Session(api, inputs, outputs)
    session.run()  # an unsupported type shows here
    return {"onnxruntime-c": (session.run, lambda: (session, list(outputs.values()))[1])}


if __name__ == "__main__":
    api = Api()
    peer.serve({"name": "onnxruntime-c", "version": api.version}, load)
