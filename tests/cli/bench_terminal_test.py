"""bench_terminal_test.py ANYDML: `anydml bench` on a terminal, and interrupted by Ctrl-C."""

import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import tempfile
import unittest

ANYDML = sys.argv[1]
CASES = 40  # far more than a slow machine completes before the signal
COMMAND = [ANYDML, "bench", "TOP_K1", "InputTensor=random:1x1000", "Axis=1", "AxisDirection=DECREASING",
           "--adapter=cpu", "--seconds=0.25", f"K={{{','.join(str(k + 1) for k in range(CASES))}}}"]


def heed_interrupts():
    """Background jobs ignore SIGINT, and so would their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class TerminalTest(unittest.TestCase):
    def run_watched(self, command, interrupt_at=None):
        """Standard error is a terminal; returns its text, the output and the exit code."""
        ours, theirs = pty.openpty()
        with tempfile.TemporaryFile() as out:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=theirs, cwd=self.folder,
                                     env={**os.environ, "TERM": "xterm"}, preexec_fn=heed_interrupts)
            os.close(theirs)
            seen = b""
            while True:
                try:
                    got = os.read(ours, 4096)
                except OSError:  # Linux reports this way that the other end is closed
                    break
                if not got:
                    break
                seen += got
                if interrupt_at and interrupt_at in seen:
                    child.send_signal(signal.SIGINT)
                    interrupt_at = None
            os.close(ours)
            child.wait()
            out.seek(0)
            return seen.decode(), out.read().decode(), child.returncode

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def test_progress_is_one_line_per_case(self):
        seen, out, code = self.run_watched(COMMAND[:-2] + ["--iterations=2", "K={1,2,3}"])
        self.assertEqual(code, 0)
        # Drawn before a case and erased at the end, with no other output in between.
        self.assertEqual(re.findall(r"\r\[[#.]{20}\] (\d)/3 ", seen), ["0", "1", "2"])
        self.assertTrue(seen.endswith("\r\x1b[K"), seen)
        self.assertNotIn("\n", seen)
        self.assertEqual(len(out.splitlines()), 1 + 1 + 3)

    def test_interrupt_keeps_complete_cases(self):
        seen, out, code = self.run_watched(COMMAND + ["--report=r.html"], b"] 1/")
        self.assertEqual(code, 130)
        done = int(re.search(rf"interrupted after (\d+) of {CASES} cases", seen)[1])
        self.assertIn(done, range(1, CASES))
        self.assertEqual(len(out.splitlines()), 1 + 1 + done)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_interrupt_in_json(self):
        _, out, code = self.run_watched(COMMAND + ["--json"], b"] 1/")
        self.assertEqual(code, 130)
        document = json.loads(out)
        self.assertEqual((document["error"]["kind"], document["error"]["exitCode"]), ("interrupted", 130))
        self.assertIn(len(document["cases"]), range(1, CASES))

    def test_second_interrupt_ends_the_process(self):
        # One case that practically never ends.
        child = subprocess.Popen(COMMAND[:-2] + ["--seconds=600", "K=1"], cwd=self.folder,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=heed_interrupts)
        while child.poll() is None:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(0.2)
            except subprocess.TimeoutExpired:
                pass
        self.assertIn(child.returncode, (130, -signal.SIGINT))


unittest.main(argv=sys.argv[:1])
