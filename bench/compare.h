// Whether a result is right.
#pragma once

#include <string>
#include <vector>

#include "case.h"

namespace anydml::bench {

// What a result should be.
struct Expected {
  std::vector<Bytes> outputs;  // of the reference, in binding order; or
  std::vector<double> values;  // of the first output, worked out in float64 by another library
};

// "equal" (bit for bit; of element-wise operators: as close as the case asks for), "ties" (the same values,
// other indices, each at an element of that value), "duplicates" (other updates won where several meet),
// "inexact: ..." (element-wise, further away, but the same function) or "wrong: ...".
std::string Compare(const Case& c, const Inputs& inputs, const Expected& expected,
                    const std::vector<Bytes>& outputs);

// The reference's outputs of `largest`, a TOP_K1, cut to those of `c`, which differs in K only.
std::vector<Bytes> Shortened(const std::vector<Bytes>& outputs, const Case& largest, const Case& c);

}  // namespace anydml::bench
