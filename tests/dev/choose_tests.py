#!/usr/bin/env python3
"""Which tests a change concerns: `./dev test --changed`.

    choose_tests.py ROOT FILE...        says why on stderr, and prints for the shell: "plain" or "some"; a pattern for
                                        ctest; a filter for ops_cases_test, each of which may be empty
    choose_tests.py --targets TEST...   prints what is to be built for these tests; "all" where that is not known

The tests of a folder are those of its CMakeLists.txt. A file that the rules below do not cover, or that nearly everything
depends on, selects the whole step plain.
"""
import collections
import fnmatch
import os
import re
import sys

Choice = collections.namedtuple("Choice", "plain tests cases reasons")
# Tests for changed paths, in addition to the tests of their folder; the first pattern that matches decides.
# Tests are patterns of names.
RULES = [
    ("src/*.md", ["docs_links_test"], "documentation"),
    ("src/ops/*/cuda/*", ["ops_cuda_module_test", "ops_element_machine_test"], "compiled, but run on GPUs alone"),
    ("src/ops/*/*_test.cc", [], "a test"),
    ("src/ops/numbers/*", None, "every family uses it"),
    ("src/ops/common/*", None, "every family uses it"),
    ("src/ops/*/*", ["conformance", "dml_kernel_test"], "a family of operators"),
    ("src/graph/*", ["graph_*", "dml_test", "dml_graph_random_test", "conformance", "onnx_run_test"], "graphs"),
    ("src/client/*", None, "every client uses it"),
    ("src/onnx/*", ["onnx_*", "cli_test"], "ONNX files"),
    ("src/ort/*", ["ort_*"], "the provider for onnxruntime"),
    ("src/d3d12/*", ["d3d12_*", "dml_test", "dml_threads_test"], "Direct3D"),
    ("src/dml/*", ["dml_*", "graph_client_test", "conformance"], "DirectML"),
    ("src/backend/*", ["backend_cpu", "d3d12_*", "dml_*"], "the backends"),
    ("tools/anydml/*", ["cli_*", "conformance*", "docs_examples_test", "onnx_node_tests"], "the command line"),
    ("tools/demo/*", ["demo"], "the demo"),
    ("examples/*", ["example_*", "docs_examples_test"], "an example"),
    ("python/*", ["python_*"], "the Python package"),
    ("conformance/*", ["conformance*"], "the conformance pack"),
    ("bench/*", ["bench_test", "docs_benchmarks_test", "overview_picture_test"], "the benchmarks"),
    ("fuzz/*", ["fuzz_corpus_*"], "a fuzzer"),
    ("docs/*", ["docs_*", "operators_page_test", "overview_picture_test", "direct3d_page_test"], "documentation"),
    ("tests/support/*", None, "tests are made of it"),
    ("tests/*/*", [], "a test"),
    ("dev", ["dev_*"], "this program"),
    (".ci/*", [], "starts it"),
    ("*.md", ["docs_*", "operators_page_test"], "documentation"),
    ("debian/*", [], "packages (./dev package --test)"),
    (".gitignore", [], "nothing is built from it"),
]
# Folders that many families include: including them does not show who uses a family.
SHARED = {"common", "device", "numbers", "product"}
ADD_TEST = re.compile(r"(?:anydml_add_test\(|add_test\(NAME )\s*([\w${}+]+)((?:[^()]|\([^()]*\))*)\)")


def tests_of(cmake_text):
    """Names and arguments of the tests that a CMakeLists.txt adds; a variable in a name matches anything."""
    return [(re.sub(r"\$\{\w+\}", "*", name), rest) for name, rest in ADD_TEST.findall(cmake_text)]


def families_of(ops_cmake):
    """The tests of each family of operators."""
    result = collections.defaultdict(set)
    for name, rest in tests_of(ops_cmake):
        for family in re.findall(r"\b(\w+)/[\w/]+\.cc\b", rest):
            result[family].add(name)
    return result


def users_of(includes):
    """The direct and indirect users of each family. `includes`: the files that each file includes."""
    users = {family: {family} for family in includes}
    while True:
        before = sum(map(len, users.values()))
        for family, used in includes.items():
            for other in used:
                users.setdefault(other, {other}).update(users[family])
        if sum(map(len, users.values())) == before:
            return users


