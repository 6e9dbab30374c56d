"""Tables and charts of a run. Files appear whole or not at all."""

import csv
import dataclasses
import datetime
import io
import json
import math
import os
import pathlib
import platform
import re
import subprocess

import chart
from published import write_file

# What a peer's result differs in, where it may; the letter stands behind its time.
MARKS = {
    "ties": ("t", "the same values; of equal elements it returns other indices than the first ones"),
    "duplicates": ("d", "where several updates meet, another than the last wins"),
    "nan": ("n", "its own order of NaN: the result differs"),
    "inexact": ("i", "further from the true value than ours may be (exact, 2 or 4 units in the last place)"),
}


@dataclasses.dataclass
class Details:
    table: str  # in which it stands
    implementation: str
    floor: str  # the way to move the bytes that was the fastest
    verdicts: dict  # peer: what the comparison with the reference said
    samples: dict  # "anydml" or peer: all times, sorted


def number(ms):
    """Three significant digits, without an exponent."""
    if ms <= 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(ms)))
    return f"{ms:.{decimals}f}"


def best_peer(record):
    return min(record["peers"].items(), key=lambda item: item[1], default=None)


def ratios(record):
    """ours / floor and, where there is a peer, ours / best peer."""
    best = best_peer(record)
    return record["ours_ms"] / record["floor_ms"], best and record["ours_ms"] / best[1]


def threads_of(record):
    return "1 thread" if record["threads"] == 1 else f"{record['threads']} threads"


def line(record):
    floor, peer = ratios(record)
    text = f"{record['case']}, {threads_of(record)}: {number(record['ours_ms'])} ms, {floor:.2f} x floor"
    return text + (f", {peer:.2f} x {best_peer(record)[0]}" if peer else "")


def summary(results):
    """Per table: how often ours is the fastest, and where it is more than a tenth behind."""
    for group in _groups(results).values():
        by_peer = {record["case"]: ratios(record)[1] for record, _ in group if record["peers"]}
        behind = sorted(((ratio, case) for case, ratio in by_peer.items() if ratio > 1.1), reverse=True)
        worst = ", ".join(f"{case} ({ratio:.2f})" for ratio, case in behind[:5])
        floors = sorted(ratios(record)[0] for record, _ in group)
        yield (f"{_title(*group[0])}: ahead of every peer in {sum(ratio < 1 for ratio in by_peer.values())} of "
               f"{len(by_peer)}; x floor: median {floors[len(floors) // 2]:.2f}, worst {floors[-1]:.2f}"
               + (f"; more than a tenth behind in {len(behind)}: {worst}" if behind else ""))


def write_json(path, results, machine):
    """What `anydml bench --peers` draws; the machine and the command are the same in all records."""
    records = ",\n".join("  " + json.dumps(_record(record, details, machine)) for record, details in results)
    write_file(path, f"[\n{records}\n]\n")


def _record(record, details, machine):
    ours = details.samples["anydml"]
    marks = {name: MARKS[verdict][0] for name, verdict in details.verdicts.items() if verdict in MARKS}
    return {**record, "implementation": details.implementation, "ours_min_ms": ours[0], "ours_max_ms": ours[-1],
            "timings": len(ours), **({"marks": marks} if marks else {}),
            "machine": machine["Machine"], "command": machine["Command"]}


def write(folder, results, machine, notes):
    write_json(folder / "results.json", results, machine)
    write_file(folder / "results.csv", _csv(results))
    for old in folder.glob("*.svg"):
        old.unlink()
    for name, group in _groups(results).items():
        write_file(folder / f"{name}.svg", chart.draw(_title(*group[0]), [record for record, _ in group]))
    write_file(folder / "results.md", _markdown(results, machine, notes))


def _groups(results):
    """One table and one chart per operator, or group of them, and thread count."""
    groups = {}
    for record, details in results:
        name = _title(record, details).lower().replace(",", "").replace(" ", "-")
        groups.setdefault(name, []).append((record, details))
    return groups


def _title(record, details):
    return f"{details.table}, {threads_of(record)}"


def _peer_names(results):
    return list(dict.fromkeys(name for record, _ in results for name in record["peers"]))


