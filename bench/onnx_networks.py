"""Whole networks as ONNX files, with fixed pseudo-random weights: what `--group models` times.

    python3 bench/onnx_networks.py FOLDER [NAME...] [--type float32|float16|int8]

Neither NumPy nor the onnx package is needed. Weights are drawn from one table of numbers, scaled so that activations
stay of the order of 1 from layer to layer.
"""

import argparse
import math
import os
import random
import struct

from onnx_model import TYPES, _bytes, _constant, _model, _node, _number, _value_info

_PRIME = 65537
_FORMATS = {"float32": "f", "float16": "e", "int8": "b"}


class _Weights:
    """Bytes of tensors: consecutive numbers of the table, from another place for each tensor."""

    def __init__(self):
        generator = random.Random(1)
        self._numbers = [generator.uniform(-1, 1) for _ in range(_PRIME)]
        self._tables = {}
        self._next = 0

    def draw(self, count, scale, type):
        key = (scale, type)
        if key not in self._tables:
            values = [round(x * 127) for x in self._numbers] if type == "int8" else [x * scale for x in self._numbers]
            self._tables[key] = struct.pack(f"<{_PRIME}{_FORMATS[type]}", *values)
        table, item = self._tables[key], struct.calcsize(_FORMATS[type])
        start = self._next % _PRIME
        self._next += count
        times = (start + count) // _PRIME + 1
        return (table * times)[start * item:(start + count) * item]


