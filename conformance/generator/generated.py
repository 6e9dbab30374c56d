"""Tensors made from few inputs or none: constants, sequences, diagonals, random numbers."""
import itertools
import math

from generator.arithmetic import is_float, r32, saturated, truncated, wrapped
from generator.element_wise import described
from generator.operation import Data, Result, made, model, types_of
from generator.suite import WIDTHS, Suite, data


def union(operator, t, **values):
    """Attributes of a scalar union and its type."""
    return {**described(operator, values, t), "ValueDataType": f"DML_TENSOR_DATA_TYPE_{t}"}


def fill_suites():
    constant = Suite("FILL_VALUE_CONSTANT", "one value for all.")
    sequence = Suite("FILL_VALUE_SEQUENCE", "start + i * delta; integers wrap.")

    def fill(sizes, value):
        def make(t):
            v = value if is_float(t) else int(saturated(t, int(value)))
            return model("FILL_VALUE_CONSTANT", {"OutputTensor": Result(t, sizes)},
                         lambda a: {"OutputTensor": made(sizes, lambda *c: v)},
                         **union("FILL_VALUE_CONSTANT", t, Value=v))
        return make

    constant.add_all_types("value", "2.5, or 2.", fill([1, 1, 3, 5], 2.5), "OutputTensor")
    constant.add("8-dimensions", "Eight dimensions.", fill([1, 2, 1, 3, 1, 1, 2, 2], -3.0), ("FLOAT32", "INT16"))

    def count(sizes, start, delta):
        def make(t):
            first, step = (start, delta) if is_float(t) else (wrapped(t, int(start)), wrapped(t, int(delta)))

            def compute(arrays):
                return {"OutputTensor": dict(zip(itertools.product(*map(range, sizes)), (
                    r32(first + r32(i * step)) if is_float(t) else first + i * step for i in range(math.prod(sizes)))))}
            return model("FILL_VALUE_SEQUENCE", {"OutputTensor": Result(t, sizes)}, compute,
                         **union("FILL_VALUE_SEQUENCE", t, ValueStart=first, ValueDelta=step))
        return make

    sequence.add_all_types("up", "By 3 from 1.", count([1, 1, 3, 5], 1.0, 3.0), "OutputTensor")
    sequence.add("down", "By -2 from 10: unsigned ones wrap.", count([2, 6], 10.0, -2.0), ("UINT8", "INT32", "FLOAT16"))
    sequence.add("fractions", "By 0.1, without adding up errors.", count([40], -1.5, r32(0.1)), ("FLOAT32",))
    sequence.add("far", "Beyond the range.", count([1, 1, 1, 9], 100.0, 50.0), ("INT8", "UINT8"))
    return [constant.group, sequence.group]


def diagonal_suites():
    old = Suite("DIAGONAL_MATRIX", "a value along a diagonal, zeros elsewhere.")
    new = Suite("DIAGONAL_MATRIX1", "a value in a band of diagonals, or outside of it.")
    for offset in (0, 1, -2, 7):
        for sizes in ([1, 1, 3, 4], [2, 5, 3]) if offset == 1 else ([1, 1, 3, 4],):
            def make(t):
                value = 7.75 if is_float(t) else truncated(t, 7.75)
                return model("DIAGONAL_MATRIX", {"OutputTensor": Result(t, sizes)}, lambda a: {"OutputTensor": made(
                    sizes, lambda *c: value if c[-2] + offset == c[-1] else 0)}, Offset=offset, Value=7.75)
            old.add(f"offset-{offset}-of-{len(sizes)}", f"Offset {offset}.", make,
                    types_of("DIAGONAL_MATRIX", "OutputTensor") if (offset, len(sizes)) == (0, 4) else WIDTHS[:2],
                    strided=offset == 1)
    least, most = -2**31, 2**31 - 1
    for name, begin, end in (("main", 0, 1), ("band", -1, 2), ("none", 1, 1), ("inverted", 2, -1), ("lower", least, 1),
                             ("upper", 0, most), ("all", least, most)):
        for filled in (True, False):
            sizes = [1, 2, 4, 5]

            def make(t):
                value = 7 if not is_float(t) else 7.5

                def compute(arrays):
                    def one(*c):
                        d = c[-1] - c[-2]
                        inside = (end >= begin) ^ (d >= begin) ^ (d < end)
                        return value if inside else arrays["InputTensor"][c] if filled else 0
                    return {"OutputTensor": made(sizes, one)}
                fields = {"InputTensor": Data(t, sizes, data(t, 40, seed=12))} if filled else {}
                return model("DIAGONAL_MATRIX1", {**fields, "OutputTensor": Result(t, sizes)}, compute,
                             DiagonalFillBegin=begin, DiagonalFillEnd=end, **union("DIAGONAL_MATRIX1", t, Value=value))
            new.add(name + ("" if filled else "-without-input"), f"From {begin} to {end}.", make,
                    types_of("DIAGONAL_MATRIX1", "OutputTensor") if (name, filled) == ("band", True) else WIDTHS[:1],
                    strided=filled and name in ("band", "lower"))
    return [old.group, new.group]


def philox(counter, key):
    """Philox 4x32 with 10 rounds."""
    mask = 2**32 - 1
    c, k = [counter >> 32 * i & mask for i in range(4)], list(key)
    for _ in range(10):
        first, second = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [second >> 32 ^ c[1] ^ k[0], second & mask, first >> 32 ^ c[3] ^ k[1], first & mask]
        k = [k[0] + 0x9E3779B9 & mask, k[1] + 0xBB67AE85 & mask]
    return c


def random_generator():
    suite = Suite("RANDOM_GENERATOR", "Philox 4x32-10: the stream and the state after it.")
    if philox(0, (0, 0)) != [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]:
        raise ValueError("not Philox: the published vector is another")
    states = {"zeros": [0] * 6, "words": [0x6C65746E, 0x75726320, 7, 9, 0x12345678, 0x9ABCDEF0],
              "carry": [2**32 - 2, 2**32 - 1, 2**32 - 1, 5, 1, 2], "overflow": [2**32 - 1] * 4 + [3, 4]}
    for name, state in states.items():
        for count in (1, 10, 16):
            for kept in (True, False) if name == "words" else (True,):
                def make(t):
                    def compute(arrays):
                        words = list(arrays["InputStateTensor"].values())
                        counter = sum(w << 32 * i for i, w in enumerate(words[:4]))
                        stream = [w for b in range(-(-count // 4)) for w in philox((counter + b) % 2**128, words[4:])]
                        after = (counter + -(-count // 4)) % 2**128
                        state_after = [after >> 32 * i & 2**32 - 1 for i in range(4)] + words[4:]
                        return {"OutputTensor": {(0, 0, 0, i): stream[i] for i in range(count)},
                                "OutputStateTensor": {(0, 0, 0, i): w for i, w in enumerate(state_after)}}
                    fields = {"InputStateTensor": Data("UINT32", [1, 1, 1, 6], state),
                              "OutputTensor": Result("UINT32", [1, 1, 1, count])}
                    if kept:
                        fields["OutputStateTensor"] = Result("UINT32", [1, 1, 1, 6])
                    return model(suite.operator, fields, compute, Type="DML_RANDOM_GENERATOR_TYPE_PHILOX_4X32_10")
                suite.add(f"{name}-{count}" + ("" if kept else "-stream-only"), f"{count} numbers.", make, ("UINT32",),
                          strided=name == "carry")
    return suite.group


def groups():
    return [*fill_suites(), *diagonal_suites(), random_generator()]
