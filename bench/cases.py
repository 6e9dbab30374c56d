"""What is measured, as data. The worker and the peers know nothing of names or of --quick."""

import dataclasses

import onnx_model
from tensor import Tensor


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    operator: str  # DirectML's name
    inputs: dict  # its fields: Tensor
    outputs: dict
    attributes: dict = dataclasses.field(default_factory=dict)  # as `anydml op` takes them
    ulps: int = 0  # by which a result may differ from the true one
    in_place: bool = False
    dispatches: int = 1
    floor: str = ""  # of latencies: what stands in for moving the bytes
    # What the peers do, in Python: inputs are a, b, c, the output is y. Top-k and scatter are written out there.
    numpy: str = ""
    torch: str = ""
    true: str = ""  # the value in float64, of functions that both NumPy and PyTorch have (peer_numpy.py)
    onnx: bytes = b""  # the model
    peers: tuple = ()  # only these
    groups: tuple = ()
    table: str = ""  # in the report; the operator
    target: str = ""  # of gpu.py: "1.4x" of the floor, or "12us"
    quick: bool = True
    tiny: bool = False  # for the test of this benchmark; too small to say anything

    @property
    def type(self):
        return self.first.type

    @property
    def first(self):
        return next(iter(self.inputs.values()))

    @property
    def data(self):
        return self.first.data

    @property
    def sizes(self):
        """Without dimensions that are there to have as many as other tensors."""
        sizes = next(iter(self.inputs.values())).sizes
        return sizes[len(sizes) - self.attributes.get("InputDimensionCount", len(sizes)):]

    @property
    def k(self):
        return self.attributes.get("K", 0)

    def same_but_k(self, other):
        """Then one run of the reference does for both."""
        return self.operator == other.operator and self.inputs == other.inputs and all(
            self.attributes[key] == other.attributes[key] for key in self.attributes if key != "K")

    def words(self):
        words = {"op": self.operator, **self.attributes}
        words.update({field: tensor.word() for field, tensor in {**self.inputs, **self.outputs}.items()})
        for key in ("ulps", "in_place", "dispatches", "floor", "numpy", "torch", "true"):
            if getattr(self, key) not in (Case.__dataclass_fields__[key].default, False):
                words[key] = int(getattr(self, key)) if key == "in_place" else getattr(self, key)
        return words

    def moved_bytes(self):
        """What must be read and written at the least."""
        tensors = [*self.inputs.values(), *self.outputs.values()]
        if self.operator != "SCATTER_ND":
            return sum(tensor.bytes() for tensor in tensors)
        x, indices, updates = (tensor.bytes() for tensor in self.inputs.values())
        # Updated elements are written once, whether the copy does it or the update.
        return indices + 2 * updates + (0 if self.in_place else 2 * x - updates)


def top_k(sizes, k, axis=None, type="float32", data="normal", **more):
    axis = len(sizes) - 1 if axis is None else axis
    name = f"topk-{'x'.join(map(str, sizes))}-k{k}" + ("" if axis == len(sizes) - 1 else f"-axis{axis}")
    name += ("" if data in ("normal", "random") else f"-{data}") + ("" if type == "float32" else f"-{type}")
    result = tuple(k if d == axis else size for d, size in enumerate(sizes))
    return Case(name, "TOP_K1", {"InputTensor": Tensor(type, tuple(sizes), data=data)},
                {"OutputValueTensor": Tensor(type, result), "OutputIndexTensor": Tensor("uint32", result)},
                {"Axis": axis, "K": k, "AxisDirection": "DECREASING"},
                onnx=onnx_model.top_k(type, sizes, axis, k), groups=("topk",), **more)


def scatter(name, sizes, tuples, tuple_size, data="normal", in_place=False, **more):
    rank = max(len(sizes), 2)  # all tensors have one; the dimensions in front are 1

    def padded(*dimensions):
        return (1,) * (rank - len(dimensions)) + dimensions

    x = padded(*sizes)
    indices = Tensor("uint32", padded(tuples, tuple_size), data="below-" + "-".join(map(str, sizes[:tuple_size])))
    updates = Tensor("float32", padded(tuples, *sizes[tuple_size:]), data=data)
    more.setdefault("groups", ("scatter",))
    return Case(f"scatter-{name}{'-in-place' if in_place else ''}", "SCATTER_ND",
                {"InputTensor": Tensor("float32", x, data=data), "IndicesTensor": indices, "UpdatesTensor": updates},
                {"OutputTensor": Tensor("float32", x)},
                {"InputDimensionCount": len(sizes), "IndicesDimensionCount": 2}, in_place=in_place,
                onnx=onnx_model.scatter_nd("float32", sizes, tuples, tuple_size), **more)


