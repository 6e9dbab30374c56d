// The exported names of libdxgi.so; libanydml.so has the code.
#include <dxgi1_6.h>

#include "d3d12/entry_points.h"

#define ANYDML_EXPORT extern "C" __attribute__((visibility("default")))

ANYDML_EXPORT HRESULT CreateDXGIFactory(REFIID iid, void** factory) {
  return anydml::CreateDXGIFactory(0, iid, factory);
}

ANYDML_EXPORT HRESULT CreateDXGIFactory1(REFIID iid, void** factory) {
  return anydml::CreateDXGIFactory(0, iid, factory);
}

ANYDML_EXPORT HRESULT CreateDXGIFactory2(UINT flags, REFIID iid, void** factory) {
  return anydml::CreateDXGIFactory(flags, iid, factory);
}
