"""Descriptions that CreateOperator must refuse, and feature levels that determine it."""
from generator import identity, scatter_elements, scatter_nd, top_k
from generator.pack import CONTRACT, DOCUMENTATION, OWNED_BY_DML, Group, Model
from generator.tensors import Tensor


def described(operator, fields):
    """A model that only describes the operator: nothing is bound or run."""
    result = Model(operator)
    for name, value in fields.items():
        if isinstance(value, Tensor):
            result.describe(name, value)
        else:
            result.attributes(**{name: value})
    return result


def tensor_faults(data_type, sizes):
    """Invalid tensors for any operator: name, claim, tensor."""
    bytes_needed = 4 * Tensor(data_type, sizes).count()
    packed = Tensor(data_type, sizes).strides
    yield "size-0", "A size is 0.", Tensor(data_type, sizes[:-1] + [0])
    yield "total-size-short", "TotalTensorSizeInBytes is less than the sizes need.", Tensor(
        data_type, sizes, TotalTensorSizeInBytes=bytes_needed - 4)
    yield "total-size-odd", "TotalTensorSizeInBytes is no multiple of 4.", Tensor(
        data_type, sizes, TotalTensorSizeInBytes=bytes_needed + 2)
    yield "total-size-strided", "TotalTensorSizeInBytes is enough for packed elements, but not for the strides.", \
        Tensor(data_type, sizes, [2 * s for s in packed], TotalTensorSizeInBytes=bytes_needed)
    yield "alignment-3", "GuaranteedBaseOffsetAlignment is no power of two.", Tensor(
        data_type, sizes, GuaranteedBaseOffsetAlignment=3)
    yield "alignment-2", "GuaranteedBaseOffsetAlignment is smaller than an element.", Tensor(
        data_type, sizes, GuaranteedBaseOffsetAlignment=2)


def output_faults(data_type, sizes):
    """The last two sizes are at least 2."""
    yield "owned", "OWNED_BY_DML is for inputs.", Tensor(data_type, sizes, Flags=OWNED_BY_DML)
    yield "overlap-stride-0", "Stride 0 on a dimension of an output.", Tensor(data_type, sizes, [8, 8, sizes[-1], 0])
    yield "overlap-colliding", "Strides at which two elements of an output collide.", Tensor(
        data_type, sizes, [64, 64, 1, 1])


def refused(name, operator, base, changes, tensors):
    """`changes`: name, claim, the fields that differ from the valid `base`. After these, each of the `tensors` is
    invalid by itself."""
    group = Group(name, CONTRACT, f"Descriptions of {operator} with one mistake are refused with E_INVALIDARG; the "
                                  "same without it are accepted.")
    group.add("accepted", "The description that the others are made from.", described(operator, base))
    for case, claim, fields in changes:
        group.refuse(case, claim, described(operator, {**base, **fields}))
    for field in tensors:
        faults = list(tensor_faults(base[field].data_type, base[field].sizes))
        if field.startswith("Output"):
            faults += output_faults(base[field].data_type, base[field].sizes)
        for fault, claim, tensor in faults:
            group.refuse(f"{field}-{fault}", claim, described(operator, {**base, field: tensor}))
    return group


