"""ONNX models, most of one node, written as protobuf bytes (no onnx package is needed)."""

import struct

from tensor import LETTERS

TYPES = {"float32": 1, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10}
OPSETS = {"Gelu": 20, "LayerNormalization": 17}  # 13 has the others
MICROSOFT = ("MultiHeadAttention",)  # operators of onnxruntime's own


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


def _attribute(name, value):
    if isinstance(value, int):
        return _bytes(1, name) + _number(3, value % 2**64) + _number(20, 2)  # AttributeProto.i, of type INT
    if isinstance(value, float):
        return _bytes(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, 1)  # .f
    if isinstance(value, str):
        return _bytes(1, name) + _bytes(4, value) + _number(20, 3)  # .s
    return _bytes(1, name) + b"".join(_number(8, number) for number in value) + _number(20, 7)  # .ints


def _node(operator, inputs, outputs, attributes):
    node = b"".join(_bytes(1, name) for name in inputs) + b"".join(_bytes(2, name) for name in outputs)
    node += _bytes(4, operator) + b"".join(_bytes(5, _attribute(*item)) for item in attributes.items())
    return node + (_bytes(7, "com.microsoft") if operator in MICROSOFT else b"")


def _constant(name, type, value):
    """A number, or a list of them."""
    formats = {"float32": "f", "float16": "e", "int32": "i", "int64": "q"}
    sizes, numbers = ((len(value),), value) if isinstance(value, list) else ((), [value])
    return (b"".join(_number(1, size) for size in sizes) + _number(2, TYPES[type]) + _bytes(8, name)
            + _bytes(9, struct.pack(f"<{len(numbers)}{formats[type]}", *numbers)))


def _external(name, type, sizes, file):
    """A tensor whose elements are in a file beside the model."""
    location = _bytes(13, _bytes(1, "location") + _bytes(2, file))
    return (b"".join(_number(1, size) for size in sizes) + _number(2, TYPES[type]) + _bytes(8, name) + location
            + _number(14, 1))


def _model(nodes, inputs, outputs, constants=(), opset=13):
    graph = b"".join(_bytes(1, node) for node in nodes) + _bytes(2, "bench")
    graph += b"".join(_bytes(5, constant) for constant in constants)
    graph += b"".join(_bytes(11, i) for i in inputs) + b"".join(_bytes(12, o) for o in outputs)
    return (_number(1, 7 if opset <= 13 else 9) + _bytes(7, graph)
            + _bytes(8, _bytes(1, "") + _number(2, opset)) + _bytes(8, _bytes(1, "com.microsoft") + _number(2, 1)))


def top_k(type, sizes, axis, k):
    result = [k if d == axis else size for d, size in enumerate(sizes)]
    return _model([_node("TopK", ("x", "k"), ("v", "i"), {"axis": axis})], [_value_info("x", type, sizes)],
                  [_value_info("v", type, result), _value_info("i", "int64", result)],
                  [_constant("k", "int64", [k])])


def scatter_nd(type, sizes, tuples, tuple_size):
    updates = [tuples, *sizes[tuple_size:]]
    return _model([_node("ScatterND", ("x", "i", "u"), ("y",), {})],
                  [_value_info("x", type, sizes), _value_info("i", "int64", [tuples, tuple_size]),
                   _value_info("u", type, updates)], [_value_info("y", type, sizes)])


def one_node(operator, attributes=None, constants=(), squeezed="", *, inputs, output):
    """Inputs a, b, ..., then constants: a number of the first one's type, (type, numbers), or None for an absent input.
    There are no strides in ONNX: an input in another order is transposed by a node of its own, unless that is the
    operator. `squeezed` ones have no leading dimensions of 1 there."""
    nodes, values, names, tensors = [], [], [], []
    for letter, tensor in zip(LETTERS, inputs):
        order = tensor.permutation()
        names.append(letter)
        values.append(_value_info(letter, tensor.type, tensor.memory_sizes()))
        permutation = {"perm": [order.index(d) for d in range(len(order))]}
        if operator == "Transpose":
            attributes = permutation
        elif order != sorted(order):
            names[-1] = letter + "t"
            nodes.append(_node("Transpose", (letter,), (names[-1],), permutation))
        elif letter in squeezed:
            names[-1] = letter + "s"
            tensors.append(_constant(letter + "x", "int64", list(range(len(order) - 1))))
            nodes.append(_node("Squeeze", (letter, letter + "x"), (names[-1],), {}))
    for i, constant in enumerate(constants):
        names.append("" if constant is None else f"c{i}")
        if constant is not None:
            type, value = constant if isinstance(constant, tuple) else (inputs[0].type, constant)
            tensors.append(_constant(names[-1], type, value))
    nodes.append(_node(operator, names, ("y",), attributes or {}))
    return _model(nodes, values, [_value_info("y", output.type, output.sizes)], tensors, OPSETS.get(operator, 13))


def graph(nodes, inputs, weights, constants, output):
    """Nodes are (operator, inputs, output, attributes), inputs (name, tensor), weights (name, type, sizes, file),
    constants (name, type, value), the output (name, tensor); it is y outside."""
    last, tensor = output
    rename = {last: "y"}
    parts = [_node(operator, [rename.get(name, name) for name in names], (rename.get(result, result),), attributes)
             for operator, names, result, attributes in nodes]
    opset = max([13, *(OPSETS.get(operator, 13) for operator, *_ in nodes)])
    tensors = [*(_external(*weight) for weight in weights), *(_constant(*constant) for constant in constants)]
    return _model(parts, [_value_info(name, tensor.type, tensor.sizes) for name, tensor in inputs],
                  [_value_info("y", tensor.type, tensor.sizes)], tensors, opset)


def _fields(data):
    """Numbers and contents of a message's fields, as far as models of this file and onnx_networks.py have them."""
    def varint(at):
        value = shift = 0
        while True:
            byte, at = data[at], at + 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value, at

    at = 0
    while at < len(data):
        tag, at = varint(at)
        if tag & 7 == 0:
            value, at = varint(at)
        else:
            size, at = varint(at) if tag & 7 == 2 else (4, at)
            value, at = data[at:at + size], at + size
        yield tag >> 3, value


def signature(model):
    """The inputs and the outputs of a model's bytes: names with types and sizes, of which some may be None. Inputs
    with a value of the model's own are none."""
    names = {number: name for name, number in TYPES.items()}

    def tensor(info):
        parts = dict(_fields(info))
        (_, described), = _fields(parts[2])
        described = dict(_fields(described))
        sizes = [dict(_fields(size)).get(1) for _, size in _fields(described.get(2, b""))]
        return bytes(parts[1]).decode(), names[described[1]], sizes

    graph = list(_fields(dict(_fields(memoryview(model)))[7]))
    values = {bytes(dict(_fields(item))[8]).decode() for field, item in graph if field == 5}
    inputs = [tensor(info) for field, info in graph if field == 11]
    return [item for item in inputs if item[0] not in values], [tensor(i) for f, i in graph if f == 12]
