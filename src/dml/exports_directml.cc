// libdirectml.so: the names that clients look up.
#include <DirectML.h>

#include "dml/entry_points.h"
#include "dml/raw_enum.h"

extern "C" ANYDML_ENTRY_POINT HRESULT STDAPICALLTYPE DMLCreateDevice(ID3D12Device* d3d12Device,
                                                                     DML_CREATE_DEVICE_FLAGS flags,
                                                                     REFIID riid, void** ppv) {
  return anydml::CreateDmlDevice(d3d12Device, anydml::dml::RawEnum(flags), DML_FEATURE_LEVEL_1_0, riid, ppv);
}

extern "C" ANYDML_ENTRY_POINT HRESULT STDAPICALLTYPE DMLCreateDevice1(ID3D12Device* d3d12Device,
                                                                      DML_CREATE_DEVICE_FLAGS flags,
                                                                      DML_FEATURE_LEVEL minimumFeatureLevel,
                                                                      REFIID riid, void** ppv) {
  using anydml::dml::RawEnum;
  return anydml::CreateDmlDevice(d3d12Device, RawEnum(flags), RawEnum(minimumFeatureLevel), riid, ppv);
}
