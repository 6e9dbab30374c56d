"""Attributes of every kind."""

import numpy as np
import pytest

import anydml as dml
from anydml._attributes import to_text
from anydml._tensor import NUMBERS

FLOATS = (NUMBERS["FLOAT32"], (2, 2), (2, 1))


@pytest.mark.parametrize("kind, value, text", [
    ("uint", np.uint8(7), "7"),
    ("int", -7, "-7"),
    ("float", 0.1, "0.1"),
    ("float", np.float32(2), "2.0"),
    ("float", float("inf"), "inf"),
    ("bool", True, "true"),
    ("bool", np.bool_(False), "false"),
    ("enum", "decreasing", "DECREASING"),
    ("axis", -1, "2"),
    ("axes", (0, -1), "[0,2]"),
    ("uint_array", np.array([1, 2]), "[1,2]"),
    ("float_array", [1, 2.5], "[1.0,2.5]"),
    ("scale_bias", (2, 0.5), "[2.0,0.5]"),
    ("size_2d", (3, 4), "[3,4]"),
    ("scalar_union", 5, "5"),
    ("scalar_union", 5.5, "5.5"),
    ("dtype", np.float16, "FLOAT16"),
    ("dtype", "int4", "INT4"),
    ("operator_desc", "activation_relu", [("ACTIVATION_RELU", [])]),
    ("operator_desc_array", [dml.Activation("activation_linear", Alpha=2, Beta=0.5)],
     [("ACTIVATION_LINEAR", [("Alpha", "2"), ("Beta", "0.5")])]),
    ("operator_desc", dml.Activation("activation_softmax1", Axes=[0, 1]),
     [("ACTIVATION_SOFTMAX1", [("Axes", "[0,1]")])]),
    ("operator_desc", dml.Activation("activation_softmax1", Axes=range(2)),
     [("ACTIVATION_SOFTMAX1", [("Axes", "[0,1]")])]),
    ("operator_desc", dml.Activation("activation_linear", Alpha=np.array(2), Beta=np.float32(0.5)),
     [("ACTIVATION_LINEAR", [("Alpha", "2"), ("Beta", "0.5")])]),
])
def test_text(kind, value, text):
    assert to_text("OP", kind, "name", value, ndim=3) == text


@pytest.mark.parametrize("kind, value", [
    ("uint", "1"), ("uint", 1.0), ("float", None), ("bool", 1), ("enum", 3), ("axes", 1), ("uint_array", 5),
    ("scale_bias", 2.0), ("dtype", bool), ("operator_desc", 5), ("operator_desc_array", [None]),
])
def test_wrong_types(kind, value):
    with pytest.raises(TypeError, match="OP: name is .* but must be"):
        to_text("OP", kind, "name", value, ndim=3)


def gemm(activation):
    attributes = [("TransA", "NONE"), ("TransB", "NONE"), ("Alpha", "1"), ("Beta", "0"),
                  ("FusedActivation", [activation])]
    inputs = [("ATensor", FLOATS), ("BTensor", FLOATS)]
    return dml.Device("cpu")._native.compile("GEMM", inputs, attributes, [("OutputTensor", [(0, (), ())])])


def test_fused_activations_are_read():
    good = dml.Activation("activation_linear", Alpha=2, Beta=1).nested()
    gemm(good)
    with pytest.raises(ValueError, match="there is no operator ACTIVATION_LINEA; did you mean ACTIVATION_LINEAR"):
        gemm(("ACTIVATION_LINEA", []))
    with pytest.raises(ValueError, match=r"ACTIVATION_ELU: Alpha is missing \(FLOAT\)"):
        gemm(("ACTIVATION_ELU", []))
    with pytest.raises(ValueError, match="ACTIVATION_LINEAR has no field Gamma"):
        gemm(("ACTIVATION_LINEAR", [("Gamma", "1")]))


@pytest.mark.parametrize("axes", [[1], (1,), np.array([1]), [0, 1]])
def test_a_fused_softmax_has_axes(axes):
    x = np.array([[1, 2, 3], [4, 5, 7]], np.float32)
    softmax = dml.Activation("activation_softmax1", Axes=axes)
    y = dml.gemm(x, np.eye(3, dtype=np.float32), trans_a="none", trans_b="none", alpha=1, beta=0,
                 fused_activation=softmax)
    np.testing.assert_allclose(y, dml.activation_softmax1(x, axes=axes), rtol=1e-6)


def test_no_memory():
    with pytest.raises(MemoryError, match="cannot allocate"):
        dml.Device("cpu")._native.allocate(1 << 60, 0, False)
    assert dml.element_wise_identity(np.ones(2, np.float32)).tolist() == [1, 1]


@pytest.mark.parametrize("axis", [0, -1])
def test_axis_without_an_input(axis):
    with pytest.raises(ValueError, match="JOIN: InputCount is 0; it must be at least 1"):
        dml.join([], axis=axis)
