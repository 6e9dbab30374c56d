"""TOP_K and TOP_K1 as the contract defines them."""
import math

from generator import elements, numbers
from generator.elements import from_bits, to_bits
from generator.pack import CONTRACT, DOCUMENTATION, Group, Model
from generator.tensors import Tensor

DECREASING, INCREASING = "DML_AXIS_DIRECTION_DECREASING", "DML_AXIS_DIRECTION_INCREASING"
DIRECTIONS = {"decreasing": DECREASING, "increasing": INCREASING}
TYPES = ("FLOAT32", "FLOAT16") + elements.INTEGERS


def rank(number):
    """NaN is above infinity and equal to itself, -0 equals +0 (as in Python)."""
    return (1, 0) if isinstance(number, float) and math.isnan(number) else (0, number)


def best(sequence, k, direction):
    """The indices of the K best elements, by a sort that is stable in both directions."""
    order = sorted(range(len(sequence)), key=lambda i: rank(sequence[i]), reverse=direction == DECREASING)
    return order[:k]


def top_k(data, sizes, axis, k, direction, as_number):
    """`data` by coordinates. Returns the values and the indices, also by coordinates."""
    values, indices = {}, {}
    for first in data:
        if first[axis] != 0:
            continue
        line = [first[:axis] + (i,) + first[axis + 1:] for i in range(sizes[axis])]
        for place, index in enumerate(best([as_number(data[c]) for c in line], k, direction)):
            values[line[place]] = data[line[index]]
            indices[line[place]] = index
    return values, indices


def model(data_type, sizes, axis, k, values, direction=DECREASING, bits=False, operator="TOP_K1", index="UINT32",
          strides=None, value_strides=None, index_strides=None):
    """The operator on a buffer of `values`."""
    result = Model(operator)
    data = result.bind("InputTensor", Tensor(data_type, sizes, strides), "input", values, bits)
    as_number = (lambda b: from_bits(data_type, b)) if bits else (lambda number: number)
    top_values, top_indices = top_k(data, sizes, axis, k, direction, as_number)
    out = sizes[:axis] + [k] + sizes[axis + 1:]
    result.bind_output("OutputValueTensor", Tensor(data_type, out, value_strides), "values", top_values, bits)
    result.bind_output("OutputIndexTensor", Tensor(index, out, index_strides), "indices", top_indices)
    result.attributes(Axis=axis, K=k)
    return result.attributes(AxisDirection=direction) if operator == "TOP_K1" else result


def row(data_type, values, k, direction, **options):
    return model(data_type, [1, 1, 1, len(values)], 3, k, values, direction, **options)


def examples():
    first = [0, 1, 10, 11, 3, 2, 9, 8, 4, 5, 6, 7]
    tied = [1, 2, 2, 3, 3, 4, 5, 5, 6, 6, 6, 6]
    group = Group("top_k1/examples", DOCUMENTATION, "The four examples of the TOP_K1 page give the printed results.")
    older = Group("top_k/examples", DOCUMENTATION, "TOP_K is TOP_K1 with DECREASING, on the same examples.")
    for name, claim, axis, k, direction, values, top, at in (
            ("1-last-axis", "The two largest of each row.", 3, 2, DECREASING, first,
             [11, 10, 9, 8, 7, 6], [3, 2, 2, 3, 3, 2]),
            ("2-another-axis", "The two largest of each column.", 2, 2, DECREASING, first,
             [4, 5, 10, 11, 3, 2, 9, 8], [2, 2, 0, 0, 1, 1, 1, 1]),
            ("3-tied-values", "Equal values in the order of their indices.", 3, 3, DECREASING, tied,
             [3, 2, 2, 5, 5, 4, 6, 6, 6], [3, 1, 2, 2, 3, 1, 0, 1, 2]),
            ("4-increasing", "The three smallest of each row, smallest first.", 3, 3, INCREASING, tied,
             [1, 2, 2, 3, 4, 5, 6, 6, 6], [0, 1, 2, 0, 1, 2, 0, 1, 2])):
        group.add(name, claim, model("FLOAT32", [1, 1, 3, 4], axis, k, values, direction).check_printed(
            values=top, indices=at))
        if direction == DECREASING:
            older.add(name, claim, model("FLOAT32", [1, 1, 3, 4], axis, k, values, operator="TOP_K"))
    return [group, older]


def lengths():
    group = Group("top_k1/k", CONTRACT,
                  "Every K from 1 to the length of the axis, that length included, gives the K best in order.")
    values = [v - 10 for v in (3, 17, 8, 1, 12, 20, 5)]
    for k in range(1, len(values) + 1):
        for word, direction in DIRECTIONS.items():
            group.add(f"{k}-of-7-{word}", f"The {k} best of 7.", row("FLOAT32", values, k, direction))
    for count, ks in ((1, [1]), (2, [2]), (33, [1, 5, 33]), (100, [1, 64, 100]), (257, [16])):
        values = [v - 200 for v in numbers.shuffled(count, seed=count)]
        for k in ks:
            for word, direction in DIRECTIONS.items():
                group.add(f"{k}-of-{count}-{word}", f"The {k} best of {count} different values.",
                          row("INT32", values, k, direction))
    return [group]


