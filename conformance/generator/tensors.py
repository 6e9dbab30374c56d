"""Tensors in buffers."""
import itertools
import math
import operator

from generator import elements


class Tensor:
    def __init__(self, data_type, sizes, strides=None, **fields):
        """`fields` are further members of the description (Flags, TotalTensorSizeInBytes...)."""
        self.data_type = data_type
        self.sizes = list(sizes)
        self.given_strides = strides
        self.strides = list(strides) if strides else packed_strides(sizes)
        self.fields = fields

    def coordinates(self):
        """All coordinates, in row-major order."""
        return itertools.product(*(range(size) for size in self.sizes))

    def place(self, coordinates):
        """The index in the buffer, in elements."""
        return sum(map(operator.mul, coordinates, self.strides))

    def places(self):
        """The indices of all elements, in row-major order."""
        places = [0]
        for size, stride in zip(self.sizes, self.strides):
            places = [place + i * stride for place in places for i in range(size)]
        return places

    def extent(self):
        """The number of elements of the buffer that it spans."""
        return 1 + sum((size - 1) * stride for size, stride in zip(self.sizes, self.strides))

    def read(self, buffer):
        """Its elements in a buffer, by coordinates."""
        return {c: buffer[place] for c, place in zip(self.coordinates(), self.places())}

    def count(self):
        return math.prod(self.sizes)

    def desc(self):
        desc = {"DataType": self.data_type, "Sizes": self.sizes}
        if self.given_strides:
            desc["Strides"] = list(self.given_strides)
        return {**desc, **self.fields}


def packed_strides(sizes):
    return [math.prod(sizes[d + 1:]) for d in range(len(sizes))]


def spread_strides(sizes):
    """The first dimension is innermost, with a gap of one element after each of its runs, and so on."""
    strides, stride = [], 1
    for size in sizes:
        strides.append(stride)
        stride *= size + 1 if size > 1 else 1
    return strides


def padded(values, data_type):
    """A buffer's values, padded to a multiple of 4 bytes, with values after the tensor that must not change."""
    per_word = max(1, 4 // elements.size_of(data_type))
    count = -(-len(values) // per_word) * per_word + per_word
    return list(values) + [elements.UNTOUCHED] * (count - len(values))
