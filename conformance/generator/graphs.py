"""Several operators on the same buffers, run one after the other and also as one graph: if one writes what another
reads, they are connected by an edge. All results are exact, so that a graph must give the same bytes."""
import copy
import itertools
import math

from generator import elements
from generator.arithmetic import stored
from generator.operation import Array
from generator.pack import CONTRACT, LEVELS, OWNED_BY_DML, Group, Model, model_text
from generator.tensors import Tensor, padded, spread_strides


class GraphModel:
    def __init__(self):
        self.resources, self.values, self.outputs, self.tolerances = {}, {}, {}, {}
        self.now = {}  # the buffers' contents after the steps so far
        self.steps = {}

    def given(self, buffer, data_type, values):
        self.resources[buffer] = data_type
        self.values[buffer] = padded(list(values), data_type)
        self.now[buffer] = list(self.values[buffer])
        return self

    def step(self, name, operator, inputs, outputs, compute, owned=(), **attributes):
        """`inputs` and `outputs`: buffer and tensor by field. `compute` gets Arrays in the order of the inputs and
        returns the result of each output by coordinates. A new buffer has no meaningful contents before."""
        model = self.steps[name] = Model(operator)
        arrays = []
        for field, (buffer, tensor) in inputs.items():
            arrays.append(Array(tensor.sizes, self.read(buffer, tensor).values()))
            if field in owned:
                tensor = Tensor(tensor.data_type, tensor.sizes, tensor.given_strides, Flags=OWNED_BY_DML)
                model.owned[field] = buffer
            else:
                model.bindings[field] = buffer
            model.describe(field, tensor)
        results = compute(*arrays)
        for (field, (buffer, tensor)), result in zip(outputs.items(), results):
            model.describe(field, tensor)
            model.bindings[field] = buffer
            if buffer not in self.now:
                self.given(buffer, tensor.data_type, [elements.UNTOUCHED] * tensor.extent())
            self.write(buffer, tensor, result)
        model.attributes(**attributes)
        return self

    def read(self, buffer, tensor):
        """Reads with the tensor's type, whatever the buffer's type is."""
        values = self.now[buffer]
        if self.resources[buffer] != tensor.data_type:
            values = [elements.to_bits(self.resources[buffer], v) for v in values]
            if tensor.data_type in elements.FLOATS:
                values = [elements.from_bits(tensor.data_type, v) for v in values]
        return tensor.read(values)

    def write(self, buffer, tensor, result):
        for coordinates, value in result.items():
            value = stored(tensor.data_type, value)
            if self.resources[buffer] != tensor.data_type:
                value = elements.from_bits(self.resources[buffer], value)
            self.now[buffer][tensor.place(coordinates)] = value

    def shown(self, *buffers):
        """A model of the steps so far, which expects the present contents of these buffers."""
        result = copy.deepcopy(self)
        result.outputs = {buffer: list(self.now[buffer]) for buffer in buffers}
        return result

    def since(self):
        """Graphs exist from 2.1 on."""
        return max(["2.1", *(model.since() for model in self.steps.values())], key=LEVELS.index)

    def text(self, name):
        return model_text(name, self, self.steps)


def each(function):
    """An element-wise operator."""
    return lambda *arrays: [{c: function(*(array[c] for array in arrays)) for c in arrays[0]}]


def counted(data_type, count, first=0):
    """Small integers of both signs, repeated with a period."""
    values = [(first + 7 * i) % 11 - 5 for i in range(count)]
    return [float(v) if data_type in elements.FLOATS else v for v in values]


def unary(graph, name, operator, source, target, tensor, function, **attributes):
    return graph.step(name, operator, {"InputTensor": (source, tensor)}, {"OutputTensor": (target, tensor)},
                      each(function), **attributes)


def binary(graph, name, operator, a, b, target, tensor, function, b_tensor=None, **more):
    return graph.step(name, operator, {"ATensor": (a, tensor), "BTensor": (b, b_tensor or tensor)},
                      {"OutputTensor": (target, tensor)}, each(function), **more)


def add(graph, name, a, b, target, tensor, **more):
    return binary(graph, name, "ELEMENT_WISE_ADD", a, b, target, tensor, lambda x, y: x + y, **more)


