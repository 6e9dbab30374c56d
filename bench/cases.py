"""What is measured, as data. The worker and the peers know nothing of names or of --quick."""

import dataclasses

import onnx_model
from operations import ELEMENT_WISE, HEAD, OPERATIONS, POOLING, REDUCE, RESAMPLE, SCAN, SOFTMAX
from tensor import BITS, Tensor, words_of


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    operator: str  # DirectML's name
    inputs: dict  # its fields: Tensor
    outputs: dict
    attributes: dict = dataclasses.field(default_factory=dict)  # as `anydml op` takes them
    ulps: float = 0  # by which a result may differ from the true one
    absolute: float = 0  # or so much
    in_place: bool = False
    dispatches: int = 1
    floor: str = ""  # of latencies: what stands in for moving the bytes
    moved: int = 0  # bytes that must be read and written; 0: those of all tensors
    # What the peers do: see operations.py. Top-k and scatter are written out in their files.
    numpy: str = ""
    torch: str = ""
    true: str = ""
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
        words.update(words_of({**self.inputs, **self.outputs}))
        for key in ("ulps", "absolute", "in_place", "dispatches", "floor", "moved", "numpy", "torch", "true"):
            if getattr(self, key) not in (Case.__dataclass_fields__[key].default, False):
                words[key] = int(getattr(self, key)) if key == "in_place" else getattr(self, key)
        return words

    def moved_bytes(self):
        """What must be read and written at the least."""
        tensors = [*self.inputs.values(), *self.outputs.values()]
        if self.moved:
            return self.moved
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


# The strides of the first and of the last input, of a tensor with so many rows.
LAYOUTS = {
    "packed": lambda rows: ((), ()),
    "row": lambda rows: ((), (0, 1)),
    "column": lambda rows: ((), (1, 0)),
    "transposed": lambda rows: ((1, rows), ()),
}


def _channels_last(sizes):
    """Strides of images (or filters) whose channels are neighbours in memory."""
    n, c, *spatial = sizes
    n, *spatial, c = Tensor("", (n, *spatial, c)).all_strides()
    return n, c, *spatial


# onnxruntime-node does what onnxruntime-c does, and copies the output once more.
_PEERS = ("numpy", "torch", "onnxruntime", "onnxruntime-c")


def cell(group, name, sizes, type=None, layout="packed", data=None, **more):
    """A row of operations.py, of these sizes. The layout "nhwc" is of all tensors, for gpu.py."""
    operation = OPERATIONS[group, name]
    type = type or operation.types[0]

    def of_sizes(value, default=None):
        return value(*sizes) if callable(value) else default if value is None else value

    shapes = of_sizes(operation.input_sizes, [sizes] * len(operation.fields))
    strides = LAYOUTS[layout](sizes[0]) if layout in LAYOUTS else [_channels_last(shape) for shape in shapes]
    result = of_sizes(operation.output_sizes, sizes)
    if operation.permutation:  # the tensor's sizes are in the order in which it is read
        packed = Tensor(type, sizes).all_strides()
        shapes = [result] = [tuple(sizes[d] for d in operation.permutation)]
        strides = [tuple(packed[d] for d in operation.permutation)]
    kinds = [of_sizes(kind) for kind in operation.data] or ["normal"] * len(operation.fields)
    inputs = {}
    for field, shape, stride, kind in zip(operation.fields, shapes, [*strides, *[()] * len(shapes)], kinds):
        if type == "int32" and kind == "normal":
            kind = "whole"
        inputs[field] = Tensor(operation.input_types.get(field, type), shape, stride, data or kind)
    output = Tensor(operation.output or type, result, () if layout in LAYOUTS else _channels_last(result))
    indices = sum(tensor.bytes() for field, tensor in inputs.items() if field in operation.input_types)
    if operation.read_elements:
        more["moved"] = indices + output.bytes() + operation.read_elements(*sizes) * BITS[type] // 8
    exact = not (type in ("float32", "float16"))  # integers always are
    words = [name, "x".join(map(str, sizes)), *([layout] if layout != "packed" else []),
             *([type] if type != operation.types[0] else [])]
    node = of_sizes(operation.onnx) if layout in LAYOUTS else None
    onnx = onnx_model.one_node(*node, inputs=list(inputs.values()), output=output) if node else b""
    settings = {"peers": _PEERS if onnx else _PEERS[:2], "groups": (group,), "table": group, **more}
    return Case(f"{group}-" + "-".join(words), operation.operator, inputs, {"OutputTensor": output},
                of_sizes(operation.attributes), 0 if exact else operation.ulps, 0 if exact else operation.absolute,
                numpy=operation.numpy, torch=operation.torch, true=operation.true, onnx=onnx, **settings)


def elementwise(name, sizes, type="float32", layout="packed", **more):
    return cell("elementwise", name, sizes, type, layout, **more)


def _layouts(name):
    """A broadcast is between two inputs."""
    two = len(ELEMENT_WISE[name].fields) == 2
    return [layout for layout in LAYOUTS if two or layout in ("packed", "transposed")]


