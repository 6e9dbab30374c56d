#!/usr/bin/env bash
# operator-table.sh ANYDML [--check]: writes the README's table of operators from what
# the command line says; with --check only tells whether the README is current.
set -euo pipefail
anydml=$(realpath "$1") mode=${2:-write}
cd "$(dirname "$0")/.."

table() {
  echo '| since | operators |'
  echo '|---|---|'
  "$anydml" operators | awk '
    NR == 1 { next }
    !($2 in names) { levels[++count] = $2 }
    { names[$2] = names[$2] (names[$2] ? ", " : "") $1 }
    END { for (i = 1; i <= count; ++i) printf "| %s | %s |\n", levels[i], names[levels[i]] }'
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
