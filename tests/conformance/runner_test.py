"""runner_test.py PACK ANYDML: `anydml conformance` and judge.py, above all that they detect errors."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

PACK, ANYDML = pathlib.Path(sys.argv[1]), os.path.abspath(sys.argv[2])
# The user's own settings must not influence the tests.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("ANYDML_")}
ENVIRONMENT["ANYDML_ADAPTER"] = "cpu"


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300, env=ENVIRONMENT,
                          **options)


def conformance(*arguments, **options):
    return run(ANYDML, "conformance", *map(str, arguments), **options)


def judge(*arguments):
    return run(sys.executable, "-B", str(PACK / "judge.py"), *map(str, arguments), ANYDML, "run", "{model}",
               "--allow-out-of-range")


class RunnerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for group in ("top_k1/examples", "top_k1/refused"):
            shutil.copytree(PACK / group, self.folder / group)
        self.group = self.folder / "top_k1/examples"
        self.count = sum(file.name != "expected.json" for file in self.folder.rglob("*.json"))

    def change(self, file, edit):
        """Reads a JSON file, lets `edit` change it, and writes it again."""
        value = json.loads(file.read_text(encoding="utf-8"))
        edit(value)
        file.write_text(json.dumps(value), encoding="utf-8")

    def change_expected(self, name, edit, group="top_k1/examples"):
        self.change(self.folder / group / "expected.json", lambda expected: edit(expected["models"][name]))

    def fails(self, *texts, code=1):
        """Expects that `anydml conformance` fails on the changed copy, with a code that no crash has."""
        done = conformance(self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for text in texts:
            self.assertIn(text, done.stdout + done.stderr)
        return done

    def test_passes_unchanged(self):
        done = conformance(self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"top_k1/examples +4 +0 +0\n")
        self.assertEqual(done.stderr, "")
        self.assertEqual(judge("--pack", self.folder).returncode, 0)

    def test_wrong_value(self):
        self.change_expected("1-last-axis", lambda case: case["outputs"]["indices"].__setitem__(2, 1))
        done = self.fails("FAILED top_k1/examples/1-last-axis", "The two largest of each row.", "1-last-axis.json:",
                          "'indices': 1 of 7 elements", "element 2 is 2, expected 1",
                          f"1 of {self.count} models failed")
        self.assertRegex(done.stdout, r"top_k1/examples +3 +1 +0\n")
        judged = judge("--pack", self.folder)
        self.assertEqual(judged.returncode, 1)
        self.assertIn("element 2 is 2, expected 1", judged.stdout)

    def test_wrong_byte_in_a_gap(self):
        """Bytes that no operator may write are compared, too."""
        self.change_expected("1-last-axis", lambda case: case["outputs"]["values"].__setitem__(6, 98))
        self.fails("'values': 1 of 7 elements", "element 6 is 99, expected 98")

    def test_accepted_though_it_should_be_refused(self):
        def refuse(case):
            del case["outputs"]
            case["refused"] = "E_INVALIDARG"
        self.change_expected("1-last-axis", refuse)
        self.fails("E_INVALIDARG was expected, but the operator was accepted")
        self.assertIn("E_INVALIDARG was expected, but the command succeeded", judge("--pack", self.folder).stdout)

    def test_refused_though_it_should_be_accepted(self):
        def accept(case):
            del case["refused"]
            case["outputs"] = {}
        self.change_expected("k-0", accept, "top_k1/refused")
        self.fails("FAILED top_k1/refused/k-0", "K is 0")
        self.assertIn("the command failed with code 1", judge("--pack", self.folder).stdout)

    def test_broken_files(self):
        model, expected = self.group / "1-last-axis.json", self.group / "expected.json"
        for file, text, said in ((model, "{", "1-last-axis.json:1:2: "),
                                 (model, "", "1-last-axis.json:1:1: "),
                                 (model, '{"resources": {}}', "dispatchables is missing"),
                                 (expected, "[1", "expected.json:1:3: "),
                                 (expected, "[]", "expected.json:1:1: "),
                                 (expected, '{"models": {"x": {}}}', "claim"),
                                 (expected, '{"models": {"x": {"claim": ""}}}', "either refused or outputs"),
                                 (expected, '{"models": {"x": {"claim": "", "refused": "S_OK"}}}', "E_INVALIDARG"),
                                 (expected, '{"models": {"x": {"claim": "", "since": "9.9", "outputs": {}}}}', "9.9"),
                                 (expected, '{"models": {}}', "nothing is expected of ")):
            before = file.read_bytes()
            with self.subTest(text=text):
                file.write_text(text, encoding="utf-8")
                self.fails(said)
            file.write_bytes(before)
        model.unlink()
        self.fails("1-last-axis.json")

    def test_graphs(self):
        """Several dispatches are run one by one and as one graph; both are judged."""
        name = "graphs/in_place"
        shutil.copytree(PACK / name, self.folder / name)
        self.assertEqual(conformance(self.folder, "--filter", name).returncode, 0)
        self.assertEqual(judge("--pack", self.folder, "--filter", name).returncode, 0)
        model = json.loads((self.folder / name / "chain.json").read_text(encoding="utf-8"))
        self.assertGreater(len(model["dispatchables"]), 2)
        # A part of another dispatch's output can be read in a separate dispatch, but cannot be an edge.
        self.change(self.folder / name / "chain.json", lambda model: [
            model["dispatchables"]["relu"]["desc"][field].update(Sizes=[1, 1, 2, 4]) for field in
            ("InputTensor", "OutputTensor")])
        self.change_expected("chain", lambda case: case.update(tolerances={"s": {"absolute": 1e9}}), name)
        self.fails("FAILED graphs/in_place/chain", "as one graph: ", "edges of graphs have whole tensors")

    def test_tolerances(self):
        """The file's tolerance in units in the last place, but none for elements that must stay unchanged."""
        name = "element_wise_exp"
        shutil.copytree(PACK / name, self.folder / name)
        expected = json.loads((self.folder / name / "expected.json").read_text(encoding="utf-8"))
        values = expected["models"]["float32"]["outputs"]["output"]
        self.assertEqual((values[2], values[24]), (2.7182817, 99))
        for index, value, code in ((2, 2.7182822, 0), (2, 2.7182865, 1), (24, 99.001, 1), (16, 3e38, 1)):
            with self.subTest(index=index, value=value):
                before = values[index]
                self.change_expected("float32", lambda case: case["outputs"]["output"].__setitem__(index, value), name)
                done, judged = conformance(self.folder, "--filter", name), judge("--pack", self.folder, "--filter",
                                                                                 name)
                self.assertEqual((done.returncode, judged.returncode), (code, code), done.stdout + judged.stdout)
                self.change_expected("float32", lambda case: case["outputs"]["output"].__setitem__(index, before), name)
        near = 1.0000001  # its initial value is expected to stay; the operator writes 1
        self.change(self.folder / name / "float32.json", lambda model: model["resources"]["output"].update(
            initialValues=[near] + [99] * 24))
        self.change_expected("float32", lambda case: case["outputs"]["output"].__setitem__(0, near), name)
        self.fails("element 0 is 1, expected 1.0000001")
        self.assertIn("element 0 is 1.0", judge("--pack", self.folder, "--filter", name).stdout)
        self.change_expected("float32", lambda case: case.pop("tolerances"), name)
        self.change_expected("float32", lambda case: case["outputs"]["output"].__setitem__(0, 1), name)
        self.change_expected("float32", lambda case: case["outputs"]["output"].__setitem__(2, 2.718282), name)
        self.fails("FAILED element_wise_exp/float32", "element 2 is 2.7182817")
        for tolerances, said in (({"outputs": {}}, "outputs"), ({"output": {"ulp": 1}}, "ulp"),
                                 ({"output": {"ulps": -1}}, "ulps")):
            self.change_expected("float32", lambda case: case.update(tolerances=tolerances), name)
            self.fails(said)
        self.change_expected("1-last-axis", lambda case: case.update(tolerances={"indices": {"ulps": 1}}))
        self.change_expected("float32", lambda case: case.pop("tolerances"), name)
        self.fails("'indices' is not FLOAT32 or FLOAT16; only those may differ")

    def test_expectations_that_do_not_fit(self):
        self.change_expected("1-last-axis", lambda case: case["outputs"]["values"].pop())
        self.change_expected("2-another-axis", lambda case: case["outputs"].pop("indices"))
        self.change_expected("3-tied-values", lambda case: case["outputs"].update(more=[1]))
        self.change_expected("4-increasing", lambda case: case["outputs"]["indices"].__setitem__(0, -1))
        self.fails("6 values are expected, but 'values' has 7", "indices is missing",
                   "writes 2 results, but 3 are expected", "is negative", f"4 of {self.count} models failed")

    def test_unsupported(self):
        done = conformance(PACK, "--filter", "^top_k1/data_types/", "--feature-level", "4.1")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"total +24 +0 +6\n")
        for level in ("1.0", "4.1"):  # `since` states the features of a level
            done = conformance(PACK, "--feature-level", level)
            self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        # The accuracy required of one model does not carry over to the next.
        self.assertEqual(conformance(PACK, "--filter", "^(feature_levels|quantize)/").returncode, 0)
        judged = judge("--filter", "^(top_k1/examples|feature_levels)/")
        self.assertEqual(judged.returncode, 3)
        self.assertIn("4 passed, 0 failed, 30 not judged", judged.stdout)

    def test_junit(self):
        self.change_expected("1-last-axis", lambda case: case["outputs"]["values"].__setitem__(0, "inf"))
        self.change_expected("2-another-axis", lambda case: case.update(claim='<&>"\'\t\x01\uffff é', outputs={}))
        refused = os.fsencode(self.folder / "top_k1/refused")
        os.rename(refused, refused + b"-\xff")  # not UTF-8
        self.change_expected("3-tied-values", lambda case: case.update(since="6.4"))
        file = self.folder / "results.xml"
        done = conformance(self.folder, "--junit", file, "--feature-level", "6.3")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        root = xml.etree.ElementTree.parse(file).getroot()
        self.assertEqual((root.tag, root.get("tests"), root.get("failures"), root.get("skipped")),
                         ("testsuites", str(self.count), "2", "1"))
        suites = {suite.get("name"): suite for suite in root}
        self.assertEqual(set(suites), {"top_k1/examples", "top_k1/refused-?"})
        self.assertEqual(suites["top_k1/refused-?"].get("failures"), "0")
        cases = {case.get("name"): case for case in suites["top_k1/examples"]}
        self.assertEqual(len(cases), 4)
        self.assertIn("expected inf", cases["1-last-axis"].find("failure").get("message"))
        self.assertIn('<&>"\'??? é', cases["2-another-axis"].find("failure").get("message"))
        self.assertIn("needs feature level 6.4", cases["3-tied-values"].find("skipped").get("message"))
        self.assertEqual(len(cases["4-increasing"]), 0)
        self.assertGreaterEqual(float(cases["4-increasing"].get("time")), 0)

    def test_options(self):
        listed = conformance("--list", "--filter", "ties/pairs-5")
        self.assertEqual(listed.returncode, 0)
        self.assertEqual(len(listed.stdout.splitlines()), 2)
        self.assertIn("top_k1/ties/pairs-5-increasing: Each value twice", listed.stdout)
        document = json.loads(conformance("--json", "--filter", "^top_k1/k/3-of-7").stdout)
        self.assertEqual(document["total"], {"passed": 2, "failed": 0, "unsupported": 0})
        for arguments, code, said in ((["--filter", "("], 2, "not a regular expression"),
                                      (["--filter", "nothing"], 2, "no model has such a name"),
                                      (["a", "b"], 2, "one folder at a time"),
                                      (["--adapter", "nothing"], 3, "nothing"),
                                      ([self.folder / "none"], 1, "cannot be read"),
                                      (["--filter", "^top_k/examples", "--junit", "/no/such/file"], 1, "/no/such")):
            with self.subTest(arguments=arguments):
                done = conformance(*arguments)
                self.assertEqual(done.returncode, code, done.stdout + done.stderr)
                self.assertIn(said, done.stderr)

    def test_every_operator_has_models(self):
        done = json.loads(run(ANYDML, "operators", "--json").stdout)
        implemented = {o["name"] for o in done["operators"] if o.get("implementations")}
        self.assertGreater(len(implemented), 90)
        described = {op["type"] for path in PACK.rglob("*.json") if path.name != "expected.json"
                     for op in json.loads(path.read_text(encoding="utf-8"))["dispatchables"].values()}
        described.add("DML_OPERATOR_SCATTER_ELEMENTS")  # under the field's older name
        self.assertEqual({o for o in implemented if f"DML_OPERATOR_{o}" not in described}, set())

    def test_finds_the_pack_from_anywhere(self):
        done = conformance("--filter", "^top_k/examples/", cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)


class JudgeTest(unittest.TestCase):
    def test_agrees_with_the_runner(self):
        done = judge("--filter", "pages/|examples|out_of_range|nan/|in_place|bindings|feature_levels", "--level-variable",
                     "ANYDML_FEATURE_LEVEL")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_commands_that_do_nothing_or_crash(self):
        judge_py = (sys.executable, "-B", str(PACK / "judge.py"))
        nothing = run(*judge_py, "--filter", "top_k1/examples", "true")
        self.assertEqual(nothing.returncode, 1)
        self.assertIn("'values' was not written", nothing.stdout)
        crash = run(*judge_py, "--filter", "refused/k-0", "sh", "-c", "kill -SEGV $$")
        self.assertEqual(crash.returncode, 1)
        self.assertIn("crashed", crash.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
