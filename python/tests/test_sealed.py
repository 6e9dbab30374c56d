"""Only the C++ module's functions make its objects: pickle, copy, `__new__`, subclasses and `__class__` raise
TypeErrors. Each of them could crash the process; therefore every one runs in a separate process."""

import copy
import copyreg
import pickle
import subprocess
import sys

import numpy as np
import pytest
from test_onnx import X, Y, scale_and_add

import anydml as dml
import anydml.onnx
from anydml import _anydml


def objects():
    """One object of every class, public classes first."""
    device = dml.Device("cpu")._native
    compiled = dml.Device("cpu").compile(dml.element_wise_identity, np.ones(3, np.float32))
    memory = device.allocate(64, 0, False)
    model = anydml.onnx.load(scale_and_add())
    tensor = dml.Tensor(device, memory, (4,), np.dtype(np.float32))
    return [model, compiled, tensor, model._native, device, compiled._native, memory, memory.use_in(0, False),
            _anydml.import_tensor(np.ones(3, np.float32).__dlpack__(), "x"), compiled._quick]


def natives():
    return [thing for thing in objects() if type(thing).__module__ == "anydml._anydml"]


def run_alone(test):
    """Calls a function of this file in another process."""
    done = subprocess.run([sys.executable, "-c", f"import test_sealed; test_sealed.{test.__name__}()"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"


def refused(make):
    with pytest.raises(TypeError) as error:
        make()
    assert str(error.value)


def check_there_is_one_of_every_class():
    base = _anydml.Device.__base__
    classes = {value for value in vars(_anydml).values() if isinstance(value, type)}
    assert {type(native) for native in natives()} == classes == set(base.__subclasses__())


def check_pickle_and_copy():
    for thing in objects():
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            refused(lambda: pickle.dumps(thing, protocol))
    for thing in objects()[:-1]:  # Python copies functions as themselves
        for reduce in (lambda: copy.copy(thing), lambda: copy.deepcopy(thing), lambda: thing.__reduce__(),
                       lambda: thing.__reduce_ex__(0), lambda: thing.__reduce_ex__(2)):
            refused(reduce)
    for native in natives():
        for reduce in (lambda: object.__reduce__(native), lambda: object.__reduce_ex__(native, 0),
                       lambda: object.__reduce_ex__(native, 2)):
            refused(reduce)


def check_new_objects():
    base = _anydml.Device.__base__
    for cls in {type(native) for native in natives()} | {base}:
        for make in (cls, lambda: cls("cpu"), lambda: cls.__new__(cls), lambda: base.__new__(cls),
                     lambda: object.__new__(cls), lambda: copyreg.__newobj__(cls),
                     lambda: copyreg._reconstructor(cls, object, None),
                     lambda: copyreg._reconstructor(cls, base, None),
                     lambda: type("Derived", (cls,), {}), lambda: type(cls)("Derived", (cls,), {})):
            refused(make)


def check_objects_that_are_there():
    for native in natives():
        refused(native.__init__)
        refused(lambda: native.__init__("cpu"))
        if sys.version_info >= (3, 10):
            for cls in {type(other) for other in natives()}:
                with pytest.raises(TypeError):
                    native.__class__ = cls
            with pytest.raises(TypeError):
                type(native).added = 1


def check_none_is_no_object():
    for cls in {type(native) for native in natives()}:
        for name, member in vars(cls).items():
            if isinstance(member, property):
                refused(lambda: member.fget(None))
            elif not name.startswith("__"):
                for count in range(6):
                    refused(lambda: getattr(cls, name)(*(None,) * count))
    for make in (lambda: _anydml.Device.compile(None, "GEMM", [], [], []), lambda: _anydml.Memory.use_in(None, 0, False),
                 lambda: _anydml.make_caller(None, [], [], -1, None), lambda: _anydml.OnnxModel.run(None, {}),
                 lambda: _anydml.export_tensor(None, None, "<f4", (1,), (1, 0)),
                 lambda: _anydml.CompiledOperator.run(None, [], [], 0, True)):
        refused(make)


CHECKS = [check_there_is_one_of_every_class, check_pickle_and_copy, check_new_objects, check_objects_that_are_there,
          check_none_is_no_object]


@pytest.mark.parametrize("check", CHECKS)
def test_sealed(check):
    run_alone(check)


def test_devices_are_pickled_by_their_names():
    device = dml.Device("cpu")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(device, protocol)) is device
    assert copy.copy(device) is device and copy.deepcopy(device) is device


def test_values_are_copied_and_pickled():
    four = dml.FourBit([[1, -8, 7]], "int4")
    activation = dml.Activation("activation_linear", Alpha=2, Beta=1)
    spec = dml.TensorSpec((2, 3), np.float16)
    model = anydml.onnx.load(scale_and_add())
    model.run({"x": X, "y": Y})
    for value in (four, activation, spec, model.inputs[0], model.profile()):
        for other in (copy.deepcopy(value), *(pickle.loads(pickle.dumps(value, protocol)) for protocol in range(6))):
            assert str(other) == str(value)
