#!/usr/bin/env python3
"""coverage.py [--skip-build] [TARGET...]: which lines of src/ each fuzzer's corpus reaches, and which files none does.

Builds the fuzzers with clang's source-based coverage in build-coverage (one SIMD target, no sanitizers), replays
fuzz/corpus, what ./dev fuzz has found besides (build-asan/fuzz/corpus), and for fuzzers that read decisions some
thousand random inputs, the same every time, as a fuzzer tries in its first seconds; and prints a table. Ends with 1 when a file
that no fuzzer reaches has no reason below.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build-coverage"
TARGETS = ("create_operator", "operators", "calls", "graph", "model", "onnx", "npy")
CONFIGURE = [
    "cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_COMPILER=clang++",
    "-DCMAKE_CXX_FLAGS_RELEASE=-O0", "-DANYDML_CUDA=OFF", "-DANYDML_PYTHON=OFF", "-DANYDML_BUILD_BENCH=OFF",
    "-DANYDML_UNITY=ALL", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON",
    "-DCMAKE_CXX_FLAGS=-fprofile-instr-generate -fcoverage-mapping -DHWY_COMPILE_ONLY_STATIC",
]
SECONDS = 900  # for one target

# First bytes of random inputs, for targets whose inputs encode decisions.
DECISIONS = {"create_operator": b"", "operators": b"", "calls": b"", "graph": b"", "onnx": b"\xff"}
RANDOM_INPUTS = {"onnx": 10000}  # others: a thousand

# Why no fuzzer reaches a file: the first matching part of a path decides.
REASONS = {
    "src/backend/cuda/": "needs a GPU: tests of ./dev gpu",
    "src/cuda_module.cc": "needs a GPU: tests of ./dev gpu",
    "src/d3d12/adapters/adapter_": "adapters are not an input: tests/d3d12/adapter_test.cc",
    "src/d3d12/adapters/dxcore_": "adapters are not an input: tests/d3d12/adapter_test.cc",
    "src/d3d12/adapters/dxgi_": "adapters are not an input: tests/d3d12/adapter_test.cc",
    "src/d3d12/exports_": "adapters are not an input: tests/d3d12/adapter_test.cc",
    "src/d3d12/device/debug": "the debug layer: tests/d3d12/debug_layer_test.cc",
    "src/d3d12/lists/state_tracking.cc": "the debug layer: tests/d3d12/debug_layer_test.cc",
    "src/d3d12/messages/info_queue_filters.cc": "filters of messages: tests/d3d12/info_queue_test.cc",
    "src/d3d12/messages/message_filter.cc": "filters of messages: tests/d3d12/info_queue_test.cc",
    "src/d3d12/memory/query_heap.cc": "timestamps: tests/d3d12/command_list_test.cc",
    "src/dml/debug_device.cc": "the debug layer: tests/dml/com_test.cc",
    "src/dml/immediate_run.cc": "addresses are the program's: tests/dml/immediate_test.cc",
    "src/graph/run/guards.cc": "a tool for tests (ANYDML_GRAPH_GUARDS)",
    "src/graph/run/row_blocks.cc": "larger than what fuzzers make: src/graph/passes/fuse_prologue_test.cc",
    "src/ops/common/stream_copy.cc": "larger than what fuzzers make: src/ops/common/common_test.cc",
    "src/ops/scatter/cpu/choose_packed.cc": "larger than what fuzzers make: src/ops/scatter/scatter_large_test.cc",
    "src/ops/top_k/cpu/column_select.cc": "larger than what fuzzers make: src/ops/top_k/cpu/simd_test.cc",
    "src/ops/move/infer.cc": "sizes of outputs, for the command line: src/ops/move/move_check_test.cc",
    "src/onnx/host/random.cc": "random tensors of a size and kind that fit, seldom met: tests/cli/onnx_node_tests.sh",
    "src/onnx/lower/resize_weights.cc": "a Resize whose many inputs fit, seldom met: src/onnx/host/host_test.cc",
    "src/onnx/run/read_value.cc": "inputs of ONNX's own tests: tests/cli/onnx_node_tests.sh",
    "src/ort/": "is called by onnxruntime: src/ort/plugin_test.cc",
    "src/onnx/file/load_model.cc": "files on disk: src/onnx/file/read_test.cc; the fuzzer gives bytes",
}


def run(command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def build(targets):
    run(CONFIGURE, stdout=subprocess.DEVNULL)
    run(["cmake", "--build", BUILD, "-j", os.environ.get("ANYDML_JOBS", str(os.cpu_count())), "--target"]
        + [f"fuzz_{target}" for target in targets])


def random_inputs(target):
    """A folder of random inputs; none for fuzzers that read files."""
    folder = BUILD / "random" / target
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    source = random.Random(1)
    for i in range(RANDOM_INPUTS.get(target, 1000) if target in DECISIONS else 0):
        # Small numbers are the most frequent choices.
        decisions = bytes(source.choice((source.randrange(256), source.randrange(8)))
                          for _ in range(source.randrange(20, 400)))
        (folder / f"{i:05}").write_bytes(DECISIONS[target] + decisions)
    return folder


def replay(target):
    """The profile of a target's corpora."""
    folders = [ROOT / "fuzz" / "corpus" / target, ROOT / "build-asan" / "fuzz" / "corpus" / target,
               random_inputs(target)]
    raw, profile = BUILD / f"{target}.profraw", BUILD / f"{target}.profdata"
    environment = dict(os.environ, LLVM_PROFILE_FILE=str(raw), ANYDML_ADAPTER="cpu", ANYDML_TEST_BACKEND="cpu")
    run([BUILD / "fuzz" / "bin" / f"fuzz_{target}"] + [folder for folder in folders if folder.is_dir()],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=SECONDS)
    run(["llvm-profdata", "merge", "-sparse", raw, "-o", profile])
    return profile