def multiply(graph, name, a, b, target, tensor, **more):
    return binary(graph, name, "ELEMENT_WISE_MULTIPLY", a, b, target, tensor, lambda x, y: x * y, **more)


def relu(graph, name, source, target, tensor):
    return unary(graph, name, "ACTIVATION_RELU", source, target, tensor, lambda x: max(x, 0))


def product(graph, name, a, b, target, rows, inner, columns, owned=(), transposed=False):
    """A FLOAT32 GEMM on integers."""
    sizes = [1, 1, columns, inner] if transposed else [1, 1, inner, columns]

    def compute(x, w):
        return [{(0, 0, i, j): sum(x[0, 0, i, k] * (w[0, 0, j, k] if transposed else w[0, 0, k, j])
                                   for k in range(inner))
                 for i, j in itertools.product(range(rows), range(columns))}]
    return graph.step(name, "GEMM", {"ATensor": (a, Tensor("FLOAT32", [1, 1, rows, inner])),
                                     "BTensor": (b, Tensor("FLOAT32", sizes))},
                      {"OutputTensor": (target, Tensor("FLOAT32", [1, 1, rows, columns]))}, compute, owned=owned,
                      TransA="DML_MATRIX_TRANSFORM_NONE",
                      TransB="DML_MATRIX_TRANSFORM_" + ("TRANSPOSE" if transposed else "NONE"), Alpha=1.0, Beta=0.0)


def summed(graph, name, source, target, sizes):
    """The sum along the last dimension."""
    def compute(x):
        sums = {}
        for c, value in x.items():
            sums[(*c[:-1], 0)] = sums.get((*c[:-1], 0), 0) + value
        return [sums]
    return graph.step(name, "REDUCE", {"InputTensor": (source, Tensor("FLOAT32", sizes))},
                      {"OutputTensor": (target, Tensor("FLOAT32", sizes[:-1] + [1]))}, compute,
                      Function="DML_REDUCE_FUNCTION_SUM", Axes=[len(sizes) - 1])


def convolution(graph, name, source, weights, target, tensor, owned=()):
    """A 1x1 convolution of FLOAT32 on integers."""
    batch, channels, height, width = tensor.sizes

    def compute(x, w):
        return [{c: sum(x[c[0], k, c[2], c[3]] * w[c[1], k, 0, 0] for k in range(channels)) for c in x}]
    return graph.step(name, "CONVOLUTION", {"InputTensor": (source, tensor),
                                            "FilterTensor": (weights, Tensor("FLOAT32", [channels, channels, 1, 1]))},
                      {"OutputTensor": (target, tensor)}, compute, owned=owned,
                      Mode="DML_CONVOLUTION_MODE_CROSS_CORRELATION", Direction="DML_CONVOLUTION_DIRECTION_FORWARD",
                      Strides=[1, 1], Dilations=[1, 1], StartPadding=[0, 0], EndPadding=[0, 0], OutputPadding=[0, 0],
                      GroupCount=1)


def start(data_type, sizes, *buffers):
    graph, tensor = GraphModel(), Tensor(data_type, sizes)
    for number, buffer in enumerate(buffers):
        graph.given(buffer, data_type, counted(data_type, tensor.count(), first=3 * number))
    return graph, tensor


def start_with_sum(data_type, sizes):
    """s = x + y"""
    graph, tensor = start(data_type, sizes, "x", "y")
    add(graph, "sum", "x", "y", "s", tensor)
    return graph, tensor


