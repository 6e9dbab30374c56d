"""For every operator, descriptions that contradict themselves or the operator's page and must be refused. Each is a
model of the operator's own group with one error, so that the same description without it is known to be accepted."""
import re

from generator.operation import dimension_counts, is_output, types_of
from generator.pack import CONTRACT, OPERATORS, Group, Model, array_place
from generator.tensors import Tensor

UNARY = "InputTensor OutputTensor"
BINARY = "ATensor BTensor OutputTensor"
GRADIENTS = "InputTensor InputGradientTensor OutputGradientTensor"
# The pages' constraints: tensors that must agree in T (the data type), R (the number of dimensions) or S (sizes). The
# first pattern that a name matches decides.
AGREEMENTS = [
    (r"ELEMENT_WISE_(LOGICAL_(EQUALS|(GREATER|LESS)_THAN.*))", [("RS", BINARY), ("T", "ATensor BTensor")]),
    (r"ELEMENT_WISE_(CAST|IS_NAN|IS_INFINITY|BIT_COUNT)|CAST", [("RS", UNARY)]),
    (r"ELEMENT_WISE_POW", [("RS", "InputTensor ExponentTensor OutputTensor"), ("T", UNARY)]),
    (r"ELEMENT_WISE_IF", [("RS", "ConditionTensor ATensor BTensor OutputTensor"), ("T", BINARY)]),
    (r"ELEMENT_WISE_QUANTIZE_LINEAR", [("RS", "InputTensor ScaleTensor ZeroPointTensor OutputTensor"),
                                       ("T", "ZeroPointTensor OutputTensor")]),
    (r"ELEMENT_WISE_DEQUANTIZE_LINEAR", [("RS", "InputTensor ScaleTensor ZeroPointTensor OutputTensor"),
                                         ("T", "InputTensor ZeroPointTensor"), ("T", "ScaleTensor OutputTensor")]),
    (r"(DE)?QUANTIZE", [("R", "InputTensor QuantizationTensors[0] OutputTensor")]),
    (r"ELEMENT_WISE_QUANTIZED_LINEAR_ADD", [
        ("R", BINARY), ("R", "ATensor AScaleTensor"), ("R", "ATensor BZeroPointTensor"),
        ("T", "ATensor AZeroPointTensor"), ("T", "BTensor BZeroPointTensor"),
        ("T", "OutputTensor OutputZeroPointTensor")]),
    (r"DYNAMIC_QUANTIZE_LINEAR", [("R", "InputTensor OutputScaleTensor OutputTensor"), ("S", UNARY),
                                  ("T", "OutputTensor OutputZeroPointTensor")]),
    (r"ELEMENT_WISE_CLIP_GRAD1?|ACTIVATION_RELU_GRAD", [("TRS", GRADIENTS)]),
    (r"ACTIVATION_PARAMETERIZED_RELU", [("TRS", "InputTensor SlopeTensor OutputTensor")]),
    (r"ELEMENT_WISE_(ADD1?|SUBTRACT|MULTIPLY|DIVIDE|MAX|MIN|MEAN|MODULUS_.*|ATAN_YX|DIFFERENCE_SQUARE"
     r"|LOGICAL_(AND|OR|XOR)|BIT_(AND|OR|XOR|SHIFT_.*))", [("TRS", BINARY)]),
    (r"ELEMENT_WISE_.*|ACTIVATION_.*|CUMULATIVE_.*|LP_NORMALIZATION|VALUE_SCALE_2D|LOCAL_RESPONSE_NORMALIZATION",
     [("TRS", UNARY)]),
    (r"LOCAL_RESPONSE_NORMALIZATION_GRAD", [("TRS", GRADIENTS)]),
    (r"MAX_POOLING_GRAD", [("TR", GRADIENTS), ("S", "InputTensor OutputGradientTensor")]),
    (r"MAX_POOLING[12]", [("TR", UNARY), ("RS", "OutputTensor OutputIndicesTensor")]),
    (r"MAX_UNPOOLING", [("TR", UNARY), ("RS", "InputTensor IndicesTensor")]),
    (r"AVERAGE_POOLING_GRAD|RESAMPLE_GRAD1?|SLICE_GRAD", [("TR", "InputGradientTensor OutputGradientTensor")]),
    (r"QUANTIZED_LINEAR_AVERAGE_POOLING", [("R", UNARY), ("T", "InputTensor InputZeroPointTensor"),
                                           ("T", "OutputTensor OutputZeroPointTensor")]),
    (r".*POOLING1?|SLICE1?|PADDING1?|UPSAMPLE_2D|RESAMPLE[123]?|(DEPTH|SPACE)_TO_.*|TILE", [("TR", UNARY)]),
    (r"DIAGONAL_MATRIX1", [("TRS", UNARY)]),
    (r"SPLIT", [("TR", "InputTensor OutputTensors[0]"), ("TR", "InputTensor OutputTensors[1]")]),
    (r"JOIN", [("TR", "OutputTensor InputTensors[0]"), ("TR", "OutputTensor InputTensors[1]")]),
    (r"ARGM.*", [("R", UNARY)]),
    (r"REDUCE", [("TR", UNARY)]),
    (r"GATHER.*", [("R", "InputTensor IndicesTensor"), ("TR", UNARY)]),
    (r"REVERSE_SUBSEQUENCES", [("TRS", UNARY), ("R", "InputTensor SequenceLengthsTensor")]),
    (r"ONE_HOT", [("R", "IndicesTensor OutputTensor"), ("TR", "ValuesTensor OutputTensor")]),
    (r"RANDOM_GENERATOR", [("RS", "InputStateTensor OutputStateTensor")]),
    (r"CONVOLUTION", [("TR", "InputTensor FilterTensor OutputTensor"), ("TR", "InputTensor BiasTensor")]),
    (r"CONVOLUTION_INTEGER", [("R", "InputTensor FilterTensor OutputTensor"), ("T", "InputTensor InputZeroPointTensor"),
                              ("T", "FilterTensor FilterZeroPointTensor")]),
    (r"QUANTIZED_LINEAR_CONVOLUTION", [("R", "InputTensor FilterTensor OutputTensor"),
                                       ("T", "InputTensor InputZeroPointTensor"),
                                       ("T", "FilterTensor FilterZeroPointTensor"),
                                       ("T", "OutputTensor OutputZeroPointTensor")]),
    (r"GEMM", [("TR", BINARY), ("S", "OutputTensor CTensor")]),
    (r"MATRIX_MULTIPLY_INTEGER_TO_FLOAT", [("R", BINARY), ("T", "ATensor AZeroPointTensor"),
                                           ("T", "BTensor BZeroPointTensor"), ("T", "AScaleTensor OutputTensor"),
                                           ("S", "OutputTensor BiasTensor")]),
    (r"MATRIX_MULTIPLY_INTEGER|QUANTIZED_LINEAR_MATRIX_MULTIPLY", [
        ("R", BINARY), ("T", "ATensor AZeroPointTensor"), ("T", "BTensor BZeroPointTensor"),
        ("T", "OutputTensor OutputZeroPointTensor")]),
    (r"BATCH_NORMALIZATION|MEAN_VARIANCE_NORMALIZATION[12]?", [
        ("TRS", UNARY), ("TRS", "InputTensor MeanTensor"), ("TRS", "InputTensor ScaleTensor")]),
    (r"BATCH_NORMALIZATION_TRAINING", [("TRS", UNARY), ("TS", "ScaleTensor BiasTensor"),
                                       ("TS", "ScaleTensor OutputMeanTensor"), ("S", "InputTensor FusedAddTensor")]),
    (r"BATCH_NORMALIZATION(_TRAINING)?_GRAD", [("TRS", GRADIENTS), ("S", "ScaleTensor OutputScaleGradientTensor")]),
    (r"ROI_ALIGN_GRAD", [("T", "InputGradientTensor ROITensor"), ("T", "InputGradientTensor OutputGradientTensor")]),
    (r"ROI_.*", [("T", "InputTensor ROITensor"), ("T", UNARY)]),
    (r"ADAM_OPTIMIZER", [("TRS", "InputParametersTensor GradientTensor OutputParametersTensor"),
                         ("TS", "InputParametersTensor OutputFirstMomentTensor")]),
    (r"RNN|LSTM|GRU", [("T", "InputTensor WeightTensor"), ("T", "InputTensor OutputSingleTensor"),
                       ("T", "InputTensor OutputSequenceTensor")]),
    (r"MULTIHEAD_ATTENTION1?", [("T", "QueryTensor KeyTensor"), ("T", "QueryTensor OutputTensor")]),
]
# These outputs have the sizes that one value gives, or end earlier.
FREE_SIZES = (r"RESAMPLE.*|RANDOM_GENERATOR|FILL_VALUE_.*|DIAGONAL_MATRIX|FOLD|ONE_HOT|SLICE_GRAD|ROI_ALIGN1?"
              r"|AVERAGE_POOLING_GRAD|MAX_UNPOOLING")
