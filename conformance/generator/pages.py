"""The examples of the operators' pages as printed: operator, inputs, outputs, attributes."""
import itertools

from generator.operation import Data, Result, model
from generator.pack import DOCUMENTATION, Group

UP, DOWN = "DML_AXIS_DIRECTION_INCREASING", "DML_AXIS_DIRECTION_DECREASING"
F, U = "FLOAT32", "UINT32"
NINE = [1, 2, 3, 3, 0, 4, 2, 5, 2]
TWELVE = [2, 1, 3, 5, 3, 8, 7, 3, 9, 6, 2, 4]
DEEP = [k for block in range(8) for k in range(9 * block, 9 * block + 6)]
FLAT = {"DEPTH_COLUMN_ROW": [0, 18, 1, 19, 2, 20, 36, 54, 37, 55, 38, 56, 3, 21, 4, 22, 5, 23, 39, 57, 40, 58, 41, 59,
                             9, 27,
                             10, 28, 11, 29, 45, 63, 46, 64, 47, 65, 12, 30, 13, 31, 14, 32, 48, 66, 49, 67, 50, 68],
        "COLUMN_ROW_DEPTH": [0, 9, 1, 10, 2, 11, 18, 27, 19, 28, 20, 29, 3, 12, 4, 13, 5, 14, 21, 30, 22, 31, 23, 32,
                             36, 45,
                             37, 46, 38, 47, 54, 63, 55, 64, 56, 65, 39, 48, 40, 49, 41, 50, 57, 66, 58, 67, 59, 68]}


def x(values, *sizes, data_type=F):
    """A tensor: its type, sizes and elements in row-major order."""
    return (data_type, list(sizes), values)


def one(inputs, output, **attributes):
    """An input, or several by field, and the output."""
    return (inputs if isinstance(inputs, dict) else {"InputTensor": inputs}, {"OutputTensor": output}, attributes)


def scan(result, axis, direction, flag, exclusive):
    return one(x(TWELVE, 1, 1, 3, 4), x(result, 1, 1, 3, 4), Axis=axis, AxisDirection=direction, **{flag: exclusive})


def hot(indices, sizes, values, value_sizes, axis, result, index=U):
    return one({"IndicesTensor": x(indices, *sizes, data_type=index), "ValuesTensor": x(values, *value_sizes)},
               x(result, 1, 1, 3, 4), Axis=axis)


def indexed(data, sizes, indices, index_sizes, result, out, **attributes):
    return one({"InputTensor": x(data, *sizes), "IndicesTensor": x(indices, *index_sizes, data_type=U)},
               x(result, *out),
               **attributes)


def extreme(axes, sizes, result):
    return one(x(NINE, 3, 3), x(result, *sizes, data_type=U), Axes=axes, AxisDirection=UP)


def total(axes, sizes, result):
    return one(x([1, 2, 3, 3, 0, 4, 2, 4, 2], 3, 3), x(result, *sizes), Function="DML_REDUCE_FUNCTION_SUM", Axes=axes)


def diagonal(offset, sizes, result):
    return one({}, x(result, *sizes), Offset=offset, Value=1.0)


def sliced(strides, result):
    return one(x(list(range(1, 17)), 1, 1, 4, 4), x(result, 1, 1, 2, 2), InputWindowOffsets=[0, 0, 0, 1],
               InputWindowSizes=[1, 1, 4, 3], InputWindowStrides=strides)


