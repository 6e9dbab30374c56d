"""The files of the pack: models, and the expected results per group."""
import json
import os
import re

from generator import elements, tensors

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LEVELS = ["1.0", "2.0", "2.1", "3.0", "3.1", "4.0", "4.1", "5.0", "5.1", "5.2", "6.0", "6.1", "6.2", "6.3", "6.4"]

with open(os.path.join(HERE, "..", "schema", "operators.json"), encoding="utf-8") as file:
    SCHEMA = json.load(file)
OPERATORS = {operator["name"]: operator for operator in SCHEMA["operators"]}
# The feature levels that introduced the enumerations' values: 0x6400 is 6.4.
ENUM_LEVELS = {member["name"]: f"{int(member['targetVersion'], 16) >> 12}.{int(member['targetVersion'], 16) >> 8 & 15}"
               for members in SCHEMA["enums"].values() for member in members if "targetVersion" in member}
OWNED_BY_DML = "DML_TENSOR_FLAG_OWNED_BY_DML"
DOCUMENTATION, CONTRACT = "documentation", "contract"  # where a group's expectations come from
# The name that all versions of the model format accept.
NAMES = {"SCATTER_ELEMENTS": "DML_OPERATOR_SCATTER"}


def accepts(table, tensor_descs):
    """Whether a feature level's table has these data types and dimension counts."""
    for row in table["tensors"]:
        low, _, high = row["dimensionCounts"].partition(" to ")
        for field, tensor in tensor_descs.items():
            if array_place(field)[0] == row["tensor"] and (
                    tensor.data_type not in row["types"] or not int(low) <= len(tensor.sizes) <= int(high or low)):
                return False
    return True


def is_for(table, attributes):
    """Some tables apply to some functions only: "MIN and MAX"."""
    function = str(attributes.get("Function", "")).replace("DML_REDUCE_FUNCTION_", "")
    return "variant" not in table or not function or function in re.split(r", and |, | and ", table["variant"])


def lowest_level(operator, tensor_descs, attributes=None):
    """The first feature level that supports the operator with these tensors and attributes; without tensors, the
    first that has the operator."""
    schema, attributes = OPERATORS[operator], attributes or {}
    levels = [ENUM_LEVELS[value] for value in attributes.values() if isinstance(value, str) and value in ENUM_LEVELS]
    fused = [attributes["FusedActivation"]] if attributes.get("FusedActivation") else []
    for activation in attributes.get("ActivationDescs", fused):
        levels.append(OPERATORS[activation["Type"].replace("DML_OPERATOR_", "")]["featureLevel"])
    for table in sorted(schema["tensorSupport"], key=lambda table: LEVELS.index(table["level"])):
        if is_for(table, attributes) and accepts(table, tensor_descs):
            return max(table["level"], schema["featureLevel"], *levels, key=LEVELS.index)
    raise ValueError(f"{operator}: no feature level accepts this")


