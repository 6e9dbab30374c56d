// libdxcore.so: the name; libanydml.so does the work.
#include "d3d12/entry_points.h"

extern "C" __attribute__((visibility("default"))) HRESULT DXCoreCreateAdapterFactory(REFIID iid,
                                                                                     void** factory) {
  return anydml::CreateDXCoreFactory(iid, factory);
}