SUM, PRODUCT = "HasExclusiveSum", "HasExclusiveProduct"
WINDOW = {"Strides": [1, 1], "WindowSize": [2, 2], "StartPadding": [0, 0], "EndPadding": [0, 0]}
EXAMPLES = {
    "ARGMAX": [extreme([0], [1, 3], [1, 2, 1]), extreme([1], [3, 1], [2, 2, 1]), extreme([0, 1], [1, 1], [7])],
    "ARGMIN": [extreme([0], [1, 3], [0, 1, 2]), extreme([1], [3, 1], [0, 1, 0]), extreme([0, 1], [1, 1], [4])],
    "REDUCE": [total([0], [1, 3], [6, 6, 9]), total([1], [3, 1], [6, 7, 8]), total([0, 1], [1, 1], [21])],
    "CUMULATIVE_SUMMATION": [scan([2, 3, 6, 11, 3, 11, 18, 21, 9, 15, 17, 21], 3, UP, SUM, False),
                             scan([0, 2, 3, 6, 0, 3, 11, 18, 0, 9, 15, 17], 3, UP, SUM, True),
                             scan([11, 9, 8, 5, 21, 18, 10, 3, 21, 12, 6, 4], 3, DOWN, SUM, False),
                             scan([2, 1, 3, 5, 5, 9, 10, 8, 14, 15, 12, 12], 2, UP, SUM, False)],
    "CUMULATIVE_PRODUCT": [scan([2, 2, 6, 30, 3, 24, 168, 504, 9, 54, 108, 432], 3, UP, PRODUCT, False),
                           scan([1, 2, 2, 6, 1, 3, 24, 168, 1, 9, 54, 108], 3, UP, PRODUCT, True),
                           scan([30, 15, 15, 5, 504, 168, 21, 3, 432, 48, 8, 4], 3, DOWN, PRODUCT, False),
                           scan([2, 1, 3, 5, 6, 8, 21, 15, 54, 48, 42, 60], 2, UP, PRODUCT, False)],
    "ONE_HOT": [hot([0, 3, 2], [1, 1, 3, 1], [0, 1], [1, 1, 1, 2], 3, [1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0]),
                hot([0, 2, 1, 0], [1, 1, 1, 4], [0, 1], [1, 1, 1, 2], 2, [1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0]),
                hot([0, 3, 2], [1, 1, 3, 1], [4, 2, 9], [1, 1, 3, 1], 3, [2, 4, 4, 4, 4, 4, 4, 2, 4, 4, 2, 4]),
                hot([-3, 100, 3], [1, 1, 3, 1], [0, 1], [1, 1, 1, 2], 3, [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
                    "INT32")],
    "SLICE1": [sliced([1, 1, 2, 2], [2, 4, 10, 12]), sliced([1, 1, -2, 2], [14, 16, 6, 8])],
    "SLICE_GRAD": [({"InputGradientTensor": x([1, 3, 9, 11], 2, 2)},
                    {"OutputGradientTensor": x([1, 0, 3, 0, 0, 0, 0, 0, 9, 0, 11, 0, 0, 0, 0, 0], 4, 4)},
                    dict(InputWindowOffsets=[0, 0], InputWindowSizes=[4, 4], InputWindowStrides=[2, 2]))],
    "DEPTH_TO_SPACE1": [one(x(DEEP, 1, 8, 2, 3, data_type=U), x(flat, 1, 2, 4, 6, data_type=U), BlockSize=2,
                            Order=f"DML_DEPTH_SPACE_ORDER_{order}") for order, flat in FLAT.items()],
    "SPACE_TO_DEPTH1": [one(x(flat, 1, 2, 4, 6, data_type=U), x(DEEP, 1, 8, 2, 3, data_type=U), BlockSize=2,
                            Order=f"DML_DEPTH_SPACE_ORDER_{order}") for order, flat in FLAT.items()],
    "GATHER_ELEMENTS": [indexed([1, 2, 3, 4, 5, 6, 7, 8, 9], [3, 3], [1, 2, 0, 2, 0, 0], [2, 3], [4, 8, 3, 7, 2, 3],
                                [2, 3],
                                Axis=0)],
    "GATHER_ND": [indexed([0, 1, 2, 3], [2, 2], [1, 0], [2, 1], [2, 3, 0, 1], [2, 2], InputDimensionCount=2,
                          IndicesDimensionCount=2),
                  indexed(list(range(8)), [1, 2, 2, 2], [0, 1, 1, 0], [1, 1, 2, 2], [2, 3, 4, 5], [1, 1, 2, 2],
                          InputDimensionCount=3, IndicesDimensionCount=2)],
    "GATHER_ND1": [indexed([0, 1, 2, 3], [2, 2], [1, 0], [2, 1], [2, 3, 0, 1], [2, 2], InputDimensionCount=2,
                           IndicesDimensionCount=2, BatchDimensionCount=0),
                   indexed(list(range(12)), [1, 3, 2, 2], [0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0], [1, 3, 2, 2],
                           [0, 3, 7, 4, 9, 10], [1, 1, 3, 2], InputDimensionCount=3, IndicesDimensionCount=3,
                           BatchDimensionCount=1)],
    "DIAGONAL_MATRIX": [diagonal(0, [1, 1, 3, 3], [1, 0, 0, 0, 1, 0, 0, 0, 1]),
                        diagonal(1, [1, 1, 3, 3], [0, 1, 0, 0, 0, 1, 0, 0, 0]),
                        diagonal(-1, [1, 1, 3, 2], [0, 0, 1, 0, 0, 1]), diagonal(-3, [1, 1, 3, 2], [0] * 6)],
    "FILL_VALUE_SEQUENCE": [one({}, x([3, 5, 7], 1, 1, 1, 3), ValueDataType="DML_TENSOR_DATA_TYPE_FLOAT32",
                                ValueStart={"Float32": 3}, ValueDelta={"Float32": 2}),
                            one({}, x([10, 8, 6, 4], 1, 1, 2, 2, data_type="UINT8"), ValueStart={"UInt8": 10},
                                ValueDataType="DML_TENSOR_DATA_TYPE_UINT8", ValueDelta={"UInt8": 254})],  # -2
    "AVERAGE_POOLING": [one(x([1, 2, 3, 4, 5, 6, 7, 8, 9], 1, 1, 3, 3), x([3, 4, 6, 7], 1, 1, 2, 2),
                            IncludePadding=False,
                            **WINDOW)],
    "AVERAGE_POOLING_GRAD": [({"InputGradientTensor": x([1, 2, 3, 4], 1, 1, 2, 2)},
                              {"OutputGradientTensor": x([0.25, 0.75, 0.5, 1, 2.5, 1.5, 0.75, 1.75, 1], 1, 1, 3, 3)},
                              dict(IncludePadding=False, **WINDOW))],
    "MAX_POOLING2": [({"InputTensor": x([1, 2, 3, 2, 4, 2, 5, 6, 7], 1, 1, 3, 3)},
                      {"OutputTensor": x([4, 4, 6, 7], 1, 1, 2, 2),
                       "OutputIndicesTensor": x([4, 4, 7, 8], 1, 1, 2, 2, data_type=U)},
                      dict(Dilations=[1, 1], **WINDOW))],
    "MAX_POOLING_GRAD": [({"InputTensor": x([1, 2, 3, 2, 4, 2, 5, 6, 7], 1, 1, 3, 3),
                           "InputGradientTensor": x([1, 2, 4, 5], 1, 1, 2, 2)},
                          {"OutputGradientTensor": x([0, 0, 0, 0, 3, 0, 0, 4, 5], 1, 1, 3, 3)},
                          dict(Dilations=[1, 1], **WINDOW))],
}


def groups():
    group = Group("pages", DOCUMENTATION, "The examples of the operators' pages give the printed results.")
    for operator, examples in EXAMPLES.items():
        for i, (inputs, outputs, attributes) in enumerate(examples):
            fields = {field: Data(*given) for field, given in inputs.items()}
            fields.update({field: Result(t, sizes) for field, (t, sizes, _) in outputs.items()})
            printed = {field: dict(zip(itertools.product(*map(range, sizes)), values))
                       for field, (_, sizes, values) in outputs.items()}
            group.add(f"{operator.lower()}-{i + 1}", f"Example {i + 1} of the page of {operator}.",
                      model(operator, fields, lambda arrays: printed, **attributes))
    return [group]
