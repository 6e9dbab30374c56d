#!/usr/bin/env python3
"""generate.py ANYDML FOLDER: writes _operators.py and _operators.pyi, a function per operator that the
command line ANYDML has, from the schema. Part of the build, so they are never stale."""

import json
import keyword
import pathlib
import re
import subprocess
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA = HERE.parent / "schema"
# Names that are clearer than the fields' names.
RENAMED = {"AxisDirection": "direction"}
DESCRIPTIONS = {
    "uint": "an int, at least 0", "int": "an int", "float": "a float", "bool": "True or False",
    "uint_array": "ints, at least 0", "int_array": "ints", "float_array": "floats",
    "scale_bias": "scale and bias, which are applied to the input first", "size_2d": "width and height",
    "scalar_union": "a number of the tensors' type", "operator_desc": "an operator to be applied to the output",
    "operator_desc_array": "operators to be applied inside",
}
ANNOTATIONS = {
    "uint": "SupportsIndex", "int": "SupportsIndex", "float": "float", "bool": "bool",
    "uint_array": "Sequence[SupportsIndex]", "int_array": "Sequence[SupportsIndex]",
    "float_array": "Sequence[float]", "scale_bias": "tuple[float, float]",
    "size_2d": "tuple[SupportsIndex, SupportsIndex]", "scalar_union": "float",
    "operator_desc": "Activation", "operator_desc_array": "Sequence[Activation]", "dtype": "npt.DTypeLike",
    "axis": "SupportsIndex", "axes": "Sequence[SupportsIndex]",
}
HEADER = '''"""Written by python/generate.py from schema/; do not edit."""

from __future__ import annotations

'''


def snake_case(field):
    """'OutputValueTensor' -> 'output_value', 'InputTensors' -> 'inputs', 'TransA' -> 'trans_a'."""
    name = re.sub(r"Tensor(s?)$", r"\1", field)
    name = RENAMED.get(name, re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower())
    return name + "_" if keyword.iskeyword(name) else name


def listed(words):
    """['a', 'b', 'c'] -> 'a, b or c'"""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


class Parameter:
    def __init__(self, name, annotation, default, text):
        self.name, self.annotation, self.default, self.text = name, annotation, default, text

    def declared(self, stub):
        optional = f"{self.annotation} | None" if self.default == "None" else self.annotation
        default = "" if self.default is None else " = ..." if stub else f" = {self.default}"
        return f"{self.name}: {optional}{default}"


