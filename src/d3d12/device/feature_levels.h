// Feature levels. The device is compute-only (1_0_CORE), but programs written for ordinary GPUs request 11_0
// and use only what we have, so the device claims 11_0.
#pragma once

#include <d3d12.h>

namespace anydml::d3d12 {

inline constexpr D3D_FEATURE_LEVEL kMaximumFeatureLevel = D3D_FEATURE_LEVEL_11_0;

// Whether it is a Direct3D 12 level: from 1_0_GENERIC to 12_2, without the levels 9 and 10.
constexpr bool IsFeatureLevel(D3D_FEATURE_LEVEL level) {
  switch (level) {
    case D3D_FEATURE_LEVEL_1_0_CORE:
    case D3D_FEATURE_LEVEL_11_0:
    case D3D_FEATURE_LEVEL_11_1:
    case D3D_FEATURE_LEVEL_12_0:
    case D3D_FEATURE_LEVEL_12_1:
    case D3D_FEATURE_LEVEL_12_2:
      return true;
    default:
      return level == D3D_FEATURE_LEVEL_1_0_GENERIC;  // not an enumerator of older headers
  }
}

}  // namespace anydml::d3d12
