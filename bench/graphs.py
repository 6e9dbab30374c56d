"""Graphs, each described once: the same calls make DirectML's nodes, an ONNX model and an expression for PyTorch."""

import dataclasses
import math

import onnx_model
from cases import Case
from tensor import LETTERS, Tensor


@dataclasses.dataclass(frozen=True)
class Value:
    name: str  # in ONNX and PyTorch; inputs are a, b, c...
    sizes: tuple
    strides: tuple = ()

    def read_as(self, sizes, strides=()):
        """The same bytes, seen in another way: an edge's two ends may differ."""
        return Value(self.name, tuple(sizes), tuple(strides))


class Graph:
    """Inputs come first, then weights, then operators; the last one's result is the output."""

    def __init__(self, type="float32"):
        self.type = type
        self.inputs, self.weights = [], []  # tensors
        self.nodes = []  # DirectML's: operator, {field: Value}, attributes; the last field is the output
        self.onnx, self.onnx_weights, self.onnx_constants = [], [], []
        self.steps = []  # PyTorch's: (name, expression)
        self.aliases = {}  # names of tensors that DirectML knows by another one

    def input(self, *sizes, data="normal"):
        assert not self.weights
        self.inputs.append(Tensor(self.type, sizes, data=data))
        return Value(LETTERS[len(self.inputs) - 1], sizes)

    def weight(self, *sizes, onnx_sizes=None, data="small"):
        """What DirectML owns, and is part of the model elsewhere."""
        number = len(self.inputs) + len(self.weights)
        self.weights.append(Tensor(self.type, sizes, data=data))
        self.onnx_weights.append((LETTERS[number], self.type, onnx_sizes or sizes, f"InputTensors{number}.bin"))
        return Value(LETTERS[number], sizes)

    def constant(self, value, type=None):
        """Of the ONNX model only."""
        name = f"c{len(self.onnx_constants)}"
        self.onnx_constants.append((name, type or self.type, value))
        return name

    def add(self, operator, fields, sizes, attributes, torch, *onnx):
        """An operator, and what PyTorch and ONNX have for it. `onnx` are nodes: operator, inputs, of which "_" is the
        one before, and attributes."""
        result = Value(f"t{len(self.nodes)}", tuple(sizes))
        self.nodes.append((operator, {**fields, "OutputTensor": result}, attributes))
        self.steps.append((result.name, torch))
        before = ""
        for i, (name, inputs, more) in enumerate(onnx):
            after = result.name if i == len(onnx) - 1 else f"{result.name}_{i}"
            self.onnx.append((name, [before if text == "_" else text for text in inputs], after, more))
            before = after
        return result

    # Operators.

    def binary(self, name, x, y):
        function = {"ADD": "Add", "MULTIPLY": "Mul", "SUBTRACT": "Sub"}[name]
        symbol = {"ADD": "+", "MULTIPLY": "*", "SUBTRACT": "-"}[name]
        return self.add(f"ELEMENT_WISE_{name}", {"ATensor": x, "BTensor": y}, x.sizes, {},
                        f"{x.name} {symbol} {y.name}", (function, [x.name, y.name], {}))

    def relu(self, x):
        return self.add("ACTIVATION_RELU", {"InputTensor": x}, x.sizes, {}, f"torch.relu({x.name})",
                        ("Relu", [x.name], {}))

    def clip(self, x, low, high):
        return self.add("ELEMENT_WISE_CLIP", {"InputTensor": x}, x.sizes, {"Min": low, "Max": high},
                        f"torch.clamp({x.name}, {low}, {high})",
                        ("Clip", [x.name, self.constant(low), self.constant(high)], {}))

    def scale(self, x, factor):
        return self.add("ELEMENT_WISE_IDENTITY", {"InputTensor": x}, x.sizes, {"ScaleBias": f"{factor},0"},
                        f"{x.name} * {factor}", ("Mul", [x.name, self.constant(factor)], {}))

    def gelu(self, x):
        return self.add("ACTIVATION_GELU", {"InputTensor": x}, x.sizes, {}, f"torch.nn.functional.gelu({x.name})",
                        ("Gelu", [x.name], {}))

    def convolution(self, x, channels, taps, stride=1, groups=1, bias=True):
        n, c, h, w = x.sizes
        padding = taps // 2
        filter = self.weight(channels, c // groups, taps, taps)
        fields = {"InputTensor": x, "FilterTensor": filter}
        if bias:
            fields["BiasTensor"] = self.weight(1, channels, 1, 1, onnx_sizes=(channels,))
        names = [value.name for value in fields.values()]
        torch_bias = f"{names[2]}.flatten()" if bias else "None"
        sizes = (n, channels, *((size + 2 * padding - taps) // stride + 1 for size in (h, w)))
        return self.add("CONVOLUTION", fields, sizes,
                        {"Mode": "CROSS_CORRELATION", "Direction": "FORWARD", "Strides": f"{stride},{stride}",
                         "Dilations": "1,1", "StartPadding": f"{padding},{padding}",
                         "EndPadding": f"{padding},{padding}", "OutputPadding": "0,0", "GroupCount": groups},
                        f"torch.conv2d({x.name}, {filter.name}, {torch_bias}, {stride}, {padding}, 1, {groups})",
                        ("Conv", names, {"kernel_shape": [taps] * 2, "strides": [stride] * 2,
                                         "pads": [padding] * 4, "group": groups}))

    def batch_norm(self, x):
        c = x.sizes[1]
        mean, variance, scale, bias = (self.weight(1, c, 1, 1, onnx_sizes=(c,), data=data)
                                       for data in ("small", "positive", "positive", "small"))
        return self.add("BATCH_NORMALIZATION", {"InputTensor": x, "MeanTensor": mean, "VarianceTensor": variance,
                                                "ScaleTensor": scale, "BiasTensor": bias}, x.sizes,
                        {"Spatial": 1, "Epsilon": 1e-5},
                        f"torch.batch_norm({x.name}, {scale.name}.flatten(), {bias.name}.flatten(), "
                        f"{mean.name}.flatten(), {variance.name}.flatten(), False, 0.0, 1e-5, True)",
                        ("BatchNormalization", [x.name, scale.name, bias.name, mean.name, variance.name],
                         {"epsilon": 1e-5}))

    def layer_norm(self, x):
        width = x.sizes[-1]
        row = (1,) * (len(x.sizes) - 1) + (width,)
        scale, bias = (self.weight(*row, onnx_sizes=(width,), data=data) for data in ("positive", "small"))
        return self.add("MEAN_VARIANCE_NORMALIZATION1", {"InputTensor": x, "ScaleTensor": scale, "BiasTensor": bias},
                        x.sizes, {"Axes": len(x.sizes) - 1, "NormalizeVariance": 1, "Epsilon": 1e-5},
                        f"torch.layer_norm({x.name}, ({width},), {scale.name}.flatten(), {bias.name}.flatten(), 1e-5)",
                        ("LayerNormalization", [x.name, scale.name, bias.name], {"axis": -1, "epsilon": 1e-5}))

    def dense(self, x, width):
        """A product with a matrix of weights, and a bias."""
        *front, rows, depth = x.sizes
        ones = (1,) * len(front)
        matrix, bias = self.weight(*ones, depth, width), self.weight(*ones, 1, width, onnx_sizes=(width,))
        sizes = (*front, rows, width)
        fields = {"ATensor": x, "BTensor": matrix, "CTensor": bias.read_as(sizes, (0,) * (len(sizes) - 1) + (1,))}
        return self.add("GEMM", fields, sizes, {"TransA": "NONE", "TransB": "NONE", "Alpha": 1, "Beta": 1},
                        f"torch.matmul({x.name}, {matrix.name}) + {bias.name}",
                        ("MatMul", [x.name, matrix.name], {}), ("Add", ["_", bias.name], {}))

    def product(self, x, y, transposed=False):
        """`transposed`: the rows of y are the columns that are multiplied with."""
        *front, rows, depth = x.sizes
        columns = y.sizes[-2 if transposed else -1]
        swap = [*range(len(front)), len(front) + 1, len(front)]
        nodes = [("Transpose", [y.name], {"perm": swap}), ("MatMul", [x.name, "_"], {})]
        return self.add("GEMM", {"ATensor": x, "BTensor": y}, (*front, rows, columns),
                        {"TransA": "NONE", "TransB": "TRANSPOSE" if transposed else "NONE", "Alpha": 1, "Beta": 0},
                        f"torch.matmul({x.name}, {y.name}{'.mT' if transposed else ''})",
                        *(nodes if transposed else [("MatMul", [x.name, y.name], {})]))

    def softmax(self, x):
        return self.add("ACTIVATION_SOFTMAX1", {"InputTensor": x}, x.sizes, {"Axes": len(x.sizes) - 1},
                        f"torch.softmax({x.name}, -1)", ("Softmax", [x.name], {"axis": -1}))

    def heads(self, x, first, count):
        """Of the rows of x, `count` heads from the first on: (1, heads, rows, width of a head)."""
        rows, width = x.sizes[-2], 64
        whole = (1, rows, x.sizes[-1] // width, width)
        part = (1, rows, count, width)
        text = ",".join
        slice = self.add("SLICE1", {"InputTensor": x.read_as(whole)}, part,
                         {"InputWindowOffsets": f"0,0,{first},0", "InputWindowSizes": text(map(str, part)),
                          "InputWindowStrides": "1,1,1,1"},
                         f"{x.name}.view({whole})[:, :, {first}:{first + count}]",
                         ("Reshape", [x.name, self.constant(list(whole), "int64")], {}),
                         ("Slice", ["_", *(self.constant([number], "int64") for number in (first, first + count, 2))],
                          {}))
        return self.transposed(slice, (0, 2, 1, 3))

    def transposed(self, x, order):
        strides = Tensor(self.type, x.sizes).all_strides()
        sizes = tuple(x.sizes[d] for d in order)
        return self.add("ELEMENT_WISE_IDENTITY", {"InputTensor": x.read_as(sizes, [strides[d] for d in order])}, sizes,
                        {}, f"{x.name}.permute({tuple(order)})", ("Transpose", [x.name], {"perm": list(order)}))

    def reshaped(self, x, *sizes):
        """Costs nothing in DirectML, where it is no node."""
        name = f"{x.name}r"
        self.onnx.append(("Reshape", [x.name, self.constant(list(sizes), "int64")], name, {}))
        self.steps.append((name, f"{x.name}.reshape({sizes})"))
        self.aliases[name] = x.name
        return Value(name, sizes)

    # The case.

    def case(self, name, compiles=False, **more):
        last = self.nodes[-1][1]["OutputTensor"].name
        tensors = [*self.inputs, *self.weights]
        output = Tensor(self.type, self.nodes[-1][1]["OutputTensor"].sizes)

        def text(value):
            known = self.aliases.get(value.name, value.name)
            number = LETTERS.find(known) if len(known) == 1 else -1
            known = f"i{number}" if number >= 0 else "o0" if known == last else known
            return f"{known}@{Tensor(self.type, value.sizes, value.strides).word()}"

        nodes = "|".join("/".join([operator, *(f"{field}={text(value)}" for field, value in fields.items()),
                                   *(f"{key}={value}" for key, value in attributes.items())])
                         for operator, fields, attributes in self.nodes)
        steps = ", ".join(f"{step} := {expression}" for step, expression in self.steps)
        onnx = onnx_model.graph(self.onnx, list(zip(LETTERS, self.inputs)), self.onnx_weights, self.onnx_constants,
                                (last, output))
        settings = {"ulps": 64, "absolute": 1e-3 if self.type == "float32" else 0.05, "groups": ("graphs",),
                    "table": "graphs", "peers": ("torch", "onnxruntime", "onnxruntime-c"), **more}
        return Case(f"graphs-{name}" + ("" if self.type == "float32" else f"-{self.type}"), "GRAPH",
                    {f"InputTensors[{i}]": tensor for i, tensor in enumerate(tensors)}, {"OutputTensors[0]": output},
                    {"nodes": nodes, "first_weight": len(self.inputs), "compiles": int(compiles)},
                    torch=f"({steps},)[-1]", onnx=onnx, **settings)


def chain(length, *sizes, type="float32", name="", **more):
    """Element-wise operators one after the other; numbers stay small."""
    graph = Graph(type)
    x, w = graph.input(*sizes), graph.input(*sizes)
    operators = [lambda t: graph.binary("MULTIPLY", t, w), lambda t: graph.binary("ADD", t, x), graph.relu,
                 lambda t: graph.clip(t, 0, 6), lambda t: graph.binary("SUBTRACT", t, w)]
    value = x
    for i in range(length):
        value = operators[i % len(operators)](value)
    return graph.case(name or f"chain-{length}-{'x'.join(map(str, sizes))}", **more)


def conv_bn_relu(n, c, size, type="float32", **more):
    graph = Graph(type)
    x = graph.input(n, c, size, size)
    graph.relu(graph.batch_norm(graph.convolution(x, c, 3, bias=False)))
    return graph.case(f"conv-bn-relu-{n}x{c}x{size}x{size}", **more)


def inverted_residual(n, c, size, type="float32", **more):
    """Of MobileNetV2."""
    graph = Graph(type)
    x = graph.input(n, c, size, size)
    wide = graph.clip(graph.convolution(x, 6 * c, 1), 0, 6)
    deep = graph.clip(graph.convolution(wide, 6 * c, 3, groups=6 * c), 0, 6)
    graph.binary("ADD", graph.convolution(deep, c, 1), x)
    return graph.case(f"inverted-residual-{n}x{c}x{size}x{size}", **more)


def bottleneck(n, c, size, type="float32", **more):
    """Of ResNet."""
    graph = Graph(type)
    x = graph.input(n, c, size, size)
    narrow = graph.relu(graph.convolution(x, c // 4, 1))
    inner = graph.relu(graph.convolution(narrow, c // 4, 3))
    graph.relu(graph.binary("ADD", graph.convolution(inner, c, 1), x))
    return graph.case(f"bottleneck-{n}x{c}x{size}x{size}", **more)


def transformer(tokens, width, type="float32", **more):
    """A layer: heads of 64."""
    graph = Graph(type)
    count = width // 64
    x = graph.input(1, 1, tokens, width)
    qkv = graph.dense(graph.layer_norm(x), 3 * width)
    q, k, v = (graph.heads(qkv, part * count, count) for part in range(3))
    weights = graph.softmax(graph.scale(graph.product(q, k, transposed=True), 1 / math.sqrt(64)))
    mixed = graph.transposed(graph.product(weights, v), (0, 2, 1, 3))
    y = graph.binary("ADD", graph.dense(graph.reshaped(mixed, 1, 1, tokens, width), width), x)
    graph.binary("ADD", graph.dense(graph.gelu(graph.dense(graph.layer_norm(y), 4 * width)), width), y)
    return graph.case(f"transformer-{tokens}x{width}", **more)


def all_cases():
    elements = (4096, 4096)
    latency = {"floor": "handover", "ulps": 0, "absolute": 0}
    return [
        *(chain(length, *elements, type=type, ulps=0, absolute=0, quick=type == "float32")
          for length in (5, 20) for type in ("float32", "float16")),
        conv_bn_relu(1, 64, 56),
        inverted_residual(1, 24, 56),
        bottleneck(1, 256, 56),
        transformer(128, 768),
        # What is timed is compiling it.
        chain(300, 16, 24, name="compile-300-nodes", compiles=True, peers=("none",), **latency),
        chain(3, 8, name="latency-of-3-operators", **latency),
        chain(5, 16, 24, quick=False, tiny=True, ulps=0, absolute=0),
        conv_bn_relu(1, 4, 6, quick=False, tiny=True),
        transformer(16, 128, quick=False, tiny=True),
    ]
