#!/usr/bin/env bash
# module_path_test.sh BUILD_DIR DECOY: libanydml_cuda.so is loaded from the folder of libanydml.so or from the
# path in ANYDML_CUDA_MODULE, and from nowhere else. A missing or broken module, or one of another version, is
# reported. DECOY is a module that reports that it was loaded.
set -euo pipefail
build=$1 decoy=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# Our libraries without the module.
mkdir "$work/lib" "$work/elsewhere"
cp -P "$build"/lib/lib{anydml,directml,d3d12,dxcore,dxgi}.so* "$work/lib"
cp "$decoy" "$work/elsewhere/libanydml_cuda.so"
cd "$work/elsewhere"

# expect NAME TEXT [VARIABLE=VALUE...]: the output of `anydml adapters` must contain TEXT, or, with a leading
# !, must not contain it.
expect() {
  local name=$1 text=$2 output wanted=0 found=0
  shift 2
  output=$(env -u ANYDML_CUDA_MODULE "$@" "$build/bin/anydml" adapters 2>&1)
  [[ $text == !* ]] || wanted=1
  [[ $output != *"${text#!}"* ]] || found=1
  [ $wanted = $found ] || { printf '%s: expected "%s", got:\n%s\n' "$name" "$text" "$output"; failed=1; }
}

loaded='the decoy was loaded'
expect 'in the working directory' "!$loaded" LD_LIBRARY_PATH="$work/lib"
expect 'on the search path' "!$loaded" LD_LIBRARY_PATH="$work/lib:$work/elsewhere"
expect 'through an empty element' "!$loaded" LD_LIBRARY_PATH="$work/lib::"
expect 'the reason' "$work/lib/libanydml_cuda.so: cannot open" LD_LIBRARY_PATH="$work/lib"
expect 'a relative search path' "$work/lib/libanydml_cuda.so: cannot open" LD_LIBRARY_PATH=../lib
expect 'by an absolute path' "$loaded" LD_LIBRARY_PATH="$work/lib" ANYDML_CUDA_MODULE="$PWD/libanydml_cuda.so"
expect 'another version' "$PWD/libanydml_cuda.so is not of this version" LD_LIBRARY_PATH="$work/lib" \
  ANYDML_CUDA_MODULE="$PWD/libanydml_cuda.so"
# Whatever is wrong with the module, the CPU adapter works.
printf 'no library at all\n' > broken.so
expect 'no library' "$PWD/broken.so: " LD_LIBRARY_PATH="$work/lib" ANYDML_CUDA_MODULE="$PWD/broken.so"
expect 'another library' "$work/lib/libdxgi.so is not of this version" LD_LIBRARY_PATH="$work/lib" \
  ANYDML_CUDA_MODULE="$work/lib/libdxgi.so"
for module in "$PWD/broken.so" "$PWD/libanydml_cuda.so" "$work/lib/libdxgi.so" "$PWD/missing.so"; do
  expect 'the CPU goes on' ' cpu ' LD_LIBRARY_PATH="$work/lib" ANYDML_CUDA_MODULE="$module"
done
for relative in libanydml_cuda.so ./libanydml_cuda.so; do
  expect 'by a relative path' "!$loaded" LD_LIBRARY_PATH="$work/lib" ANYDML_CUDA_MODULE=$relative
  expect 'why not' "ANYDML_CUDA_MODULE is \"$relative\" but must be an absolute path" LD_LIBRARY_PATH="$work/lib" \
    ANYDML_CUDA_MODULE=$relative
done
mkdir "$work/lib/anydml"
cp "$decoy" "$work/lib/anydml/libanydml_cuda.so"
expect 'in the folder beside the library' "$loaded" LD_LIBRARY_PATH="$work/lib"
mv "$work/lib/anydml/libanydml_cuda.so" "$work/lib"
expect 'beside the library' "$loaded" LD_LIBRARY_PATH="$work/lib"
exit $failed