class Function:
    def __init__(self, operator, constraints, enums, extra):
        self.operator, self.enums, self.extra = operator, enums, extra
        self.fields = operator["fields"]
        self.groups = constraints.get("sameDataType", [])
        newest = max(operator["tensorSupport"], key=lambda table: float(table["level"]))
        self.support = {row["tensor"]: row for row in newest["tensors"]}
        self.parameters, self.options = [], []  # options are by keyword only
        self.inputs, self.attributes, self.outputs = [], [], []
        self.counts = {field["countField"] for field in self.fields if "countField" in field}
        for field in sorted(self.fields, key=lambda field: field["kind"] != "input_tensor"):  # stable
            getattr(self, field["kind"])(field)
        names = [parameter.name for parameter in self.parameters + self.options]
        assert len(set(names)) == len(names), f"{operator['name']}: {names}"

    @property
    def name(self):
        return self.operator["name"].lower()

    def add(self, *arguments):
        self.parameters.append(Parameter(*arguments))

    def option(self, *arguments):
        self.options.append(Parameter(*arguments))

    def facts(self, field):
        row = self.support.get(field["name"])
        if row is None:
            return ""
        return f"; {row['dimensionCounts']} dimensions, {listed([t.lower() for t in row['types']] or ['any type'])}"

    def input_tensor(self, field):
        name = snake_case(field["name"])
        annotation = "Sequence[ArrayLike]" if field["type"] == "tensor_array" else "ArrayLike"
        text = ("arrays" if field["type"] == "tensor_array" else "array") + self.facts(field)
        self.add(name, annotation, "None" if field["optional"] else None, text)
        self.inputs.append((field, name))

    def output_tensor(self, field):
        name = re.sub("^output_?", "", snake_case(field["name"]))
        count = "1"
        if field["type"] == "tensor_array":
            count = "output_count"
            self.option(count, "int", None, f"how many {field['name']} there are")
        elif field["optional"]:
            count = f"with_{name}"
            self.option(count, "bool", "False", f"whether {field['name']} is wanted")
        row = self.support.get(field["name"], {"types": []})
        tied = any(field["name"] in group for group in self.groups)
        dtype = "None"
        if len(row["types"]) > 1 and not tied:
            dtype = f"{name}_dtype".lstrip("_")
            types = listed([t.lower() for t in row["types"]])
            self.option(dtype, "npt.DTypeLike", "None", f"of the {name or 'output'}: {types}")
        self.outputs.append((field, name, count, dtype))

    def attribute(self, field):
        if field["name"] in self.counts:
            return
        name, kind, default, text = snake_case(field["name"]), field["type"], None, DESCRIPTIONS.get(field["type"])
        annotation = ANNOTATIONS.get(kind)
        if field.get("role") == "axis":
            kind = "axes" if field["type"] == "uint_array" else "axis"
            annotation, text = ANNOTATIONS[kind], "of the first input; negative ones count from the end"
        elif field["ctype"] == "DML_TENSOR_DATA_TYPE":
            kind, annotation, default, text = "dtype", ANNOTATIONS["dtype"], "None", "the first input's unless given"
        elif kind == "enum":
            members = [m["name"].removeprefix(field["ctype"] + "_").lower() for m in self.enums[field["ctype"]]]
            annotation = f"Literal[{', '.join(json.dumps(m) for m in members)}]"
            text = listed([json.dumps(m) for m in members])
        elif field.get("role") == "dimension_count":
            default, text = "None", "the array's own unless given"
        if field["optional"]:
            default = "None"
        self.add(name, annotation, default, text)
        self.attributes.append((field["name"], kind, name))

    def signature(self, returns, stub, inputs=None, device="Device | str | None = None"):
        """Parameters are positional until a required one follows an optional one."""
        arguments, optional = [], False
        for parameter in self.parameters:
            if optional and parameter.default is None and "*" not in arguments:
                arguments.append("*")
            optional = optional or parameter.default is not None
            declared = parameter.declared(stub)
            arguments.append(declared.replace("ArrayLike", inputs) if inputs else declared)
        if "*" not in arguments:
            arguments.append("*")
        arguments += [option.declared(stub) for option in self.options]
        arguments.append(f"out: {self.out_type()} = {'...' if stub else 'None'}")
        arguments.append(f"device: {device.replace('None = None', 'None = ...') if stub else device}")
        arguments.append(f"stream: Any = {'...' if stub else 'None'}")
        lines = "".join(f"    {argument},\n" for argument in arguments)
        return f"def {self.name}(\n{lines}) -> {returns}:"

    def returns(self, array):
        parts = []
        for field, _, count, _ in self.outputs:
            if field["type"] == "tensor_array":
                return f"tuple[{array}, ...]"
            parts.append(array if count == "1" else f"{array} | None")
        return parts[0] if len(parts) == 1 else f"tuple[{', '.join(parts)}]"

    def out_type(self):
        single = len(self.outputs) == 1 and self.outputs[0][0]["type"] == "tensor"
        return "OutArray | None" if single else "Sequence[OutArray | None] | None"

    def docstring(self):
        operator = self.operator
        summary = self.extra.get("summary", f"DirectML's {operator['name']}.")
        lines = textwrap.wrap(summary, 96)
        lines += ["", f"DML_OPERATOR_{operator['name']}, since feature level {operator['featureLevel']}.", ""]
        lines.append("Parameters")
        lines.append("----------")
        for parameter in self.parameters + self.options:
            optional = "" if parameter.default is None else ", optional"
            lines.append(f"{parameter.name}{optional}")
            lines += textwrap.wrap(parameter.text, 92, initial_indent="    ", subsequent_indent="    ")
        many = "a sequence of them, with None for those to be allocated" if len(self.outputs) > 1 else "an array"
        lines += ["out, optional", f"    where results go: {many}"]
        lines += ["device, optional", "    where to compute; that of the inputs unless given"]
        lines += ["stream, optional", "    a CUDA stream to run in; the function does not wait for it then"]
        lines += ["", "Returns", "-------"]
        for field, name, _, _ in self.outputs:
            lines.append(name or "output")
            lines += textwrap.wrap(f"array{self.facts(field)}", 92, initial_indent="    ", subsequent_indent="    ")
        if "example" in self.extra:
            lines += ["", "Examples", "--------", *self.extra["example"]]
        return "\n".join(f"    {line}".rstrip() for line in lines)

    @staticmethod
    def bound(field, name):
        if field["type"] == "tensor":
            return f'("{field["name"]}", "{name}", {name}), '
        return f'*(("{field["name"]}", "{name}", each) for each in {name}), '

    def source(self):
        def rows(items):
            return "(" + "".join(f"({', '.join(item)}), " for item in items) + ")"
        inputs = "".join(self.bound(field, name) for field, name in self.inputs)
        attributes = rows((json.dumps(field), json.dumps(kind), json.dumps(name), name)
                          for field, kind, name in self.attributes)
        outputs = rows((json.dumps(field["name"]), count, dtype) for field, _, count, dtype in self.outputs)
        return (f"{self.signature(self.returns('Array'), False)}\n"
                f'    """{self.docstring().lstrip()}\n    """\n'
                f'    return call(\n        "{self.operator["name"]}",\n        ({inputs}),\n'
                f"        {attributes},\n        {outputs},\n        out,\n        device,\n        stream,\n    )\n")

    def stub(self):
        numpy_only = self.signature(self.returns("NDArray"), True, "NDArray", 'Literal["cpu"] | None = None')
        general = self.signature(self.returns("Array"), True)
        return f"@overload\n{numpy_only} ...\n@overload\n{general} ...\n"


