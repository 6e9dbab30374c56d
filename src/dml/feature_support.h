// The answers to IDMLDevice::CheckFeatureSupport, as functions of the level that
// the device is held to.
#pragma once

#include <DirectML.h>

#include "base/status.h"
#include "schema/schema.h"

namespace anydml::dml {

// One of the fifteen levels of the header?
bool IsFeatureLevel(FeatureLevel level);

// The level that ANYDML_FEATURE_LEVEL holds new devices to; the latest when it is not set.
Status HeldFeatureLevel(FeatureLevel* level);

// Some operator of `level` takes tensors of this type. False for values that are no type.
bool IsTypeSupported(uint32_t type, FeatureLevel level);

Status CheckFeature(FeatureLevel level, uint32_t feature, UINT query_size, const void* query,
                    UINT support_size, void* support);

}  // namespace anydml::dml
