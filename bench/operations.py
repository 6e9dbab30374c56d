"""Operators and how they are spelled elsewhere: a row each. cases.py says of which sizes they are measured."""

import dataclasses
import math
import typing

import onnx_model

_FLOATS, _ALL = ("float32", "float16"), ("float32", "float16", "int32")


@dataclasses.dataclass(frozen=True)
class Operation:
    """What takes `sizes` is called with the case's sizes, and says the same of them all if it is absent."""

    operator: str  # DirectML's name
    # In Python: inputs are a, b, c..., the output is y, or what the expression returns. Empty: it does not have it.
    numpy: str
    torch: str
    true: str  # in float64, of what both have (TRUE); empty: the reference, or on a GPU our CPU adapter, says it
    onnx: typing.Any  # operator, attributes, constants: arguments of onnx_model.one_node; or a function of the sizes
    fields: tuple = ("InputTensor",)
    types: tuple = _FLOATS
    output: str = ""  # its type, if not the inputs'
    data: tuple = ()  # of the inputs: see MakeElements in case.cc; "normal"
    input_types: dict = dataclasses.field(default_factory=dict)  # of fields with a type of their own
    attributes: typing.Any = dataclasses.field(default_factory=dict)  # or a function of the sizes
    ulps: float = 0
    absolute: float = 0  # a difference that is none, whatever the value
    input_sizes: typing.Callable = None  # sizes of each input
    output_sizes: typing.Callable = None
    permutation: tuple = ()  # the first input's dimensions are read in this order; sizes are those in memory
    read_elements: typing.Callable = None  # of the inputs, where not all of them must be


def _last(*sizes):
    return {"Axes": len(sizes) - 1}


def _row(*sizes):
    """The last one, the others 1."""
    return (1,) * (len(sizes) - 1) + sizes[-1:]


_AB = ("ATensor", "BTensor")
ELEMENT_WISE = {  # those of the same inputs in a row: these need not be made again
    "add": Operation("ELEMENT_WISE_ADD", "np.add(a, b, out=y)", "torch.add(a, b, out=y)", "a + b", ("Add",), _AB, _ALL),
    "multiply": Operation("ELEMENT_WISE_MULTIPLY", "np.multiply(a, b, out=y)", "torch.mul(a, b, out=y)", "a * b",
                          ("Mul",), _AB, _ALL),
    "greater": Operation("ELEMENT_WISE_LOGICAL_GREATER_THAN", "np.greater(a, b, out=y)", "torch.gt(a, b, out=y)",
                         "a > b", ("Greater",), _AB, _ALL, "bool"),
    "cast-to-float16": Operation("CAST", "np.copyto(y, a, casting='same_kind')", "y.copy_(a)", "a",
                                 ("Cast", {"to": onnx_model.TYPES["float16"]}), ("InputTensor",), ("float32",),
                                 "float16"),
    "cast-from-float16": Operation("CAST", "np.copyto(y, a)", "y.copy_(a)", "a",
                                   ("Cast", {"to": onnx_model.TYPES["float32"]}), ("InputTensor",), ("float16",),
                                   "float32"),
    "relu": Operation("ACTIVATION_RELU", "np.maximum(a, 0, out=y)", "torch.clamp_min(a, 0, out=y)", "clip(a, 0, None)",
                      ("Relu",), ("InputTensor",), _ALL),
    "exp": Operation("ELEMENT_WISE_EXP", "np.exp(a, out=y)", "torch.exp(a, out=y)", "exp(a)", ("Exp",), ulps=2),
    "tanh": Operation("ELEMENT_WISE_TANH", "np.tanh(a, out=y)", "torch.tanh(a, out=y)", "tanh(a)", ("Tanh",), ulps=2),
    "erf": Operation("ELEMENT_WISE_ERF", "", "torch.erf(a, out=y)", "erf(a)", ("Erf",), ulps=2),
    "sigmoid": Operation("ACTIVATION_SIGMOID",
                         "np.negative(a, out=y), np.exp(y, out=y), np.add(y, 1, out=y), np.reciprocal(y, out=y)",
                         "torch.sigmoid(a, out=y)", "1 / (1 + exp(-a))", ("Sigmoid",), ulps=2),
    "gelu": Operation("ACTIVATION_GELU", "", "torch._C._nn.gelu(a, out=y)", "0.5 * a * erfc(-a / 2 ** 0.5)",
                      ("Gelu",), ulps=4),
    "sin": Operation("ELEMENT_WISE_SIN", "np.sin(a, out=y)", "torch.sin(a, out=y)", "sin(a)", ("Sin",), ulps=2),
    "clip": Operation("ELEMENT_WISE_CLIP", "np.clip(a, -100, 100, out=y)", "torch.clamp(a, -100, 100, out=y)",
                      "clip(a, -100, 100)", ("Clip", {}, (-100, 100)), ("InputTensor",), _ALL, "", ("whole",),
                      attributes={"Min": -100, "Max": 100}),
    "log": Operation("ELEMENT_WISE_LOG", "np.log(a, out=y)", "torch.log(a, out=y)", "log(a)", ("Log",),
                     ulps=2, data=("positive",)),
    "pow": Operation("ELEMENT_WISE_POW", "np.power(a, b, out=y)", "torch.pow(a, b, out=y)", "a ** b", ("Pow",),
                     ("InputTensor", "ExponentTensor"), data=("positive", "normal"), ulps=4),
}

