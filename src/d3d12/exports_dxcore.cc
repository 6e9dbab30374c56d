// The exported name of libdxcore.so; libanydml.so has the code.
#include "d3d12/entry_points.h"

extern "C" __attribute__((visibility("default"))) HRESULT DXCoreCreateAdapterFactory(REFIID iid,
                                                                                     void** factory) {
  return anydml::CreateDXCoreFactory(iid, factory);
}
