"""SCATTER_ND as the contract defines it."""
import math

from generator import elements, numbers
from generator.pack import CONTRACT, DOCUMENTATION, Group, Model
from generator.tensors import Tensor

INDEX_TYPES = ("UINT32", "UINT64", "INT32", "INT64")


def wrapped(index, size):
    """Negative indices count from the end, once. None: out of range, the update is dropped."""
    index = index + size if index < 0 else index
    return index if 0 <= index < size else None


def scatter_nd(data, sizes, indices, index_sizes, updates, input_dimensions, index_dimensions):
    """All data by coordinates; the coordinates of a slice are the tuple's, then the update's last ones. Returns the
    output and the targets of the updates, without the dropped ones."""
    result, targets = dict(data), []
    rank, tuple_size = len(sizes), index_sizes[-1]
    first = rank - input_dimensions  # the first meaningful dimension of the input
    slice_rank = input_dimensions - tuple_size
    batch_rank = index_dimensions - 1
    for place in updates:  # row-major, so that the last of several updates to an element is kept
        meaningful = place[rank - batch_rank - slice_rank:]
        batch, within = meaningful[:batch_rank], meaningful[batch_rank:]
        at = [indices[(0,) * (rank - index_dimensions) + batch + (t,)] for t in range(tuple_size)]
        target = [wrapped(index, sizes[first + t]) for t, index in enumerate(at)]
        if None not in target:
            targets.append((0,) * first + tuple(target) + within)
            result[targets[-1]] = updates[place]
    return result, targets


def aligned(sizes, rank):
    return [1] * (rank - len(sizes)) + list(sizes)


def model(sizes, index_sizes, indices, data_type="FLOAT32", index_type="UINT32", rank=None, data=None, updates=None,
          strides=(None, None, None, None), in_place=False, bits=False):
    """`sizes` and `index_sizes` are the meaningful ones. All tensors get the same number of dimensions: more than
    those, as the page requires, unless `rank` states the number."""
    tuple_size = index_sizes[-1]
    update_sizes = list(index_sizes[:-1]) + list(sizes[tuple_size:])
    rank = rank or max(4, 1 + max(len(sizes), len(index_sizes), len(update_sizes)))
    full = [aligned(s, rank) for s in (sizes, index_sizes, update_sizes)]
    result = Model("SCATTER_ND")
    input_tensor = Tensor(data_type, full[0], strides[0])
    index_tensor = Tensor(index_type, full[1], strides[1])
    update_tensor = Tensor(data_type, full[2], strides[2])
    data = data or numbers.mixed(input_tensor.extent(), 0, 49)
    updates = updates or [50 + u for u in numbers.mixed(update_tensor.extent(), 0, 48, seed=2)]
    before = result.bind("InputTensor", input_tensor, "data", data, bits)
    at = result.bind("IndicesTensor", index_tensor, "indices", indices)
    new = result.bind("UpdatesTensor", update_tensor, "updates", updates, bits)
    after, targets = scatter_nd(before, full[0], at, full[1], new, len(sizes), len(index_sizes))
    result.disjoint = len(set(targets)) == len(new)
    if in_place:
        result.bind_in_place("OutputTensor", input_tensor, "data", after)
    else:
        result.bind_output("OutputTensor", Tensor(data_type, full[0], strides[3]), "output", after, bits)
    return result.attributes(InputDimensionCount=len(sizes), IndicesDimensionCount=len(index_sizes))


def examples():
    group = Group("scatter_nd/examples", DOCUMENTATION,
                  "The examples of the SCATTER_ND page, in the form that its own rules allow.")
    for rank in (4, 2):
        group.add(f"list-in-{rank}-dimensions", "Four elements of a list replaced.",
                  model([8], [4, 1], [4, 3, 1, 7], data=[1, 2, 3, 4, 5, 6, 7, 8], updates=[9, 10, 11, 12],
                        rank=rank).check_printed(output=[1, 11, 3, 10, 9, 6, 7, 12]))
    group.add("slices", "A [1,2] array of 3-coordinate tuples into {3,4,5,6,7} takes updates of {1,1,2,6,7}.",
              model([3, 4, 5, 6, 7], [1, 2, 3], [2, 0, 4, 0, 3, 1], data_type="UINT8", data=[1] * 2520, rank=5))
    return group


