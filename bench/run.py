#!/usr/bin/env python3
"""Times AnyDML against its peers and against the floor. See README.md.

Longer than most files: its options and the report of one run belong together.

One process per library and thread count; all wait while one of them works. Every result
is compared with cpu.reference before it is timed.
"""

import argparse
import contextlib
import glob
import json
import os
import pathlib
import re
import select
import shlex
import shutil
import signal
import statistics
import string
import subprocess
import sys
import tempfile
import time
import urllib.parse

import cases as case_list
import graphs
import published
import report

BENCH = pathlib.Path(__file__).resolve().parent
ROOT = BENCH.parent
ANSWER_SECONDS = 300  # a peer that takes longer is left out
QUOTE_NOT = string.punctuation.replace("%", "")


def say(text):
    print(text, file=sys.stderr, flush=True)


class WorkerError(Exception):
    pass


class Worker:
    """A process that answers requests, one line each."""

    def __init__(self, command, folder, threads, environment=None):
        self.threads = threads
        self.label = pathlib.Path(command[-1]).name
        # The CPU, unless `environment` says otherwise, also where there is a GPU or the user asks for one.
        variables = {**os.environ, "BENCH_THREADS": str(threads), "ANYDML_THREADS": str(threads),
                     "OMP_NUM_THREADS": str(threads), "ANYDML_ADAPTER": "cpu", **(environment or {})}
        self.log = folder / f"{self.label}-{threads}.log"
        with open(self.log, "wb") as log:
            # A session of its own: Ctrl-C reaches this program only, which then ends its workers.
            self.process = subprocess.Popen(command, cwd=folder, env=variables, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, start_new_session=True)
        self.pending = b""
        try:
            self.hello = self.answer(60)
        except BaseException:  # Ctrl-C included
            self.stop()
            raise
        self.name = self.hello["name"]

    def answer(self, seconds):
        deadline = time.monotonic() + seconds
        while b"\n" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.stop()  # a late answer would be taken for that to the next request
                raise WorkerError(f"{self.label} did not answer within {seconds} s")
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise self.ended()
            self.pending += chunk
        line, self.pending = self.pending.split(b"\n", 1)
        return json.loads(line)

    def request(self, command, words=None, **more):
        words = {**(words or {}), **more}
        # Words have no spaces, which only expressions have, and those only Python reads.
        quoted = {key: urllib.parse.quote(str(value), safe=QUOTE_NOT) for key, value in words.items()}
        line = " ".join([command, *(f"{key}={value}" for key, value in quoted.items())]) + "\n"
        try:
            self.process.stdin.write(line.encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self.ended() from None
        answer = self.answer(ANSWER_SECONDS)
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def ended(self):
        """What to say of a process that ended: its last words, best an error."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        lines = [line for line in lines if re.match(r"\w*Error", line)] or lines
        return WorkerError(lines[-1] if lines else f"{self.label} ended unexpectedly")

    def alive(self):
        return self.process.poll() is None

    def settle(self):
        """Waits, a second at most, until its threads sleep. Those of some libraries spin for tens of milliseconds behind
        their last call (OpenMP's do), on processors that the next one's threads need."""
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline and "R" in self.states():
            time.sleep(0.002)

    def states(self):
        """Of each thread; none where there is no /proc."""
        for stat in glob.glob(f"/proc/{self.process.pid}/task/*/stat"):
            with contextlib.suppress(OSError):  # the thread has ended
                yield pathlib.Path(stat).read_text(encoding="latin-1").rpartition(")")[2].split()[0]

    def stop(self):
        if self.alive():
            self.process.kill()
        self.process.wait()


class Run:
    """What one worker times of one case: the library itself, a floor or a peer."""

    def __init__(self, worker, name, kind, threads):
        self.worker, self.name, self.kind, self.threads = worker, name, kind, threads
        self.times = []
        self.verdict = "equal"
        self.estimate = 0.0
        self.failed = False

    def time(self, n, warm):
        return self.worker.request("time", run=self.name, n=n, warm=warm)["ms"]

    @property
    def ms(self):
        return float(f"{statistics.median(self.times):.6g}")


def start_peers(threads, folder, wanted, peers):
    """Adds the peers that are there; says which are not."""
    node_modules = ROOT / "build" / "bench" / "node_modules"
    python_candidates = list(dict.fromkeys([sys.executable, "/usr/bin/python3"]))
    node = shutil.which("node") or "node"
    scripts = [
        ("numpy", "peer_numpy.py", python_candidates, [1]),  # it has one thread
        ("torch", "peer_torch.py", python_candidates, threads),
        ("onnxruntime", "peer_ort.py", python_candidates, threads),
        ("onnxruntime-c", "peer_ort_c.py", python_candidates, threads),
        ("onnxruntime-node", "peer_ort.js", [node], threads),
    ]
    for name, script, interpreters, counts in scripts:
        if wanted is not None and name not in wanted:
            continue
        error = ""
        for interpreter in interpreters:
            try:
                for count in counts:
                    peers.append(Worker([interpreter, str(BENCH / script)], folder, count,
                                        {"BENCH_NODE_MODULES": str(node_modules)}))
                break
            except (WorkerError, OSError) as failure:
                error = str(failure)
        else:
            say(f"bench: without {name}: {error}")


def prepare(case, largest, judge, peers):
    """Makes the inputs, and tells the judge what to expect: of functions what NumPy works out in float64; without
    it, and of everything else, what the reference says."""
    judge.request("prepare", case.words())
    numpy = next((peer for peer in peers if peer.name == "numpy" and peer.alive()), None)
    if case.true and numpy:
        numpy.request("true", case.words())
        judge.request("expect", case.words(), file="true.bin")
    else:
        judge.request("reference", largest.words())
        judge.request("expect", case.words())


def load_runs(case, ours, peers, notes):
    """Everything that can take the case, loaded."""
    runs = []
    for worker in ours:
        answer = worker.request("load", case.words())
        runs.append(Run(worker, "anydml", "ours", worker.threads))
        runs[-1].implementation = answer["implementation"]
        runs += [Run(worker, name, "floor", worker.threads) for name in answer["floors"]]
        if worker is ours[0]:
            runs += [Run(worker, name, "peer", None) for name in answer["single"]]
    for worker in peers:
        try:
            answer = worker.request("load", case.words())
        except WorkerError as error:
            notes.setdefault(f"{worker.name} refuses {case.name}", str(error))
            continue
        single = worker.name == "numpy"
        runs += [Run(worker, name, "peer", None if single else worker.threads) for name in answer["runs"]]
    return runs


def check(case, run, judge, notes):
    """True when the run's result may be timed."""
    if run.kind == "floor":
        return True
    run.worker.request("check", run=run.name, prefix="got")
    run.verdict = judge.request("compare", prefix="got")["verdict"]
    if run.kind == "ours":
        if run.verdict != "equal":
            raise WorkerError(f"{case.name}: AnyDML's result: {run.verdict}")
        return True
    run.verdict, _, why = run.verdict.partition(": ")
    if run.verdict == "wrong" and case.data == "nan":
        run.verdict = "nan"  # the peer has its own order; it is timed and marked
    if run.verdict == "wrong":
        notes[f"{run.name} on {case.name}"] = f"wrong: {why}"
        return False
    return True


@contextlib.contextmanager
def tolerant(case, run, notes):
    """A peer that fails is left out of the case; without us there is no result."""
    try:
        yield
    except WorkerError as error:
        if run.kind != "peer":
            raise
        notes[f"{run.name} on {case.name}"] = str(error)
        run.failed = True


def turn(run, options):
    if run.estimate > options.slow_ms:  # one timing is enough
        run.times = [run.estimate]
        return
    n = max(options.least, min(200, int(options.turn_ms / max(run.estimate, 1e-6))))
    # Until caches are warm and threads have noticed that there is work. What others have driven out of a large cache is
    # back there after some runs only; floors have several ways to do it with the same memory, the later of which find
    # it there.
    least_warm = 4 if run.estimate < 20 else 1
    warm = max(least_warm, min(200, int(3 / max(run.estimate, 1e-6))))
    run.times += run.time(n, warm)
    run.worker.settle()


def measure(case, largest, ours, peers, folder, options, notes):
    judge = ours[0]
    prepare(case, largest, judge, peers)
    (folder / "model.onnx").write_bytes(case.onnx)
    peers = [peer for peer in peers if peer.alive() and (not case.peers or peer.name in case.peers)]
    runs = load_runs(case, ours, peers, notes)
    for run in runs:
        with tolerant(case, run, notes):
            if not check(case, run, judge, notes):
                run.failed = True
                continue
            # The check was the first run.
            run.estimate = run.time(1, 1 if run.kind == "floor" else 0)[0]
            if run.estimate < 1:
                run.estimate = min(run.time(10, 10))
            run.worker.settle()
    for _ in range(options.rounds):
        for run in runs:
            if not run.failed:
                with tolerant(case, run, notes):
                    turn(run, options)
    for worker in [*ours, *peers]:
        if worker.alive():
            worker.request("unload")
    return [run for run in runs if not run.failed]


def records_of(case, runs, threads):
    """One record per thread count, and per record the runs behind it."""
    for count in threads:
        mine = [run for run in runs if run.threads in (count, None)]
        ours = next(run for run in mine if run.kind == "ours")
        floor = min((run for run in mine if run.kind == "floor"), key=lambda run: run.ms)
        peers = [run for run in mine if run.kind == "peer"]
        record = {
            "case": case.name,
            "operator": case.operator,
            "type": case.type,
            "sizes": list(case.sizes),
            **({"k": case.k} if case.k else {}),
            "threads": count,
            "ours_ms": ours.ms,
            "floor_ms": floor.ms,
            "peers": {run.name: run.ms for run in peers},
        }
        yield record, report.Details(
            table=case.table or case.operator, implementation=ours.implementation, floor=floor.name.split(":")[1],
            verdicts={run.name: run.verdict for run in peers},
            samples={"anydml": sorted(ours.times), **{run.name: sorted(run.times) for run in peers}})


def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench/run.py", description="Times AnyDML, its peers and the floor.",
                                     allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help="fewer cases and timings: within two minutes")
    parser.add_argument("--group", choices=case_list.GROUPS, help="only the cases of this group")
    parser.add_argument("--filter", metavar="REGEX", help="only the cases whose name matches")
    parser.add_argument("--threads", default="1,2", metavar="N,N", help="thread counts (1,2)")
    parser.add_argument("--peers", metavar="NAME,...",
                        help="only these: numpy, torch, onnxruntime, onnxruntime-c, onnxruntime-node")
    parser.add_argument("--no-peers", action="store_true", help="without the peers' processes")
    parser.add_argument("--list", action="store_true", help="list the cases and end")
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, default=ROOT / "build" / "bench" / "results",
                        help="where results.md, .csv, .json and the charts go (build/bench/results)")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="write the records here too")
    parser.add_argument("--docs", action="store_true", help="also put the results into docs/benchmarks")
    parser.add_argument("--docs-from", metavar="DIR", type=pathlib.Path,
                        help="only put the results of that folder into docs/benchmarks")
    parser.add_argument("--machine", metavar="NAME", help="the machine's name there (its architecture)")
    parser.add_argument("--worker", metavar="FILE", type=pathlib.Path,
                        default=ROOT / "build" / "bin" / "anydml-bench-worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    try:
        options.thread_counts = sorted({int(count) for count in options.threads.split(",")})
        if options.thread_counts[0] < 1:
            raise ValueError
    except ValueError:
        parser.error(f"--threads is {options.threads}; it must be numbers from 1, as in 1,2")
    if options.machine is not None and not re.fullmatch(r"[A-Za-z0-9._-]+", options.machine):
        parser.error(f"--machine is {options.machine}; it must be letters, digits, '.', '_' and '-'")
    options.machine = options.machine or os.uname().machine
    try:
        options.pattern = re.compile(options.filter or "")
    except re.error as error:
        parser.error(f"--filter is no regular expression: {error}")
    # A full run has at least rounds * least = 25 timings of everything under slow_ms.
    if options.quick:
        options.rounds, options.least, options.turn_ms, options.slow_ms = 3, 1, 6, 40
    else:
        options.rounds, options.least, options.turn_ms, options.slow_ms = 5, 5, 60, 2000
    # What decides about the figures, without where they go.
    words = ["--quick"] * options.quick + ["--no-peers"] * options.no_peers
    for name in ("group", "filter", "peers", "threads"):
        words += [f"--{name}", getattr(options, name)] if getattr(options, name) else []
    options.command = shlex.join(["./dev", "bench", *words])
    return parser, options


def choose_cases(options):
    every = [*case_list.all_cases(), *graphs.all_cases()]
    chosen = [case for case in every if options.group in (None, *case.groups)]
    if options.filter:
        return [case for case in chosen if options.pattern.search(case.name)]
    chosen = [case for case in chosen if not case.tiny]
    return [case for case in chosen if case.quick] if options.quick else chosen


def run_all(chosen, options):
    results, notes = [], {}
    start = time.monotonic()
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="anydml-bench-", dir=memory)))
        ours, peers = [], []
        stack.callback(lambda: [worker.stop() for worker in [*ours, *peers]])
        for count in options.thread_counts:
            ours.append(Worker([str(options.worker.resolve())], folder, count))
        if not options.no_peers:
            wanted = options.peers.split(",") if options.peers else None
            start_peers(options.thread_counts, folder, wanted, peers)
        for number, case in enumerate(chosen):
            largest = max((other for other in chosen if case.same_but_k(other)), key=lambda other: other.k)
            runs = measure(case, largest, ours, peers, folder, options, notes)
            for record, details in records_of(case, runs, options.thread_counts):
                results.append((record, details))
                say(f"[{number + 1}/{len(chosen)} {time.monotonic() - start:4.0f} s] " + report.line(record))
        versions = {worker.name: worker.hello["version"] for worker in [*ours, *peers]}
    return results, versions, notes


def main():
    parser, options = parse_arguments()
    if options.docs_from:
        published.publish(options.docs_from, ROOT / "docs", options.machine)
        return 0
    chosen = choose_cases(options)
    if options.list:
        for case in chosen:
            print(case.name)
        return 0
    if not chosen:
        parser.error(f"no case matches {options.filter}")
    if not options.worker.exists():
        say(f"bench: {options.worker} is not built (./dev bench builds it)")
        return 1
    options.load = os.getloadavg()[0]
    # As with Ctrl-C: the workers are ended and no results are written.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        results, versions, notes = run_all(chosen, options)
    except KeyboardInterrupt:
        say("bench: stopped; nothing was written")
        return 130
    except WorkerError as error:
        say(f"bench: {error}")
        return 1
    if not results:
        say("bench: nothing was measured")
        return 1
    machine = report.machine(ROOT, versions, options)
    report.write(options.out, results, machine, notes)
    if options.json:
        report.write_json(options.json, results, machine)
    if options.docs:
        published.publish(options.out, ROOT / "docs", options.machine)
    for line in report.summary(results):
        say(f"bench: {line}")
    say(f"bench: {options.out}/results.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