def chains():
    group = Group("graphs/chains", CONTRACT, "Chains of operators, which a graph may compute together: intermediate "
                                             "values are rounded and wrap as if they were stored.")
    for data_type in ("FLOAT32", "FLOAT16", "INT32", "INT8"):
        graph, tensor = start_with_sum(data_type, [1, 2, 3, 4])
        multiply(graph, "square", "s", "s", "q", tensor)
        binary(graph, "difference", "ELEMENT_WISE_SUBTRACT", "q", "x", "d", tensor, lambda x, y: x - y)
        group.add(f"three-{data_type.lower()}", "(x + y)^2 - x: one of the steps reads what two others do.",
                  graph.shown("d"))
    graph, tensor = start("FLOAT32", [2, 3, 4, 5], "x", "y")
    graph.given("b0", "FLOAT32", counted("FLOAT32", 120, first=5))
    for i in range(20):
        (add if i % 3 else multiply)(graph, f"step{i}", f"b{i}", "xy"[i % 2], f"b{i + 1}", tensor)
        if i % 4 == 3:
            unary(graph, f"clip{i}", "ELEMENT_WISE_CLIP", f"b{i + 1}", f"b{i + 1}", tensor,
                  lambda v: min(max(v, -100.0), 100.0), Min=-100.0, Max=100.0)
    group.add("twenty", "Twenty steps, every fourth followed by one in place.", graph.shown("b20"))
    graph, tensor = start("FLOAT32", [1, 3, 4, 5], "x")
    graph.given("b", "FLOAT32", [1.0, -2.0, 3.0])
    add(graph, "bias", "x", "b", "s", tensor, b_tensor=Tensor("FLOAT32", tensor.sizes, [0, 1, 0, 0]))
    relu(graph, "relu", "s", "r", tensor)
    multiply(graph, "scale", "r", "b", "t", tensor, b_tensor=Tensor("FLOAT32", tensor.sizes, [0, 1, 0, 0]))
    group.add("broadcast", "One number per channel is added, and another time multiplied.", graph.shown("t"))
    graph, tensor = start("FLOAT16", [1, 1, 2, 4], "x")
    graph.given("x", "FLOAT16", [60000.0, 30000.0, -60000.0, 1.0, 2048.0, 3.0, 0.25, 40000.0])
    add(graph, "double", "x", "x", "d", tensor)
    binary(graph, "back", "ELEMENT_WISE_SUBTRACT", "d", "x", "e", tensor, lambda x, y: x - y)
    group.add("float16-overflows-between", "x + x is infinite in FLOAT16, and so is what is left of it.",
              graph.shown("e"))
    graph, tensor = start("FLOAT16", [1, 1, 2, 4], "x")
    graph.given("x", "FLOAT16", [2048.0, 2050.0, 4096.0, 1.0, 1000.0, 0.5, 2.0, -2048.0])
    graph.given("one", "FLOAT16", [1.0] * 8)
    add(graph, "up", "x", "one", "u", tensor)
    binary(graph, "down", "ELEMENT_WISE_SUBTRACT", "u", "x", "v", tensor, lambda x, y: x - y)
    group.add("float16-rounds-between", "2048 + 1 is 2048 in FLOAT16, so that nothing is left of the 1.",
              graph.shown("v"))
    graph, tensor = start("INT8", [1, 1, 2, 4], "x")
    graph.given("x", "INT8", [100, 127, -128, 64, -100, 1, 2, 3])
    add(graph, "double", "x", "x", "d", tensor)
    binary(graph, "larger", "ELEMENT_WISE_MAX", "d", "x", "m", tensor, max)
    group.add("int8-wraps-between", "Sums of INT8 wrap before they are compared.", graph.shown("m"))
    graph, tensor = start("FLOAT32", [1, 2, 3, 4], "x")
    wide, narrow = tensor, Tensor("INT8", tensor.sizes)
    graph.given("x", "FLOAT32", [i * 37.5 - 300 for i in range(24)])
    graph.step("narrow", "CAST", {"InputTensor": ("x", wide)}, {"OutputTensor": ("n", narrow)},
               lambda x: [{c: min(max(math.trunc(v), -128), 127) for c, v in x.items()}])
    graph.step("wide", "CAST", {"InputTensor": ("n", narrow)}, {"OutputTensor": ("w", wide)},
               lambda x: [{c: float(v) for c, v in x.items()}])
    group.add("cast-and-back", "To INT8, which saturates and loses fractions, and back.", graph.shown("w"))
    return group


