// Why an operator is refused, in the terms of the one who asked for it.
#pragma once

#include <functional>

#include "anydml/describe/description.h"

namespace anydml::tools {

// Makes the description that was asked for, for devices of that level.
using DescribeAt = std::function<Status(FeatureLevel, Description*)>;

// A failure of `description`, which `describe` made for devices of `level`, or failed to make. Where
// dimensions were added to tensors, the sentence is that about the tensors without them, if they are refused
// as well; else it tells what was added. Says what to do about NumPy's FLOAT64 where a tensor may not have
// it.
Status Explain(const Status& status, const Description& description, FeatureLevel level,
               const DescribeAt& describe);

}  // namespace anydml::tools
