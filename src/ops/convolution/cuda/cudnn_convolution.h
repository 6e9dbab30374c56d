// What cuDNN is told of a convolution.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "ops/common/cudnn/graph.h"
#include "ops/convolution/cuda/activation.h"

namespace anydml {

// Images, channels (of all groups), then two or three spatial dimensions.
struct CudnnTensor {
  DataType type = DataType::kFloat32;
  cudnn::Graph::Shape shape;
};

// y = the convolution of x with w or, backward, x from y and w; what is computed is the result. Groups are
// what x has more channels than w.
struct CudnnProblem {
  bool backward = false;
  CudnnTensor x, w, y;
  cudnn::Graph::Windows windows;
  bool has_bias = false;            // one of the operands' type for each channel of the result
  std::optional<SumLimits> limits;  // after that

  const CudnnTensor& result() const { return backward ? x : y; }
  std::string Key() const;  // different for different problems
};

// Null, with a reason. The device is the thread's current one. Addresses that Run wants: of x, w, y and,
// where there is one, the bias.
std::shared_ptr<const cudnn::Graph> CreateCudnnConvolution(const CudnnProblem& problem, int device,
                                                           std::string* why_not);

}  // namespace anydml
