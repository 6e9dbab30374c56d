"""times_test.py: the tables of `./dev times`."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from times import BEGIN, END, main, minutes, slowest_table, steps_table  # noqa: E402

JUNIT = '<testsuite><testcase name="a_test" time="12.4"/><testcase name="b_test" time="3"/></testsuite>'


class Times(unittest.TestCase):
    def test_minutes(self):
        self.assertEqual((minutes(0), minutes(61), minutes(3600)), ("0:00", "1:01", "60:00"))

    def test_steps(self):
        lines = steps_table([("format", "passed", 7), ("plain", "FAILED", 125)], {"plain": {"build": 100, "tests": 25}})
        self.assertEqual(lines[2:], ["| format | 0:07 |  |", "| plain | 2:05 | build 1:40, tests 0:25 (failed) |",
                                     "| all | 2:12 | |"])

    def test_slowest(self):
        lines = slowest_table("test", {"plain": {"a": 1, "b": 5}, "format": {}, "asan": {"a": 30}})
        self.assertEqual(lines, ["| test | plain | asan |", "|---|---|---|", "| `a` | 1 s | 30 s |", "| `b` | 5 s |  |"])
        self.assertEqual(slowest_table("file", {"plain": {}}), [])

    def test_writes_the_page(self):
        with tempfile.TemporaryDirectory() as root:
            for folder in ("docs", "build-times", "build-plain"):
                os.mkdir(os.path.join(root, folder))
            for name, text in (("docs/testing.md", f"before\n{BEGIN}old\n{END}after\n"),
                               ("build-times/steps", "plain passed 125\n"), ("build-times/machine", "2 cores\n"),
                               ("build-times/plain.parts", "build 100\ntests 20\ntests 5\n"), ("build-times/plain.xml", JUNIT),
                               ("build-plain/.ninja_log", "# ninja log v5\n0\t9000\t1\tsrc/CMakeFiles/a.dir/x.cc.o\tab\n")):
                with open(os.path.join(root, name), "w", encoding="utf-8") as file:
                    file.write(text)
            main(root, ["--write"])
            with open(os.path.join(root, "docs/testing.md"), encoding="utf-8") as file:
                page = file.read()
        self.assertTrue(page.startswith("before\n" + BEGIN) and page.endswith(END + "after\n"))
        for part in ("| plain | 2:05 | build 1:40, tests 0:25 |", "| `a_test` | 12 s |", "| `src/a/x.cc.o` | 9 s |"):
            self.assertIn(part, page)
        self.assertNotIn("old", page)


if __name__ == "__main__":
    unittest.main()
