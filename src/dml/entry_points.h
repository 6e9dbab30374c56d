// The functions behind libdirectml.so's exports.
#pragma once

#include <cstdint>

#include <DirectML.h>

// Visible outside libanydml.so, which hides everything else.
#define ANYDML_ENTRY_POINT __attribute__((visibility("default")))

namespace anydml {

// Flags and level are plain numbers, because callers may pass values that are no enumerators.
ANYDML_ENTRY_POINT HRESULT CreateDmlDevice(ID3D12Device* d3d12_device, uint32_t flags,
                                           uint32_t minimum_feature_level, REFIID riid, void** ppv);

}  // namespace anydml
