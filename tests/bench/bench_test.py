"""bench_test.py BENCH_DIR WORKER: the benchmark's command line and the files that it writes."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

BENCH, WORKER = pathlib.Path(sys.argv[1]), sys.argv[2]


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
                                        "ours_ms", "floor_ms", "peers"])
        self.assertEqual((record["sizes"], record.get("k")), ([4, 100], 3) if top_k else ([64, 8], None))
        self.assertEqual(record["type"], "float32")
        self.assertGreater(record["ours_ms"], 0)
        self.assertGreater(record["floor_ms"], 0)
        standard = {"std::nth_element+sort", "std::partial_sort"}
        self.assertEqual(set(record["peers"]), standard if top_k else set())
        for ms in record["peers"].values():
            self.assertGreater(ms, 0)

    def test_refuses_what_it_does_not_know(self):
        for arguments, text in ((["--fast"], "--fast"), (["--threads", "0"], "--threads is 0"),
                                (["--filter", "("], "no regular expression"), (["--filter", "nothing"], "no case"),
                                (["--machine", "a b"], "--machine is a b")):
            done = bench(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn("usage:", done.stderr)
            self.assertIn(text, done.stderr)

    def test_lists_every_case_once(self):
        names = bench("--list").stdout.split()
        self.assertEqual(len(names), len(set(names)))
        self.assertGreater(len(names), 36)
        self.assertLess(len(bench("--list", "--quick").stdout.split()), len(names))

    def test_docs_keep_the_other_machines(self):
        sys.path.insert(0, str(BENCH))
        sys.dont_write_bytecode = True
        import report
        with tempfile.TemporaryDirectory() as folder:
            docs, results = pathlib.Path(folder) / "docs", pathlib.Path(folder) / "results"
            docs.mkdir()
            results.mkdir()
            (docs / "benchmarks.md").write_text("# Benchmarks\n")
            (results / "a.svg").write_text("<svg/>")
            for name, text in (("one", "first"), ("two", "second"), ("one", "third")):
                (results / "results.md").write_text(f"{text} ![chart](a.svg)\n")
                report.write_docs(results, docs, name)
            page = (docs / "benchmarks.md").read_text()
            self.assertNotIn("first", page)
            self.assertLess(page.index("third ![chart](benchmarks/one-a.svg)"),
                            page.index("second ![chart](benchmarks/two-a.svg)"))
            self.assertEqual(sorted(f.name for f in (docs / "benchmarks").iterdir()), ["one-a.svg", "two-a.svg"])


unittest.main(argv=sys.argv[:1])