def rule_of(path):
    return next(((tests, why) for pattern, tests, why in RULES if fnmatch.fnmatchcase(path, pattern)), None)


def choose(paths, cmake_texts, includes):
    """`cmake_texts`: the CMakeLists.txt of each folder. `includes`: as for users_of. Reads no files."""
    tests, cases, reasons, plain = set(), set(), [], False
    families, users = families_of(cmake_texts.get("src/ops", "")), users_of(includes)
    for path in sorted(paths):
        rule = rule_of(path)
        if rule is None or rule[0] is None:
            plain = True
            reasons.append((path, "plain: " + (rule[1] if rule else "what depends on it is not known")))
            continue
        wanted, why = set(rule[0]), rule[1]
        folder = os.path.dirname(path)
        wanted.update(name for name, _ in tests_of(cmake_texts.get(folder, "")))
        if family := re.match(r"src/ops/(\w+)/", path):
            touched = {family[1]} if path.endswith("_test.cc") else users.get(family[1], {family[1]})
            for one in touched:
                wanted.update(families.get(one, ()))
            if not path.endswith("_test.cc") and "/cuda/" not in path:
                cases.update(touched)
                wanted.add("ops_cases_test")
        tests |= wanted
        reasons.append((path, f"{why}: " + (" ".join(sorted(wanted)) or "no tests")))
    return Choice(plain, tests, cases, reasons)


def read_tree(root):
    texts, includes = {}, collections.defaultdict(set)
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if not f.startswith((".", "build"))]
        relative = os.path.relpath(folder, root)
        if "CMakeLists.txt" in names:
            with open(os.path.join(folder, "CMakeLists.txt"), encoding="utf-8") as file:
                texts[relative] = file.read()
        family = re.match(r"src/ops/(\w+)", relative)
        for name in names if family else ():
            if name.endswith((".h", ".cc", ".cu", ".cuh")) and not name.endswith("_test.cc"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    used = set(re.findall(r'#include "ops/(\w+)/', file.read()))
                if family[1] in SHARED:
                    used = set()
                includes[family[1]] |= used - {family[1], "common", "device", "numbers"}
    return texts, dict(includes)


def regex_of(patterns):
    return "^(" + "|".join(sorted(fnmatch.translate(p)[4:-3] for p in patterns)) + ")$"


def gtest_filter(cases):
    """In the filter, families have the names of their folders."""
    return ":".join(f"Families/CasesOf.*/{name}" for name in sorted(cases))


# The programs that tests without an executable of the same name run.
TARGETS = [("python_*", "anydml_python_package"), ("demo", "anydml-demo"), ("bench_test", "anydml-bench-worker"),
           ("conformance*", "anydml-cli"), ("cli_*", "anydml-cli"), ("onnx_node_tests", "anydml-cli"),
           ("operators_page_test", "anydml-cli"),
           ("docs_examples_test", "anydml-cli"), ("docs_*", ""), ("*_page_test", ""), ("*_picture_test", ""),
           ("layering_test", ""), ("dev_*", ""), ("load_plot_test", ""), ("fuzz_corpus_*", "fuzz_"),
           ("example_*", "example_"), ("schema_generate*", ""), ("report_*", "anydml-cli")]


def targets_of(tests, executables):
    """`executables`: the existing targets."""
    result = set()
    for test in tests:
        target = next((t for pattern, t in TARGETS if fnmatch.fnmatchcase(test, pattern)), None)
        if test in executables:
            result.add(test)
        if target in ("fuzz_", "example_"):
            target = target + re.sub("^(fuzz_corpus|example)_", "", test)
        if target:
            result.add(target)
        elif target is None and test not in executables:
            return {"all"}
    return result


def main(root, paths):
    choice = choose(paths, *read_tree(root))
    for path, why in choice.reasons:
        print(f"dev: {path}: {why}", file=sys.stderr)
    print("plain" if choice.plain else "some")
    print(regex_of(choice.tests) if choice.tests else "")
    print(gtest_filter(choice.cases))


if __name__ == "__main__":
    if sys.argv[1] == "--targets":
        print(" ".join(sorted(targets_of(sys.argv[2:], set(sys.stdin.read().split())))))
    else:
        main(sys.argv[1], sys.argv[2:])
