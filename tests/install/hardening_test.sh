#!/usr/bin/env bash
# hardening_test.sh READELF BUILD_DIR CONFIG SANITIZERS CMAKE: checks the hardening of our libraries and
# programs: read-only relocations, all bound at the start; no relocations in code; no executable stack;
# programs at random addresses; stack protectors; checked C functions. They also must not search for libraries
# in folders that anybody can write.
set -euo pipefail
readelf=$1 build=$2 config=$3 sanitizers=$4 cmake=$5
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

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

# check_runpath FILE TREE: every element of its RUNPATH (or RPATH) must be a folder of our libraries in the
# tree. From the working directory, a folder above or a missing folder, a foreign libstdc++.so.6 could be
# loaded.
check_runpath() {
  local path element folder
  path=$("$readelf" -dW "$1" | sed -nE 's/.*\((RUNPATH|RPATH)\).*\[(.*)\]$/\2/p')
  [ -n "$path" ] || return 0
  while IFS= read -r element; do
    folder=$(realpath -m "${element//\$ORIGIN/$(dirname "$1")}")
    if [[ ! $element =~ ^(/|\$ORIGIN(/|$)) || $folder/ != "$2"/* || ! -e $folder/libanydml.so.0 ]]; then
      complain "$1" "looks for libraries in \"$element\" (of \"$path\"), which is no folder of ours"
    fi
    checked=$((checked + 1))
  done < <(tr : '\n' <<<"$path")
}

# programs_under FOLDER: all ELF files except objects and what npm installs for tests.
programs_under() {
  local file
  while IFS= read -r file; do
    [ "$(head -c 4 "$file" | tail -c 3)" != ELF ] || echo "$file"
  done < <(find "$1" \( -name CMakeFiles -o -name node_modules \) -prune -o -type f \( -perm -u+x -o -name '*.so*' \) -print)
}

# check_tree FOLDER: checks all of them, and that there are some.
check_tree() {
  local file tree
  tree=$(realpath "$1")
  checked=0
  while IFS= read -r file; do
    case $(basename "$file") in libhwy.so*) continue ;; esac  # the system's
    check_runpath "$file" "$tree"
  done < <(programs_under "$tree")
  [ $checked -ge 3 ] || complain "$1" "only $checked search paths found"
}

"$cmake" --install "$build" --prefix "$work/prefix" >"$work/log"
"$cmake" --install "$build" --prefix "$work/wheel" --component wheel >>"$work/log"
# No installed file contains the path where it was built.
for tree in "$build" "$work/prefix" "$work/wheel"; do check_tree "$tree"; done
exit $failed
