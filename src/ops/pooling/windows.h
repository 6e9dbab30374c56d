// The windows in an operator's description: what all operators of the family check and infer.
#pragma once

#include <span>

#include "base/status.h"
#include "ops/pooling/problem.h"
#include "schema/operator_desc.h"

namespace anydml {

struct WindowFields {
  std::span<const uint32_t> strides;
  std::span<const uint32_t> sizes;
  std::span<const uint32_t> start;
  std::span<const uint32_t> end;
  std::span<const uint32_t> dilations;  // empty: all are 1

  uint32_t dilation(uint32_t i) const { return dilations.empty() ? 1 : dilations[i]; }
};

// From a generated description.
template <typename Desc>
WindowFields WindowFieldsOf(const Desc& desc) {
  WindowFields fields = {desc.strides, desc.window_size, desc.start_padding, desc.end_padding, {}};
  if constexpr (requires { desc.dilations; }) fields.dilations = desc.dilations;
  return fields;
}

// `input` and `output` are the names of the tensor that the windows slide over and of the tensor with an
// element per window.
Status CheckWindows(const OperatorDesc& desc, const WindowFields& fields, const char* input,
                    const char* output);

PoolingShape ShapeOf(const WindowFields& fields, const TensorDesc& input, const TensorDesc& output);

// With a depth of 1 if there is none. A null tensor is absent.
PoolingTensor PoolingTensorOf(const TensorDesc* tensor);

// The sizes of a tensor with an element per window.
Status InferWindows(const OperatorDesc& desc, const WindowFields& fields, const TensorDesc& input,
                    Dimensions* sizes);

}  // namespace anydml
