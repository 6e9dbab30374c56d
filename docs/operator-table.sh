#!/usr/bin/env bash
# operator-table.sh ANYDML [--check]: writes the README's table of operators from what
# the command line says; with --check only tells whether the README is current.
set -euo pipefail
anydml=$(realpath "$1") mode=${2:-write}
cd "$(dirname "$0")/.."

table() {
  echo '| since | implemented (CPU and CUDA) | not yet |'
  echo '|---|---|---|'
  "$anydml" operators | awk '
    NR == 1 { next }
    !($2 in seen) { seen[$2] = 1; levels[++count] = $2 }
    $3 == "-" { missing[$2] = missing[$2] (missing[$2] ? ", " : "") $1; next }
    { present[$2] = present[$2] (present[$2] ? ", " : "") $1 }
    END {
      for (i = 1; i <= count; ++i) {
        level = levels[i]
        printf "| %s | %s | %s |\n", level, present[level] ? "**" present[level] "**" : "", missing[level]
      }
    }'
}

generated=$(mktemp)
trap 'rm -f "$generated"' EXIT
{
  sed '/<!-- operators:/q' README.md
  table
  sed -n '/<!-- \/operators -->/,$p' README.md
} >"$generated"

if [ "$mode" = --check ]; then
  diff README.md "$generated" || { echo "the README's operator table is stale: ./dev generate"; exit 1; }
else
  cat "$generated" >README.md
fi
