// A convolution as cuDNN runs it: a graph of operations, an engine that was chosen for it, and the memory
// that this needs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/data_type.h"
#include "base/status.h"
#include "ops/convolution/cuda/activation.h"
#include "ops/convolution/cuda/cudnn_library.h"

namespace anydml {

// Images, channels (of all groups), then two or three spatial dimensions.
struct CudnnTensor {
  DataType type = DataType::kFloat32;
  std::vector<int64_t> sizes, strides;
};

// y = the convolution of x with w or, backward, x from y and w; what is computed is the result. Groups are
// what x has more channels than w.
struct CudnnProblem {
  bool backward = false;
  CudnnTensor x, w, y;
  std::vector<int64_t> steps, dilations, pre_paddings, post_paddings;
  bool has_bias = false;            // one of the operands' type for each channel of the result
  std::optional<SumLimits> limits;  // after that

  const CudnnTensor& result() const { return backward ? x : y; }
  std::string Key() const;  // different for different problems
};

class CudnnPlan {
 public:
  // Null, with a reason. The device is the thread's current one. Some engines are compiled first, which takes
  // long: the same problem has one plan as long as anybody has it.
  static std::shared_ptr<const CudnnPlan> Create(const CudnnProblem& problem, int device,
                                                 std::string* why_not);

  uint64_t workspace_bytes() const { return workspace_bytes_; }
  std::string name() const;  // "cuDNN 9.10.2 engine 5"

  struct Memory {
    const void* input;  // x, or y backward
    const void* filter;
    const void* bias;  // null: there is none
    void* result;
    void* workspace;
  };
  // Enqueues it.
  Status Run(void* stream, const Memory& memory) const;

 private:
  CudnnPlan() = default;

  // Each returns false with a reason.
  bool Describe(const CudnnProblem& problem, std::string* why_not);
  bool Choose(bool half, std::string* why_not);

  cudnn::Descriptor* Add(cudnn::Kind kind, const char* name);
  cudnn::Descriptor* AddTensor(const CudnnTensor& tensor, int64_t id);
  cudnn::Descriptor* AddPointwise(cudnn::PointwiseFunction function, const SumLimits* limits,
                                  const cudnn::Descriptor* from, const cudnn::Descriptor* with,
                                  const cudnn::Descriptor* to);
  // The first that failed.
  bool AllWell(std::string* why_not) const;

  cudnn::Handle* handle_ = nullptr;
  // All that the plan refers to, in the order of creation.
  std::vector<std::unique_ptr<cudnn::Descriptor>> descriptors_;
  cudnn::Descriptor* graph_ = nullptr;
  std::unique_ptr<cudnn::Descriptor> config_, plan_;
  bool backward_ = false;
  uint64_t workspace_bytes_ = 0;
  int64_t engine_ = 0;
};

}  // namespace anydml
