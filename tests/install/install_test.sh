#!/usr/bin/env bash
# install_test.sh CMAKE BUILD_DIR CONSUMER_SOURCE CXX SANITIZERS
set -euo pipefail
cmake=$1 build=$2 source=$3 cxx=$4 sanitize=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
flags=()
[ -z "$sanitize" ] || flags=(-fsanitize="$sanitize")

"$cmake" --install "$build" --prefix "$prefix" >"$work/install.log"
# Moved after installing: the package must not contain the prefix.
mv "$prefix" "$work/moved"
prefix=$work/moved

echo "== find_package"
"$cmake" -S "$source" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_CXX_FLAGS="${flags[*]:-}" >"$work/configure.log"
"$cmake" --build "$work/cmake"
"$work/cmake/consumer"

echo "== pkg-config"
libdir=$(dirname "$(find "$prefix" -name directml.pc)")
export PKG_CONFIG_PATH=$libdir
# shellcheck disable=SC2046
"$cxx" -std=c++17 "${flags[@]}" "$source/main.cpp" -o "$work/consumer" $(pkg-config --cflags --libs directml)
"$work/consumer"

echo "== the folders of a NuGet package"
"$cmake" --install "$build" --component nuget --prefix "$work/nuget" >>"$work/install.log"
libraries=$(dirname "$(find "$work/nuget/bin" -name libdirectml.so)")
# No other include folder: the package's own DirectX-Headers must be found.
"$cxx" -std=c++17 "${flags[@]}" "$source/main.cpp" -o "$work/nuget_consumer" -I "$work/nuget/include" \
  -L "$libraries" -ldirectml -ld3d12 -ldxcore -ldxgi -lanydml
LD_LIBRARY_PATH=$libraries "$work/nuget_consumer"
if compgen -G "$prefix/bin/*-linux" >/dev/null; then
  echo "the usual installation has the folders of a package"
  exit 1
fi

echo "== the installed command line"
"$prefix/bin/anydml" adapters
"$prefix/bin/anydml" conformance --adapter cpu --filter examples/
for page in man/man1/anydml.1 bash-completion/completions/anydml zsh/site-functions/_anydml \
  fish/vendor_completions.d/anydml.fish; do
  [ -s "$prefix/share/$page" ] || { echo "share/$page is missing"; exit 1; }
done