def top_k_refused(operator):
    def values(sizes, data_type="FLOAT32"):
        return {"OutputValueTensor": Tensor(data_type, sizes)}

    def indices(sizes, data_type="UINT32"):
        return {"OutputIndexTensor": Tensor(data_type, sizes)}

    def both(sizes):
        return {**values(sizes), **indices(sizes)}

    base = {"InputTensor": Tensor("FLOAT32", [1, 2, 3, 4]), **both([1, 2, 3, 2]), "Axis": 3, "K": 2}
    if operator == "TOP_K1":
        base["AxisDirection"] = top_k.DECREASING
    changes = [
        ("k-0", "K is 0.", {"K": 0}),
        ("k-beyond-axis", "K is larger than the axis, outputs and all.", {"K": 5, **both([1, 2, 3, 5])}),
        ("k-largest", "K is the largest number there is.", {"K": 4294967295}),
        ("k-is-not-the-outputs", "K and the outputs' sizes differ.", {"K": 3}),
        ("axis-4", "Axis is DimensionCount.", {"Axis": 4}),
        ("axis-largest", "Axis is the largest number there is.", {"Axis": 4294967295}),
        ("another-axis", "The outputs are shortened along another axis.", {"Axis": 2}),
        ("values-longer", "OutputValueTensor has another size off the axis.", values([1, 2, 4, 2])),
        ("indices-longer", "OutputIndexTensor has another size off the axis.", indices([1, 3, 3, 2])),
        ("indices-shorter", "OutputIndexTensor is shorter than K.", indices([1, 2, 3, 1])),
        ("value-type", "OutputValueTensor has another data type.", values([1, 2, 3, 2], "INT32")),
        ("value-width", "OutputValueTensor has another width.", values([1, 2, 3, 2], "FLOAT16")),
        ("index-int32", "Indices are unsigned.", indices([1, 2, 3, 2], "INT32")),
        ("index-int64", "Indices are unsigned, the long ones, too.", indices([1, 2, 3, 2], "INT64")),
        ("index-float", "Indices are integers.", indices([1, 2, 3, 2], "FLOAT32")),
        ("float64", "There is no FLOAT64.",
         {"InputTensor": Tensor("FLOAT64", [1, 2, 3, 4]), **values([1, 2, 3, 2], "FLOAT64")}),
        ("values-of-fewer-dimensions", "OutputValueTensor has fewer dimensions.", values([2, 3, 2])),
        ("indices-of-more-dimensions", "OutputIndexTensor has more dimensions.", indices([1, 1, 2, 3, 2])),
    ]
    return refused(f"{operator.lower()}/refused", operator, base, changes,
                   ["InputTensor", "OutputValueTensor", "OutputIndexTensor"] if operator == "TOP_K1" else [])


def scatter_nd_refused():
    def sizes(data=None, indices=None, updates=None, data_type="FLOAT32", index_type="UINT32"):
        fields = {}
        if data:
            fields.update(InputTensor=Tensor(data_type, data), OutputTensor=Tensor(data_type, data))
        if indices:
            fields["IndicesTensor"] = Tensor(index_type, indices)
        if updates:
            fields["UpdatesTensor"] = Tensor(data_type, updates)
        return fields

    base = {**sizes([1, 3, 4, 5], [1, 1, 2, 2], [1, 1, 2, 5]), "InputDimensionCount": 3, "IndicesDimensionCount": 2}
    changes = [
        ("input-dimensions-0", "InputDimensionCount is 0.", {"InputDimensionCount": 0}),
        ("input-dimensions-5", "InputDimensionCount is more than DimensionCount.", {"InputDimensionCount": 5}),
        ("indices-dimensions-0", "IndicesDimensionCount is 0.", {"IndicesDimensionCount": 0}),
        ("indices-dimensions-5", "IndicesDimensionCount is more than DimensionCount.", {"IndicesDimensionCount": 5}),
        ("input-not-1", "A dimension left of the meaningful ones is not 1.", {"InputDimensionCount": 2}),
        ("indices-not-1", "A dimension of the indices left of the meaningful ones is not 1.",
         {"IndicesDimensionCount": 1}),
        ("tuple-too-long", "Tuples of 4 coordinates for 3 dimensions.", sizes(indices=[1, 1, 2, 4])),
        ("updates-short", "Fewer updates than tuples.", sizes(updates=[1, 1, 1, 5])),
        ("updates-long", "More updates than tuples.", sizes(updates=[1, 1, 3, 5])),
        ("updates-slice", "Updates of another slice.", sizes(updates=[1, 1, 2, 4])),
        ("updates-by-the-formula", "The page's formula, which contradicts its example.", sizes(updates=[1, 2, 4, 5])),
        ("updates-not-aligned", "Updates aligned to the left.", sizes(updates=[2, 5, 1, 1])),
        ("output-sizes", "The output has other sizes than the input.",
         {"OutputTensor": Tensor("FLOAT32", [1, 3, 5, 4])}),
        ("output-type", "The output has another data type.", {"OutputTensor": Tensor("INT32", [1, 3, 4, 5])}),
        ("updates-type", "The updates have another data type.", {"UpdatesTensor": Tensor("FLOAT16", [1, 1, 2, 5])}),
        ("indices-float", "The page's last example has FLOAT32 indices.",
         sizes(indices=[1, 1, 2, 2], index_type="FLOAT32")),
        ("indices-uint16", "Indices have 32 or 64 bits.", sizes(indices=[1, 1, 2, 2], index_type="UINT16")),
        ("updates-dimensions", "The updates have fewer dimensions.", sizes(updates=[1, 2, 5])),
        ("indices-dimensions", "The indices have more dimensions.", sizes(indices=[1, 1, 1, 2, 2])),
    ]
    return refused("scatter_nd/refused", "SCATTER_ND", base, changes, ["IndicesTensor", "OutputTensor"])


