"""SCATTER_ELEMENTS, which older headers call SCATTER, as the contract defines it."""
from generator import elements, numbers
from generator.pack import CONTRACT, DOCUMENTATION, Group, Model
from generator.scatter_nd import INDEX_TYPES, wrapped
from generator.tensors import Tensor


def scatter_elements(data, sizes, indices, updates, axis):
    """An index replaces each update's coordinate along the axis. Returns the output and the targets of the updates,
    without the dropped ones."""
    result, targets = dict(data), []
    for place in updates:  # row-major, so that the last of several updates to an element is kept
        index = wrapped(indices[place], sizes[axis])
        if index is not None:
            targets.append(place[:axis] + (index,) + place[axis + 1:])
            result[targets[-1]] = updates[place]
    return result, targets


def model(sizes, axis, length, indices=None, data_type="FLOAT32", index_type="UINT32", data=None, updates=None,
          strides=(None, None, None, None), in_place=False, bits=False):
    """`length` is the extent of indices and updates along the axis."""
    update_sizes = sizes[:axis] + [length] + sizes[axis + 1:]
    input_tensor = Tensor(data_type, sizes, strides[0])
    index_tensor = Tensor(index_type, update_sizes, strides[1])
    update_tensor = Tensor(data_type, update_sizes, strides[2])
    indices = indices or numbers.mixed(index_tensor.extent(), 0, sizes[axis] - 1, seed=4)
    data = data or numbers.mixed(input_tensor.extent(), 0, 49)
    updates = updates or [50 + u for u in numbers.mixed(update_tensor.extent(), 0, 48, seed=2)]
    result = Model("SCATTER_ELEMENTS")
    before = result.bind("InputTensor", input_tensor, "data", data, bits)
    at = result.bind("IndicesTensor", index_tensor, "indices", indices)
    new = result.bind("UpdatesTensor", update_tensor, "updates", updates, bits)
    after, targets = scatter_elements(before, sizes, at, new, axis)
    result.disjoint = len(set(targets)) == len(new)
    if in_place:
        result.bind_in_place("OutputTensor", input_tensor, "data", after)
    else:
        result.bind_output("OutputTensor", Tensor(data_type, sizes, strides[3]), "output", after, bits)
    return result.attributes(Axis=axis)


def row(count, indices, **options):
    return model([1, 1, 1, count], 3, len(indices), indices, **options)