ZERO = {"Strides": "A stride is 0.", "Dilations": "A dilation is 0.", "WindowSize": "A window is empty.",
        "WindowSizes": "A window is empty.", "InputWindowStrides": "A stride is 0.", "Repeats": "Nothing is repeated.",
        "GroupCount": "There are no groups.", "BlockSize": "A block is empty.", "HeadCount": "There are no heads.",
        "QueryHeadCount": "There are no heads.", "KeyValueHeadCount": "There are no heads.", "P": "P is 0."}


def named(text):
    """"OutputValueTensor" in the name of a model."""
    return re.sub(r"\[(\d)\]", r"\1", text.replace("Tensors", "").replace("Tensor", "")).lower()


def changed(base, changes):
    """The model's description, with other tensors or attributes."""
    result = Model(base.operator)
    for field, tensor in base.tensors.items():
        result.describe(field, changes.get(field, tensor))
    arrays = {array_place(field)[0] for field in base.tensors}
    attributes = {name: value for name, value in base.desc.items() if name not in arrays}
    result.attributes(**attributes)
    result.attributes(**{name: value for name, value in changes.items() if not isinstance(value, Tensor)})
    return result


def table_field(field):
    return array_place(field)[0]


def another_type(base, field):
    """A different type that the page's table also allows for this tensor."""
    types = types_of(base.operator, table_field(field))
    return next((t for t in types if t != base.tensors[field].data_type), None)