def _csv(results):
    names = _peer_names(results)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["case", "operator", "type", "threads", "implementation", "ours_ms", "ours_min_ms", "ours_max_ms",
                     "timings", "floor_ms", "floor", "ours/floor", "best_peer", "best_peer_ms", "ours/best_peer",
                     *(column for name in names for column in (f"{name}_ms", f"{name}_timings", f"{name}_result"))])
    for record, details in results:
        ours = details.samples["anydml"]
        floor, peer = ratios(record)
        best = best_peer(record) or ("", "")
        row = [record[key] for key in ("case", "operator", "type", "threads")]
        row += [details.implementation, record["ours_ms"], ours[0], ours[-1], len(ours), record["floor_ms"],
                details.floor, round(floor, 3), *best, round(peer, 3) if peer else ""]
        for name in names:
            if name in record["peers"]:
                row += [record["peers"][name], len(details.samples[name]), details.verdicts[name]]
            else:
                row += ["", "", ""]
        writer.writerow(row)
    return text.getvalue()


def _markdown(results, machine, notes):
    text = [f"{key}: {value}  " for key, value in machine.items()]
    text += ["", "Milliseconds, medians. `x floor` and `x best` are our time divided by the floor's and by the best",
             "peer's: below 1 is faster. How to read it: `docs/benchmarks/README.md`.", ""]
    used = set()
    for name, group in _groups(results).items():
        peers = _peer_names(group)
        text += [f"### {_title(*group[0])}", "",
                 f"![times and ratios]({name}.svg)", "",
                 "| case | AnyDML | floor | x floor | best peer | x best | " + " | ".join(peers) + " |",
                 "|---|--:|--:|--:|---|--:|" + "--:|" * len(peers)]
        for record, details in group:
            floor, peer = ratios(record)
            best = best_peer(record)
            cells = [record["case"], f"**{number(record['ours_ms'])}**", number(record["floor_ms"]), f"{floor:.2f}",
                     best[0] if best else "-", f"{peer:.2f}" if peer else "-"]
            for peer_name in peers:
                if peer_name not in record["peers"]:
                    cells.append("-")
                    continue
                mark = MARKS.get(details.verdicts[peer_name])
                used |= {mark} if mark else set()
                cells.append(number(record["peers"][peer_name]) + (f" {mark[0]}" if mark else ""))
            text.append("| " + " | ".join(cells) + " |")
        text.append("")
    text += [f"{letter}: {meaning}.  " for letter, meaning in sorted(used)]
    text.append("-: the peer does not have the type or the operator, or is not installed.")
    if notes:
        text += ["", "<details><summary>Left out</summary>", "",
                 *(f"- {what}: {why}".replace("|", "\\|") for what, why in notes.items()), "", "</details>"]
    return "\n".join(text) + "\n"


def _first_match(path, pattern):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text(), re.MULTILINE)
        return found.group(1) if found else None
    except OSError:
        return None


def _output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def commit(root):
    """Which state of the library was measured."""
    return "AnyDML at " + (_output("git", "-C", str(root), "describe", "--always", "--dirty") or "an unknown commit")


def machine(root, versions, options):
    processor = _first_match("/proc/cpuinfo", r"^model name\s*:\s*(.+)$")
    if not processor:
        found = re.search(r"Model name:\s*(.+)", _output("lscpu"))
        processor = found.group(1) if found else platform.machine()
    memory = int(_first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)") or 0) / (1 << 20)
    pages = _first_match("/sys/kernel/mm/transparent_hugepage/enabled", r"\[(\w+)\]") or "unknown"
    return {
        "Machine": f"{processor} ({platform.machine()}), {len(os.sched_getaffinity(0))} processors, "
                   f"{memory:.0f} GiB, Linux {platform.release()}, transparent huge pages: {pages}",
        "Date": datetime.date.today().isoformat(),
        "Libraries": ", ".join(f"{name} {version}" for name, version in versions.items()) + f" ({commit(root)})",
        "Command": options.command,
        "Run": f"{'quick' if options.quick else 'full'}, threads {options.threads}; load average before it: "
               f"{options.load:.1f}",
    }