class Network:
    """Nodes are added by calls; every method returns the name of its result."""

    def __init__(self, type="float32", opset=17):
        self.type, self.opset = type, opset
        self.float = "float32" if type == "int8" else type
        self._weights = _Weights()
        self._nodes, self._inputs, self._outputs, self._constants = [], [], [], []
        self._count = 0

    def _name(self):
        self._count += 1
        return f"v{self._count}"

    def input(self, name, sizes, type=None):
        self._inputs.append(_value_info(name, type or self.float, sizes))
        return name

    def output(self, name, sizes, type=None):
        self._outputs.append(_value_info(name, type or self.float, sizes))

    def node(self, operator, *inputs, outputs=1, **attributes):
        names = [self._name() for _ in range(outputs)]
        self._nodes.append(_node(operator, inputs, names, attributes))
        return names[0] if outputs == 1 else names

    def number(self, value, type=None):
        name = self._name()
        self._constants.append(_constant(name, type or self.float, value))
        return name

    def weight(self, sizes, scale, type=None):
        name, type = self._name(), type or self.float
        data = self._weights.draw(math.prod(sizes), scale, type)
        self._constants.append(b"".join(_number(1, size) for size in sizes) + _number(2, TYPES[type]) + _bytes(8, name)
                               + _bytes(9, data))
        return name

    def bytes(self):
        return _model(self._nodes, self._inputs, self._outputs, self._constants, self.opset)

    # ---- Layers ----

    def quantized(self, x, scale=0.05):
        """x through 8 bits and back, where the network is quantised."""
        if self.type != "int8":
            return x
        scale, zero = self.number(scale), self.number_of_int8(0)
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, scale, zero), scale, zero)

    def number_of_int8(self, value):
        name = self._name()
        self._constants.append(_number(2, TYPES["int8"]) + _bytes(8, name) + _bytes(9, struct.pack("<b", value)))
        return name

    def filters(self, sizes, gain=1.7):
        scale = gain * math.sqrt(3 / math.prod(sizes[1:]))
        if self.type != "int8":
            return self.weight(sizes, scale)
        return self.node("DequantizeLinear", self.weight(sizes, 1, "int8"), self.number(scale / 127))

    def conv(self, x, channels_in, channels, kernel, stride=1, groups=1, activation="Relu", gain=1.7):
        pad = (kernel - 1) // 2
        y = self.node("Conv", self.quantized(x), self.filters((channels, channels_in // groups, kernel, kernel), gain),
                      self.weight((channels,), 0.1), kernel_shape=[kernel, kernel], strides=[stride, stride],
                      pads=[pad, pad, pad, pad], group=groups)
        if activation == "Relu6":
            return self.node("Clip", y, self.number(0.0), self.number(6.0))
        return self.node(activation, y) if activation else y

    def linear(self, x, size_in, size):
        y = self.node("MatMul", x, self.weight((size_in, size), math.sqrt(3 / size_in)))
        return self.node("Add", y, self.weight((size,), 0.1))

    def norm(self, x, size):
        return self.node("LayerNormalization", x, self.weight((size,), 1.0), self.weight((size,), 0.1), axis=-1,
                         epsilon=1e-5)

    def gelu(self, x):
        erf = self.node("Erf", self.node("Div", x, self.number(math.sqrt(2))))
        return self.node("Mul", self.node("Mul", x, self.node("Add", erf, self.number(1.0))), self.number(0.5))

    def heads(self, x, batch, length, heads, size, order):
        shape = self.number([batch, length, heads, size], "int64")
        return self.node("Transpose", self.node("Reshape", x, shape), perm=order)

    def attention(self, x, batch, length, width, heads, causal=None, past=None):
        """past: names of keys and values {batch, heads, past, size}. Returns the result, and the present ones."""
        size = width // heads
        query = self.heads(self.linear(x, width, width), batch, length, heads, size, [0, 2, 1, 3])
        key = self.heads(self.linear(x, width, width), batch, length, heads, size, [0, 2, 1, 3])
        value = self.heads(self.linear(x, width, width), batch, length, heads, size, [0, 2, 1, 3])
        if past:
            key = self.node("Concat", past[0], key, axis=2)
            value = self.node("Concat", past[1], value, axis=2)
        logits = self.node("MatMul", query, self.node("Transpose", key, perm=[0, 1, 3, 2]))
        logits = self.node("Div", logits, self.number(math.sqrt(size)))
        if causal:
            logits = self.node("Add", logits, causal)
        result = self.node("MatMul", self.node("Softmax", logits, axis=-1), value)
        merged = self.node("Reshape", self.node("Transpose", result, perm=[0, 2, 1, 3]),
                           self.number([batch, length, width], "int64"))
        return self.linear(merged, width, width), key, value

    def feed_forward(self, x, width):
        return self.linear(self.gelu(self.linear(x, width, 4 * width)), 4 * width, width)


def resnet50(type="float32", batch=1):
    net = Network(type)
    x = net.conv(net.input("x", (batch, 3, 224, 224)), 3, 64, 7, 2)
    x = net.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            step = stride if block == 0 else 1
            y = net.conv(net.conv(x, channels, width, 1), width, width, 3, step)
            y = net.conv(y, width, 4 * width, 1, activation=None, gain=0.5)
            if block == 0:
                x = net.conv(x, channels, 4 * width, 1, step, activation=None, gain=1.0)
            x = net.node("Relu", net.node("Add", net.quantized(x), net.quantized(y)))
            channels = 4 * width
    x = net.node("Flatten", net.node("GlobalAveragePool", x), axis=1)
    net.output(net.linear(x, 2048, 1000), (batch, 1000))
    return net.bytes()


def mobilenet_v2(type="float32", batch=1):
    net = Network(type)
    x = net.conv(net.input("x", (batch, 3, 224, 224)), 3, 32, 3, 2, activation="Relu6")
    channels = 32
    for expand, width, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                          (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            step, inner = stride if block == 0 else 1, channels * expand
            y = net.conv(x, channels, inner, 1, activation="Relu6") if expand > 1 else x
            y = net.conv(y, inner, inner, 3, step, groups=inner, activation="Relu6")
            y = net.conv(y, inner, width, 1, activation=None, gain=1.0)
            x = net.node("Add", net.quantized(x), net.quantized(y)) if step == 1 and channels == width else y
            channels = width
    x = net.conv(x, channels, 1280, 1, activation="Relu6")
    x = net.node("Flatten", net.node("GlobalAveragePool", x), axis=1)
    net.output(net.linear(x, 1280, 1000), (batch, 1000))
    return net.bytes()


def squeezenet(type="float32", batch=1):
    net = Network(type)
    pool = {"kernel_shape": [3, 3], "strides": [2, 2]}
    x = net.node("MaxPool", net.conv(net.input("x", (batch, 3, 224, 224)), 3, 64, 3, 2), **pool)
    channels = 64
    for i, (squeeze, expand) in enumerate(((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256),
                                           (64, 256))):
        if i in (2, 4):
            x = net.node("MaxPool", x, **pool)
        y = net.conv(x, channels, squeeze, 1)
        x = net.node("Concat", net.conv(y, squeeze, expand, 1), net.conv(y, squeeze, expand, 3), axis=1)
        channels = 2 * expand
    x = net.node("GlobalAveragePool", net.conv(x, channels, 1000, 1))
    net.output(net.node("Flatten", x, axis=1), (batch, 1000))
    return net.bytes()


def vit_b16(type="float32", batch=1):
    net, width, length = Network(type), 768, 197
    x = net.node("Conv", net.input("x", (batch, 3, 224, 224)), net.filters((width, 3, 16, 16), 1.0),
                 net.weight((width,), 0.1), kernel_shape=[16, 16], strides=[16, 16])
    x = net.node("Transpose", net.node("Reshape", x, net.number([batch, width, 196], "int64")), perm=[0, 2, 1])
    token = net.node("Expand", net.weight((1, 1, width), 1.0), net.number([batch, 1, width], "int64"))
    x = net.node("Add", net.node("Concat", token, x, axis=1), net.weight((1, length, width), 0.1))
    for _ in range(12):
        x = net.node("Add", x, net.attention(net.norm(x, width), batch, length, width, 12)[0])
        x = net.node("Add", x, net.feed_forward(net.norm(x, width), width))
    first = net.node("Gather", net.norm(x, width), net.number(0, "int64"), axis=1)
    net.output(net.linear(first, width, 1000), (batch, 1000))
    return net.bytes()


def bert_base(type="float32", batch=1, length=128):
    net, width = Network(type), 768
    tokens = net.node("Gather", net.weight((30522, width), 0.5), net.input("ids", (batch, length), "int64"))
    x = net.node("Add", tokens, net.weight((1, length, width), 0.5))
    x = net.norm(x, width)
    for _ in range(12):
        x = net.norm(net.node("Add", x, net.attention(x, batch, length, width, 12)[0]), width)
        x = net.norm(net.node("Add", x, net.feed_forward(x, width)), width)
    net.output(x, (batch, length, width))
    return net.bytes()


def gpt2(type="float32", batch=1, length=512, past=0):
    net, width, heads = Network(type), 768, 12
    tokens = net.node("Gather", net.weight((50257, width), 0.5), net.input("ids", (batch, length), "int64"))
    x = net.node("Add", tokens, net.weight((1, length, width), 0.5))
    causal = None
    if length > 1:  # what comes later is not seen
        zeros = net.node("ConstantOfShape", net.number([length, length], "int64"))
        low = net.node("Sub", zeros, net.number(10000.0, "float32"))
        causal = net.node("Trilu", low, net.number(1, "int64"), upper=1)
        if net.float != "float32":
            causal = net.node("Cast", causal, to=TYPES[net.float])
    for layer in range(12):
        sizes = (batch, heads, past, width // heads)
        before = [net.input(f"past_{name}_{layer}", sizes) for name in ("key", "value")] if past else None
        y, key, value = net.attention(net.norm(x, width), batch, length, width, heads, causal, before)
        x = net.node("Add", x, y)
        x = net.node("Add", x, net.feed_forward(net.norm(x, width), width))
        if past:
            for present in (key, value):
                net.output(present, (batch, heads, past + length, width // heads))
    x = net.norm(x, width)
    net.output(net.node("MatMul", x, net.weight((width, 50257), math.sqrt(3 / width))), (batch, length, 50257))
    return net.bytes()


def unet_block(type="float32", batch=1):
    """Down, through the middle, up again with what was kept; group normalisation as exporters write it."""
    net = Network(type)

    def block(x, channels_in, channels, size):
        y = net.node("Reshape", net.conv(x, channels_in, channels, 3, activation=None),
                     net.number([batch, 32, channels // 32 * size * size], "int64"))
        y = net.node("InstanceNormalization", y, net.weight((32,), 1.0), net.weight((32,), 0.1), epsilon=1e-5)
        y = net.node("Reshape", y, net.number([batch, channels, size, size], "int64"))
        y = net.node("Add", net.node("Mul", y, net.weight((1, channels, 1, 1), 1.0)), net.weight((1, channels, 1, 1), 0.1))
        return net.node("Mul", y, net.node("Sigmoid", y))

    kept = block(net.input("x", (batch, 64, 64, 64)), 64, 128, 64)
    x = block(net.conv(kept, 128, 256, 3, 2, activation=None), 256, 256, 32)
    scales = net.number([1.0, 1.0, 2.0, 2.0], "float32")
    x = net.node("Resize", x, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    x = block(net.node("Concat", x, kept, axis=1), 384, 128, 64)
    net.output(net.conv(x, 128, 64, 3, activation=None), (batch, 64, 64, 64))
    return net.bytes()


def lstm(type="float32", batch=1, length=100, width=256, layers=2):
    """Layers of 512."""
    net, size = Network(type), 512
    x = net.input("x", (length, batch, width))
    for _ in range(layers):
        scale = math.sqrt(1 / size)
        x = net.node("LSTM", x, net.weight((1, 4 * size, width), scale), net.weight((1, 4 * size, size), scale),
                     net.weight((1, 8 * size), 0.1), hidden_size=size)
        x, width = net.node("Squeeze", x, net.number([1], "int64")), size
    net.output(x, (length, batch, size))
    return net.bytes()


NETWORKS = {
    "resnet50": resnet50,
    "resnet50-batch32": lambda type: resnet50(type, 32),
    "mobilenet_v2": mobilenet_v2,
    "squeezenet": squeezenet,
    "vit_b16": vit_b16,
    "bert_base-1x128": bert_base,
    "bert_base-8x384": lambda type: bert_base(type, 8, 384),
    "gpt2-1x512": gpt2,
    "gpt2-token": lambda type: gpt2(type, 1, 1, 512),
    "unet_block": unet_block,
    "lstm": lstm,
    "lstm-32x128": lambda type: lstm(type, 32, 128, 512, 1),
}
QUANTIZED = ("resnet50", "mobilenet_v2")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NETWORKS))
    parser.add_argument("--type", choices=("float32", "float16", "int8"), default="float32")
    arguments = parser.parse_args()
    names = arguments.names or (QUANTIZED if arguments.type == "int8" else tuple(NETWORKS))
    os.makedirs(arguments.folder, exist_ok=True)
    for name in names:
        if name not in NETWORKS:
            parser.error(f"there is no network {name}; there are {', '.join(NETWORKS)}")
        with open(os.path.join(arguments.folder, f"{name}-{arguments.type}.onnx"), "wb") as file:
            file.write(NETWORKS[name](arguments.type))


if __name__ == "__main__":
    main()