def slices():
    group = Group("scatter_nd/slices", DOCUMENTATION,
                  "A tuple of t coordinates replaces a slice of the remaining dimensions, for every t.")
    for count in range(1, 6):
        sizes = [3, 2, 4, 2, 3][:count]
        for size in range(1, count + 1):
            tuples = 3 if size > 1 else 2
            everywhere = list(Tensor("UINT32", sizes[:size]).coordinates())
            chosen = numbers.shuffled(len(everywhere), seed=count + size)[:tuples]
            indices = [i for place in chosen for i in everywhere[place]]
            group.add(f"{count}-dimensions-tuple-{size}",
                      f"Tuples of {size} into {count} dimensions, slices of {count - size} dimensions.",
                      model(sizes, [tuples, size], indices, data_type="INT32"))
    return group


def ranks():
    group = Group("scatter_nd/ranks", CONTRACT,
                  "1 to 8 dimensions, of which the last ones are meaningful: all or fewer, separately for input and "
                  "indices.")
    for count in range(1, 9):
        group.add(f"{count}-dimensions-all", "InputDimensionCount is DimensionCount.",
                  model([2, 3, 1, 2, 1, 2, 1, 2][:count], [1] * (min(count, 2) - 1) + [1], [1], rank=count))
        if count > 1:
            group.add(f"{count}-dimensions-last", "A list at the end of the dimensions.",
                      model([6], [3, 1], [5, 0, 2], rank=count))
    for batch in ([2], [2, 2], [1, 2, 2], [2, 1, 2, 1]):
        indices = numbers.mixed(2 * math.prod(batch), 0, 4, seed=3)
        group.add(f"indices-of-{len(batch) + 1}-dimensions", "Index tuples arranged in several dimensions.",
                  model([5, 5], batch + [2], indices, rank=6))
    return group


def duplicates():
    group = Group("scatter_nd/duplicates", CONTRACT,
                  "If several updates go to one element, the last in row-major order always wins.")
    group.add("same-element", "Six updates of one element.", model([5], [6, 1], [2] * 6))
    group.add("two-elements", "Updates of two elements, alternating.", model([5], [8, 1], [3, 1] * 4))
    group.add("same-slice", "Slices over each other.", model([3, 4], [3, 1], [1, 1, 1]))
    group.add("batch", "The order is that of the indices' dimensions together.",
              model([4], [2, 3, 1], [1, 2, 1, 2, 1, 3]))
    group.add("negative", "An index and its negative twin are the same element.",
              model([4], [4, 1], [3, -1, -4, 0], index_type="INT32"))
    group.add("tuples", "Equal tuples among others.", model([3, 3], [5, 2], [1, 1, 0, 2, 1, 1, 2, 0, 1, 1]))
    for count in (100, 500):
        group.add(f"many-{count}", f"{count} updates of 16 elements.",
                  model([16], [count, 1], numbers.mixed(count, 0, 15), data_type="INT32",
                        updates=[1000 + u for u in range(count)]))
    return group


def out_of_range():
    group = Group("scatter_nd/out_of_range", CONTRACT,
                  "The update of an index out of range is dropped; other memory does not change.")
    group.add("unsigned", "Beyond the end, from one to the largest index.",
              model([4], [5, 1], [4, 0, 5, 4294967295, 2]))
    group.add("uint64", "Indices whose lower half would be in range.",
              model([4], [4, 1], [2**32, 2**63 + 1, 3, 2**64 - 1], index_type="UINT64"))
    group.add("int64", "Indices whose lower half would be in range, of both signs.",
              model([4], [5, 1], [2**32 + 1, -2**32 - 1, -2**63, 2**63 - 1, -2], index_type="INT64"))
    group.add("int32", "Just outside, on both sides.",
              model([4], [6, 1], [4, -5, 3, -4, -2**31, 2**31 - 1], index_type="INT32"))
    group.add("tuple", "One coordinate out of range, though the place it would mean is inside.",
              model([3, 4], [4, 2], [0, 4, 1, 1, 3, 0, 2, 3]))
    group.add("negative-tuple", "One negative coordinate too far.",
              model([3, 4], [3, 2], [1, -5, -4, 3, -3, -4], index_type="INT32"))
    group.add("slice", "A whole slice is dropped.", model([2, 3], [3, 1], [2, 1, 7]))
    group.add("all", "Nothing is left to do: the input is copied.", model([4], [3, 1], [4, 9, 100]))
    group.add("not-the-last", "A dropped update does not undo an earlier one of that element.",
              model([4], [3, 1], [1, 5, 4294967292]))
    return group