def scatter_elements_refused():
    data, updates = [1, 2, 3, 4], [1, 2, 3, 2]
    base = {"InputTensor": Tensor("FLOAT32", data), "IndicesTensor": Tensor("UINT32", updates),
            "UpdatesTensor": Tensor("FLOAT32", updates), "OutputTensor": Tensor("FLOAT32", data), "Axis": 3}

    def resized(sizes):
        return {"IndicesTensor": Tensor("UINT32", sizes), "UpdatesTensor": Tensor("FLOAT32", sizes)}

    changes = [
        ("axis-4", "Axis is DimensionCount.", {"Axis": 4}),
        ("axis-largest", "Axis is the largest number there is.", {"Axis": 4294967295}),
        ("another-axis", "The indices are shorter along another axis.", {"Axis": 2}),
        ("smaller-off-axis", "Indices and updates are smaller off the axis, which ONNX allows.",
         resized([1, 2, 2, 2])),
        ("larger-off-axis", "Indices and updates are larger off the axis.", resized([1, 2, 4, 2])),
        ("updates-sizes", "Updates and indices have different sizes.",
         {"UpdatesTensor": Tensor("FLOAT32", [1, 2, 3, 3])}),
        ("output-sizes", "The output has other sizes than the input.",
         {"OutputTensor": Tensor("FLOAT32", [1, 2, 4, 3])}),
        ("output-type", "The output has another data type.", {"OutputTensor": Tensor("UINT32", data)}),
        ("updates-type", "The updates have another data type.", {"UpdatesTensor": Tensor("INT32", updates)}),
        ("indices-float", "Indices are integers.", {"IndicesTensor": Tensor("FLOAT32", updates)}),
        ("indices-uint8", "Indices have 32 or 64 bits.", {"IndicesTensor": Tensor("UINT8", updates)}),
        ("indices-dimensions", "The indices have fewer dimensions.", {"IndicesTensor": Tensor("UINT32", [2, 3, 2])}),
    ]
    return refused("scatter_elements/refused", "SCATTER_ELEMENTS", base, changes,
                   ["UpdatesTensor", "OutputTensor"])


def identity_refused():
    base = {name: Tensor("FLOAT32", [1, 2, 3, 4]) for name in ("InputTensor", "OutputTensor")}
    changes = [
        ("output-sizes", "Another size.", {"OutputTensor": Tensor("FLOAT32", [1, 2, 3, 5])}),
        ("output-size-1", "Not even 1: nothing is broadcast without strides.",
         {"InputTensor": Tensor("FLOAT32", [1, 2, 3, 1])}),
        ("output-order", "As many elements in another shape.", {"OutputTensor": Tensor("FLOAT32", [1, 2, 4, 3])}),
        ("output-type", "Another data type.", {"OutputTensor": Tensor("FLOAT16", [1, 2, 3, 4])}),
        ("output-dimensions", "Another number of dimensions.", {"OutputTensor": Tensor("FLOAT32", [1, 1, 2, 3, 4])}),
        ("too-many-elements", "2^32 elements, one more than there may be.",
         {name: Tensor("UINT8", [1, 1, 65536, 65536]) for name in base}),
        ("overflow", "More elements than 64 bits can count.",
         {name: Tensor("FLOAT32", [4294967295] * 4, TotalTensorSizeInBytes=64) for name in base}),
    ]
    return refused("identity/refused", "ELEMENT_WISE_IDENTITY", base, changes, ["InputTensor", "OutputTensor"])