def another_rank(base, field):
    """With a dimension of size 1 added or removed, as the page's table allows."""
    sizes, (low, high) = base.tensors[field].sizes, dimension_counts(base.operator, table_field(field))
    if len(sizes) < high:
        return [1] + sizes
    return sizes[1:] if sizes[0] == 1 and len(sizes) > low else None


def longer(sizes):
    return sizes[:-1] + [sizes[-1] + 1]


def rules_of(operator):
    return next((rules for pattern, rules in AGREEMENTS if re.fullmatch(pattern, operator)), [])


def same_sizes(operator, field):
    return any("S" in letters and field in fields.split() for letters, fields in rules_of(operator))


def disagreements(base):
    """Name, claim, changes: for the last tensor of each set, and for the second if there are more."""
    for letters, fields in rules_of(base.operator):
        fields = [field for field in fields.split() if field in base.tensors]
        for field in {fields[-1]: 0, fields[1]: 0} if len(fields) > 1 else ():
            tensor, first = base.tensors[field], fields[0] if fields[0] != field else fields[-1]
            if "T" in letters and (other := another_type(base, field)):
                yield f"{named(field)}-type", f"{field} has another data type than {first}.", {
                    field: Tensor(other, tensor.sizes)}
            if "R" in letters and (sizes := another_rank(base, field)):
                yield f"{named(field)}-dimensions", f"{field} has another number of dimensions than {first}.", {
                    field: Tensor(tensor.data_type, sizes)}
            if "S" in letters:
                yield f"{named(field)}-sizes", f"{field} is longer than {first}.", {
                    field: Tensor(tensor.data_type, longer(tensor.sizes))}


