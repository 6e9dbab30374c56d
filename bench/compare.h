// Whether a result is correct.
#pragma once

#include <string>
#include <vector>

#include "case.h"

namespace anydml::bench {

// The expected result.
struct Expected {
  std::vector<Bytes> outputs;  // of the reference, in binding order; or
  std::vector<double> values;  // of the first output, computed in float64 by another library
};

// "equal" (bit for bit; for element-wise operators within the case's error), "ties" (the same values with
// other indices, each of an element with that value), "duplicates" (among several updates of an element
// another one won), "inexact: ..." (element-wise, less accurate, but the same function) or "wrong: ...".
std::string Compare(const Case& c, const Inputs& inputs, const Expected& expected,
                    const std::vector<Bytes>& outputs);

// The reference's outputs of `largest`, a TOP_K1, cut to those of `c`, which differs in K only.
std::vector<Bytes> Shortened(const std::vector<Bytes>& outputs, const Case& largest, const Case& c);

}  // namespace anydml::bench
