#!/usr/bin/env python3
"""Judges any DirectML by the pack: runs every model with a command and compares the files that it wrote.

    judge.py [options] COMMAND...

{model} in COMMAND becomes the model's path, or it follows at the end. COMMAND runs in a scratch folder with a copy
of the model in it. A model that has to be refused is to end the command with an exit code that is not 0.

    judge.py dxdispatch -v 0
    judge.py anydml run {model} --allow-out-of-range

Exit codes: 0 all passed, 1 some failed, 2 bad usage, 3 none failed, but some could not be judged.
"""
import argparse
import ast
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

PACK = pathlib.Path(__file__).resolve().parent
DTYPES = {"FLOAT64": "f8", "FLOAT32": "f4", "FLOAT16": "f2", "INT64": "i8", "INT32": "i4", "INT16": "i2", "INT8": "i1",
          "UINT64": "u8", "UINT32": "u4", "UINT16": "u2", "UINT8": "u1"}
CODES = {"f8": "d", "f4": "f", "f2": "e", "i8": "q", "i4": "i", "i2": "h", "i1": "b", "u8": "Q", "u4": "I", "u2": "H",
         "u1": "B"}
TIMEOUT = 60


class Failure(Exception):
    pass


def read_npy(path):
    """NumPy's type without the byte order, and the elements."""
    data = path.read_bytes()
    if data[:6] != b"\x93NUMPY":
        raise Failure(f"{path.name} is not a .npy file")
    header_at, width = (10, "<H") if data[6] == 1 else (12, "<I")
    length = struct.unpack_from(width, data, 8)[0]
    header = ast.literal_eval(data[header_at:header_at + length].decode("latin-1").strip())
    dtype, count = header["descr"][1:], math.prod(header["shape"])
    return dtype, struct.unpack_from(f"<{count}{CODES[dtype]}", data, header_at + length)


def as_element(number, code):
    """The number as an element of the type has it: rounded to a float's precision."""
    number = float(number) if isinstance(number, str) else number
    return struct.unpack("<" + code, struct.pack("<" + code, number))[0]


def place(number, code):
    """Of a float among all floats of its type, so that neighbours differ by 1."""
    bits = struct.unpack({"f": "<i", "e": "<h"}[code], struct.pack("<" + code, number))[0]
    return bits if bits >= 0 else -(bits & (0x7FFFFFFF if code == "f" else 0x7FFF))


def near(found, expected, code, tolerance):
    if abs(place(found, code) - place(expected, code)) <= tolerance.get("ulps", 0):
        return True
    return math.isfinite(found) and math.isfinite(expected) and \
        abs(found - expected) <= tolerance.get("absolute", 0) + tolerance.get("relative", 0) * abs(expected)


def matches(found, expected, before, code, tolerance):
    """Two NaNs match, and -0 matches 0: where bits matter, the buffer is one of integers. There is no tolerance for
    what was there before and has to stay."""
    expected = as_element(expected, code)
    if found == expected or (found != found and expected != expected):
        return True
    return bool(tolerance) and found == found and expected == expected and expected != as_element(before, code) and \
        near(found, expected, code, tolerance)


def compare(resource, path, expected, model, tolerance):
    data_type, before = (model["resources"][resource][key] for key in ("initialValuesDataType", "initialValues"))
    if isinstance(before, dict):
        before = [before["value"]] * before["valueCount"]
    if not path.exists():
        raise Failure(f"'{resource}' was not written")
    dtype, found = read_npy(path)
    if dtype != DTYPES[data_type]:
        raise Failure(f"'{resource}' was written as {dtype}; it is {data_type}")
    if len(found) != len(expected):
        raise Failure(f"'{resource}' has {len(found)} elements; {len(expected)} are expected")
    wrong = [i for i, three in enumerate(zip(found, expected, before)) if not matches(*three, CODES[dtype], tolerance)]
    if wrong:
        raise Failure(f"'{resource}': {len(wrong)} of {len(found)} elements are not as expected; element {wrong[0]} "
                      f"is {found[wrong[0]]}, expected {expected[wrong[0]]}")


def crashed(code):
    """By a signal, or by an exception of Windows (0xC0000005...)."""
    return code < 0 or code & 0xF0000000 == 0xC0000000


def judge(model, expectation, command, environment):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / model.name
        shutil.copyfile(model, copy)
        words = [word.replace("{model}", str(copy)) for word in command]
        if words == command:
            words.append(str(copy))
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, errors="replace",
                              timeout=TIMEOUT)
        said = (done.stderr + done.stdout).strip()[-300:]
        if crashed(done.returncode):
            raise Failure(f"the command crashed with code {done.returncode}: {said}")
        if "refused" in expectation:
            if done.returncode == 0:
                raise Failure(f"{expectation['refused']} was expected, but the command succeeded")
            return
        if done.returncode != 0:
            raise Failure(f"the command failed with code {done.returncode}: {said}")
        described = json.loads(model.read_text(encoding="utf-8"))
        for resource, expected in expectation["outputs"].items():
            compare(resource, copy.with_name(f"{model.stem}.{resource}.npy"), expected, described,
                    expectation.get("tolerances", {}).get(resource, {}))


def level(text):
    return tuple(map(int, text.split(".")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     usage="judge.py [options] COMMAND...")
    parser.add_argument("--filter", default="", metavar="REGEX", help="only the models whose GROUP/MODEL has it")
    parser.add_argument("--pack", type=pathlib.Path, default=PACK, metavar="FOLDER", help="another pack")
    parser.add_argument("--device-level", default="6.4", metavar="LEVEL",
                        help="the device's feature level (6.4); models for higher ones are not judged")
    parser.add_argument("--level-variable", metavar="NAME",
                        help="environment variable that holds the device to a feature level; without it the models "
                             "that need that are not judged")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("no command was given")
    program = shutil.which(options.command[0])
    if not program:
        parser.error(f"there is no program {options.command[0]}")
    command = [os.path.abspath(program), *options.command[1:]]
    counts = {"passed": 0, "failed": 0, "not judged": 0}
    for file in sorted(options.pack.rglob("expected.json")):
        group = file.parent.relative_to(options.pack).as_posix()
        for name, expectation in json.loads(file.read_text(encoding="utf-8"))["models"].items():
            if not re.search(options.filter, f"{group}/{name}"):
                continue
            held = expectation.get("featureLevel")
            environment = dict(os.environ)
            if held and options.level_variable:
                environment[options.level_variable] = held
            if level(held or expectation["since"]) > level(options.device_level) or \
                    (held and not options.level_variable):
                counts["not judged"] += 1
                continue
            try:
                judge(file.with_name(f"{name}.json"), expectation, command, environment)
                counts["passed"] += 1
            except (Failure, OSError, subprocess.TimeoutExpired) as error:
                counts["failed"] += 1
                print(f"FAILED {group}/{name}: {expectation['claim']}\n  {error}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    if not any(counts.values()):
        parser.error("no model was chosen")
    return 1 if counts["failed"] else 3 if counts["not judged"] else 0


if __name__ == "__main__":
    sys.exit(main())