def levels():
    """The last level that refuses a description, and the first that accepts it; the results of the latter are
    checked."""
    group = Group("feature_levels", DOCUMENTATION,
                  "A device limited to a feature level accepts exactly what is in that level's tables. (Only for "
                  "implementations that can be limited.)")
    ten = list(range(10))
    cases = (
        ("top_k1", "2.0", "2.1", "TOP_K1 exists from 2.1 on.", top_k.row("FLOAT32", ten, 3, top_k.DECREASING)),
        ("top_k1-dimensions", "3.0", "3.1", "Other than 4 dimensions from 3.1 on.",
         top_k.model("FLOAT32", [10], 0, 3, ten)),
        ("top_k1-int64", "4.1", "5.0", "64-bit integers from 5.0 on.",
         top_k.row("INT64", ten, 3, top_k.DECREASING)),
        ("top_k1-uint64-indices", "4.1", "5.0", "UINT64 indices from 5.0 on.",
         top_k.row("FLOAT32", ten, 3, top_k.DECREASING, index="UINT64")),
        ("top_k-integers", "2.0", "2.1", "Integers from 2.1 on.",
         top_k.row("INT32", ten, 3, top_k.DECREASING, operator="TOP_K")),
        ("scatter_nd", "2.0", "2.1", "SCATTER_ND exists from 2.1 on.",
         scatter_nd.model([10], [2, 1], [3, 4], rank=4)),
        ("scatter_nd-dimensions", "2.1", "3.0", "Other than 4 dimensions from 3.0 on.",
         scatter_nd.model([10], [2, 1], [3, 4], rank=3)),
        ("scatter_nd-signed-indices", "2.1", "3.0", "Signed, hence negative, indices from 3.0 on.",
         scatter_nd.model([10], [2, 1], [3, -1], index_type="INT32", rank=4)),
        ("scatter_nd-float64", "4.0", "4.1", "FLOAT64 from 4.1 on.",
         scatter_nd.model([10], [2, 1], [3, 4], data_type="FLOAT64")),
        ("scatter_elements", "1.0", "2.0", "SCATTER_ELEMENTS exists from 2.0 on.",
         scatter_elements.row(10, [3, 4])),
        ("scatter_elements-integers", "2.0", "2.1", "Integers from 2.1 on.",
         scatter_elements.row(8, [3, 4], data_type="UINT8")),
        ("scatter_elements-uint64-indices", "2.1", "3.0", "64-bit indices from 3.0 on.",
         scatter_elements.row(10, [3, 4], index_type="UINT64")),
        ("identity-integers", "2.0", "2.1", "Integers from 2.1 on.", identity.row("INT32", ten)),
        ("identity-dimensions", "2.1", "3.0", "Other than 4 or 5 dimensions from 3.0 on.",
         identity.model("FLOAT32", [10], ten)),
        ("identity-uint64", "4.0", "4.1", "64-bit integers from 4.1 on.", identity.row("UINT64", ten)))
    for name, last, first, claim, model in cases:
        group.add(f"{name}-at-{first}", claim, model, featureLevel=first)
        group.refuse(f"{name}-at-{last}", claim, model, featureLevel=last, since=last)
    return group


def groups():
    return [top_k_refused("TOP_K1"), top_k_refused("TOP_K"), scatter_nd_refused(), scatter_elements_refused(),
            identity_refused(), levels()]
