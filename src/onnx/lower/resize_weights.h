// Resizing along one dimension as a matrix, for what RESAMPLE lacks (cubic, crops, other windows).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace anydml::onnx {

struct ResizeAxis {
  int64_t in = 0, out = 0;
  double scale = 1;
  double start = 0, end = 1;  // of the region, for tf_crop_and_resize
};

struct ResizeMode {
  std::string mode = "cubic";  // nearest, linear, cubic
  std::string rounding = "round_prefer_floor";
  std::string coordinates = "half_pixel";
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
};

// The place of an element of the result in the input.
Status ResizedFrom(const ResizeMode& mode, const ResizeAxis& axis, int64_t at, double* out);

// `weights` {out, in}, and whether an element comes from outside the input.
Status ResizeWeights(const ResizeMode& mode, const ResizeAxis& axis, std::vector<double>* weights,
                     std::vector<int64_t>* outside);

}  // namespace anydml::onnx
