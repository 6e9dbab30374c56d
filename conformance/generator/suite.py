"""Groups of one operator: each case for several data types, and one in other layouts."""
from generator import elements, numbers
from generator.arithmetic import is_float
from generator.operation import in_place_field, types_of
from generator.pack import CONTRACT, Group

FLOATS = ("FLOAT32", "FLOAT16")
WIDTHS = ("FLOAT32", "UINT8", "INT64")  # for operators that only move elements


class Suite:
    def __init__(self, operator, proves):
        self.operator = operator
        self.group = Group(operator.lower(), CONTRACT, f"{operator}: {proves}")

    def add(self, name, claim, make, types=FLOATS, strided=False, **more):
        """`make` gets a data type. The first type is also tried in place if the operator allows it, and with
        `strided` in other layouts."""
        for data_type in types:
            self.group.add(f"{name}-{data_type.lower()}", claim, make(data_type), **more)
        if strided:
            self.group.add(f"{name}-strided", f"{claim} Every tensor in another layout with gaps, which are not written.",
                           make(types[0]).relaid(), **more)
            if where := in_place_field(self.operator, make(types[0])):
                self.group.add(f"{name}-in-place", f"{claim} {where[0]} is written over {where[1]}.",
                               make(types[0]).in_place(*where), **more)
        return self

    def add_all_types(self, name, claim, make, field="InputTensor", **more):
        return self.add(name, claim, make, types_of(self.operator, field), strided=True, **more)


def data(data_type, count, seed=1, low=-40, high=40, divisor=7):
    """Fractional numbers, or integers; never the value of unused places."""
    values = numbers.mixed(count, low, high, seed)
    if is_float(data_type):
        return [elements.rounded(data_type, value / divisor) for value in values]
    return [value - min(low, 0) if elements.limits(data_type)[0] == 0 else value for value in values]
