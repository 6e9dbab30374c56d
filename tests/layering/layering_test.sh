#!/usr/bin/env bash
# layering_test.sh SOURCE_DIR: data flows in one direction, so includes may point downwards only.
set -euo pipefail
cd "$1/src"
failed=0
code=(--include='*.h' --include='*.cc' --include='*.inc' --include='*.cu' --include='*.cuh')

fail() {
  echo "$@"
  failed=1
}

# includes FOLDER: lines "file:line:header" of what the files of FOLDER include in quotes.
includes() {
  grep -rnoE '#include "[^"]+"' "$1" "${code[@]}" | sed -E 's/#include "([^"]+)"/\1/' || true
}

# forbid FOLDER PATTERN...: no file of FOLDER includes a header that starts with one of the patterns.
forbid() {
  local folder=$1 pattern found
  shift
  for pattern in "$@"; do
    found=$(grep -rnE "#include [\"<]$pattern" "$folder" "${code[@]}" || true)
    if [ -n "$found" ]; then
      fail "$folder must not include $pattern:"
      echo "$found"
    fi
  done
}

# The folders that each folder of src may include besides itself. A folder that is missing here fails the
# test.
declare -A allowed=(
  [base]=""
  [schema]="base"
  [com]="base"
  [kernel]="base"
  [ops]="base schema kernel"
  [graph]="base schema kernel ops"
  [backend]="base kernel"
  [d3d12]="base com kernel backend"
  [dml]="base schema com kernel ops graph backend d3d12"
  [client]="base schema"
  [onnx]="base client"
  [ort]="base client onnx"
)
# Clients outside src; "anydml" is the command line's own folder.
declare -A clients=(
  [../tools]="anydml base schema client onnx"
  [../python/src]="base schema client onnx"
  [../bench]="base client"
)

[ -d ops ] && [ -d dml ] || { echo "not the source folder: $PWD"; exit 1; }
folders=(*/)
folders=("${folders[@]%/}")
names=" ${folders[*]} anydml common "

# check_allowed FOLDER NAME...: FOLDER includes headers of these folders and of itself only.
check_allowed() {
  local folder=$1 line top
  local may=" $2 ${folder##*/} "
  while IFS= read -r line; do
    top=${line#*:*:}
    [[ $top == */* ]] || continue
    top=${top%%/*}
    if [[ $names == *" $top "* && $may != *" $top "* ]]; then fail "$folder must not include $top/: $line"; fi
  done < <(includes "$folder")
}

for folder in "${folders[@]}"; do
  if [ -n "${allowed[$folder]+there}" ]; then
    check_allowed "$folder" "${allowed[$folder]}"
  else
    fail "src/$folder is not named in tests/layering/layering_test.sh: say what it may include"
  fi
done
for folder in "${!clients[@]}"; do check_allowed "$folder" "${clients[$folder]}"; done
[ -z "$(ls ../tools/common 2>/dev/null)" ] || fail "tools/common is src/client now"

# Code unrelated to Direct3D's and DirectML's interfaces does not include them.
for folder in base kernel graph ops backend; do forbid "$folder" d3d12.h DirectML.h; done

# Families of operators. Kernels are private to a family. Shared code is in ops/common, ops/device (plans for
# GPUs) and its cuda/, ops/numbers (vector loops) or ops/product (sums of products).
while IFS= read -r line; do
  file=${line%%:*}
  family=${file#ops/}
  family=${family%%/*}
  header=${line#*:*:}
  if [[ $header =~ ^ops/([a-z0-9_]+)/(cpu|cuda)/ && ${BASH_REMATCH[1]} != "$family" &&
    ${BASH_REMATCH[1]} != device ]]; then
    fail "$family must not include the kernels of ${BASH_REMATCH[1]}: $line"
  fi
done < <(includes ops)

# Plans for GPUs do not depend on a particular GPU.
for plan in ops/device/*.h ops/device/*.cc ops/*/*plan.h ops/*/*plan.cc; do
  if [ -e "$plan" ]; then forbid "$plan" 'ops/[a-z_]*/cuda' cuda; fi
done

# room FILE: its folder. A family of operators, its plans, its cpu/ and its cuda/ are four rooms; deeper
# folders belong to these.
room() {
  if [[ $1 =~ ^(ops/[a-z0-9_]+/(cpu|cuda))/ ]]; then
    echo "${BASH_REMATCH[1]}"
  elif [[ $1 =~ ^(ops/[a-z0-9_]+)/([a-z0-9_]*_)?plan\.(h|cc)$ ]]; then
    echo "${BASH_REMATCH[1]}/plan"
  else
    echo "${1%/*}"
  fi
}

# edges FOLDER: pairs of rooms below FOLDER, the first of which includes the second. Tests and their helpers
# may include anything.
edges() {
  local line file header from to
  while IFS= read -r line; do
    file=${line%%:*}
    header=${line#*:*:}
    [[ $header == "$1"/*/* && ! $file =~ _test\.cc$|_test_|_cases\.|_support\.h$|attention_builder|graph_under_test|fused_graph ]] ||
      continue
    from=$(room "$file") to=$(room "$header")
    # A family's rules may use its own plans and kernels.
    [[ $from = "$to" || $to == "$from"/cpu || $to == "$from"/cuda || $to == "$from"/plan ]] || echo "$from $to"
  done < <(includes "$1") | sort -u
}

# no_circles NAME: the pairs on standard input have no cycle.
no_circles() {
  local said
  said=$(tsort 2>&1 >/dev/null) || true
  if [ -n "$said" ]; then
    fail "$1 include each other in a circle:"
    echo "$said"
  fi
}

# top_edges: pairs of folders of src, the first of which includes the second.
top_edges() {
  local folder top
  for folder in "${folders[@]}"; do
    while IFS= read -r top; do
      if [[ " ${folders[*]} " == *" $top "* && $top != "$folder" ]]; then echo "$folder $top"; fi
    done < <(includes "$folder" | sed -E "s|^[^:]*:[^:]*:||; s|/.*||" | sort -u)
  done
}

for folder in ops graph onnx; do no_circles "folders of src/$folder" < <(edges "$folder"); done
no_circles "folders of src" < <(top_edges)
exit $failed