def lines_of(target, profile):
    """By file of src/: (lines, lines that were reached)."""
    command = ["llvm-cov", "export", "-summary-only", f"-instr-profile={profile}",
               BUILD / "fuzz" / "bin" / f"fuzz_{target}"]
    for library in sorted((BUILD / "lib").glob("lib*.so")):
        command += ["-object", library]
    exported = json.loads(run(command, capture_output=True).stdout)
    result = {}
    for entry in exported["data"][0]["files"]:
        path = (ROOT / "src" / entry["filename"]).resolve()  # the path of a SIMD target's file is relative
        if path.is_relative_to(ROOT / "src"):
            lines = entry["summary"]["lines"]
            result[str(path.relative_to(ROOT))] = (lines["count"], lines["covered"])
    return result


def reason_for(path):
    if "/cuda/" in path:
        return REASONS["src/backend/cuda/"]
    return next((reason for start, reason in REASONS.items() if path.startswith(start)), "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skip-build", action="store_true", help="what is in build-coverage is current")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    options = parser.parse_args()
    targets = options.targets or TARGETS
    if not options.skip_build:
        build(targets)

    lines, reached = {}, {}  # by file: lines, and the most that one fuzzer reaches
    print("| fuzzer | files of `src/` | lines |\n|---|---|---|")
    for target in targets:
        files = lines_of(target, replay(target))
        for path, (count, covered) in files.items():
            lines[path] = max(count, lines.get(path, 0))
            reached[path] = max(covered, reached.get(path, 0))
        used = {path: covered for path, (_, covered) in files.items() if covered > 0}
        print(f"| `{target}` | {len(used)} | {sum(used.values())} |", flush=True)
    # Only sources are listed, because they reach the headers.
    tests = ("_test", "_cases", "_for_tests", "expect_values")
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "src").rglob("*.cc") if not path.stem.endswith(tests)}
    missing = sorted(path for path in sources if reached.get(path, 0) == 0 and lines.get(path) != 0)
    total, most = sum(lines.values()), sum(reached.values())
    print(f"| one of them | {sum(1 for count in reached.values() if count)}, of `.cc` {len(sources) - len(missing)} of"
          f" {len(sources)} | {most} of {total} that were built |\n")
    print("| no fuzzer reaches | because |\n|---|---|")
    for path in missing:
        print(f"| `{path}` | {reason_for(path) or '**nobody knows**'} |")
    return 1 if any(not reason_for(path) for path in missing) else 0


if __name__ == "__main__":
    sys.exit(main())
