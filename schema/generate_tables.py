#!/usr/bin/env python3
"""Writes src/schema/tables.generated.inc from operators.json and constraints.json.

    generate_tables.py            write the file
    generate_tables.py --check    exit 1 when the committed file differs

The build never runs this: the output is committed, and a test runs --check.
"""

import argparse
import json
import pathlib
import sys

SCHEMA = pathlib.Path(__file__).resolve().parent
OUTPUT = SCHEMA.parent / "src" / "schema" / "tables.generated.inc"

FIELD_KINDS = {"input_tensor": "kInput", "output_tensor": "kOutput", "attribute": "kAttribute"}
FIELD_TYPES = {
    "tensor": "kTensor",
    "tensor_array": "kTensorArray",
    "uint": "kUInt",
    "int": "kInt",
    "float": "kFloat",
    "bool": "kBool",
    "enum": "kEnum",
    "uint_array": "kUIntArray",
    "int_array": "kIntArray",
    "float_array": "kFloatArray",
    "scale_bias": "kScaleBias",
    "size_2d": "kSize2D",
    "scalar_union": "kScalarUnion",
    "operator_desc": "kOperatorDesc",
    "operator_desc_array": "kOperatorDescArray",
}
RELATIONS = [("sameDimensionCount", "kSameDimensionCount"), ("sameDataType", "kSameDataType"),
             ("sameSizes", "kSameSizes")]


def level(text):
    """'2.1' -> '0x2100'"""
    major, minor = text.split(".")
    return f"0x{int(major):x}{int(minor):x}00"


def dimension_range(text):
    """'4' -> (4, 4), '1 to 8' -> (1, 8)"""
    ends = [int(part) for part in text.split(" to ")]
    return ends[0], ends[-1]


