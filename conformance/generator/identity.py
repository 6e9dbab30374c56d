"""ELEMENT_WISE_IDENTITY: f(x) = x * Scale + Bias, or x."""
from generator import elements, numbers
from generator.pack import CONTRACT, DOCUMENTATION, Group, Model
from generator.tensors import Tensor


def model(data_type, sizes, values, strides=None, output_strides=None, bits=False, in_place=False, scale_bias=None):
    result = Model("ELEMENT_WISE_IDENTITY")
    data = result.bind("InputTensor", Tensor(data_type, sizes, strides), "input", values, bits)
    after = data
    if scale_bias:
        scale, bias = scale_bias
        after = {c: x * scale + bias for c, x in data.items()}
        if data_type in elements.FLOATS:  # only cases in which nothing is rounded
            assert all(elements.rounded(data_type, y) == y for y in after.values())
        else:
            low, high = elements.limits(data_type)
            assert all(low <= y <= high for y in after.values())
        result.attributes(ScaleBias={"Scale": scale, "Bias": bias})
    if in_place:
        result.bind_in_place("OutputTensor", Tensor(data_type, sizes, output_strides), "input", after)
    else:
        result.bind_output("OutputTensor", Tensor(data_type, sizes, output_strides), "output", after, bits)
    return result


def row(data_type, values, **options):
    return model(data_type, [1, 1, 1, len(values)], values, **options)


def copies():
    types = Group("identity/data_types", DOCUMENTATION,
                  "Every data type is copied bit for bit: NaNs with their payload, zeros with their sign, denormals.")
    for data_type in elements.CODES:
        bits = data_type in elements.FLOATS
        low, high = elements.limits(elements.bits_type(data_type) if bits else data_type)
        values = [high, low, high - 1, low + 1, 5, high // 2, high // 2 + 1, 6]
        types.add(data_type.lower(), f"Extreme elements of {data_type}" + (", NaNs among them." if bits else "."),
                  row(data_type, values, bits=bits))
    ranks = Group("identity/ranks", DOCUMENTATION, "1 to 8 dimensions.")
    for count in range(1, 9):
        sizes = [3, 2, 4, 1, 2, 1, 2, 1][:count]
        values = numbers.mixed(Tensor("INT32", sizes).count(), -50, 50)
        ranks.add(f"{count}-dimensions", f"{count} dimensions.", model("INT32", sizes, values))
    return [types, ranks]


def scaled():
    floats = Group("identity/scale_bias", DOCUMENTATION,
                   "x * Scale + Bias of floats, where nothing has to be rounded.")
    for data_type in elements.FLOATS:
        for name, scale_bias in (("scale", (2.0, 0.0)), ("bias", (1.0, -0.5)), ("both", (-0.25, 3.0)),
                                 ("constant", (0.0, 7.0))):
            floats.add(f"{data_type.lower()}-{name}", f"{data_type} times {scale_bias[0]} plus {scale_bias[1]}.",
                       row(data_type, [0.0, 1.0, -2.0, 0.5, 24.0, -12.25, 1024.0, 3.0], scale_bias=scale_bias))
        floats.add(f"{data_type.lower()}-infinity", "Infinities stay infinite.",
                   row(data_type, [float("inf"), float("-inf"), 1.0, 0.0], scale_bias=(-2.0, 1.0)))
    integers = Group("identity/scale_bias_of_integers", CONTRACT,
                     "x * Scale + Bias of integers, with results that are in the range of the type: clients use this "
                     "for negation.")
    for data_type in elements.INTEGERS:
        low, high = elements.limits(data_type)
        if data_type in elements.SIGNED:
            integers.add(f"{data_type.lower()}-negated", f"{data_type} times -1, to the last bit.",
                         row(data_type, [0, 1, -1, high, -high, high - 1, 37], scale_bias=(-1, 0)))
        integers.add(f"{data_type.lower()}-both", f"{data_type} times 3 plus 2.",
                     row(data_type, [0, 1, 2, 3, 10, 20, 41], scale_bias=(3, 2)))
    return [floats, integers]


def strides():
    group = Group("identity/strides", CONTRACT,
                  "The usual way to transpose, broadcast, pad and slice: through strides. Gaps are not written.")
    sizes = [1, 2, 3, 4]
    for name, claim, options in (
            ("transpose", "Columns become rows.", dict(strides=[24, 12, 1, 3])),
            ("to-columns", "Rows become columns.", dict(output_strides=[24, 12, 1, 3])),
            ("broadcast", "One row becomes six.", dict(strides=[0, 0, 0, 1])),
            ("broadcast-element", "One element becomes all.", dict(strides=[0, 0, 0, 0])),
            ("slice", "Every second element of wider rows.", dict(strides=[60, 30, 9, 2])),
            ("pad", "Into wider rows.", dict(output_strides=[60, 30, 9, 1])),
            ("both", "From one layout into another.", dict(strides=[99, 1, 2, 7], output_strides=[99, 13, 1, 3]))):
        extent = Tensor("FLOAT32", sizes, options.get("strides")).extent()
        for data_type in ("UINT8", "INT64"):
            group.add(f"{name}-{data_type.lower()}", claim,
                      model(data_type, sizes, numbers.mixed(extent, 0, 90), **options))
        group.add(f"{name}-scaled", claim,
                  model("FLOAT16", sizes, numbers.mixed(extent, 0, 45), scale_bias=(2, 1), **options))
    group.add("in-place", "The operator may write where it reads; gaps stay.",
              model("FLOAT32", [1, 1, 2, 2], [1, 2, 3, 4, 5, 6, 7], strides=[7, 7, 4, 2], output_strides=[7, 7, 4, 2],
                    in_place=True, scale_bias=(10, 0)))
    return group


def in_place():
    group = Group("identity/in_place", DOCUMENTATION, "The output may be the input.")
    group.add("copy", "Nothing changes.", row("FLOAT32", [1.0, 2.0, 3.0], in_place=True))
    for data_type in ("FLOAT32", "FLOAT16", "INT8"):
        group.add(f"scaled-{data_type.lower()}", "Scaled where it is.",
                  row(data_type, [1, 2, 3, 4, 5, 6, 7, 8], in_place=True, scale_bias=(-2, 1)))
    return group


def groups():
    return [*copies(), *scaled(), strides(), in_place()]