@dataclasses.dataclass(frozen=True)
class Function:
    """An element-wise operator and how it is spelled elsewhere."""

    operator: str
    numpy: str  # empty: it does not have it
    torch: str
    true: str
    onnx: tuple  # operator, attributes, constants
    fields: tuple = ("InputTensor",)
    types: tuple = ("float32", "float16")
    output: str = ""  # its type, if not the inputs'
    data: tuple = ("normal", "normal")  # of the inputs
    attributes: dict = dataclasses.field(default_factory=dict)
    ulps: int = 0


_AB, _ALL = ("ATensor", "BTensor"), ("float32", "float16", "int32")
FUNCTIONS = {  # those of the same inputs in a row: these need not be made again
    "add": Function("ELEMENT_WISE_ADD", "np.add(a, b, out=y)", "torch.add(a, b, out=y)", "a + b", ("Add",), _AB, _ALL),
    "multiply": Function("ELEMENT_WISE_MULTIPLY", "np.multiply(a, b, out=y)", "torch.mul(a, b, out=y)", "a * b",
                         ("Mul",), _AB, _ALL),
    "greater": Function("ELEMENT_WISE_LOGICAL_GREATER_THAN", "np.greater(a, b, out=y)", "torch.gt(a, b, out=y)",
                        "a > b", ("Greater",), _AB, _ALL, "bool"),
    "cast-to-float16": Function("CAST", "np.copyto(y, a, casting='same_kind')", "y.copy_(a)", "a",
                                ("Cast", {"to": onnx_model.TYPES["float16"]}), types=("float32",), output="float16"),
    "cast-from-float16": Function("CAST", "np.copyto(y, a)", "y.copy_(a)", "a",
                                  ("Cast", {"to": onnx_model.TYPES["float32"]}), types=("float16",), output="float32"),
    "relu": Function("ACTIVATION_RELU", "np.maximum(a, 0, out=y)", "torch.clamp_min(a, 0, out=y)", "clip(a, 0, None)",
                     ("Relu",), types=_ALL),
    "exp": Function("ELEMENT_WISE_EXP", "np.exp(a, out=y)", "torch.exp(a, out=y)", "exp(a)", ("Exp",), ulps=2),
    "tanh": Function("ELEMENT_WISE_TANH", "np.tanh(a, out=y)", "torch.tanh(a, out=y)", "tanh(a)", ("Tanh",), ulps=2),
    "erf": Function("ELEMENT_WISE_ERF", "", "torch.erf(a, out=y)", "erf(a)", ("Erf",), ulps=2),
    "sigmoid": Function("ACTIVATION_SIGMOID",
                        "np.negative(a, out=y), np.exp(y, out=y), np.add(y, 1, out=y), np.reciprocal(y, out=y)",
                        "torch.sigmoid(a, out=y)", "1 / (1 + exp(-a))", ("Sigmoid",), ulps=2),
    "gelu": Function("ACTIVATION_GELU", "", "torch._C._nn.gelu(a, out=y)", "0.5 * a * erfc(-a / 2 ** 0.5)",
                     ("Gelu",), ulps=4),
    "sin": Function("ELEMENT_WISE_SIN", "np.sin(a, out=y)", "torch.sin(a, out=y)", "sin(a)", ("Sin",), ulps=2),
    "clip": Function("ELEMENT_WISE_CLIP", "np.clip(a, -100, 100, out=y)", "torch.clamp(a, -100, 100, out=y)",
                     "clip(a, -100, 100)", ("Clip", {}, (-100, 100)), types=_ALL, data=("whole",),
                     attributes={"Min": -100, "Max": 100}),
    "log": Function("ELEMENT_WISE_LOG", "np.log(a, out=y)", "torch.log(a, out=y)", "log(a)", ("Log",), ulps=2,
                    data=("positive",)),
    "pow": Function("ELEMENT_WISE_POW", "np.power(a, b, out=y)", "torch.pow(a, b, out=y)", "a ** b", ("Pow",),
                    ("InputTensor", "ExponentTensor"), data=("positive", "normal"), ulps=4),
}
# The strides of the first and of the last input, of a tensor with so many rows.
LAYOUTS = {
    "packed": lambda rows: ((), ()),
    "row": lambda rows: ((), (0, 1)),
    "column": lambda rows: ((), (1, 0)),
    "transposed": lambda rows: ((1, rows), ()),
}
# onnxruntime-node does what onnxruntime-c does, and copies the output once more.
_PEERS = ("numpy", "torch", "onnxruntime", "onnxruntime-c")


