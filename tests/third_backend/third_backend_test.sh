#!/usr/bin/env bash
# third_backend_test.sh ANYDML MODULE: a backend with only some implementations is a complete adapter.
set -euo pipefail
anydml=$1
export ANYDML_OTHER_MODULE=$2

failed=0
# expect_code CODE WHAT TEXT COMMAND...
expect_code() {
  local code=$1 what=$2 text=$3 output status=0
  shift 3
  output=$("$@" 2>&1) || status=$?
  if [[ $output != *"$text"* ]] || [ "$status" -ne "$code" ]; then
    printf '%s: exit code %s, "%s" wanted; exit code %s with\n%s\n' "$what" "$code" "$text" "$status" "$output"
    failed=1
  fi
}
expect() { expect_code 0 "$@"; }

softmax=(op ACTIVATION_SOFTMAX1 Axes='[1]' --adapter abacus:0)
top_k=(op TOP_K1 InputTensor='[[3, 9, 1, 9], [4, 2, 8, 0]]' Axis=1 K=2 AxisDirection=DECREASING --adapter abacus:0)
expect 'the adapter is listed' 'abacus:0' "$anydml" adapters
expect 'its own implementation' 'abacus.softmax' "$anydml" "${softmax[@]}" InputTensor='[[1, 1, 1, 1]]' --why
expect 'its result' '[[0.25, 0.25, 0.25, 0.25]]' "$anydml" "${softmax[@]}" InputTensor='[[1, 1, 1, 1]]'
expect 'a family that it lacks' 'host:cpu.' "$anydml" "${top_k[@]}" --why
expect 'the result of the host' '[[9, 9],
 [8, 4]]' "$anydml" "${top_k[@]}"
expect 'a problem that it does not take' 'abacus.softmax: not a softmax of FLOAT32' \
  "$anydml" "${softmax[@]}" InputTensor='[[1, 1, 1, 1]]:FLOAT16' --why
expect 'a type that it lacks' 'abacus: the device has no FLOAT64' \
  "$anydml" op ELEMENT_WISE_IDENTITY InputTensor='[-1, 2]:FLOAT64' --adapter abacus:0 --why
expect 'and its result' '[-1,  2]' "$anydml" op ELEMENT_WISE_IDENTITY InputTensor='[-1, 2]:FLOAT64' --adapter abacus:0
expect 'what it can do' 'data types  all but FLOAT64' "$anydml" adapters --verbose
expect_code 3 'strict' 'TOP_K1: the backend abacus has no implementation of this family; it may not run on the host instead' \
  env ANYDML_HOST_FALLBACK=0 "$anydml" "${top_k[@]}"
expect 'strict with its own' '[[0.25, 0.25, 0.25, 0.25]]' \
  env ANYDML_HOST_FALLBACK=0 "$anydml" "${softmax[@]}" InputTensor='[[1, 1, 1, 1]]'
expect 'the host by force' 'host:cpu.blocks' \
  env ANYDML_IMPLEMENTATION=host: "$anydml" "${softmax[@]}" InputTensor='[[1, 1, 1, 1]]' --why
expect_code 1 'errors in data' 'out of range' "$anydml" op GATHER InputTensor='[1, 2, 3]' \
  IndicesTensor='[7]:UINT32' Axis=0 IndexDimensions=1 --adapter abacus:0
expect_code 1 'a module that is not there' 'ANYDML_OTHER_MODULE brings no adapter' \
  env ANYDML_OTHER_MODULE=/nonexistent.so "$anydml" "${softmax[@]}" InputTensor='[[1, 1, 1, 1]]'
expect 'the host by force on the CPU' 'cpu.' \
  env ANYDML_IMPLEMENTATION=host: "$anydml" op ELEMENT_WISE_ABS InputTensor='[-1]' --adapter cpu --why
exit $failed