class Model:
    """One operator and its data. Uses only what DxDispatch supports."""

    def __init__(self, operator):
        self.operator = operator
        self.desc = {}
        self.tensors = {}
        self.resources = {}
        self.bindings = {}
        self.owned = {}
        self.outputs = {}
        self.tolerances = {}  # by buffer: {"ulps": 2}
        self.values = {}
        self.disjoint = True  # every update has its own element

    def attributes(self, **values):
        self.desc.update(values)
        return self

    def describe(self, field, tensor):
        self.tensors[field] = tensor
        name, index = array_place(field)
        if index is None:
            self.desc[name] = tensor.desc()
        else:
            self.desc.setdefault(name, [])[index:] = [tensor.desc()]

    def bind(self, field, tensor, buffer, values=None, bits=False):
        """`values` are the buffer's elements; with `bits`, the bits of floats."""
        self.describe(field, tensor)
        self.bindings[field] = buffer
        if values is not None:
            data_type = elements.bits_type(tensor.data_type) if bits else tensor.data_type
            self.values[buffer] = tensors.padded(values, data_type)
            self.resources[buffer] = data_type
        return tensor.read(self.values[buffer])

    def bind_output(self, field, tensor, buffer, results, bits=False):
        """Binds an output to a separate buffer, whose other elements must stay unchanged."""
        if len(set(tensor.places())) != tensor.count():
            raise ValueError(f"{field} overlaps itself")
        self.bind(field, tensor, buffer, [elements.UNTOUCHED] * tensor.extent(), bits)
        self.expect(field, buffer, results)

    def bind_in_place(self, field, tensor, buffer, results):
        self.bind(field, tensor, buffer)
        self.expect(field, buffer, results)

    def expect(self, field, buffer, results):
        after = list(self.outputs.get(buffer, self.values[buffer]))
        for coordinates, value in results.items():
            after[self.tensors[field].place(coordinates)] = value
        self.outputs[buffer] = after

    def tolerate(self, buffer, **tolerance):
        """How far its elements may be from the expected ones. Gaps must be exact."""
        self.tolerances[buffer] = {key: value for key, value in tolerance.items() if value}
        return self

    def relaid(self):
        """The same model with a different layout for every tensor: the first dimension is innermost, and all
        dimensions have gaps. Each tensor has a separate buffer."""
        for field, tensor in self.tensors.items():
            buffer = self.bindings[field]
            spread = tensors.Tensor(tensor.data_type, tensor.sizes, tensors.spread_strides(tensor.sizes))
            for values in (self.values, self.outputs):
                if buffer in values:
                    moved = [elements.UNTOUCHED] * spread.extent()
                    for coordinates, value in tensor.read(values[buffer]).items():
                        moved[spread.place(coordinates)] = value
                    values[buffer] = tensors.padded(moved, self.resources[buffer])
            self.describe(field, spread)
        return self

    def in_place(self, output, source):
        """The same model with `output` written over `source`; both have the same layout, in a separate buffer."""
        old, new = self.bindings[output], self.bindings[source]
        self.bindings[output] = new
        self.outputs = {new if b == old else b: values for b, values in self.outputs.items()}
        self.tolerances = {new if b == old else b: values for b, values in self.tolerances.items()}
        del self.values[old], self.resources[old]
        return self

    def check_printed(self, **printed):
        """Checks that the documents print the results computed here: a test of the generator."""
        for buffer, values in printed.items():
            if self.outputs[buffer][:len(values)] != values:
                raise ValueError(f"{self.operator}: the page has {values}, not {self.outputs[buffer]}")
        return self

    def check_documented(self):
        """The documents allow an implementation to write bytes between an output's elements, and do not specify
        several updates of one element, or updates outside of the output."""
        if not self.disjoint:
            raise ValueError(f"{self.operator}: updates overlap or are out of range")
        for field, tensor in self.tensors.items():
            if field.startswith("Output") and (tensor.given_strides or
                                               tensor.count() * elements.size_of(tensor.data_type) % 4):
                raise ValueError(f"{self.operator}: {field} has gaps")

    def own(self, field):
        """Makes the input one that DirectML copies when it initializes the operator."""
        self.tensors[field].fields["Flags"] = OWNED_BY_DML
        self.describe(field, self.tensors[field])
        self.owned[field] = self.bindings.pop(field)
        return self

    def shift(self, field):
        """The tensor begins 32 bytes after the start of its buffer, which contains no other tensor."""
        buffer = self.bindings[field]
        size = elements.size_of(self.resources[buffer])
        offset = 32 // size
        for values in (self.values, self.outputs):
            if buffer in values:
                values[buffer] = [elements.UNTOUCHED] * offset + values[buffer]
        self.bindings[field] = {"name": buffer, "elementOffset": offset, "elementSizeInBytes": size}
        return self

    def since(self):
        return lowest_level(self.operator, self.tensors, self.desc)

    def text(self, name):
        return model_text(name, self, {"op": self})