def mixed():
    group = Group("graphs/blocks", CONTRACT, "Products, convolutions and reductions with the operators before and "
                                             "after them, on integers: as in networks.")
    graph, tensor = start("FLOAT32", [1, 1, 3, 5], "x")
    graph.given("w", "FLOAT32", counted("FLOAT32", 20)).given("b", "FLOAT32", [3.0, -40.0, 5.0, 0.0])
    out = Tensor("FLOAT32", [1, 1, 3, 4])
    product(graph, "product", "x", "w", "p", 3, 5, 4)
    add(graph, "bias", "p", "b", "s", out, b_tensor=Tensor("FLOAT32", out.sizes, [0, 0, 0, 1]))
    relu(graph, "relu", "s", "r", out)
    group.add("product-bias-relu", "A dense layer.", graph.shown("r"))
    graph.given("v", "FLOAT32", counted("FLOAT32", 8, first=2))
    product(graph, "product2", "r", "v", "q", 3, 4, 2)
    group.add("two-layers", "Two dense layers, of which the first one's result is asked for, too.",
              graph.shown("r", "q"))
    graph, tensor = start("FLOAT32", [2, 3, 4, 4], "x")
    graph.given("w", "FLOAT32", counted("FLOAT32", 9))
    convolution(graph, "convolution", "x", "w", "c", tensor)
    add(graph, "skip", "c", "x", "s", tensor)
    relu(graph, "relu", "s", "r", tensor)
    convolution(graph, "again", "r", "w", "d", tensor)
    group.add("residual", "A convolution, to which its input is added, and the same weights again.",
              graph.shown("d"))
    graph, tensor = start("FLOAT32", [1, 2, 3, 8], "x")
    summed(graph, "sum", "x", "s", tensor.sizes)
    row = Tensor("FLOAT32", tensor.sizes, [6, 3, 1, 0])
    binary(graph, "center", "ELEMENT_WISE_SUBTRACT", "x", "s", "d", tensor, lambda x, y: x - y, b_tensor=row)
    multiply(graph, "square", "d", "d", "q", tensor)
    summed(graph, "squares", "q", "t", tensor.sizes)
    group.add("centered-squares", "Sums of rows, broadcast again, as normalisations have it.", graph.shown("d", "t"))
    return group


def reinterpreted():
    group = Group("graphs/reinterpretation", CONTRACT, "An edge carries bytes: the reader may see other sizes, "
                  "strides, numbers of dimensions or another data type than the writer.")
    for name, sizes, claim in (("sizes", [1, 1, 6, 4], "[1,2,3,4] becomes [1,1,6,4]."),
                               ("rank", [24], "Four dimensions become one."),
                               ("more", [1, 2, 1, 3, 2, 2], "Four dimensions become six.")):
        graph, tensor = start_with_sum("FLOAT32", [1, 2, 3, 4])
        relu(graph, "relu", "s", "r", Tensor("FLOAT32", sizes))
        group.add(name, claim, graph.shown("r"))
    graph, tensor = start_with_sum("FLOAT32", [1, 1, 3, 4])
    across = Tensor("FLOAT32", [1, 1, 4, 3], [12, 12, 1, 4])
    graph.step("copy", "ELEMENT_WISE_IDENTITY", {"InputTensor": ("s", across)},
               {"OutputTensor": ("t", Tensor("FLOAT32", [1, 1, 4, 3]))}, each(lambda x: x))
    graph.given("w", "FLOAT32", counted("FLOAT32", 6))
    product(graph, "product", "t", "w", "p", 4, 3, 2)
    group.add("transposed", "The reader's strides transpose; a product follows.", graph.shown("p"))
    graph, tensor = start_with_sum("FLOAT32", [1, 2, 3, 4])
    bits = Tensor("UINT32", tensor.sizes)
    graph.given("mask", "UINT32", [0x7FFFFFFF] * 24)
    graph.step("magnitude", "ELEMENT_WISE_BIT_AND", {"ATensor": ("s", bits), "BTensor": ("mask", bits)},
               {"OutputTensor": ("m", bits)}, each(lambda a, b: a & b))
    group.add("bits", "The bits of floats as UINT32, without their sign.", graph.shown("m"))
    graph, tensor = start_with_sum("FLOAT32", [1, 1, 4, 6])
    spread = Tensor("FLOAT32", [1, 1, 2, 3], [24, 24, 12, 2], TotalTensorSizeInBytes=96)
    graph.step("some", "ELEMENT_WISE_IDENTITY", {"InputTensor": ("s", spread)},
               {"OutputTensor": ("t", Tensor("FLOAT32", [1, 1, 2, 3]))}, each(lambda x: x))
    group.add("every-other", "The reader's strides leave elements out.", graph.shown("t"))
    return group