# Sums of numbers of one sign: what blocks add up differs by some units in the last place.
_SUMS = {"data": ("positive",), "ulps": 16, "types": _ALL}
_MEANS = {"data": ("positive",), "ulps": 16}


def _reductions(axis):
    def result(n, w):
        return (n, 1) if axis == 1 else (1, w)

    def row(operator, name, onnx, true, attributes, torch="", **more):
        return Operation(operator, f"np.{name}(a, {axis}, out=y, keepdims=True)",
                         f"torch.{name}(a, {axis}, True, {torch}out=y)", true, onnx, output_sizes=result,
                         attributes={"Axes": axis, **attributes}, **more)

    return {
        "sum": row("REDUCE", "sum", ("ReduceSum", {}, (("int64", [axis]),)), f"a.sum({axis})", {"Function": "SUM"},
                   "dtype=y.dtype, ", **_SUMS),
        "mean": row("REDUCE", "mean", ("ReduceMean", {"axes": [axis]}), f"a.mean({axis})", {"Function": "AVERAGE"},
                    **_MEANS),
        "max": row("REDUCE", "amax", ("ReduceMax", {"axes": [axis]}), f"amax(a, {axis})", {"Function": "MAX"},
                   types=_ALL),
        # Of equal maxima the first, as NumPy; PyTorch takes any on a GPU.
        "argmax": row("ARGMAX", "argmax", ("ArgMax", {"axis": axis}), "", {"AxisDirection": "INCREASING"},
                      output="int64"),
    }


REDUCE = {f"{name}-{along}": operation for along, axis in (("rows", 1), ("columns", 0))
          for name, operation in _reductions(axis).items()}
