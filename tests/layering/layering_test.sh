#!/usr/bin/env bash
# layering_test.sh SOURCE_DIR: data flows one way, so includes may point only downwards.
set -euo pipefail
cd "$1/src"
failed=0

# forbid FOLDER PATTERN...: no file of FOLDER includes a header that starts with one of the patterns.
forbid() {
  local folder=$1 pattern found
  shift
  for pattern in "$@"; do
    found=$(grep -rnE "#include [\"<]$pattern" "$folder" --include='*.h' --include='*.cc' --include='*.inc' \
      --include='*.cu' --include='*.cuh' || true)
    if [ -n "$found" ]; then
      echo "$folder must not include $pattern:"
      echo "$found"
      failed=1
    fi
  done
}

[ -d ops ] && [ -d dml ] || { echo "not the source folder: $PWD"; exit 1; }
forbid base com/ schema/ kernel/ ops/ backend/ d3d12/ dml/ d3d12.h DirectML.h
forbid schema com/ kernel/ ops/ backend/ d3d12/ dml/
forbid kernel com/ schema/ ops/ backend/ d3d12/ dml/ d3d12.h DirectML.h
forbid graph com/ backend/ d3d12/ dml/ d3d12.h DirectML.h
forbid ops graph/ com/ backend/ d3d12/ dml/ d3d12.h DirectML.h
# What a GPU is told to do is planned without knowing which GPU.
forbid ops/device 'ops/[a-z_]*/cuda' ops/common/cuda_ cuda
for plan in ops/*/*plan.h ops/*/*plan.cc; do
  forbid "$plan" 'ops/[a-z_]*/cuda' ops/common/cuda_ cuda
done
forbid backend com/ schema/ ops/ d3d12/ dml/ d3d12.h DirectML.h
forbid com schema/ kernel/ ops/ backend/ d3d12/ dml/
forbid d3d12 dml/ schema/ ops/
forbid onnx com/ schema/ kernel/ graph/ ops/ backend/ d3d12/ dml/
forbid ort com/ kernel/ graph/ ops/ backend/ d3d12/ dml/
forbid ../tools com/ kernel/ backend/ d3d12/ dml/ ops/operator.h
forbid ../python/src com/ kernel/ ops/ backend/ d3d12/ dml/
forbid ../bench com/ schema/ kernel/ ops/ backend/ d3d12/ dml/
exit $failed
