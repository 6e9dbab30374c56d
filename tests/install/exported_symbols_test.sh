#!/usr/bin/env bash
# exported_symbols_test.sh NM LIB_DIR: each library exports its documented names and no others.
set -euo pipefail
nm=$1 lib=$2
failed=0

check() {
  local library=$1 expected actual
  shift
  expected=$(printf '%s\n' "$@" | sort)
  actual=$("$nm" -D --defined-only "$lib/$library" | awk '{print $3}' | grep -v -e '^__asan' -e '^__odr_asan' -e '^_ZTI' -e '^_ZTS' | sort)
  if [ "$expected" != "$actual" ]; then
    echo "$library exports (< expected, > actual):"
    diff <(echo "$expected") <(echo "$actual") || true
    failed=1
  fi
}

check libdirectml.so DMLCreateDevice DMLCreateDevice1
check libd3d12.so D3D12CreateDevice D3D12GetDebugInterface D3D12GetInterface D3D12SerializeRootSignature \
  D3D12SerializeVersionedRootSignature D3D12EnableExperimentalFeatures
check libdxcore.so DXCoreCreateAdapterFactory
check libdxgi.so CreateDXGIFactory CreateDXGIFactory1 CreateDXGIFactory2
check libanydml_ort.so CreateEpFactories ReleaseEpFactory

# The library behind them: the extensions of anydml.h, and our own namespace's entry points.
strangers=$("$nm" -D --defined-only "$lib/libanydml.so" | awk '{print $3}' |
  grep -v -e '^AnyDml' -e '^_ZN6anydml' -e '^__asan' -e '^__odr_asan' -e '^_ZTI' -e '^_ZTS' || true)
if [ -n "$strangers" ]; then
  echo "libanydml.so also exports:"
  echo "$strangers"
  failed=1
fi
exit $failed