_EXPONENTIALS = "exp(a - amax(a, -1)[..., None])"
SOFTMAX = {
    "softmax": Operation("ACTIVATION_SOFTMAX1",
                         "np.subtract(a, np.amax(a, -1, keepdims=True), out=y), np.exp(y, out=y), "
                         "np.divide(y, np.sum(y, -1, keepdims=True), out=y)", "torch._softmax(a, -1, False, out=y)",
                         f"(lambda e: e / e.sum(-1)[..., None])({_EXPONENTIALS})", ("Softmax", {"axis": -1}),
                         ulps=16, attributes=_last),
    "log-softmax": Operation("ACTIVATION_LOG_SOFTMAX1", "", "torch._log_softmax(a, -1, False, out=y)",
                             f"a - amax(a, -1)[..., None] - log({_EXPONENTIALS}.sum(-1))[..., None]",
                             ("LogSoftmax", {"axis": -1}),
                             ulps=16, absolute=1e-5, attributes=_last),
}
NORMALIZATION = {
    "layer": Operation("MEAN_VARIANCE_NORMALIZATION1", "np.subtract(a, np.mean(a, -1, keepdims=True), out=y), "
                       "np.divide(y, np.sqrt(np.mean(np.square(y), -1, keepdims=True) + y.dtype.type(1e-5)), out=y), "
                       "np.multiply(y, b, out=y), np.add(y, c, out=y)",
                       "torch.layer_norm(a, a.shape[-1:], b.flatten(), c.flatten(), 1e-5)",
                       "(lambda d: d / sqrt((d * d).mean(-1)[..., None] + 1e-5) * b + c)(a - a.mean(-1)[..., None])",
                       ("LayerNormalization", {"axis": -1, "epsilon": 1e-5}, (), "bc"),
                       ("InputTensor", "ScaleTensor", "BiasTensor"),
                       ulps=16, absolute=1e-5, input_sizes=lambda *s: (s, _row(*s), _row(*s)),
                       attributes=lambda *s: {**_last(*s), "NormalizeVariance": 1, "Epsilon": 1e-5}),
    # Of language models: without a mean.
    "rms": Operation("MEAN_VARIANCE_NORMALIZATION2", "", "a * torch.rsqrt((a * a).mean(-1, True) + 1e-5) * b",
                     "a / sqrt((a * a).mean(-1)[..., None] + 1e-5) * b", (), ("InputTensor", "ScaleTensor"),
                     ulps=16, absolute=1e-5, input_sizes=lambda *s: (s, _row(*s)),
                     attributes=lambda *s: {**_last(*s), "UseMean": 0, "UseVariance": 1, "Epsilon": 1e-5}),
    "batch": Operation("BATCH_NORMALIZATION", "", "torch.batch_norm(a, d.flatten(), e.flatten(), b.flatten(), "
                       "c.flatten(), False, 0.0, 1e-5, True)", "d * (a - b) / sqrt(c + 1e-5) + e", (),
                       ("InputTensor", "MeanTensor", "VarianceTensor", "ScaleTensor", "BiasTensor"),
                       ulps=16, absolute=1e-5, data=("normal", "normal", "positive", "normal", "normal"),
                       input_sizes=lambda n, c, *s: ((n, c, *s), *[(1, c, *[1] * len(s))] * 4),
                       attributes={"Spatial": 1, "Epsilon": 1e-5}),
}


def _transpose(*permutation):
    return Operation("ELEMENT_WISE_IDENTITY", "np.copyto(y, a)", "y.copy_(a)", "a", ("Transpose",),
                     permutation=permutation)


