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
    found=$(grep -rnE "#include [\"<]$pattern" "$folder" --include='*.h' --include='*.cc' --include='*.inc' --include='*.cu' || true)
    if [ -n "$found" ]; then
      echo "$folder must not include $pattern:"
      echo "$found"
      failed=1
    fi
  done
}

[ -d ops ] && [ -d dml ] || { echo "not the source folder: $PWD"; exit 1; }
forbid base com/ schema/ ops/ backend/ d3d12/ dml/ d3d12.h DirectML.h
forbid schema com/ ops/ backend/ d3d12/ dml/
forbid ops com/ backend/ d3d12/ dml/ d3d12.h DirectML.h
forbid backend com/ schema/ d3d12/ dml/ d3d12.h DirectML.h
forbid com schema/ ops/ backend/ d3d12/ dml/
forbid d3d12 dml/ schema/
forbid ../python/src com/ backend/ d3d12/ dml/
forbid ../bench com/ schema/ ops/ backend/ d3d12/ dml/
exit $failed
