// Explains why an operator is refused, in the caller's terms.
#pragma once

#include <functional>

#include "client/describe/description.h"

namespace anydml::client {

// Makes the requested description for devices of that level.
using DescribeAt = std::function<Status(FeatureLevel, Description*)>;

// Explains a failure of `description`, which `describe` made, or failed to make, for devices of `level`. If
// dimensions were added to tensors, the message is that for the tensors without them, if they are refused as
// well; otherwise it mentions the additions. Suggests a remedy for NumPy's FLOAT64 where a tensor cannot have
// it.
Status Explain(const Status& status, const Description& description, FeatureLevel level,
               const DescribeAt& describe);

}  // namespace anydml::client