def constants():
    group = Group("graphs/constants", CONTRACT, "Values that depend on no input, or only on inputs that DirectML "
                                                "owns, may be computed in advance: the results are the same.")
    tensor = Tensor("FLOAT32", [1, 1, 3, 4])

    def filled(graph, name, target, value):
        return graph.step(name, "FILL_VALUE_CONSTANT", {}, {"OutputTensor": (target, tensor)},
                          lambda: [{c: value for c in tensor.coordinates()}], ValueDataType="FLOAT32", Value=value)

    graph, _ = start("FLOAT32", tensor.sizes, "x")
    filled(graph, "two", "c", 2.0)
    multiply(graph, "twice", "x", "c", "t", tensor)
    group.add("filled", "A constant is multiplied.", graph.shown("t"))
    graph, _ = start("FLOAT32", tensor.sizes, "x")
    filled(graph, "two", "c", 2.0)
    filled(graph, "three", "d", 3.0)
    multiply(graph, "six", "c", "d", "e", tensor)
    add(graph, "sum", "x", "e", "s", tensor)
    group.add("of-constants", "A product of two constants is added.", graph.shown("s"))
    graph = GraphModel()
    filled(graph, "two", "c", 2.0)
    relu(graph, "relu", "c", "r", tensor)
    group.add("only-constants", "A graph without inputs.", graph.shown("r"))
    for name, owned in (("weights", ("BTensor",)), ("bias-and-weights", ("BTensor",))):
        graph, x = start("FLOAT32", [1, 1, 3, 5], "x")
        graph.given("w", "FLOAT32", counted("FLOAT32", 20)).given("b", "FLOAT32", [1.0, -2.0, 3.0, -4.0])
        product(graph, "product", "x", "w", "p", 3, 5, 4, owned=owned)
        out = Tensor("FLOAT32", [1, 1, 3, 4])
        add(graph, "bias", "p", "b", "s", out, b_tensor=Tensor("FLOAT32", out.sizes, [0, 0, 0, 1]),
            owned=owned if name != "weights" else ())
        group.add(f"owned-{name}", f"Owned {name.replace('-', ' ')} of a dense layer.", graph.shown("s"))
    graph, x = start("FLOAT32", [1, 1, 3, 4], "x")
    graph.given("w", "FLOAT32", counted("FLOAT32", 16))
    product(graph, "first", "x", "w", "p", 3, 4, 4, owned=("BTensor",))
    product(graph, "second", "p", "w", "q", 3, 4, 4, owned=("BTensor",), transposed=True)
    group.add("owned-twice", "The same owned weights, another time transposed.", graph.shown("q"))
    graph, x = start("FLOAT32", [2, 3, 2, 2], "x")
    graph.given("w", "FLOAT32", counted("FLOAT32", 9)).given("v", "FLOAT32", counted("FLOAT32", 9, first=4))
    weights = Tensor("FLOAT32", [3, 3, 1, 1])
    add(graph, "weights", "w", "v", "u", weights, owned=("ATensor", "BTensor"))
    convolution(graph, "convolution", "x", "u", "c", x)
    group.add("owned-worked-out", "Weights that are a sum of owned ones.", graph.shown("c"))
    return group


