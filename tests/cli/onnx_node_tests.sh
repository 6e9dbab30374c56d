#!/usr/bin/env bash
# onnx_node_tests.sh ANYDML: ONNX's backend tests as packaged by Debian (libonnx-testdata). None may fail, and
# the number of skipped ones (unsupported: strings, training, ...) must not grow.
set -euo pipefail
data=/usr/share/libonnx-testdata/data
most_skipped=120

[ -d "$data" ] || { echo "libonnx-testdata is not installed"; exit 77; }
last=$("$1" onnx-test "$data"/{node,simple,pytorch-converted,pytorch-operator} --adapter "${ANYDML_TEST_BACKEND:-cpu}" |
  tee /dev/stderr | tail -n 1) || exit 1
[[ $last =~ ^([0-9]+)\ passed,\ 0\ failed,\ ([0-9]+)\ skipped$ ]] || { echo "unexpected: $last"; exit 1; }
((BASH_REMATCH[1] + BASH_REMATCH[2] >= 1000)) || { echo "only some of the tests are there"; exit 1; }
((BASH_REMATCH[2] <= most_skipped)) || { echo "more than $most_skipped are skipped"; exit 1; }
