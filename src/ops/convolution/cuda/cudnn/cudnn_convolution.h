// The description of a convolution for cuDNN.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "ops/convolution/activation.h"
#include "ops/device/cuda/cudnn/graph.h"

namespace anydml {

// Images, channels (of all groups), then two or three spatial dimensions.
struct CudnnTensor {
  DataType type = DataType::kFloat32;
  cudnn::Graph::Shape shape;
};

// y = the convolution of x with w or, backward, x from y and w. The group count is the ratio of the channels
// of x and w.
struct CudnnProblem {
  bool backward = false;
  CudnnTensor x, w, y;
  cudnn::Graph::Windows windows;
  bool has_bias = false;            // one number of the operands' type per channel of the result
  std::optional<SumLimits> limits;  // applied after the bias

  const CudnnTensor& result() const { return backward ? x : y; }
  std::string Key() const;  // different for different problems
};

// Null, with a reason, on failure. The device must be current. Run takes the addresses of x, w, y and, if
// there is one, the bias.
std::shared_ptr<const cudnn::Graph> CreateCudnnConvolution(const CudnnProblem& problem, int device,
                                                           std::string* why_not);

}  // namespace anydml