def outputs():
    group = Group("graphs/outputs", CONTRACT, "Several outputs, outputs that other operators read, outputs with "
                                              "gaps, and unused results.")
    graph, tensor = start_with_sum("FLOAT32", [1, 1, 3, 4])
    multiply(graph, "square", "s", "s", "q", tensor)
    group.add("all", "What lies between is an output, too.", graph.shown("s", "q"))
    relu(graph, "relu", "s", "r", tensor)
    group.add("two-readers", "Two operators read one result; all three are outputs.", graph.shown("s", "q", "r"))
    graph, tensor = start_with_sum("FLOAT32", [1, 1, 3, 4])
    spread = Tensor("FLOAT32", tensor.sizes, spread_strides(tensor.sizes))
    graph.step("relu", "ACTIVATION_RELU", {"InputTensor": ("s", tensor)}, {"OutputTensor": ("r", spread)},
               each(lambda v: max(v, 0)))
    group.add("gaps", "The output of a chain has gaps, which stay.", graph.shown("r"))
    graph, tensor = start_with_sum("FLOAT32", [1, 1, 4, 6])
    halves = {"OutputTensors[0]": ("a", Tensor("FLOAT32", [1, 1, 4, 2])),
              "OutputTensors[1]": ("b", Tensor("FLOAT32", [1, 1, 4, 4]))}
    graph.step("split", "SPLIT", {"InputTensor": ("s", tensor)}, halves, lambda x: [
        {c: v for c, v in x.items() if c[3] < 2}, {(*c[:3], c[3] - 2): v for c, v in x.items() if c[3] >= 2}], Axis=3)
    relu(graph, "relu", "a", "r", Tensor("FLOAT32", [1, 1, 4, 2]))
    group.add("split", "One part is an output, the other goes on.", graph.shown("r", "b"))
    joined = Tensor("FLOAT32", [1, 1, 4, 6])
    graph.step("join", "JOIN", {"InputTensors[0]": ("b", Tensor("FLOAT32", [1, 1, 4, 4])),
                                "InputTensors[1]": ("r", Tensor("FLOAT32", [1, 1, 4, 2]))},
               {"OutputTensor": ("j", joined)}, lambda b, r: [
                   {c: b[c] if c[3] < 4 else r[(*c[:3], c[3] - 4)] for c in joined.coordinates()}], Axis=3)
    group.add("split-and-joined", "The parts are put together the other way round.", graph.shown("j"))
    for name, field, shown in (("values", "OutputValueTensor", "v"), ("indices", "OutputIndexTensor", "i")):
        graph, tensor = start_with_sum("FLOAT32", [1, 1, 3, 5])

        def best(x):
            values, indices = {}, {}
            for row in range(3):
                order = sorted(range(5), key=lambda k, row=row: (-x[0, 0, row, k], k))
                for place in range(2):
                    values[0, 0, row, place] = x[0, 0, row, order[place]]
                    indices[0, 0, row, place] = order[place]
            return [values, indices]
        graph.step("best", "TOP_K1", {"InputTensor": ("s", tensor)},
                   {"OutputValueTensor": ("v", Tensor("FLOAT32", [1, 1, 3, 2])),
                    "OutputIndexTensor": ("i", Tensor("UINT32", [1, 1, 3, 2]))}, best, Axis=3, K=2,
                   AxisDirection="DML_AXIS_DIRECTION_DECREASING")
        group.add(f"only-{name}", f"Nobody asks for what is not in {field}.", graph.shown(shown))
    return group


def in_place():
    group = Group("graphs/in_place", CONTRACT, "Operators that overwrite their input, if that is allowed: a graph "
                                               "sees a new value in the same place.")
    graph, tensor = start_with_sum("FLOAT32", [1, 1, 3, 4])
    relu(graph, "relu", "s", "s", tensor)
    multiply(graph, "square", "s", "s", "s", tensor)
    group.add("chain", "A sum, then two operators over it.", graph.shown("s"))
    graph, tensor = start_with_sum("FLOAT32", [1, 1, 3, 4])
    multiply(graph, "square", "s", "s", "q", tensor)
    relu(graph, "relu", "s", "s", tensor)
    add(graph, "both", "q", "s", "b", tensor)
    group.add("read-before", "What was read before it is written over was the old value.", graph.shown("b"))
    graph, tensor = start_with_sum("FLOAT32", [1, 1, 4, 3])
    graph.given("where", "UINT32", [2, 0, 1, 3, 3, 0]).given("new", "FLOAT32", [50.0, 51.0, 52.0, 53.0, 54.0, 55.0])
    few = [1, 1, 2, 3]

    def scatter(x, where, new):
        result = dict(x)
        for c, value in new.items():
            result[(0, 0, where[c], c[3])] = value
        return [result]
    graph.step("scatter", "SCATTER_ELEMENTS", {"InputTensor": ("s", tensor), "IndicesTensor": ("where", Tensor("UINT32", few)),
                                               "UpdatesTensor": ("new", Tensor("FLOAT32", few))},
               {"OutputTensor": ("s", tensor)}, scatter, Axis=2)
    multiply(graph, "square", "s", "s", "q", tensor)
    group.add("scatter", "A scatter over its own input, between two others.", graph.shown("q"))
    return group


def groups():
    return [chains(), mixed(), reinterpreted(), constants(), outputs(), in_place()]
