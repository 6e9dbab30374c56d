#!/usr/bin/env bash
# hardening_test.sh READELF BUILD_DIR CONFIG SANITIZERS: what makes an error in our libraries and programs harder
# to exploit is in the files: read-only relocations, all bound at the start; no relocations in code; no stack that
# can be executed; programs at random addresses; stack protectors; checked C functions.
set -euo pipefail
readelf=$1 build=$2 config=$3 sanitizers=$4
failed=0

# complain FILE SENTENCE
complain() {
  echo "$(basename "$1"): $2"
  failed=1
}

files=("$build"/lib/*.so "$build"/bin/*)
[ ${#files[@]} -ge 7 ] || complain "$build" "only ${#files[@]} libraries and programs found"
for file in "${files[@]}"; do
  header=$("$readelf" -h "$file") segments=$("$readelf" -lW "$file") dynamic=$("$readelf" -dW "$file")
  grep -q 'Type: *DYN' <<<"$header" || complain "$file" "is not position independent"
  grep -q GNU_RELRO <<<"$segments" || complain "$file" "has no read-only relocations (RELRO)"
  grep -qE 'BIND_NOW|Flags:.*NOW' <<<"$dynamic" || complain "$file" "binds symbols late"
  ! grep -q TEXTREL <<<"$dynamic" || complain "$file" "has relocations in its code"
  grep 'GNU_STACK' <<<"$segments" | grep -qv 'RWE' || complain "$file" "has an executable stack"
done
if [ -z "$sanitizers" ]; then
  symbols=$("$readelf" --dyn-syms -W "$build/lib/libanydml.so")
  grep -q __stack_chk_fail <<<"$symbols" || complain libanydml.so "has no stack protectors"
  [ "$config" = Debug ] || grep -qE '__[a-z]+_chk' <<<"$symbols" || complain libanydml.so "calls no checked C function"
fi
exit $failed
