#!/usr/bin/env bash
# sanitize_gpu.sh BUILD [TOOL...]: a case of every operator with every implementation of the first GPU, under
# NVIDIA's compute-sanitizer: memcheck, racecheck and initcheck, or the named tools. BUILD is a build folder
# with the CUDA module, ops_cases_test and anydml-cli (./dev gpu: build-cuda). More cases:
# ANYDML_TEST_SECONDS=200 (for all families); others: ANYDML_TEST_SEED=n; fewer: GTEST_FILTER='*gemm*'. Exits
# with 77 if there is no GPU.
set -euo pipefail
build=${1:?usage: sanitize_gpu.sh BUILD [TOOL...]}
shift
[ $# -gt 0 ] || set -- memcheck racecheck initcheck
here=$(dirname "$0")
nvcc=$(command -v "${CUDACXX:-nvcc}" || true)
sanitizer=$(command -v compute-sanitizer || true)
for folder in ${nvcc:+"$(dirname "$(readlink -f "$nvcc")")"} /usr/local/cuda/bin; do
  [ -n "$sanitizer" ] || ! [ -x "$folder/compute-sanitizer" ] || sanitizer=$folder/compute-sanitizer
done
[ -n "$sanitizer" ] || { echo "sanitize_gpu.sh: there is no compute-sanitizer (it comes with CUDA)" >&2; exit 1; }
export ANYDML_TEST_SECONDS=${ANYDML_TEST_SECONDS:-0} GTEST_FILTER=${GTEST_FILTER:-Families/*} GTEST_BRIEF=1
failed=()
for tool in "$@"; do
  echo "sanitize_gpu.sh: $tool"
  start=$SECONDS
  # Data errors that kernels report are not errors of CUDA: only errors of the tool and failed tests count.
  "$here/support/on_gpu.sh" "$build/bin/anydml" "$sanitizer" --tool "$tool" --error-exitcode 9 --print-limit 20 \
    "$build/tests/bin/ops_cases_test" || { [ $? -ne 77 ] || exit 77; failed+=("$tool"); }
  echo "sanitize_gpu.sh: $tool took $((SECONDS - start)) s"
done
[ ${#failed[@]} -eq 0 ] || { echo "sanitize_gpu.sh: failed: ${failed[*]}" >&2; exit 1; }
