"""A tensor of a case: what run.py tells the workers of it, and what it is in memory."""

import dataclasses

LETTERS = "abcdefghijklmnopqrstuvwx"  # what expressions and models call a case's inputs; y is the output
BITS = {"float32": 32, "float16": 16, "int64": 64, "int32": 32, "uint32": 32, "int8": 8, "uint8": 8, "bool": 8}


@dataclasses.dataclass(frozen=True)
class Tensor:
    type: str  # NumPy's name; bool is DirectML's UINT8
    sizes: tuple
    strides: tuple = ()  # packed
    data: str = ""  # of inputs: see MakeElements in case.cc

    @staticmethod
    def parse(word):
        type, sizes, strides, data = [*word.split(":"), "", ""][:4]
        numbers = [tuple(int(number) for number in text.split(",") if number) for text in (sizes, strides)]
        return Tensor(type, *numbers, data)

    def word(self):
        sizes, strides = (",".join(map(str, numbers)) for numbers in (self.sizes, self.strides))
        return ":".join((self.type, sizes, strides, self.data)).rstrip(":")

    def all_strides(self):
        if self.strides:
            return self.strides
        strides = [1]
        for size in reversed(self.sizes[1:]):
            strides.append(strides[-1] * size)
        return tuple(reversed(strides))

    def span(self):
        """Elements in memory."""
        return 1 + sum((size - 1) * stride for size, stride in zip(self.sizes, self.all_strides()))

    def bytes(self):
        return self.span() * BITS[self.type] // 8

    def permutation(self):
        """How the tensor's dimensions lie in memory, longest stride first; in order where it is broadcast."""
        order = range(len(self.sizes))
        return list(order) if 0 in self.strides else sorted(order, key=lambda d: -self.all_strides()[d])

    def memory_sizes(self):
        """A packed tensor of the same memory: broadcast dimensions are 1, others in the order of memory."""
        strides = self.all_strides()
        return [self.sizes[d] if strides[d] else 1 for d in self.permutation()]


def words_of(tensors):
    """Tensors by field as a request has them: those of an array, FIELD[0], FIELD[1]..., are one word."""
    words = {}
    for field, tensor in tensors.items():
        words.setdefault(field.partition("[")[0], []).append(tensor.word())
    return {field: ";".join(parts) for field, parts in words.items()}


def file_of(field):
    """Where an input's elements are."""
    return field.replace("[", "").replace("]", "") + ".bin"


def tensors_of(words):
    """A request's inputs and outputs, by field."""
    tensors = {key: Tensor.parse(word) for key, word in words.items() if key.endswith("Tensor")}
    tensors.update({f"{key}[{i}]": Tensor.parse(part) for key, word in words.items() if key.endswith("Tensors")
                    for i, part in enumerate(word.split(";"))})
    return ({key: tensor for key, tensor in tensors.items() if tensor.data},
            {key: tensor for key, tensor in tensors.items() if not tensor.data})
