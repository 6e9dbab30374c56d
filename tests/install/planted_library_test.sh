#!/usr/bin/env bash
# planted_library_test.sh CMAKE BUILD_DIR READELF PYTHON: foreign libraries in folders around ours are not
# loaded:
# not from the repository or the build tree's root, not from the folders above an installed package or a
# wheel,
# not from the working directory. The planted files are not libraries, so that the loader fails if it finds
# one.
# PYTHON is empty when there is no package for it.
set -euo pipefail
cmake=$1 build=$2 readelf=$3 python=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 checked=0

needed=$("$readelf" -dW "$build"/lib/*.so "$build/bin/anydml" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]$/\1/p' | sort -u)
[ "$(wc -w <<<"$needed")" -ge 5 ] || { echo "only \"$needed\" are needed"; exit 1; }

# plant FOLDER...: plants a file for each library name that our libraries and programs need.
plant() {
  local folder name
  for folder in "$@"; do
    for name in $needed; do
      [ -e "$folder/$name" ] || echo "no library" >"$folder/$name"
    done
  done
}

# check NAME COMMAND...: the command works, whatever is in the working directory.
check() {
  local name=$1
  shift
  (cd "$work/planted" && "$@") </dev/null >"$work/log" 2>&1 || { echo "$name: $*"; cat "$work/log"; failed=1; }
}

# check_tree NAME FOLDER: its programs, packages and plugins, with files planted in all folders that are not
# ours.
check_tree() {
  local name=$1 tree=$2 folder file
  while IFS= read -r folder; do
    [ -e "$folder/libanydml.so.0" ] || plant "$folder"
  done < <(find "$tree" -type d)
  while IFS= read -r file; do
    case $file in
      */bin/anydml) check "$name" "$file" adapters ;;
      *) [ -n "$python" ] || continue ;;&
      */_anydml.*.so)
        check "$name" env PYTHONPATH="$(dirname "$(dirname "$file")")" "$python" -c 'import anydml; anydml.Device("cpu")' ;;
      */libanydml_ort.so) check "$name" "$python" -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$file" ;;
    esac
    checked=$((checked + 1))
  done < <(find "$tree" -type f \( -path '*/bin/anydml' -o -name '_anydml.*.so' -o -name libanydml_ort.so \))
}

mkdir -p "$work/planted" "$work/repository/build/bin" "$work/environment/lib/python3/site-packages"
plant "$work/planted"
cp -a "$build/lib" "$work/repository/build"
rm -f "$work/repository/build/lib"/*.a
cp -a "$build/bin/anydml" "$work/repository/build/bin"
[ ! -d "$build/python" ] || cp -a "$build/python" "$work/repository/build"
"$cmake" --install "$build" --prefix "$work/prefix" >"$work/log"
"$cmake" --install "$build" --component wheel --prefix "$work/environment/lib/python3/site-packages" >>"$work/log"
check_tree "the build tree" "$work/repository"
check_tree "an installation" "$work/prefix"
check_tree "a wheel in an environment" "$work/environment"

[ $checked -ge 2 ] || { echo "only $checked programs, packages and plugins were found"; failed=1; }

# The test can fail: a file planted in a searched folder breaks the program.
if (cd "$work/planted" && LD_LIBRARY_PATH=$work/planted "$work/prefix/bin/anydml" adapters) >"$work/log" 2>&1; then
  echo "what is planted is loaded and does no harm: this test sees nothing"
  failed=1
fi
exit $failed