def model_text(name, whole, operators):
    """`whole` has the buffers and their expected contents, `operators` the bindings by operator name."""
    def numbers(values, data_type):
        if len(values) > 16 and len(set(map(repr, values))) == 1:
            return '{ "valueCount": %d, "value": %s }' % (len(values), elements.as_json(values[0], data_type))
        return "[" + ", ".join(elements.as_json(value, data_type) for value in values) + "]"

    lines = ["{", '  "resources": {']
    lines += joined('    %s: { "initialValuesDataType": "%s", "initialValues": %s }' %
                    (json.dumps(buffer), data_type, numbers(whole.values[buffer], data_type))
                    for buffer, data_type in whole.resources.items())
    lines += ["  },", '  "dispatchables": {']
    dispatchables, commands = [], []
    for op, model in operators.items():
        text = [f'    "{op}": {{', f'      "type": "{NAMES.get(model.operator, OPERATORS[model.operator]["type"])}",',
                '      "desc": {']
        text += joined(f"        {json.dumps(key)}: {spaced(value)}" for key, value in model.desc.items())
        text += ["      }" + (f',\n      "bindings": {spaced(model.owned)}' if model.owned else ""), "    }"]
        dispatchables.append("\n".join(text))
        if model.bindings:
            commands.append(f'    {{ "type": "dispatch", "dispatchable": "{op}",\n      "bindings": '
                            f'{spaced(grouped(model.bindings))} }}')
    commands += ['    { "type": "writeFile", "resource": "%s", "targetPath": "%s.%s.npy" }' % (o, name, o)
                 for o in whole.outputs]
    lines += joined(dispatchables) + ["  },", '  "commands": ['] + joined(commands) + ["  ]", "}"]
    return "\n".join(lines) + "\n"


def array_place(field):
    """"QuantizationTensors[1]" is the second of these tensors."""
    name, _, index = field.rstrip("]").partition("[")
    return name, int(index) if index else None


def grouped(bindings):
    """Tensors of an array in a list."""
    result = {}
    for field, buffer in bindings.items():
        name, index = array_place(field)
        if index is None:
            result[name] = buffer
        else:
            result.setdefault(name, []).append(buffer)
    return result


def joined(items):
    items = list(items)
    return [item + "," for item in items[:-1]] + items[-1:]


def spaced(value):
    """JSON on one line, objects with blanks inside."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)}: {spaced(v)}" for k, v in value.items()) + " }"
    return json.dumps(value)


class Group:
    """A folder of models that test one subject together."""

    def __init__(self, name, basis, proves):
        self.name, self.basis, self.proves = name, basis, proves
        self.models = {}

    def add(self, name, claim, model, **expectation):
        """Without an `expectation`, the model's outputs must equal the computed ones."""
        if name in self.models:
            raise ValueError(f"{self.name}/{name}: twice")
        if not expectation.get("refused"):
            if self.basis == DOCUMENTATION:
                model.check_documented()
            expectation["since"] = max(model.since(), expectation.get("since", LEVELS[0]), key=LEVELS.index)
            expectation["outputs"] = model.outputs
            expectation["tolerances"] = model.tolerances
        self.models[name] = (claim, model, expectation)

    def refuse(self, name, claim, model, **expectation):
        """A description that CreateOperator must refuse at every level that has the operator."""
        expectation.setdefault("since", lowest_level(model.operator, {}))
        self.add(name, claim, model, refused="E_INVALIDARG", **expectation)

    def files(self):
        for name, (_, model, _) in self.models.items():
            yield f"{self.name}/{name}.json", model.text(name)
        yield f"{self.name}/expected.json", self.expected()

    def expected(self):
        lines = ["{", f'  "proves": {json.dumps(self.proves)},', f'  "basis": "{self.basis}",', '  "models": {']
        entries = []
        for name, (claim, model, expectation) in self.models.items():
            entry = [f'      "claim": {json.dumps(claim)}']
            entry += [f'      "{key}": "{expectation[key]}"'
                      for key in ("since", "featureLevel", "refused") if key in expectation]
            if "outputs" in expectation:
                outputs = joined('        %s: [%s]' % (json.dumps(buffer), ", ".join(
                    elements.as_json(value, model.resources[buffer]) for value in values))
                    for buffer, values in expectation["outputs"].items())
                entry += ["      \"outputs\": {\n" + "\n".join(outputs) + "\n      }"]
            if expectation.get("tolerances"):
                entry += [f'      "tolerances": {spaced(expectation["tolerances"])}']
            entries.append(f'    "{name}": {{\n' + ",\n".join(entry) + "\n    }")
        return "\n".join(lines + joined(entries) + ["  }", "}"]) + "\n"
