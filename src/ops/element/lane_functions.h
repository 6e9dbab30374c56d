// The bodies of functions-inl.h for one lane: what GPUs and builds without Highway run.
#pragma once

#include <type_traits>

#include "ops/element/lane.h"
#include "ops/element/lane_math.h"
#include "ops/element/program.h"

namespace anydml::lane_functions {

namespace hn = lane;
namespace math = lane;
#define ANYDML_BODY ANYDML_LANE
#include "ops/element/functions-inl.h"
#include "ops/element/transcendental_functions-inl.h"
#undef ANYDML_BODY

}  // namespace anydml::lane_functions