def ties():
    group = Group("top_k1/ties", CONTRACT,
                  "Equal elements are ordered by ascending index in both directions, and of equal candidates for "
                  "the last places those with the lowest indices are taken.")
    rows = (("all-equal", "Nothing but one value.", [7] * 9, (1, 4, 9)),
            ("boundary", "More candidates for the last places than there are places.",
             [5, 1, 5, 9, 5, 5, 1, 9, 1, 5], (1, 3, 4, 8)),
            ("two-values", "Two values, alternating.", [1, 2] * 8, (3, 8, 11)),
            ("pairs", "Each value twice, far apart.", [4, 3, 2, 1, 1, 2, 3, 4], (1, 5, 8)),
            ("many", "Seventy elements of four values.", numbers.mixed(70, 1, 4), (10, 40)))
    for name, claim, values, ks in rows:
        for k in ks:
            for word, direction in DIRECTIONS.items():
                group.add(f"{name}-{k}-{word}", claim, row("FLOAT32", values, k, direction))
    return [group]


def specials():
    """Given by their bits, so that no information is lost."""
    nan_group = Group("top_k1/nan", CONTRACT,
                      "NaN ranks above infinity, all NaNs are equal whatever their sign and payload, and keep their "
                      "bits. Rows of NaNs have real, distinct indices.")
    infinity = Group("top_k1/infinity", CONTRACT,
                     "Infinities are ordinary elements: they are never confused with sentinels.")
    zero = Group("top_k1/signed_zero", CONTRACT,
                 "-0 equals +0, so that the index decides; each keeps its sign.")
    small = Group("top_k1/denormals", CONTRACT,
                  "Denormals are neither flushed to zero nor out of order, and keep their bits.")
    for data_type, inf, one, nans in (("FLOAT32", 0x7F800000, 0x3F800000, [0x7FC00000, 0xFFC12345, 0x7F800001]),
                                      ("FLOAT16", 0x7C00, 0x3C00, [0x7E00, 0xFE55, 0x7C01])):
        sign = 1 << 8 * elements.size_of(data_type) - 1
        short = data_type.lower()
        for word, direction in DIRECTIONS.items():
            end = f"{short}-{word}"

            def add(group, name, claim, values, k):
                group.add(f"{name}-{end}", claim, row(data_type, values, k, direction, bits=True))

            add(nan_group, "among-numbers", "NaNs of three kinds among numbers and infinities.",
                [one, nans[1], inf, sign | inf, nans[0], 0, nans[2], sign | one], 8)
            add(nan_group, "boundary", "More NaNs than places, or numbers only.",
                [nans[2], one, nans[0], nans[1], inf, one], 2)
            add(nan_group, "only", "Nothing but NaNs.", (nans * 3)[:7], 7)
            add(nan_group, "one", "A NaN behind everything else.", [one, 0, sign | inf, inf, nans[1]], 1)
            add(infinity, "positive-only", "Nothing but +infinity.", [inf] * 6, 4)
            add(infinity, "negative-only", "Nothing but -infinity.", [sign | inf] * 6, 6)
            add(infinity, "beside-largest", "The largest finite elements lie inside the infinities.",
                [inf - 1, inf, sign | (inf - 1), sign | inf, 0, inf], 6)
            add(zero, "only", "Zeros of both signs.", [sign, 0, 0, sign, sign, 0], 4)
            add(zero, "among-numbers", "Zeros of both signs between the smallest numbers.",
                [0, sign | 1, sign, 1, sign, 0, one, sign | one], 6)
            add(small, "among-zeros", "Denormals of both signs and zeros.",
                [2, sign | 1, 0, 1, sign | 3, sign, inf >> 12, 3], 8)
            add(small, "beside-normal", "The largest denormals and the smallest normal numbers.",
                [lowest_normal(data_type), lowest_normal(data_type) - 1, lowest_normal(data_type) + 1,
                 sign | lowest_normal(data_type), sign | (lowest_normal(data_type) - 1), 1], 5)
    return [nan_group, infinity, zero, small]


def lowest_normal(data_type):
    return to_bits(data_type, 2.0**(-126 if data_type == "FLOAT32" else -14))


def extremes(data_type):
    """Values that expose a wrong comparison: signs, halves of the range, neighbours beyond 2^24 and 2^53."""
    if data_type in elements.FLOATS:
        return [0.5, -0.5, 3, -7, 1024, 0.25, -2048, 2, -0.125, 1023.5, 60000, -60000]
    low, high = elements.limits(data_type)
    middle = (low + high + 1) // 2
    return [1, high, low, 2, high - 1, low + 1, middle, middle + 1, middle - 1, 3, high - 2, low + 2]