def axes():
    group = Group("scatter_elements/ranks_and_axes", DOCUMENTATION,
                  "1 to 8 dimensions; the first, the last and an axis between.")
    for count in range(1, 9):
        for axis in sorted({0, count // 2, count - 1}):
            sizes = [3, 2, 4, 1, 2, 1, 2, 1][:count]
            sizes[axis] = 5
            # Different for each line, and without repetition within a line.
            places = Tensor("UINT32", sizes[:axis] + [2] + sizes[axis + 1:]).coordinates()
            indices = [(sum(place) + place[axis]) % 5 for place in places]
            group.add(f"{count}-dimensions-axis-{axis}", f"Axis {axis} of {count} dimensions.",
                      model(sizes, axis, 2, indices, data_type="INT32"))
    return group


def extents():
    group = Group("scatter_elements/extents", CONTRACT,
                  "The extent of indices and updates along the axis is free: shorter or longer than the input's.")
    for length in (1, 3, 4, 9, 40):
        group.add(f"{length}-along-rows", f"{length} updates per row of 4.", model([1, 1, 2, 4], 3, length))
        group.add(f"{length}-along-columns", f"{length} updates per column of 4.", model([1, 1, 4, 3], 2, length))
    return group


def duplicates():
    group = Group("scatter_elements/duplicates", CONTRACT,
                  "If several updates go to one element, the last in row-major order always wins.")
    group.add("same-element", "Six updates of one element.", row(5, [2] * 6))
    group.add("two-elements", "Updates of two elements, alternating.", row(5, [3, 1] * 4))
    group.add("columns", "Along columns, each with its own order.",
              model([1, 1, 3, 2], 2, 4, [0, 2, 1, 2, 0, 0, 1, 2]))
    group.add("negative", "An index and its negative twin are the same element.",
              row(4, [3, -1, -4, 0], index_type="INT32"))
    for count in (100, 500):
        group.add(f"many-{count}", f"{count} updates of 16 elements.",
                  row(16, numbers.mixed(count, 0, 15), data_type="INT32", updates=[1000 + u for u in range(count)]))
    return group


def out_of_range():
    group = Group("scatter_elements/out_of_range", CONTRACT,
                  "The update of an index out of range is dropped; other memory does not change.")
    group.add("unsigned", "Beyond the end, from one to the largest index.", row(4, [4, 0, 5, 4294967295, 2]))
    group.add("uint64", "Indices whose lower half would be in range.",
              row(4, [2**32, 2**63 + 1, 3, 2**64 - 1], index_type="UINT64"))
    group.add("int64", "Indices whose lower half would be in range, of both signs.",
              row(4, [2**32 + 1, -2**32 - 1, -2**63, 2**63 - 1, -2], index_type="INT64"))
    group.add("int32", "Just outside, on both sides.",
              row(4, [4, -5, 3, -4, -2**31, 2**31 - 1], index_type="INT32"))
    group.add("next-line", "Not even into the next line, which is inside the output.",
              model([1, 1, 2, 3], 3, 2, [3, 0, 4, 1]))
    group.add("all", "Nothing is left to do: the input is copied.", row(4, [4, 9, 100]))
    return group


def types():
    data = Group("scatter_elements/data_types", DOCUMENTATION, "Every data type is copied and replaced bit for bit.")
    index = Group("scatter_elements/index_types", DOCUMENTATION,
                  "Indices of all four types; negative ones count from the end of the axis.")
    for data_type in elements.CODES:
        bits = data_type in elements.FLOATS
        low, high = elements.limits(elements.bits_type(data_type) if bits else data_type)
        values = [high, low, high - 1, low + 1, 5, high // 2, high // 2 + 1, 6]
        data.add(data_type.lower(), f"Extreme elements of {data_type}" + (", NaNs among them." if bits else "."),
                 row(8, [7, 0, 3], data_type=data_type, data=values, updates=[high - 3, low, high], bits=bits))
    for index_type in INDEX_TYPES:
        index.add(index_type.lower(), f"{index_type} indices.",
                  model([1, 1, 2, 5], 3, 3, [0, 4, 2, 3, 1, 0], index_type=index_type))
        if index_type in elements.SIGNED:
            index.add(f"{index_type.lower()}-negative", "Every element by its negative index.",
                      row(5, [-1, -2, -3, -4, -5], index_type=index_type))
            index.add(f"{index_type.lower()}-columns", "Negative and other indices along columns.",
                      model([1, 1, 4, 3], 2, 2, [-1, 0, 1, -3, -2, -1], index_type=index_type))
    return [data, index]


def strides():
    group = Group("scatter_elements/strides", CONTRACT,
                  "Any strides, 0 on inputs included; gaps of the output are not written.")
    none = (None, None, None, None)
    for name, claim, at, layout in (
            ("padded-input", "Rows of the input with gaps.", 0, [30, 30, 7, 1]),
            ("transposed-input", "The input column by column.", 0, [12, 12, 1, 3]),
            ("broadcast-input", "One element for the whole input.", 0, [0, 0, 0, 0]),
            ("padded-indices", "Indices with gaps.", 1, [30, 30, 8, 2]),
            ("broadcast-indices", "One row of indices for all rows.", 1, [0, 0, 0, 1]),
            ("column-of-indices", "One index for a whole row of updates.", 1, [0, 0, 1, 0]),
            ("spread-updates", "Every third update.", 2, [30, 30, 6, 3]),
            ("broadcast-updates", "One update for all indices.", 2, [0, 0, 0, 0]),
            ("padded-output", "Rows of the output with gaps.", 3, [30, 30, 9, 2]),
            ("transposed-output", "The output column by column, with gaps.", 3, [30, 30, 1, 4])):
        layouts = none[:at] + (layout,) + none[at + 1:]
        group.add(f"{name}-rows", claim, model([1, 1, 3, 4], 3, 2, strides=layouts))
        group.add(f"{name}-columns", claim, model([1, 1, 3, 4], 2, 3, data_type="UINT16", strides=layouts))
    return group


def in_place():
    group = Group("scatter_elements/in_place", CONTRACT,
                  "Input and output may be the same region with the same layout.")
    group.add("rows", "Elements of rows replaced where they are.", model([1, 1, 3, 4], 3, 2, in_place=True))
    group.add("columns", "Elements of columns replaced where they are.", model([1, 1, 3, 4], 2, 2, in_place=True))
    group.add("duplicates", "The last update stays, in place, too.", row(4, [2, 2, 0, 2], in_place=True))
    group.add("dropped", "Nothing is in range: nothing changes.", row(4, [4, 5], in_place=True))
    return group


def groups():
    return [axes(), extents(), duplicates(), out_of_range(), *types(), strides(), in_place()]
