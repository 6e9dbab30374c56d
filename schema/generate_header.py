#!/usr/bin/env python3
"""Writes include/DirectML.h from operators.json and DirectML.h.in.

  generate_header.py           rewrite the header
  generate_header.py --check   exit 1 if the committed header differs
"""

import argparse
import difflib
import itertools
import json
import pathlib
import re
import sys

SCHEMA_DIR = pathlib.Path(__file__).resolve().parent
HEADER = SCHEMA_DIR.parent / "include" / "DirectML.h"
BASE_VERSION = 0x1000
MAX_COLUMN = 80

# Enums whose values clients combine with |.
FLAG_ENUMS = {
    "DML_TENSOR_FLAGS",
    "DML_EXECUTION_FLAGS",
    "DML_CREATE_DEVICE_FLAGS",
}

# Printed in hexadecimal because that is how their values are spoken of.
HEX_ENUMS = FLAG_ENUMS | {"DML_FEATURE_LEVEL"}


def level_to_version(level):
    """Turns feature level "2.1" into target version 0x2100."""
    major, minor = level.split(".")
    return int(major) << 12 | int(minor) << 8


def guarded(items, outer=BASE_VERSION):
    """Joins (version, text) pairs, with one #if around each run of a version.

    Nothing is guarded at or below `outer`, the version already known to hold.
    """
    parts = []
    for version, group in itertools.groupby(items, key=lambda item: item[0]):
        text = "".join(text for _, text in group)
        if version > outer:
            text = f"#if DML_TARGET_VERSION >= 0x{version:04X}\n{text}#endif\n"
        parts.append(text)
    return "".join(parts)


def enum_text(name, members):
    versions = [int(member["targetVersion"], 16) for member in members]
    outer = min(versions)
    values = {}
    lines = []
    for version, member in zip(versions, members):
        value = member["value"]
        if value in values:
            spelled = values[value]  # An alias is shown as one.
        elif name in HEX_ENUMS:
            spelled = f"0x{value:x}"
        else:
            spelled = str(value)
        values.setdefault(value, member["name"])
        lines.append((version, f"  {member['name']} = {spelled},\n"))
    text = f"enum {name} {{\n{guarded(lines, outer)}}};\n"
    if name in FLAG_ENUMS:
        text += f"DEFINE_ENUM_FLAG_OPERATORS({name})\n"
    return guarded([(outer, text)]) + "\n"


def field_text(field):
    annotation = ""
    if "countField" in field:
        suffix = "opt_" if field["optional"] else ""
        annotation = f"_Field_size_{suffix}({field['countField']}) "
    elif field["optional"]:
        annotation = "_Maybenull_ "
    # One spelling for one type: the schema keeps a lower-case float of the
    # original header.
    ctype = {"float": "FLOAT"}.get(field["ctype"], field["ctype"])
    line = f"  {annotation}{ctype} {field['name']};\n"
    if len(line) > MAX_COLUMN + 1:
        line = f"  {annotation}{ctype}\n      {field['name']};\n"
    return line


def operator_text(operator):
    fields = "".join(field_text(field) for field in operator["fields"])
    text = f"struct {operator['descStruct']} {{\n{fields}}};\n"
    if "descStructAlias" in operator:
        text += (f"using {operator['descStructAlias']} = "
                 f"{operator['descStruct']};\n")
    return text + "\n"


def operators_text(operators):
    items = [(level_to_version(operator["featureLevel"]),
              operator_text(operator))
             for operator in operators if "aliasOf" not in operator]
    # The blank line that ends a struct goes outside the #endif.
    return guarded(items).replace("\n\n#endif\n", "\n#endif\n\n")


def iids_text(template):
    """Takes the IIDs from the template's interfaces: one source for both."""
    pattern = re.compile(
        r'interface DECLSPEC_UUID\("([0-9a-f-]+)"\)\s+DECLSPEC_NOVTABLE (\w+)')
    items = []
    for uuid, name in pattern.findall(template):
        data1, data2, data3, high, low = uuid.split("-")
        tail = high + low
        octets = ", ".join(f"0x{tail[i:i + 2]}" for i in range(0, 16, 2))
        text = (f"ANYDML_DEFINE_IID({name}, 0x{data1}, 0x{data2}, 0x{data3},\n"
                f"                  {octets})\n"
                f"#define ANYDML_HAS_IID_{name} ~,\n")
        items.append((0x2100 if name == "IDMLDevice1" else BASE_VERSION, text))
    return guarded(items)


def header_text():
    schema = json.loads((SCHEMA_DIR / "operators.json").read_text("utf-8"))
    template = (SCHEMA_DIR / "DirectML.h.in").read_text("utf-8")
    enums = dict(schema["enums"])

    def substitute(match):
        keyword, _, argument = match.group(1).partition(" ")
        if keyword == "ENUM":
            return enum_text(argument, enums.pop(argument))
        if keyword == "OPERATORS":
            return operators_text(schema["operators"])
        if keyword == "IIDS":
            return iids_text(template) + "\n"
        raise ValueError(f"unknown placeholder @{match.group(1)}@")

    text = re.sub(r"^@([A-Z]+(?: \w+)?)@\n", substitute, template, flags=re.M)
    if enums:
        raise ValueError(f"enums that the template leaves out: {list(enums)}")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true",
                        help="compare with the committed header, write nothing")
    arguments = parser.parse_args()
    text = header_text()
    if not arguments.check:
        HEADER.write_text(text, "utf-8")
        return 0
    committed = HEADER.read_text("utf-8") if HEADER.exists() else ""
    diff = list(difflib.unified_diff(committed.splitlines(), text.splitlines(),
                                     "include/DirectML.h", "generated",
                                     lineterm=""))
    print("\n".join(diff), file=sys.stderr)
    return 1 if committed != text else 0


if __name__ == "__main__":
    sys.exit(main())