def _elementwise_cases():
    quick = {"add", "greater", "cast-to-float16", "exp", "gelu"}
    for rows, where in ((4096, "elementwise from memory"), (256, "elementwise from the cache"), (16, "")):
        for type in ("float32", "float16", "int32"):
            for layout in LAYOUTS:
                for name, operation in ELEMENT_WISE.items():
                    if type not in operation.types or layout not in _layouts(name):
                        continue
                    # Most of all what the others are made of: plain FLOAT32, and addition in every way.
                    chosen = (name in quick if type == "float32" and layout == "packed" else
                              name == "add" and rows == 4096 and type != "int32")
                    yield elementwise(name, (rows, rows if where else 24), type, layout, table=where or "elementwise",
                                      quick=chosen and bool(where), tiny=not where)


# Of operators that are not element-wise: the sizes that are measured, those of a quick run first. All are of every type
# that the row of operations.py has. The last ones are for the test of this benchmark.
_MATRIX, _IMAGES = (4096, 4096), (8, 64, 112, 112)
_PRODUCTS = [(1024, 1024, 1024), (4096, 1024, 1024), (128, 3072, 768), (1, 4096, 4096)]  # m, n, k


def _batches(*layers):
    return [(batch, *layer) for layer in layers for batch in (1, 8)]


# Of ResNet-50 and MobileNetV2.
_LAYERS = {"3x3": _batches((64, 56, 56, 64), (128, 28, 28, 128), (256, 14, 14, 256), (512, 7, 7, 512)),
           "1x1": _batches((256, 56, 56, 64), (64, 56, 56, 256)), "7x7-stride-2": _batches((3, 224, 224, 64)),
           "depthwise-3x3": _batches((144, 56, 56, 144), (960, 7, 7, 960)),
           "depthwise-3x3-stride-2": _batches((96, 112, 112, 96), (144, 56, 56, 144))}
CELLS = {
    "reduce": {name: [_MATRIX, (256, 256)] for name in REDUCE},
    "softmax": {name: [(1024, 4096), (8, 128, 768)] for name in SOFTMAX},
    "normalization": {"layer": [(1024, 4096), (8, 128, 768)], "rms": [(1024, 4096), (8, 128, 768)],
                      "batch": [_IMAGES]},
    "move": {"transpose": [_MATRIX, (256, 256)], "transpose-0213": [(8, 512, 16, 64)], "nchw-to-nhwc": [_IMAGES],
             "nhwc-to-nchw": [(8, 112, 112, 64)], "every-second-row": [_MATRIX], "every-second-column": [_MATRIX],
             "join-rows": [_MATRIX], "join-columns": [_MATRIX], "tile": [(2048, 2048)], "pad": [_IMAGES],
             "pad-reflected": [_IMAGES]},
    "pooling": {name: [_IMAGES] for name in POOLING},
    "resample": {name: [(8, 64, 56, 56)] for name in RESAMPLE},
    "gather": {"rows": [(65536, 256, 16384), (1024, 64, 256)]},
    "scan": {name: [_MATRIX, (256, 256)] for name in SCAN},
    "gemm": {**{name: [*_PRODUCTS, (96, 128, 128, 64)] for name in ("nn", "nn-half", "bytes")},
             **{name: _PRODUCTS for name in ("nt", "nt-half")}},
    "convolution": {**_LAYERS, **{f"{name}-bytes": shapes for name, shapes in _LAYERS.items()},
                    "transposed-2x2": _batches((64, 64, 64, 32), (256, 32, 32, 128)),
                    "transposed-4x4": _batches((128, 32, 32, 64), (512, 8, 8, 256))},
    "attention": {"heads": [(1, 12, 128, 128, HEAD), (1, 12, 1024, 1024, HEAD), (1, 12, 1, 2048, HEAD)]},
}


def _tiny(group, name):
    if group in ("gemm", "convolution", "attention"):
        return {"gemm": (9, 14, 11), "convolution": (2, 4, 6, 8, 4), "attention": (2, 3, 5, 7, HEAD)}[group]
    images = group in ("pooling", "resample") or "pad" in name or "nchw" in name or "0213" in name or name == "batch"
    return (20, 12, 8) if group == "gather" else (2, 3, 6, 8) if images else (16, 24)


def _cells():
    for group, names in CELLS.items():
        for name, shapes in names.items():
            for type in OPERATIONS[group, name].types:
                for i, sizes in enumerate(shapes):
                    yield cell(group, name, sizes, type, quick=type == "float32" and i == 0)
                yield cell(group, name, _tiny(group, name), type, quick=False, tiny=True)


def _latency(name, dispatches, floor):
    """Whose peers' Run is a submission too; numpy's assignment is none. Element-wise ones are measured beside
    the scatter."""
    more = {"dispatches": dispatches, "floor": floor,
            "peers": ("onnxruntime", "onnxruntime-c", "onnxruntime-node")}
    yield scatter(name, (8,), 4, 1, groups=("scatter", "elementwise"), **more)
    more.update(peers=more["peers"][:2], table="elementwise latency", groups=("elementwise", "graphs"))
    yield dataclasses.replace(elementwise("add", (8,), **more), name=f"elementwise-add-{name}")


GROUPS = ("topk", "scatter", "elementwise", *CELLS, "graphs")


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
        *_cells(),
        top_k((4, 100), 3, quick=False, tiny=True),
        *(scatter("64x8-5-rows", (64, 8), 5, 1, in_place=in_place, quick=False, tiny=True)
          for in_place in (False, True)),
    ]
