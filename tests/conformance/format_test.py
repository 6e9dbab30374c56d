"""format_test.py PACK SCHEMA: the models use only what DxDispatch's own reader supports, so that other tools can run
them unchanged; the pack covers what it claims."""
import json
import pathlib
import sys
import unittest

PACK = pathlib.Path(sys.argv[1])
TYPES = {"FLOAT64": 8, "FLOAT32": 4, "FLOAT16": 2, "INT64": 8, "INT32": 4, "INT16": 2, "INT8": 1, "UINT64": 8,
         "UINT32": 4, "UINT16": 2, "UINT8": 1}
SCHEMA = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
OPERATORS = {operator["type"] for operator in SCHEMA["operators"]} - {"DML_OPERATOR_SCATTER_ELEMENTS"}
TENSOR_FIELDS = {"DataType", "Sizes", "Strides", "Flags", "TotalTensorSizeInBytes", "GuaranteedBaseOffsetAlignment"}


def models():
    for path in sorted(PACK.rglob("*.json")):
        if path.name != "expected.json":
            yield path, json.loads(path.read_text(encoding="utf-8"))


class FormatTest(unittest.TestCase):
    def check_resource(self, resource):
        self.assertLessEqual(set(resource), {"initialValuesDataType", "initialValues"})
        size, values = TYPES[resource["initialValuesDataType"]], resource["initialValues"]
        if isinstance(values, dict):
            self.assertEqual(set(values), {"valueCount", "value"})
            count, values = values["valueCount"], [values["value"]]
        else:
            count = len(values)
        # A flat list; DxDispatch writes .npy files of whole words.
        for value in values:
            self.assertTrue(isinstance(value, (int, float)) or value in ("nan", "inf", "-inf"), value)
        self.assertEqual(count * size % 4, 0)

    def check_binding(self, binding, resources):
        if isinstance(binding, dict):
            # DxDispatch must be told the size of an element.
            self.assertEqual(set(binding), {"name", "elementOffset", "elementSizeInBytes"})
            self.assertEqual(binding["elementOffset"] * binding["elementSizeInBytes"] % 16, 0)
            binding = binding["name"]
        self.assertIn(binding, resources)

    def check_command(self, command, model, path):
        if command["type"] == "dispatch":
            self.assertEqual(set(command), {"type", "dispatchable", "bindings"})
            self.assertIn(command["dispatchable"], model["dispatchables"])
            for bindings in command["bindings"].values():
                for binding in bindings if isinstance(bindings, list) else [bindings]:
                    self.check_binding(binding, model["resources"])
        else:
            self.assertEqual(set(command), {"type", "resource", "targetPath"})
            self.assertEqual(command["type"], "writeFile")
            self.assertEqual(command["targetPath"], f"{path.stem}.{command['resource']}.npy")

    def test_only_what_dxdispatch_knows(self):
        for path, model in models():
            with self.subTest(model=str(path)):
                self.assertEqual(list(model), ["resources", "dispatchables", "commands"])
                for resource in model["resources"].values():
                    self.check_resource(resource)
                for op in model["dispatchables"].values():
                    self.assertLessEqual(set(op), {"type", "desc", "bindings"})
                    self.assertIn(op["type"], OPERATORS)
                    for field, value in op["desc"].items():
                        if field.endswith(("Tensor", "Tensors")):
                            for tensor in value if field.endswith("s") else [value]:
                                self.assertLessEqual(set(tensor), TENSOR_FIELDS)
                for command in model["commands"]:
                    self.check_command(command, model, path)

    def check_tolerances(self, expected, model):
        for resource, tolerance in expected.get("tolerances", {}).items():
            self.assertIn(model["resources"][resource]["initialValuesDataType"], ("FLOAT32", "FLOAT16"))
            self.assertLessEqual(set(tolerance), {"ulps", "relative", "absolute"})
            self.assertGreater(max(tolerance.values()), 0)

    def test_every_group_can_fail(self):
        groups = list(PACK.rglob("expected.json"))
        self.assertGreater(len(groups), 40)
        for path in groups:
            with self.subTest(group=str(path)):
                for name, expected in json.loads(path.read_text(encoding="utf-8"))["models"].items():
                    model = json.loads(path.with_name(name + ".json").read_text(encoding="utf-8"))
                    written = {c["resource"] for c in model["commands"] if c["type"] == "writeFile"}
                    if "refused" not in expected:
                        self.assertEqual(written, set(expected["outputs"]))
                        self.check_tolerances(expected, model)
                        # Only a description that must be accepted has no results.
                        self.assertTrue(written or name == "accepted", name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