def types():
    data = Group("scatter_nd/data_types", DOCUMENTATION, "Every data type is copied and replaced bit for bit.")
    index = Group("scatter_nd/index_types", DOCUMENTATION,
                  "Indices of all four types; negative ones count from the end of their dimension.")
    for data_type in elements.CODES:
        bits = data_type in elements.FLOATS
        low, high = elements.limits(elements.bits_type(data_type) if bits else data_type)
        values = [high, low, high - 1, low + 1, 5, high // 2, high // 2 + 1, 6]
        data.add(data_type.lower(), f"Extreme elements of {data_type}" + (", NaNs among them." if bits else "."),
                 model([8], [3, 1], [7, 0, 3], data_type=data_type, data=values, updates=[high - 3, low, high],
                       bits=bits))
    for index_type in INDEX_TYPES:
        index.add(index_type.lower(), f"{index_type} indices.",
                  model([3, 5], [4, 2], [0, 4, 2, 0, 1, 3, 0, 0], index_type=index_type))
        if index_type in elements.SIGNED:
            index.add(f"{index_type.lower()}-negative", "Every element by its negative indices.",
                      model([2, 3], [6, 2], [-1, -1, -1, -2, -1, -3, -2, -1, -2, -2, -2, -3], index_type=index_type))
            index.add(f"{index_type.lower()}-mixed", "Negative and other coordinates in one tuple.",
                      model([4, 3], [3, 2], [-1, 0, 1, -3, -4, 2], index_type=index_type))
            index.add(f"{index_type.lower()}-negative-slice", "A slice by a negative index.",
                      model([4, 3], [2, 1], [-1, -3], index_type=index_type))
    return [data, index]


def strides():
    group = Group("scatter_nd/strides", CONTRACT,
                  "Any strides, 0 on inputs included; gaps of the output are not written.")
    none = (None, None, None, None)
    for name, claim, at, layout in (
            ("padded-input", "Rows of the input with gaps.", 0, [7, 1]),
            ("transposed-input", "The input column by column.", 0, [1, 3]),
            ("broadcast-input", "One element for the whole input.", 0, [0, 0]),
            ("padded-indices", "Tuples with gaps.", 1, [5, 2]),
            ("transposed-indices", "All first coordinates, then all second ones.", 1, [1, 3]),
            ("broadcast-indices", "One tuple for all updates.", 1, [0, 1]),
            ("spread-updates", "Every third update.", 2, [9, 3]),
            ("broadcast-updates", "One update for all tuples.", 2, [0, 0]),
            ("padded-output", "Rows of the output with gaps.", 3, [9, 2]),
            ("transposed-output", "The output column by column, with gaps.", 3, [1, 4])):
        layouts = none[:at] + (layout,) + none[at + 1:]
        indices = [0, 1, 2, 3, 1, 0]
        if at == 1:  # where the layout places them; the elements in between are out of range
            places = Tensor("UINT32", [3, 2], layout)
            spread = [77] * places.extent()
            for (n, t), index in zip(places.coordinates(), indices):
                spread[places.place((n, t))] = index
            indices = spread
        group.add(name, claim, model([3, 4], [3, 2], indices, strides=layouts, rank=2))
    group.add("slices", "Slices between padded updates and a transposed output.",
              model([3, 4], [2, 1], [2, 0], data_type="UINT8", rank=2,
                    strides=([1, 3], None, [6, 1], [5, 1])))
    group.add("all", "Everything strided, each differently.",
              model([3, 4], [2, 1], [1, 77, 2], data_type="INT64", rank=2,
                    strides=([6, 1], [2, 1], [1, 2], [1, 3])))
    return group


def in_place():
    group = Group("scatter_nd/in_place", CONTRACT,
                  "Input and output may be the same region with the same layout.")
    group.add("elements", "Elements replaced where they are.", model([8], [3, 1], [6, 1, 3], in_place=True))
    group.add("slices", "Rows replaced where they are.", model([4, 3], [2, 1], [3, 0], in_place=True))
    group.add("duplicates", "The last update stays, in place, too.", model([4], [4, 1], [2, 2, 0, 2], in_place=True))
    group.add("strided", "With gaps, which stay.",
              model([3, 2], [2, 2], [2, 1, 0, 0], rank=2, in_place=True,
                    strides=([5, 2], None, None, [5, 2])))
    group.add("dropped", "Nothing is in range: nothing changes.", model([4], [2, 1], [4, 5], in_place=True))
    return group


def groups():
    return [examples(), slices(), ranks(), duplicates(), out_of_range(), *types(), strides(), in_place()]