def elementwise(name, sizes, type="float32", layout="packed", data=None, **more):
    function = FUNCTIONS[name]
    first, last = LAYOUTS[layout](sizes[0])
    strides = (first, last)[:len(function.fields)]
    inputs = {field: Tensor(type, sizes, stride, data or ("whole" if type == "int32" else kind))
              for field, stride, kind in zip(function.fields, strides, function.data)}
    outputs = {"OutputTensor": Tensor(function.output or type, sizes)}
    words = [name, "x".join(map(str, sizes)), *([layout] if layout != "packed" else []),
             *([type] if type != function.types[0] else [])]
    settings = {"peers": _PEERS, "groups": ("elementwise",), "table": "elementwise", **more}
    return Case("elementwise-" + "-".join(words), function.operator, inputs, outputs, function.attributes,
                function.ulps, numpy=function.numpy, torch=function.torch, true=function.true,
                onnx=onnx_model.one_node(*function.onnx, inputs=list(inputs.values()),
                                         output=outputs["OutputTensor"]), **settings)


def _layouts(name):
    """A broadcast is between two inputs."""
    return [layout for layout in LAYOUTS if len(FUNCTIONS[name].fields) == 2 or layout in ("packed", "transposed")]


def _elementwise_cases():
    quick = {"add", "greater", "cast-to-float16", "exp", "gelu"}
    for rows, where in ((4096, "elementwise from memory"), (256, "elementwise from the cache"), (16, "")):
        for type in _ALL:
            for layout in LAYOUTS:
                for name, function in FUNCTIONS.items():
                    if type not in function.types or layout not in _layouts(name):
                        continue
                    # Most of all what the others are made of: plain FLOAT32, and addition in every way.
                    chosen = (name in quick if type == "float32" and layout == "packed" else
                              name == "add" and rows == 4096 and type != "int32")
                    yield elementwise(name, (rows, rows if where else 24), type, layout, table=where or "elementwise",
                                      quick=chosen and bool(where), tiny=not where)


def _latency(name, dispatches, floor):
    """Whose peers' Run is a submission too; numpy's assignment is none. Element-wise ones are measured beside
    the scatter."""
    more = {"dispatches": dispatches, "floor": floor,
            "peers": ("onnxruntime", "onnxruntime-c", "onnxruntime-node")}
    yield scatter(name, (8,), 4, 1, groups=("scatter", "elementwise"), **more)
    more.update(peers=more["peers"][:2], table="elementwise latency")
    yield dataclasses.replace(elementwise("add", (8,), **more), name=f"elementwise-add-{name}")


def all_cases():
    million = 1000 * 1000
    return [
        *(top_k((1, million), k) for k in (1, 10, 100, 1000, 100000)),
        # Shorter ones, for time against length.
        *(top_k((1, length), 10) for length in (1000, 10 * 1000, 100 * 1000)),
        # Not in a quick run: sorting 2^24 elements takes the reference ten seconds.
        *(top_k((1, 1 << 24), k, quick=False) for k in (10, 1000)),
        *(top_k((1000, 1000), k) for k in (1, 5, 10, 100, 500)),
        *(top_k((64, 32000), k) for k in (1, 40, 50, 1000)),
        top_k((10000, 100), 10),
        top_k((1000, 1000), 10, axis=0),
        top_k((8, 1000, 256), 10, axis=1),
        *(top_k((1, million), 100, data=data) for data in ("ascending", "descending", "equal")),
        *(top_k(sizes, k, type=type) for type in ("int8", "float16")
          for sizes, k in (((1, million), 100), ((1000, 1000), 10), ((64, 32000), 50))),
        # The batch sizes and lengths of the benchmark of RAFT's select_k.
        *(top_k(sizes, k, quick=False)
          for sizes in ((20000, 500), (1000, 10 * 1000), (100, 100 * 1000), (10, million)) for k in (1, 16, 64, 256)),
        # Sampling from language models: Llama 3's and Qwen 2's vocabularies.
        top_k((1, 128256), 50),
        top_k((32, 128256), 50, quick=False),
        top_k((1, 151936), 20, quick=False),
        # Sixteen different values; one NaN in a hundred.
        top_k((1, million), 100, data="ties"),
        top_k((1000, 1000), 10, data="ties", quick=False),
        top_k((1, million), 100, data="nan"),
        top_k((64, 32000), 50, data="nan", quick=False),
        *(scatter(name, sizes, tuples, size, in_place=in_place, quick=quick) for name, sizes, tuples, size, quick in (
            ("16777216-1000000-scalars", (1 << 24,), million, 1, True),
            ("65536x256-16384-rows", (65536, 256), 16384, 1, True),
            ("4096x4096-65536-pairs", (4096, 4096), 65536, 2, True),
            # A step of 32 sequences into a cache of keys.
            ("131072x128-32-rows", (131072, 128), 32, 1, False)) for in_place in (False, True)),
        *_latency("latency-one-submission", 1, "handover"),
        *_latency("latency-of-1000-dispatches", 1000, "loop"),
        *_elementwise_cases(),
        top_k((4, 100), 3, quick=False, tiny=True),
        *(scatter("64x8-5-rows", (64, 8), 5, 1, in_place=in_place, quick=False, tiny=True)
          for in_place in (False, True)),
    ]
