"""ONNX models of one node, written as protobuf bytes (no onnx package is needed)."""

import struct

TYPES = {"float32": 1, "int8": 3, "int64": 7, "float16": 10}


def _varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _bytes(field, value):
    value = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _value_info(name, type, sizes):
    shape = b"".join(_bytes(1, _number(1, size)) for size in sizes)  # TensorShapeProto.dim.dim_value
    tensor = _number(1, TYPES[type]) + _bytes(2, shape)
    return _bytes(1, name) + _bytes(2, _bytes(1, tensor))


def _int_attribute(name, value):
    return _bytes(1, name) + _number(3, value) + _number(20, 2)  # AttributeProto.i, of type INT


def _model(node, inputs, outputs, initializer=b""):
    graph = _bytes(1, node) + _bytes(2, "bench")
    if initializer:
        graph += _bytes(5, initializer)
    graph += b"".join(_bytes(11, i) for i in inputs) + b"".join(_bytes(12, o) for o in outputs)
    opset = _bytes(1, "") + _number(2, 13)
    return _number(1, 7) + _bytes(7, graph) + _bytes(8, opset)


def top_k(type, sizes, axis, k):
    result = [k if d == axis else size for d, size in enumerate(sizes)]
    node = b"".join(_bytes(1, name) for name in ("x", "k")) + b"".join(_bytes(2, name) for name in ("v", "i"))
    node += _bytes(4, "TopK") + _bytes(5, _int_attribute("axis", axis))
    k_tensor = _number(1, 1) + _number(2, TYPES["int64"]) + _bytes(8, "k") + _bytes(9, struct.pack("<q", k))
    return _model(node, [_value_info("x", type, sizes)],
                  [_value_info("v", type, result), _value_info("i", "int64", result)], k_tensor)


def scatter_nd(type, sizes, tuples, tuple_size):
    updates = [tuples, *sizes[tuple_size:]]
    node = b"".join(_bytes(1, name) for name in ("x", "i", "u")) + _bytes(2, "y") + _bytes(4, "ScatterND")
    return _model(node, [_value_info("x", type, sizes), _value_info("i", "int64", [tuples, tuple_size]),
                         _value_info("u", type, updates)], [_value_info("y", type, sizes)])