def beyond_the_tables(base):
    field, tensor = next(iter(base.tensors.items()))
    types = types_of(base.operator, table_field(field))
    if missing := next((t for t in ("FLOAT64", "INT64", "UINT16", "FLOAT32") if t not in types), None):
        yield f"{missing.lower()}", f"{field} cannot be {missing}.", {
            name: Tensor(missing, other.sizes) for name, other in base.tensors.items()
            if other.data_type == tensor.data_type}
    _, most = dimension_counts(base.operator, table_field(field))
    if most == 8:  # no tensor has more dimensions
        return
    yield "many-dimensions", f"{most + 1} dimensions are more than there may be.", {
        name: Tensor(other.data_type, [1] * (most + 1 - len(other.sizes)) + other.sizes)
        for name, other in base.tensors.items() if not array_place(name)[1]}


def wrong_outputs(base):
    output = next(field for field in base.tensors if is_output(base.operator, field))
    tensor = base.tensors[output]
    if not re.fullmatch(FREE_SIZES, base.operator) and not same_sizes(base.operator, output):
        for where, sizes in (("longer", longer(tensor.sizes)), ("first", [tensor.sizes[0] + 1] + tensor.sizes[1:])):
            yield f"{named(output)}-{where}", f"{output} has {sizes}, more than the result.", {
                output: Tensor(tensor.data_type, sizes)}
    if tensor.count() > 1:
        yield f"{named(output)}-overlaps", f"Elements of {output} share a place.", {
            output: Tensor(tensor.data_type, tensor.sizes, [0] * len(tensor.sizes))}


def wrong_attributes(base):
    kinds = {field["name"]: field for field in OPERATORS[base.operator]["fields"]}
    for name, value in base.desc.items():
        field = kinds.get(name, {})
        if field.get("role") == "axis":
            rank = len(base.tensors[next(f for f in base.tensors if table_field(f) == field["of"])].sizes)
            beyond = value[:-1] + [rank] if isinstance(value, list) else rank
            yield f"{name.lower()}-beyond", f"{name} names a dimension that there is not.", {name: beyond}
            if isinstance(value, list):
                yield f"{name.lower()}-twice", f"{name} names a dimension twice.", {name: value + value[-1:]}
        if name in ZERO:
            zero = [0] * len(value) if isinstance(value, list) else 0
            yield f"{name.lower()}-0", ZERO[name], {name: zero}
    if "FusedActivation" in kinds:
        yield "activation", "HARDMAX cannot be fused.", {
            "FusedActivation": {"Type": "DML_OPERATOR_ACTIVATION_HARDMAX", "Desc": {}}}


def contradictions(base):
    seen = {}
    for name, claim, changes in (*disagreements(base), *beyond_the_tables(base), *wrong_attributes(base),
                                 *wrong_outputs(base)):
        described = changed(base, changes)
        if described.desc not in seen.values() and name not in seen:
            seen[name] = described.desc
            yield name, claim, described


def groups(parts):
    """`parts`: the groups of every module that makes models, by its name; returns one group for each of them."""
    for part, made in parts.items():
        group = Group(f"refused/{part}", CONTRACT, "")
        bases = {}
        for other in made:
            for model, expectation in ((m, e) for _, m, e in other.models.values()):
                if not expectation.get("refused") and model.tensors and model.bindings:
                    bases.setdefault(model.operator, model)
        for operator, base in bases.items():
            for name, claim, described in contradictions(base):
                group.refuse(f"{operator.lower()}-{name}", claim, described)
        group.proves = (f"{len(bases)} operators: mismatched tensors, types and numbers of dimensions that are in "
                        "no table, invalid attributes and overlapping outputs are refused with E_INVALIDARG.")
        yield group
