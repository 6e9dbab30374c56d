"""Reports for the tests, made from a run of ours and of peers."""

import json
import re
import subprocess

# A sweep of three lengths and two Ks, and peers for two thread counts, one of which lacks a peer.
LENGTHS, KS, THREADS = (64, 640, 6400), (2, 20), (1, 2)
# For each of our cases: by the device's clock and end to end; and the floor.
OURS = 2
MACHINE = "a machine of 1981 & its twin, 2 processors"
# Names that try to inject markup.
HOSTILE = "<b>&\"'</b><script>document.title='run'</script>"


def peer_records():
    records = []
    for threads in THREADS:
        for length in (1000, 1000000):
            for k in (1, 10, 100):
                peers = {"torch": 1.5e-6 * length * k, HOSTILE: 2e-6 * length}
                if k > 1:
                    del peers[HOSTILE]
                records.append({"case": f"topk-1x{length}-k{k}", "operator": "TOP_K1", "type": "float32",
                                "sizes": [1, length], "k": k, "threads": threads,
                                "ours_ms": 1.2e-6 * length + 1e-3 * k, "floor_ms": 1e-6 * length, "peers": peers,
                                "implementation": "cpu.scan", "ours_min_ms": 1.1e-6 * length, "timings": 25,
                                "ours_max_ms": 2e-6 * length + 1e-3 * k, "marks": {"torch": "t"},
                                "machine": MACHINE, "command": "./dev bench --group topk"})
        records.append({"case": "latency", "operator": "SCATTER_ND", "type": "float32", "threads": threads,
                        "ours_ms": 0.01, "floor_ms": 0.001, "peers": {}})
    return records


# (panels, their points, points of the ratios) of each section, in order.
EXPECTED = [
    # Over the length: a panel per K, and one with our results (and one floor) for every K; floors are points,
    # too.
    (1 + len(KS), (1 + len(KS)) * len(LENGTHS) + len(KS) * len(LENGTHS) * (OURS + 1), len(KS) * len(LENGTHS) * OURS),
    # Ours, the floor and torch have 6 cases; the other peer has those with K 1.
    *((1 + 3, (1 + 3) * 2 + 6 * 3 + 2, 6 * 2 + 2 + 1) for _ in THREADS),
]
# One per section: the small multiples of one operator and type.
FIGURES = len(EXPECTED)


def make_report(anydml, folder):
    (folder / "peers.json").write_text(json.dumps(peer_records()))
    lengths, ks = (",".join(map(str, values)) for values in (LENGTHS, KS))
    command = [anydml, "bench", "TOP_K1", f"InputTensor=random:1x{{{lengths}}}", "Axis=1", f"K={{{ks}}}",
               "AxisDirection=DECREASING", "--adapter=cpu", "--iterations=3", "--report=report.html",
               "--peers=peers.json"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=200)
    return (folder / "report.html").read_text(encoding="utf-8")


def external_references(page):
    """Everything that a browser would fetch: not fragments, not data:."""
    references = re.findall(r"""(?:src|href|action|data)\s*=\s*["']([^"']*)""", page)
    references += re.findall(r"""url\(\s*["']?([^"')]*)|@import\s+["']?([^"';]*)""", page)
    return [r for r in references if not (isinstance(r, str) and r.startswith(("#", "data:")))]
