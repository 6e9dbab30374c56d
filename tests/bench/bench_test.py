"""bench_test.py BENCH_DIR WORKER: the benchmark's command line and the files that it writes."""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

BENCH, WORKER = pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve())


def bench(*arguments):
    command = [sys.executable, "-B", str(BENCH / "run.py"), "--worker", WORKER, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


class BenchTest(unittest.TestCase):
    def test_tiny_cases(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out"
            records_file = pathlib.Path(folder) / "records.json"
            done = bench("--quick", "--no-peers", "--threads", "1,2", "--out", str(out), "--json", str(records_file),
                         "--filter", "^(topk-4x100-k3|scatter-64x8-5-rows(-in-place)?)$")
            self.assertEqual(done.returncode, 0, done.stderr)
            records = json.loads(records_file.read_text())
            self.assertEqual(records, json.loads((out / "results.json").read_text()))
            self.assertEqual({(r["case"], r["operator"], r["threads"]) for r in records},
                             {(case, operator, threads) for threads in (1, 2)
                              for case, operator in (("topk-4x100-k3", "TOP_K1"),
                                                     ("scatter-64x8-5-rows", "SCATTER_ND"),
                                                     ("scatter-64x8-5-rows-in-place", "SCATTER_ND"))})
            for record in records:
                self.check_record(record)
            self.assertEqual(len((out / "results.csv").read_text().splitlines()), 1 + len(records))
            table = (out / "results.md").read_text()
            for chart in ("top_k1-1-thread", "top_k1-2-threads", "scatter_nd-1-thread", "scatter_nd-2-threads"):
                self.assertIn(f"({chart}.svg)", table)
                xml.etree.ElementTree.parse(out / f"{chart}.svg")
            self.assertEqual([f.name for f in out.iterdir() if f.name.startswith(".")], [])

    def check_record(self, record):
        top_k = record["operator"] == "TOP_K1"
        self.assertEqual(list(record), ["case", "operator", "type", "sizes", *(["k"] if top_k else []), "threads",
                                        "ours_ms", "floor_ms", "peers", "implementation", "ours_min_ms", "ours_max_ms",
                                        "timings", "machine", "command"])
        self.assertTrue(record["implementation"].startswith("cpu."))
        self.assertLessEqual(record["ours_min_ms"], record["ours_ms"])
        self.assertGreaterEqual(record["ours_max_ms"], record["ours_ms"])
        self.assertGreaterEqual(record["timings"], 1)
        self.assertTrue(record["command"].startswith("./dev bench --quick --no-peers --filter "), record["command"])
        self.assertEqual((record["sizes"], record.get("k")), ([4, 100], 3) if top_k else ([64, 8], None))
        self.assertEqual(record["type"], "float32")
        self.assertGreater(record["ours_ms"], 0)
        self.assertGreater(record["floor_ms"], 0)
        standard = {"std::nth_element+sort", "std::partial_sort"}
        self.assertEqual(set(record["peers"]), standard if top_k else set())
        for ms in record["peers"].values():
            self.assertGreater(ms, 0)

    def test_element_wise_cases(self):
        cases = {"elementwise-add-16x24-row": "ELEMENT_WISE_ADD", "elementwise-greater-16x24-int32":
                 "ELEMENT_WISE_LOGICAL_GREATER_THAN", "elementwise-cast-to-float16-16x24-transposed": "CAST",
                 "elementwise-clip-16x24-int32": "ELEMENT_WISE_CLIP", "elementwise-gelu-16x24": "ACTIVATION_GELU",
                 "elementwise-pow-16x24-column-float16": "ELEMENT_WISE_POW"}
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder)
            done = bench("--quick", "--no-peers", "--threads", "2", "--out", folder, "--filter", f"^({'|'.join(cases)})$")
            self.assertEqual(done.returncode, 0, done.stderr)
            records = json.loads((out / "results.json").read_text())
            self.assertEqual({record["case"]: record["operator"] for record in records}, cases)
            for record in records:
                self.assertEqual(record["sizes"], [16, 24])
                self.assertGreater(record["ours_ms"], 0)
                self.assertGreater(record["floor_ms"], 0)
            self.assertIn("(elementwise-2-threads.svg)", (out / "results.md").read_text())

    def test_other_groups(self):
        """Every cell has the right description of its operator, and results are right."""
        sys.path.insert(0, str(BENCH))
        sys.dont_write_bytecode = True
        import cases
        tiny = [case for case in cases.all_cases() if case.tiny and case.groups[0] in cases.CELLS]
        self.assertGreater(len(tiny), 60)
        with tempfile.TemporaryDirectory() as folder:
            done = bench("--quick", "--no-peers", "--threads", "1", "--out", folder, "--filter",
                         f"^({'|'.join(case.name for case in tiny)})$")
            self.assertEqual(done.returncode, 0, done.stderr)
            records = json.loads((pathlib.Path(folder) / "results.json").read_text())
        self.assertEqual({record["case"] for record in records}, {case.name for case in tiny})

    def test_graphs(self):
        """Nodes, weights that DirectML owns, and graphs that are only compiled."""
        cases = ["graphs-chain-5-16x24", "graphs-conv-bn-relu-1x4x6x6", "graphs-transformer-16x128",
                 "graphs-compile-300-nodes", "graphs-latency-of-3-operators"]
        with tempfile.TemporaryDirectory() as folder:
            done = bench("--quick", "--no-peers", "--threads", "1", "--out", folder, "--filter",
                         f"^({'|'.join(cases)})$")
            self.assertEqual(done.returncode, 0, done.stderr)
            records = json.loads((pathlib.Path(folder) / "results.json").read_text())
        self.assertEqual({(record["case"], record["operator"]) for record in records},
                         {(case, "GRAPH") for case in cases})

    def test_onnx_models(self):
        """Models with every operator that onnxruntime supports; the attributes and constants of one of them in
        protobuf."""
        sys.path.insert(0, str(BENCH))
        sys.dont_write_bytecode = True
        import cases
        for case in cases.all_cases():
            self.assertTrue(case.onnx or "onnxruntime" not in case.peers, case.name)
        model = next(case.onnx for case in cases.all_cases() if case.name == "resample-bilinear-x2-8x64x56x56")
        self.assertIn(b"\x0a\x04mode\x22\x06linear\xa0\x01\x03", model)
        self.assertIn(struct.pack("<4f", 1, 1, 2, 2), model)

    def test_worker_finds_wrong_results(self):
        """EXP may be off by 2 units in the last place."""
        case = "op=ELEMENT_WISE_EXP InputTensor=float32:4:: OutputTensor=float32:4 ulps=2"
        unit = 2.0 ** -23
        done = subprocess.run([WORKER], input="expect op=JOIN InputTensors=float32:4;int8 OutputTensor=float32:8\n",
                              capture_output=True, text=True, timeout=60)
        self.assertIn("bad dimensions", done.stdout)
        for values, verdict in (((1, 1.5, 1.25, 1), "equal"), ((1 + 2 * unit, 1.5, 1.25, 1), "equal"),
                                ((1 + 3 * unit, 1.5, 1.25, 1), "inexact: value 0 is 3 ulp away"),
                                ((1, 1.5, 1.25, 1.01), "wrong: value 3 is 1.00999999, not 1"),
                                ((1, 1.5, float("nan"), 1), "wrong: value 2 is nan, not 1.25"),
                                ((1, 1.5, 1.25), "wrong: the size of the values")):
            with tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "true.bin").write_bytes(struct.pack("<4d", 1, 1.5, 1.25, 1))
                (pathlib.Path(folder) / "got.values.bin").write_bytes(struct.pack(f"<{len(values)}f", *values))
                done = subprocess.run([WORKER], cwd=folder, input=f"expect {case} file=true.bin\ncompare prefix=got\n",
                                      capture_output=True, text=True, timeout=60)
            self.assertEqual(json.loads(done.stdout.splitlines()[-1]), {"verdict": verdict})

    def test_waits_until_a_peers_threads_sleep(self):
        """A peer whose threads spin for a while after the result, as OpenMP's do."""
        sys.path.insert(0, str(BENCH))
        sys.dont_write_bytecode = True
        import run
        spins = ("import sys, time\n"
                 "print('{\"name\": \"spins\"}', flush=True)\n"
                 "end = time.monotonic() + 0.3\n"
                 "while time.monotonic() < end: pass\n"
                 "open('slept', 'w').close()\n"
                 "sys.stdin.read()\n")
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "spins.py"
            script.write_text(spins)
            worker = run.Worker([sys.executable, str(script)], pathlib.Path(folder), 1)
            worker.settle()
            self.assertTrue((pathlib.Path(folder) / "slept").exists())
            worker.stop()

    def test_refuses_what_it_does_not_know(self):
        for arguments, text in ((["--fast"], "--fast"), (["--threads", "0"], "--threads is 0"),
                                (["--filter", "("], "no regular expression"), (["--filter", "nothing"], "no case"),
                                (["--machine", "a b"], "--machine is a b"), (["--group", "all"], "--group")):
            done = bench(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn("usage:", done.stderr)
            self.assertIn(text, done.stderr)

    def test_lists_every_case_once(self):
        names = bench("--list").stdout.split()
        self.assertEqual(len(names), len(set(names)))
        self.assertGreater(len(names), 36)
        self.assertLess(len(bench("--list", "--quick").stdout.split()), len(names))
        group = bench("--list", "--group", "elementwise").stdout.split()
        self.assertEqual({name for name in group if not name.startswith("elementwise-")},
                         {name for name in names if name.startswith("scatter-latency-")})
        self.assertEqual(set(group), {name for name in names if name.startswith(("elementwise-", "scatter-latency-"))})

    def test_published_runs_keep_the_others(self):
        sys.path.insert(0, str(BENCH))
        sys.dont_write_bytecode = True
        import published
        table = ("Machine: M  \nDate: 2026-11-19  \nRun: full  \n\n### TOP_K1, {threads}\n\n"
                 "| case | AnyDML | x floor | best peer | x best |\n|---|--:|--:|---|--:|\n"
                 "| topk-a | **{ms}** | 1.50 | numpy | 0.50 |\n| topk-b | **2.0** | 1.50 | - | - |\n")
        runs = (("one", "1 thread", "8.0"), ("two", "2 threads", "9.0"), ("one", "1 thread", "7.0"))
        with tempfile.TemporaryDirectory() as folder:
            docs, results = pathlib.Path(folder) / "docs", pathlib.Path(folder) / "results"
            docs.mkdir()
            results.mkdir()
            (docs / "benchmarks.md").write_text(f"# Benchmarks\n{published.BEGIN}{published.END}The end.\n")
            (results / "top_k1-1-thread.svg").write_text("<svg/>")
            for name, threads, ms in runs:
                (results / "results.md").write_text(table.format(threads=threads, ms=ms))
                published.publish(results, docs, name)
            self.assertEqual([row["AnyDML"] for row in published.read(docs, "one")], ["7.0", "2.0"])
            self.assertEqual([row["AnyDML"] for row in published.read(docs, "two")], ["9.0", "2.0"])
            self.assertEqual(published.read_runs(docs)["two"]["Machine"], "M")
            page = (docs / "benchmarks.md").read_text()
            self.assertTrue(page.endswith(f"{published.END}The end.\n"))
            self.assertIn("| TOP_K1 | [0.50 (1 of 1)](benchmarks/one-top_k1-1-thread.svg) | [0.50 (1 of 1)]", page)
            self.assertEqual(sorted(f.name for f in (docs / "benchmarks").glob("*.svg")),
                             ["one-top_k1-1-thread.svg", "two-top_k1-1-thread.svg"])


unittest.main(argv=sys.argv[:1])
