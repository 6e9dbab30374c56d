#!/usr/bin/env bash
# wheel_test.sh PYTHON SOURCE BUILD: makes the wheel, installs it into an empty folder, and uses it from
# there.
set -euo pipefail
python=$1 source=$2 build=$3
"$python" -m pip --version >/dev/null 2>&1 || { echo "skipped: $python has no pip"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ANYDML_BUILD_DIR=$build "$python" -m pip wheel -q --no-index --no-deps --disable-pip-version-check \
  --wheel-dir "$work" "$source"
"$python" -m pip install -q --no-index --no-deps --disable-pip-version-check --target "$work/installed" \
  "$work"/anydml-*.whl
mkdir "$work/elsewhere"
cd "$work/elsewhere"
PYTHONPATH=$work/installed "$python" - "$work/installed/anydml" <<'TEXT'
import importlib.metadata
import os
import sys
import numpy as np
import anydml as dml

assert dml.top_k1(np.array([1, 3, 2], np.int8), axis=0, k=2, direction="decreasing")[1].tolist() == [1, 2]
assert importlib.metadata.version("anydml") == dml.__version__
assert os.path.exists(f"{sys.argv[1]}/dask/__init__.py")
with open("/proc/self/maps") as file:
    loaded = {line.split()[-1] for line in file if "libanydml" in line or "libdirectml" in line or "libhwy" in line}
assert loaded and all(path.startswith(sys.argv[1]) for path in loaded), loaded
print(*sorted(loaded), sep="\n")
TEXT