def types():
    group = Group("top_k1/data_types", DOCUMENTATION,
                  "Every data type is ordered by value, over its whole range and to its last bit.")
    older = Group("top_k/data_types", DOCUMENTATION, "TOP_K orders every data type, largest first.")
    for data_type in TYPES:
        values = extremes(data_type)
        for word, direction in DIRECTIONS.items():
            group.add(f"{data_type.lower()}-{word}", f"Extreme and neighbouring elements of {data_type}.",
                      row(data_type, values, 8, direction))
        group.add(f"{data_type.lower()}-best-4", f"The 4 best of 40 elements of {data_type}.",
                  row(data_type, numbers.mixed(40, 0, 90, seed=len(data_type)), 4, INCREASING))
        older.add(data_type.lower(), f"Extreme and neighbouring elements of {data_type}.",
                  row(data_type, values, 8, DECREASING, operator="TOP_K"))
    return [group, older]


def index_types():
    group = Group("top_k1/index_types", DOCUMENTATION,
                  "Indices are UINT32 or UINT64, with data types of every width.")
    for data_type in ("FLOAT32", "FLOAT16", "INT64", "UINT8"):
        for index in ("UINT32", "UINT64"):
            group.add(f"{data_type.lower()}-{index.lower()}", f"{index} indices of {data_type} elements.",
                      model(data_type, [1, 1, 2, 9], 3, 4, numbers.mixed(18, 0, 40), index=index))
    return [group]


def ranks():
    group = Group("top_k1/ranks_and_axes", DOCUMENTATION,
                  "1 to 8 dimensions and every axis of them; indices count along the axis.")
    older = Group("top_k/ranks", DOCUMENTATION, "TOP_K also takes 1 to 8 dimensions.")
    for count in range(1, 9):
        for axis in range(count):
            sizes = [3, 2, 4, 1, 2, 1, 2, 1][:count]
            sizes[axis] = 3  # so that K, which the page requires to be smaller, can be 2
            values = numbers.mixed(Tensor("FLOAT32", sizes).count(), -40, 40, seed=count)
            group.add(f"{count}-dimensions-axis-{axis}", f"Axis {axis} of {count} dimensions.",
                      model("FLOAT32", sizes, axis, 2, values, INCREASING if axis % 2 else DECREASING))
        older.add(f"{count}-dimensions", f"The last axis of {count} dimensions.",
                  model("INT32", sizes, count - 1, 2, values, operator="TOP_K"))
    return [group, older]


def strides():
    group = Group("top_k1/strides", CONTRACT,
                  "Inputs and outputs may have any strides, 0 on inputs included. The bytes between the elements of "
                  "an output are not written.")
    group.add("uint32-in-uint64-places", "UINT32 indices with doubled strides leave the upper halves alone.",
              model("FLOAT32", [1, 1, 2, 5], 3, 3, numbers.mixed(10, 0, 40), index_strides=[12, 12, 6, 2]))
    sizes = [1, 2, 3, 4]
    layouts = (("padded-input", "Rows of the input with gaps between them.", dict(strides=[40, 20, 6, 1])),
               ("transposed-input", "Neighbours along the axis are not neighbours in memory.",
                dict(strides=[24, 12, 1, 3])),
               ("spread-input", "Every second element.", dict(strides=[48, 24, 8, 2])),
               ("broadcast-rows", "One row for all.", dict(strides=[0, 0, 0, 1])),
               ("broadcast-axis", "One element all along the axis: nothing but ties.", dict(strides=[0, 3, 1, 0])),
               ("padded-outputs", "Gaps in both outputs.",
                dict(value_strides=[40, 20, 5, 1], index_strides=[60, 30, 9, 2])),
               ("transposed-outputs", "Outputs whose first dimension is the innermost.",
                dict(value_strides=[1, 1, 2, 6], index_strides=[1, 6, 2, 12])),
               ("all", "Everything strided, each differently.",
                dict(strides=[99, 1, 2, 7], value_strides=[99, 1, 3, 9], index_strides=[99, 12, 5, 1])),
               ("stride-of-size-1", "The stride of a dimension of size 1 never matters.",
                dict(strides=[4294967295, 12, 4, 1])))
    for name, claim, layout in layouts:
        extent = Tensor("FLOAT32", sizes, layout.get("strides")).extent()
        for data_type, axis, k, direction in (("FLOAT32", 3, 2, DECREASING), ("INT16", 2, 2, INCREASING)):
            if axis == 2 and name == "transposed-outputs":
                layout = dict(value_strides=[1, 1, 2, 4], index_strides=[1, 8, 4, 1])
            group.add(f"{name}-{data_type.lower()}-axis-{axis}", claim,
                      model(data_type, sizes, axis, k, numbers.mixed(extent, -20, 20, seed=extent), direction,
                            **layout))
    return [group]


def groups():
    return [*examples(), *lengths(), *ties(), *specials(), *types(), *index_types(), *ranks(), *strides()]
