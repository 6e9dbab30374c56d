"""Attention of several heads, with masks, biases and keys of earlier calls."""
import math

from generator import elements
from generator.arithmetic import r32
from generator.operation import Data, Result, made, model
from generator.suite import FLOATS, Suite, data

MASK_TYPE = "DML_MULTIHEAD_ATTENTION_MASK_TYPE_"
BATCH, QUERIES, SIZE = 2, 3, 4
FILTER = -10000.0


class Problem:
    """The sizes, how queries, keys and values are given, and the optional inputs."""

    def __init__(self, heads=2, key_heads=None, value_size=SIZE, new=5, past=0, stacked="", bias=False, position=False,
                 mask=None, present=False, lengths=None, room=0, scale=0.125, leading=0):
        self.heads, self.key_heads = heads, key_heads or heads
        self.value_size, self.past, self.stacked = value_size, past, stacked
        self.queries = QUERIES
        self.new = QUERIES if lengths or stacked.startswith("Query") else new
        self.bias, self.position, self.mask, self.present = bias, position, mask, present
        self.lengths, self.room, self.scale, self.leading = lengths, room, scale, leading
        self.grouped = key_heads is not None
        self.keys = room if lengths else past + self.new

    def led(self, sizes):
        return [1] * self.leading + sizes

    # ---- tensors

    def rows(self, t):
        """Queries, keys and values: tensors by field, and functions that read [batch, head, row, column]."""
        h, kh, s, n = self.heads, self.key_heads, self.queries, self.new
        fields, read = {}, {}

        def side_by_side(name, rows, heads, size, seed):
            field = name + "Tensor"
            sizes = self.led([BATCH, rows, heads * size])
            fields[field] = Data(t, sizes, data(t, math.prod(sizes), seed, divisor=20))
            read[name] = lambda arrays, b, head, r, c: arrays[field][(*[0] * self.leading, b, r, head * size + c)]

        def stack(names, rows, heads, seed):
            field = "Stacked" + "".join(names) + "Tensor"
            sizes = [BATCH, rows, heads, len(names), SIZE]
            fields[field] = Data(t, sizes, data(t, math.prod(sizes), seed, divisor=20))
            for place, name in enumerate(names):
                read[name] = (lambda place: lambda arrays, b, head, r, c: arrays[field][(b, r, head, place, c)])(place)

        if self.stacked:
            stack({"QueryKey": ["Query", "Key"], "KeyValue": ["Key", "Value"],
                   "QueryKeyValue": ["Query", "Key", "Value"]}[self.stacked],
                  n if self.stacked == "KeyValue" else s, kh, seed=11)
        if "Query" not in read:
            side_by_side("Query", s, h, SIZE, 2)
        if n and "Key" not in read:
            side_by_side("Key", n, kh, SIZE, 3)
        if n and "Value" not in read:
            side_by_side("Value", n, kh, self.value_size, 4)
        return fields, read

    def extras(self, t):
        h, kh, b = self.heads, self.key_heads, BATCH
        fields = {}
        if self.bias:
            size = h * SIZE + kh * SIZE + kh * self.value_size
            fields["BiasTensor"] = Data(t, self.led([size]), data(t, size, 5, divisor=20))
        if self.position:
            sizes = [b, h, self.queries, self.keys]
            fields["RelativePositionBiasTensor"] = Data(t, sizes, data(t, math.prod(sizes), 6, divisor=20))
        if self.past:
            for name, seed, size in (("PastKeyTensor", 7, SIZE), ("PastValueTensor", 8, self.value_size)):
                sizes = [b, kh, self.past, size]
                fields[name] = Data(t, sizes, data(t, math.prod(sizes), seed, divisor=20))
        if self.lengths:
            fields["PastSequenceLengthsTensor"] = Data("INT32", [b], self.lengths)
        masks = {"KEY_SEQUENCE_LENGTH": ([1, b], [3, 5]),
                 "KEY_SEQUENCE_END_START": ([2, b], [4, 5, 1, 3]),
                 "KEY_QUERY_SEQUENCE_LENGTH_START_END": ([3 * b + 2], [2, 4, 0, 3, 6, 0, 2, 6])}
        if self.mask == "BOOLEAN":
            sizes = [b, h, self.queries, self.keys]
            values = [int(v > -10) for v in data("INT32", math.prod(sizes), 9)]
            fields["MaskTensor"] = Data("INT32", sizes, values)
        elif self.mask == "HIDDEN":
            fields["MaskTensor"] = Data("INT32", [1, b], [0, 2])
        elif self.mask:
            fields["MaskTensor"] = Data("INT32", *masks[self.mask])
        return fields

    def mask_type(self):
        return MASK_TYPE + {None: "NONE", "HIDDEN": "KEY_SEQUENCE_LENGTH"}.get(self.mask, self.mask)

    # ---- outputs

    def shows(self, arrays, b, h, q, k):
        if not self.mask:
            return True
        mask = arrays["MaskTensor"]
        if self.mask == "BOOLEAN":
            return mask[b, h, q, k] != 0
        if self.mask == "KEY_SEQUENCE_END_START":
            return mask[1, b] <= k < mask[0, b]
        if self.mask == "KEY_QUERY_SEQUENCE_LENGTH_START_END":
            return k < mask[(b,)] and q < mask[(BATCH + b + 1,)] - mask[(BATCH + b,)]
        return k < mask[0, b]

    def compute(self, read):
        group = self.heads // self.key_heads
        starts = {"Query": 0, "Key": self.heads * SIZE, "Value": (self.heads + self.key_heads) * SIZE}

        def new_row(arrays, name, b, h, r, c):
            value = read[name](arrays, b, h, r, c)
            if not self.bias:
                return value
            at = starts[name] + h * (self.value_size if name == "Value" else SIZE) + c
            return r32(value + arrays["BiasTensor"][(*[0] * self.leading, at)])

        def before(b):
            return self.lengths[b] if self.lengths else self.past

        def row(arrays, name, b, h, r, c):
            if r >= before(b):
                return new_row(arrays, name, b, h, r - before(b), c)
            # With lengths, the present outputs hold the past.
            return float(elements.UNTOUCHED) if self.lengths else arrays[f"Past{name}Tensor"][b, h, r, c]

        def weights(arrays, b, h, q):
            keys = before(b) + q + 1 if self.lengths else self.keys
            query = [new_row(arrays, "Query", b, h, q, c) for c in range(SIZE)]
            logits = []
            for k in range(keys):
                logit = r32(self.scale) * math.fsum(
                    x * row(arrays, "Key", b, h // group, k, c) for c, x in enumerate(query))
                if self.position:
                    logit += arrays["RelativePositionBiasTensor"][b, h, q, k]
                logits.append(logit + (0 if self.shows(arrays, b, h, q, k) else FILTER))
            powers = [math.exp(logit - max(logits)) for logit in logits]
            return [power / math.fsum(powers) for power in powers]

        def present(arrays, name, b, h, r, c):
            if self.lengths and not before(b) <= r < before(b) + self.new:
                return elements.UNTOUCHED
            return row(arrays, name, b, h, r, c)

        def all_outputs(arrays):
            known = {(b, h, q): weights(arrays, b, h, q) for b in range(BATCH) for h in range(self.heads)
                     for q in range(self.queries)}

            def output(*place):
                b, q, at = place[self.leading:]
                h, c = divmod(at, self.value_size)
                return math.fsum(w * row(arrays, "Value", b, h // group, k, c) for k, w in enumerate(known[b, h, q]))

            results = {"OutputTensor": made(self.led([BATCH, self.queries, self.heads * self.value_size]), output)}
            for name, size in (("Key", SIZE), ("Value", self.value_size)):
                results[f"OutputPresent{name}Tensor"] = made(
                    [BATCH, self.key_heads, self.keys, size], lambda *at: present(arrays, name, *at))
            return results
        return all_outputs

    def make(self, t):
        rows, read = self.rows(t)
        fields = {**rows, **self.extras(t)}
        fields["OutputTensor"] = Result(t, self.led([BATCH, self.queries, self.heads * self.value_size]), ulps=64,
                                        absolute=1e-4)
        if self.present or self.lengths:
            for name, size in (("Key", SIZE), ("Value", self.value_size)):
                fields[f"OutputPresent{name}Tensor"] = Result(t, [BATCH, self.key_heads, self.keys, size])
        heads = {"QueryHeadCount": self.heads, "KeyValueHeadCount": self.key_heads} if self.grouped else {
            "HeadCount": self.heads}
        return model("MULTIHEAD_ATTENTION" + ("1" if self.grouped else ""), fields, self.compute(read),
                     Scale=self.scale, MaskFilterValue=FILTER, MaskType=self.mask_type(), **heads)


COMMON = (
    ("plain", "Queries, keys and values apart.", {}),
    ("value-size", "Heads of values have a size of their own.", dict(value_size=3)),
    ("stacked-query-key", "Queries and keys in one tensor.", dict(stacked="QueryKey")),
    ("stacked-key-value", "Keys and values in one tensor.", dict(stacked="KeyValue")),
    ("stacked-query-key-value", "All in one tensor.", dict(stacked="QueryKeyValue")),
    ("bias", "A bias for queries, keys and values.", dict(bias=True, present=True)),
    ("position-bias", "A bias for every logit.", dict(position=True)),
    ("past", "Keys and values of earlier calls come first.", dict(past=2, present=True)),
    ("past-only", "They are all there are.", dict(past=4, new=0)),
    ("everything", "Past, biases and a mask.", dict(past=2, bias=True, position=True, mask="BOOLEAN", present=True)),
    ("leading-ones", "Five dimensions.", dict(bias=True, leading=2)),
    ("key-sequence-length", "The first keys of each batch.", dict(mask="KEY_SEQUENCE_LENGTH")),
    ("key-sequence-end-start", "Keys from a start to an end.", dict(mask="KEY_SEQUENCE_END_START")),
    ("key-query-sequence", "Lengths and starts.", dict(mask="KEY_QUERY_SEQUENCE_LENGTH_START_END")),
    ("boolean", "A mask for every logit.", dict(mask="BOOLEAN")),
    ("hidden", "A batch whose keys are all masked is what it would be without.", dict(mask="HIDDEN")),
)


def groups():
    first = Suite("MULTIHEAD_ATTENTION", "softmax(Scale * Q * K^T + biases + mask) * V of every head.")
    second = Suite("MULTIHEAD_ATTENTION1", "the same with heads of queries that share heads of keys and values, and "
                                           "with a past in the present outputs.")
    for name, claim, given in COMMON:
        first.add(name, claim, Problem(**given).make,
                  strided=name in ("plain", "stacked-query-key-value", "everything"))
        # In a stacked tensor, queries have as many heads as keys.
        heads = 2 if given.get("stacked", "").startswith("Query") else 4
        second.add(name, claim, Problem(heads=heads, key_heads=2, **given).make, FLOATS[:1],
                   strided=name in ("plain", "everything"))
    for name, given in (("lengths", dict(lengths=[2, 0], room=6)), ("lengths-full", dict(lengths=[3, 1], room=6)),
                        ("lengths-bias", dict(lengths=[1, 2], room=5, bias=True))):
        second.add(name, "A query sees the keys up to its own; rows of the present outputs are read, and new ones "
                   "written behind them.", Problem(heads=4, key_heads=2, scale=0.01, **given).make, strided=True)
    return [first.group, second.group]