def _slice(axis, step):
    def attributes(*sizes):
        strides = [step if d == axis else 1 for d in range(len(sizes))]
        return {"InputWindowOffsets": ",".join("0" * len(sizes)), "InputWindowSizes": ",".join(map(str, sizes)),
                "InputWindowStrides": ",".join(map(str, strides))}

    index = "[::2]" if axis == 0 else "[:, ::2]"
    more = {"attributes": attributes,
            "output_sizes": lambda *s: tuple(-(-size // step) if d == axis else size for d, size in enumerate(s))}
    if axis == 0:  # rows that are left out are not read
        more["read_elements"] = lambda *s: math.prod(s) // step
    ends = ("int64", [0]), ("int64", [2**31]), ("int64", [axis]), ("int64", [step])
    return Operation("SLICE1", f"np.copyto(y, a{index})", f"y.copy_(a{index})", f"a{index}", ("Slice", {}, ends),
                     **more)


def _join(axis):
    return Operation("JOIN", f"np.concatenate((a, b, c, d), {axis}, out=y)", f"torch.cat((a, b, c, d), {axis}, out=y)",
                     f"join((a, b, c, d), {axis})", ("Concat", {"axis": axis}),
                     tuple(f"InputTensors[{i}]" for i in range(4)),
                     attributes={"Axis": axis}, types=("float32", "float16", "int8"),
                     input_sizes=lambda *s: [tuple(n // 4 if d == axis else n for d, n in enumerate(s))] * 4)


def _pad(mode, name):
    return Operation("PADDING", f"np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1)), '{name}')",
                     f"torch.nn.functional.pad(a, (1, 1, 1, 1), '{name}')", "",
                     ("Pad", {"mode": name}, (("int64", [0, 0, 1, 1, 0, 0, 1, 1]),)),
                     output_sizes=lambda n, c, h, w: (n, c, h + 2, w + 2),
                     attributes={"PaddingMode": mode, "PaddingValue": 0, "StartPadding": "0,0,1,1",
                                 "EndPadding": "0,0,1,1"})


MOVE = {
    "transpose": _transpose(1, 0),
    "transpose-0213": _transpose(0, 2, 1, 3),
    "nchw-to-nhwc": _transpose(0, 2, 3, 1),
    "nhwc-to-nchw": _transpose(0, 3, 1, 2),
    "every-second-row": _slice(0, 2),
    "every-second-column": _slice(1, 2),
    "join-rows": _join(0),
    "join-columns": _join(1),
    "tile": Operation("TILE", "np.tile(a, (2, 2))", "a.repeat(2, 2)", "tile(a, (2, 2))",
                      ("Tile", {}, (("int64", [2, 2]),)), attributes={"Repeats": "2,2"},
                      output_sizes=lambda n, w: (2 * n, 2 * w)),
    "pad": _pad("CONSTANT", "constant"),
    "pad-reflected": _pad("REFLECTION", "reflect"),
}
_WINDOW = {"Strides": "2,2", "WindowSize": "3,3", "StartPadding": "1,1", "EndPadding": "1,1"}
_ONNX_WINDOW = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}


def _halved(n, c, h, w):
    return (n, c, (h + 1) // 2, (w + 1) // 2)


def _whole(n, c, h, w):
    return {"Strides": "1,1", "WindowSize": f"{h},{w}", "StartPadding": "0,0", "EndPadding": "0,0"}


POOLING = {
    "max-3x3": Operation("MAX_POOLING", "", "torch.max_pool2d(a, 3, 2, 1)", "", ("MaxPool", _ONNX_WINDOW),
                         attributes=_WINDOW, output_sizes=_halved),
    "average-3x3": Operation("AVERAGE_POOLING", "", "torch._C._nn.avg_pool2d(a, 3, 2, 1, False, False)", "",
                             ("AveragePool", _ONNX_WINDOW),
                             attributes={**_WINDOW, "IncludePadding": 0}, output_sizes=_halved, ulps=8,
                             absolute=1e-6),
    "max-global": Operation("MAX_POOLING", "np.amax(a, (2, 3), out=y, keepdims=True)",
                            "torch.amax(a, (2, 3), True, out=y)",
                            "amax(a, (2, 3))", ("GlobalMaxPool",),
                            attributes=_whole, output_sizes=lambda n, c, h, w: (n, c, 1, 1)),
    "average-global": Operation("AVERAGE_POOLING", "np.mean(a, (2, 3), out=y, keepdims=True)",
                                "torch.mean(a, (2, 3), True, out=y)", "a.mean((2, 3))", ("GlobalAveragePool",),
                                attributes=lambda *s: {**_whole(*s), "IncludePadding": 0}, **_MEANS,
                                output_sizes=lambda n, c, h, w: (n, c, 1, 1)),
}


def _resample(mode, onnx, torch, **more):
    offsets = {"InputPixelOffsets": "0.5,0.5,0.5,0.5", "OutputPixelOffsets": "-0.5,-0.5,-0.5,-0.5"}
    if mode == "NEAREST_NEIGHBOR":  # the pixel whose area the output's begins in
        offsets = {"InputPixelOffsets": "0,0,0,0", "OutputPixelOffsets": "0,0,0,0"}
    nearest = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"} if onnx == "nearest" else {}
    return Operation("RESAMPLE2", "", f"torch.nn.functional.interpolate(a, scale_factor=2, {torch})", "",
                     ("Resize", {"mode": onnx, **nearest}, (None, ("float32", [1, 1, 2, 2]))),
                     output_sizes=lambda n, c, h, w: (n, c, 2 * h, 2 * w), **more,
                     attributes={"InterpolationMode": mode, "RoundingDirection": "DECREASING", "Scales": "1,1,2,2",
                                 **offsets})


RESAMPLE = {
    "bilinear-x2": _resample("LINEAR", "linear", "mode='bilinear', align_corners=False", ulps=16, absolute=1e-6),
    "nearest-x2": _resample("NEAREST_NEIGHBOR", "nearest", "mode='nearest'"),
}
# Of n rows of w elements, any k of them.
GATHER = {
    "rows": Operation("GATHER", "np.take(a, b[0], 0, out=y, mode='clip')", "torch.index_select(a, 0, b[0], out=y)", "",
                      ("Gather", {"axis": 0}, (), "b"), ("InputTensor", "IndicesTensor"),
                      attributes={"Axis": 0, "IndexDimensions": 1}, input_sizes=lambda n, w, k: ((n, w), (1, k)),
                      input_types={"IndicesTensor": "int32"}, data=("normal", lambda n, w, k: f"below-{n}"),
                      output_sizes=lambda n, w, k: (k, w), read_elements=lambda n, w, k: k * w),
}


def _scan(axis):
    return Operation("CUMULATIVE_SUMMATION", f"np.cumsum(a, {axis}, out=y)",
                     f"torch.cumsum(a, {axis}, dtype=y.dtype, out=y)",
                     f"a.cumsum({axis})", ("CumSum", {}, (("int64", axis),)),
                     types=_ALL, ulps=16, absolute=1e-3,
                     attributes={"Axis": axis, "AxisDirection": "INCREASING", "HasExclusiveSum": 0})


SCAN = {"rows": _scan(1), "columns": _scan(0)}


# Sums of products of numbers around 0.
_PRODUCTS = {"ulps": 16, "absolute": 1e-2}


def _gemm(b, onnx, more):
    """Of (..., m, n, k); `b` is the second matrix as it is multiplied. NumPy has no fast product of FLOAT16."""
    transposed = b != "b"
    product = Operation("GEMM", f"np.matmul(a, {b}, out=y)", f"torch.matmul(a, {b}, out=y)", f"a @ {b}", onnx, _AB,
                        ("float32",), **_PRODUCTS,
                        input_sizes=lambda *s: ((*s[:-2], s[-1]), (*s[:-3], *(s[-2:] if transposed else s[:-3:-1]))),
                        output_sizes=lambda *s: s[:-1],
                        attributes={"TransA": "NONE", "TransB": "TRANSPOSE" if transposed else "NONE", "Alpha": 1,
                                    "Beta": 0})
    return dataclasses.replace(product, **more)


_HALF = {"types": ("float16",), "numpy": ""}
GEMM = {
    "nn": _gemm("b", ("MatMul",), {}),
    "nn-half": _gemm("b", ("MatMul",), _HALF),
    "nt": _gemm("b.T", ("Gemm", {"transB": 1}), {}),
    "nt-half": _gemm("b.T", ("Gemm", {"transB": 1}), _HALF),
    "bytes": Operation("MATRIX_MULTIPLY_INTEGER", "", "torch._int_mm(a, b)", "", ("MatMulInteger",), _AB, ("int8",),
                       "int32", input_sizes=lambda *s: ((*s[:-2], s[-1]), (*s[:-3], s[-1], s[-2])),
                       output_sizes=lambda *s: s[:-1]),
}


def _convolution(taps, stride, depthwise=False, integers=False):
    """Of n images of c channels, h x w, into m channels. Bytes have neither scales nor zero points."""
    padding = taps // 2

    def windows(size):
        return (size + 2 * padding - taps) // stride + 1

    def groups(c):
        return c if depthwise else 1

    def attributes(n, c, h, w, m):
        floats = {"Mode": "CROSS_CORRELATION", "Direction": "FORWARD", "OutputPadding": "0,0"}
        return {**({} if integers else floats), "Strides": f"{stride},{stride}", "Dilations": "1,1",
                "StartPadding": f"{padding},{padding}", "EndPadding": f"{padding},{padding}", "GroupCount": groups(c)}

    torch = f"torch.conv2d(a, b, None, {stride}, {padding}, 1, a.shape[1] // b.shape[1])"
    more = {"types": ("int8",), "output": "int32"} if integers else _PRODUCTS
    return Operation("CONVOLUTION_INTEGER" if integers else "CONVOLUTION", "", "" if integers else torch, "",
                     lambda n, c, h, w, m: ("ConvInteger" if integers else "Conv", {
                         "kernel_shape": [taps] * 2, "strides": [stride] * 2, "pads": [padding] * 4,
                         "group": groups(c)}),
                     ("InputTensor", "FilterTensor"), **more,
                     input_sizes=lambda n, c, h, w, m: ((n, c, h, w), (m, c // groups(c), taps, taps)),
                     output_sizes=lambda n, c, h, w, m: (n, m, windows(h), windows(w)), attributes=attributes)


def _transposed(taps, stride):
    """A convolution that makes images `stride` times as large."""
    padding = (taps - stride) // 2
    return Operation("CONVOLUTION", "", f"torch.conv_transpose2d(a, b, None, {stride}, {padding})", "",
                     ("ConvTranspose", {"kernel_shape": [taps] * 2, "strides": [stride] * 2, "pads": [padding] * 4}),
                     ("InputTensor", "FilterTensor"), **_PRODUCTS,
                     input_sizes=lambda n, c, h, w, m: ((n, c, h, w), (c, m, taps, taps)),
                     output_sizes=lambda n, c, h, w, m: (n, m, h * stride, w * stride),
                     attributes={"Mode": "CROSS_CORRELATION", "Direction": "BACKWARD", "OutputPadding": "0,0",
                                 "Strides": f"{stride},{stride}", "Dilations": "1,1", "GroupCount": 1,
                                 "StartPadding": f"{padding},{padding}", "EndPadding": f"{padding},{padding}"})


_LAYERS = {"3x3": (3, 1), "1x1": (1, 1), "7x7-stride-2": (7, 2), "depthwise-3x3": (3, 1, True),
           "depthwise-3x3-stride-2": (3, 2, True)}
CONVOLUTION = {
    **{name: _convolution(*layer) for name, layer in _LAYERS.items()},
    **{f"{name}-bytes": _convolution(*layer, integers=True) for name, layer in _LAYERS.items()},
    "transposed-2x2": _transposed(2, 2),
    "transposed-4x4": _transposed(4, 2),
}


# Of (batch, heads, queries, keys, width of a head); heads are side by side in a row.
def _attention(head):
    return Operation(
        "MULTIHEAD_ATTENTION", "", f"torch.nn.functional.scaled_dot_product_attention(*(x.unflatten(-1, (-1, {head}))"
        ".transpose(1, 2) for x in (a, b, c))).transpose(1, 2).flatten(2)", "",
        lambda n, h, s, t, d: ("MultiHeadAttention", {"num_heads": h}), ("QueryTensor", "KeyTensor", "ValueTensor"),
        **_PRODUCTS, input_sizes=lambda n, h, s, t, d: ((n, s, h * d), (n, t, h * d), (n, t, h * d)),
        output_sizes=lambda n, h, s, t, d: (n, s, h * d),
        attributes=lambda n, h, s, t, d: {"Scale": head**-0.5, "MaskFilterValue": -10000, "HeadCount": h,
                                          "MaskType": "NONE"})


HEAD = 64
ATTENTION = {"heads": _attention(HEAD), "heads-of-128": _attention(128)}


OPERATIONS = {(group, name): operation for group, rows in (
    ("elementwise", ELEMENT_WISE), ("reduce", REDUCE), ("softmax", SOFTMAX), ("normalization", NORMALIZATION),
    ("move", MOVE), ("pooling", POOLING), ("resample", RESAMPLE), ("gather", GATHER), ("scan", SCAN),
    ("gemm", GEMM), ("convolution", CONVOLUTION), ("attention", ATTENTION))
              for name, operation in rows.items()}
