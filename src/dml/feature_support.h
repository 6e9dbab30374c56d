// The answers to IDMLDevice::CheckFeatureSupport, as functions of the device's feature level.
#pragma once

#include <DirectML.h>

#include "base/status.h"
#include "schema/schema.h"

namespace anydml::dml {

// Whether it is one of the header's fifteen levels.
bool IsFeatureLevel(FeatureLevel level);

// The level to which ANYDML_FEATURE_LEVEL limits new devices; the latest if it is not set.
Status HeldFeatureLevel(FeatureLevel* level);

// Whether an operator of `level` takes tensors of this type. False for values that are no type.
bool IsTypeSupported(uint32_t type, FeatureLevel level);

Status CheckFeature(FeatureLevel level, uint32_t feature, UINT query_size, const void* query,
                    UINT support_size, void* support);

}  // namespace anydml::dml