class Tables:
    def __init__(self, operators, constraints):
        self.enums = operators["enums"]
        self.operators = sorted((o for o in operators["operators"] if "aliasOf" not in o),
                                key=lambda o: o["value"])
        self.aliases = [o for o in operators["operators"] if "aliasOf" in o]
        self.constraints = {c["operator"]: c for c in constraints["operators"]}
        self.fusions = constraints["fusedActivations"]
        self.values = {o["name"]: o["value"] for o in self.operators}
        self.types = {m["name"].removeprefix("DML_TENSOR_DATA_TYPE_"): m["value"]
                      for m in self.enums["DML_TENSOR_DATA_TYPE"]}
        self.lines = []
        self.check_inputs()

    def check_inputs(self):
        values = [o["value"] for o in self.operators]
        assert values == list(range(1, len(values) + 1)), "operator values are not 1..n"
        names = [o["name"] for o in self.operators]
        assert names == list(self.constraints), "constraints.json: not one entry per operator, by value"
        for name, constraint in self.constraints.items():
            assert constraint["value"] == self.values[name], f"constraints.json: value of {name}"
            known = {"operator", "value", "note", "ownedByDml", "sameDataTypeBelow", *dict(RELATIONS)}
            assert set(constraint) <= known, f"constraints.json: unknown keys in {name}"

    def emit(self, text=""):
        self.lines.append(text)

    def array(self, element_type, name, items):
        """Nothing for an empty array: C++ has none, spans of them are written {}."""
        if items:
            self.emit(f"constexpr {element_type} {name}[] = {{")
            self.lines += [f"    {item}," for item in items]
            self.emit("};")

    def emit_enums(self):
        for name, members in self.enums.items():
            self.array("EnumMember", f"kMembers_{name}",
                       [f'{{"{m["name"]}", {m["value"]}, {m["targetVersion"]}}}' for m in members])
        self.array("EnumSchema", "kEnums", [f'{{"{name}", kMembers_{name}}}' for name in self.enums])
        self.emit()

    def emit_fields(self, operator):
        names = [f["name"] for f in operator["fields"]]
        enum_index = {name: i for i, name in enumerate(self.enums)}
        items = []
        for field in operator["fields"]:
            count = names.index(field["countField"]) if "countField" in field else -1
            enum = f"&kEnums[{enum_index[field['ctype']]}]" if field["type"] == "enum" else "nullptr"
            items.append(f'{{"{field["name"]}", FieldKind::{FIELD_KINDS[field["kind"]]}, '
                         f'FieldType::{FIELD_TYPES[field["type"]]}, {str(field["optional"]).lower()}, '
                         f'{field["offset"]}, {count}, {enum}}}')
        self.array("FieldSchema", f"kFields_{operator['name']}", items)

    def variant_mask(self, operator, table):
        """REDUCE has a table per function: 'MIN and MAX' -> the bits of those DML_REDUCE_FUNCTIONs."""
        if "variant" not in table:
            return 0, -1
        index, field = next((i, f) for i, f in enumerate(operator["fields"]) if f["type"] == "enum")
        members = {m["name"].removeprefix(field["ctype"] + "_"): m["value"]
                   for m in self.enums[field["ctype"]]}
        names = table["variant"].replace(", and ", ", ").replace(" and ", ", ").split(", ")
        return sum(1 << members[name] for name in names), index

    def type_mask(self, types):
        # FOLD and UNFOLD: the pages leave the types blank; every type there is, then.
        return sum(1 << self.types[t] for t in (types or [t for t in self.types if t != "UNKNOWN"]))

    def emit_support(self, operator):
        """Returns the index of the field that chooses the variant, or -1."""
        names = [f["name"] for f in operator["fields"]]
        tables, variant_field = [], -1
        for number, table in enumerate(operator["tensorSupport"]):
            rows = sorted(table["tensors"], key=lambda row: names.index(row["tensor"]))
            cells = []
            for row in rows:
                low, high = dimension_range(row["dimensionCounts"])
                types = self.type_mask(row["types"])
                cells.append(f"{{{names.index(row['tensor'])}, {low}, {high}, 0x{types:04x}}}")
            array = f"kTensors_{operator['name']}_{number}"
            self.emit(f"constexpr TensorSupport {array}[] = {{{', '.join(cells)}}};")
            mask, index = self.variant_mask(operator, table)
            variant_field = max(variant_field, index)
            first = level(table["level"])
            tables.append((int(first, 16), f"{{{first}, {array}, 0x{mask:x}}}"))
        tables.sort(key=lambda entry: -entry[0])  # stable: variants stay in the documentation's order
        self.array("LevelSupport", f"kSupport_{operator['name']}", [text for _, text in tables])
        return variant_field

    def emit_relations(self, operator):
        names = [f["name"] for f in operator["fields"]]
        constraint = self.constraints[operator["name"]]
        groups = [(kind, group, "0") for key, kind in RELATIONS for group in constraint.get(key, [])]
        for below, extra in constraint.get("sameDataTypeBelow", {}).items():
            groups += [("kSameDataType", group, level(below)) for group in extra]
        items = []
        for number, (kind, group, below) in enumerate(groups):
            indices = [names.index(name) for name in group]
            assert indices == sorted(set(indices)) and len(indices) > 1, f"{operator['name']}: {group}"
            array = f"kRelation_{operator['name']}_{number}"
            self.emit(f"constexpr uint8_t {array}[] = {{{', '.join(map(str, indices))}}};")
            items.append(f"{{RelationKind::{kind}, {array}, {below}}}")
        self.array("Relation", f"kRelations_{operator['name']}", items)
        return bool(items)

    def emit_operators(self):
        rows = []
        for operator in self.operators:
            name = operator["name"]
            self.emit_fields(operator)
            variant_field = self.emit_support(operator)
            relations = f"kRelations_{name}" if self.emit_relations(operator) else "{}"
            owned = str(self.constraints[name].get("ownedByDml", True)).lower()
            rows.append(f'{{"{name}", {operator["value"]}, {level(operator["featureLevel"])}, '
                        f'{operator["sizeofDescLP64"]}, {str(operator["inPlace"]).lower()}, kFields_{name}, '
                        f"kSupport_{name}, {relations}, {owned}, {variant_field}}}")
            self.emit()
        self.array("OperatorSchema", "kOperators", rows)
        self.array("OperatorAlias", "kAliases", [f'{{"{a["name"]}", {a["value"]}}}' for a in self.aliases])

    def emit_fusions(self):
        levels = {o["name"]: o["featureLevel"] for o in self.operators}
        items = []
        for rule in self.fusions:
            name = rule["operator"]
            for host in rule.get("hosts", [None]):
                host_value = self.values[host] if host else 0
                first = level(rule.get("level", levels[name]))
                items.append(f"{{{self.values[name]}, {host_value}, {first}}}")
        self.array("FusionRule", "kFusionRules", items)

    def text(self):
        self.emit("// Generated by schema/generate_tables.py from schema/operators.json and")
        self.emit("// schema/constraints.json. Edit those and run the script; a test compares.")
        self.emit()
        self.emit_enums()
        self.emit_operators()
        self.emit()
        self.emit_fusions()
        return "\n".join(self.lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()
    operators = json.loads((SCHEMA / "operators.json").read_text())
    constraints = json.loads((SCHEMA / "constraints.json").read_text())
    text = Tables(operators, constraints).text()
    if not arguments.check:
        OUTPUT.write_text(text)
        return 0
    if not OUTPUT.exists() or OUTPUT.read_text() != text:
        print(f"{OUTPUT} is not what schema/generate_tables.py writes; run it", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