def operators_of(anydml):
    """The names that the command line lists."""
    listing = subprocess.run([anydml, "operators", "--json"], check=True, capture_output=True, text=True).stdout
    return {row["name"] for row in json.loads(listing)["operators"]}


def functions(names):
    """One function per operator in `names`, and (alias, function) pairs."""
    schema = json.loads((SCHEMA / "operators.json").read_text())
    constraints = {c["operator"]: c for c in json.loads((SCHEMA / "constraints.json").read_text())["operators"]}
    extra = json.loads((HERE / "operators.json").read_text())
    found, aliases = [], []
    for operator in schema["operators"]:
        name = operator["name"]
        if "aliasOf" in operator:
            target = operator["aliasOf"].removeprefix("DML_OPERATOR_")
            aliases += [(name.lower(), target.lower())] if target in names else []
        elif name in names:
            found.append(Function(operator, constraints[name], schema["enums"], extra.get(name, {})))
    assert {f.operator["name"] for f in found} == set(names)
    return found, aliases


def write(found, aliases, folder):
    assigned = "".join(f"{alias} = {target}\n" for alias, target in aliases)
    names = sorted([f.name for f in found] + [alias for alias, _ in aliases])
    everything = "__all__ = [\n" + "".join(f'    "{name}",\n' for name in names) + "]\n"
    imports = ("from collections.abc import Sequence\nfrom typing import Any, Literal, SupportsIndex{overload}\n\n"
               "import numpy.typing as npt\n\n")
    source = [HEADER, imports.format(overload=""),
              "from ._attributes import Activation\nfrom ._call import call\n"
              "from ._device import Device\nfrom ._tensor import Array, ArrayLike, OutArray\n\n", everything]
    source += [f"\n\n{function.source()}" for function in found]
    source += [f"\n\n{assigned}"] if assigned else []
    stub = [HEADER, imports.format(overload=", overload"),
            "from ._attributes import Activation\nfrom ._device import Device\n"
            "from ._tensor import Array, ArrayLike, OutArray\n\n", everything, "\nNDArray = npt.NDArray[Any]\n"]
    stub += [f"\n{function.stub()}" for function in found]
    stub += [f"\n{assigned}"] if assigned else []
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_operators.py").write_text("".join(source))
    (folder / "_operators.pyi").write_text("".join(stub))


if __name__ == "__main__":
    write(*functions(operators_of(sys.argv[1])), pathlib.Path(sys.argv[2]))
