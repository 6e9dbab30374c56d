#!/usr/bin/env bash
# on_gpu.sh ANYDML COMMAND...: runs COMMAND on the first GPU, or exits with 77 and says why there is none.
set -euo pipefail
anydml=$1
shift
adapters=$("$anydml" adapters)
gpu=$(grep -oE 'cuda:[0-9]+' <<<"$adapters" | head -1 || true)
if [ -z "$gpu" ]; then
  echo "skipped: $(grep '^no GPU' <<<"$adapters")"
  exit 77
fi
# The operators' tests compare this backend's implementations with the reference; all others use the adapter.
export ANYDML_ADAPTER=$gpu ANYDML_TEST_BACKEND=cuda
# They have the library inside of them, so that the module does not lie beside it.
module=$(dirname "$anydml")/../lib/libanydml_cuda.so
if [ -e "$module" ]; then export ANYDML_CUDA_MODULE; ANYDML_CUDA_MODULE=$(realpath "$module"); fi
exec "$@"
