"""choose_tests_test.py ROOT: the tests that are chosen for a change."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from choose_tests import RULES, choose, families_of, read_tree, regex_of, targets_of, tests_of, users_of  # noqa: E402

ROOT = sys.argv[1]
OPS = """
  anydml_add_test(ops_cases_test SOURCES cases_test.cc LIBS anydml_ops_testing LABELS ops GPU)
  anydml_add_test(ops_gather_test
                  SOURCES gather/gather_test.cc scan/scan_test.cc
                  LIBS anydml_ops_testing LABELS ops GPU)
  anydml_add_test(ops_gemm_test SOURCES gemm/gemm_test.cc LIBS x)
"""
TEXTS = {"src/ops": OPS, "tests/load": "anydml_add_test(load_test SOURCES a.cc)\nadd_test(NAME plot_test COMMAND x $<A:b>)",
         "tests/d3d12": "  anydml_add_test(d3d12_${name} SOURCES ${name}_test.cc)"}
INCLUDES = {"attention": {"gemm"}, "gemm": {"element"}, "gather": set(), "scan": set(), "element": set()}


class Choosing(unittest.TestCase):
    def choose(self, *paths):
        return choose(paths, TEXTS, INCLUDES)

    def test_tests_of_a_cmake_file(self):
        self.assertEqual([name for name, _ in tests_of(OPS)], ["ops_cases_test", "ops_gather_test", "ops_gemm_test"])
        self.assertEqual([name for name, _ in tests_of(TEXTS["tests/load"])], ["load_test", "plot_test"])
        self.assertEqual([name for name, _ in tests_of(TEXTS["tests/d3d12"])], ["d3d12_*"])
        self.assertEqual(families_of(OPS)["scan"], {"ops_gather_test"})

    def test_users(self):
        users = users_of(INCLUDES)
        self.assertEqual(users["element"], {"element", "gemm", "attention"})
        self.assertEqual(users["gather"], {"gather"})

    def test_a_family(self):
        choice = self.choose("src/ops/scan/cpu/rows.cc")
        self.assertFalse(choice.plain)
        self.assertEqual(choice.tests, {"ops_gather_test", "ops_cases_test", "conformance", "dml_kernel_test"})
        self.assertEqual(choice.cases, {"scan"})

    def test_a_family_that_others_use(self):
        choice = self.choose("src/ops/gemm/problem.h")
        self.assertEqual(choice.cases, {"gemm", "attention"})
        self.assertIn("ops_gemm_test", choice.tests)

    def test_a_test_alone(self):
        choice = self.choose("src/ops/gather/gather_test.cc")
        self.assertEqual((choice.tests, choice.cases), ({"ops_gather_test"}, set()))
        self.assertEqual(self.choose("tests/load/load_test.cc").tests, {"load_test", "plot_test"})
        self.assertEqual(self.choose("tests/d3d12/queue_test.cc").tests, {"d3d12_*"})

    def test_what_nearly_everything_is_made_of(self):
        for path in ("src/base/status.h", "src/ops/common/parallel.h", "src/ops/numbers/load_store.h", "src/client/session.h",
                     "src/schema/schema.h", "CMakeLists.txt",
                     "schema/operators.json", "tests/support/cases.cc", "something/new.txt", "src/ops/operator.h"):
            self.assertTrue(self.choose(path).plain, path)

    def test_kernels_of_gpus(self):
        choice = self.choose("src/ops/device/cuda/launch.h")
        self.assertEqual((choice.plain, choice.cases), (False, set()))
        self.assertEqual(choice.tests, {"ops_cuda_module_test", "ops_element_machine_test"})

    def test_nothing_to_run(self):
        choice = self.choose(".gitignore", "debian/control")
        self.assertEqual((choice.plain, choice.tests), (False, set()))
        self.assertEqual(len(choice.reasons), 2)

    def test_every_file_has_a_reason(self):
        paths = ["docs/api.md", "README.md", "python/src/device.cc", "fuzz/calls.cc", "tools/anydml/main.cc"]
        self.assertEqual([path for path, _ in self.choose(*paths).reasons], sorted(paths))

    def test_pattern_for_ctest(self):
        self.assertEqual(regex_of({"graph_*", "demo"}), "^(demo|graph_.*)$")

    def test_targets(self):
        there = {"ops_gemm_test", "cli_test"}
        self.assertEqual(targets_of(["ops_gemm_test"], there), {"ops_gemm_test"})
        self.assertEqual(targets_of(["cli_test", "conformance"], there), {"cli_test", "anydml-cli"})
        self.assertEqual(targets_of(["fuzz_corpus_onnx", "example_top_k1"], there), {"fuzz_onnx", "example_top_k1"})
        self.assertEqual(targets_of(["docs_links_test"], there), set())
        self.assertEqual(targets_of(["install_test", "cli_test"], there), {"all"})


class TheTree(unittest.TestCase):
    """The rules match the repository."""

    def test_every_rule_names_tests_that_there_are(self):
        texts, includes = read_tree(ROOT)
        names = {name for text in texts.values() for name, _ in tests_of(text)}
        for pattern, tests, _ in RULES:
            for test in tests or ():
                stem = test.rstrip("*")
                self.assertTrue(any(n.startswith(stem.rstrip("_")) or "*" in n and stem.startswith(n.split("*")[0])
                                    for n in names), f"{pattern}: {test}")
        self.assertIn("element", includes["gemm"] | includes["convolution"])

    def test_every_family_has_tests(self):
        texts, includes = read_tree(ROOT)
        families = families_of(texts["src/ops"])
        self.assertGreater(len(includes), 20)
        for family in includes:
            if os.path.exists(f"{ROOT}/src/ops/{family}/{family}_test.cc"):
                self.assertTrue(families[family], family)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
