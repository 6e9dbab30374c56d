#!/usr/bin/env bash
# operator-table.sh ANYDML [--check]: writes the README's table of operators (how many there are) from
# what the command line says; with --check only tells whether the README is current.
set -euo pipefail
anydml=$(realpath "$1") mode=${2:-write}
cd "$(dirname "$0")/.."

# A column per feature level: how many operators came with it, and how many of them each backend has.
table() {
  "$anydml" operators | awk '
    NR == 1 { next }
    !($2 in all) { levels[++count] = $2 }
    { ++all[$2]; cpu[$2] += / cpu\./; cuda[$2] += / cuda\./ }
    function line(title, numbers,   i, sum) {
      printf "| %s |", title
      for (i = 1; i <= count; ++i) { printf " %d |", numbers[levels[i]]; sum += numbers[levels[i]] }
      printf " **%d** |\n", sum
    }
    END {
      printf "| |"; for (i = 1; i <= count; ++i) printf " %s |", levels[i]; print " all |"
      printf "|---|"; for (i = 0; i <= count; ++i) printf "--:|"; print ""
      line("operators", all); line("on the CPU", cpu); line("on CUDA", cuda)
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
