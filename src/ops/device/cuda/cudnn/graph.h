// A graph of cuDNN operations, the engine chosen for it, and its execution.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/device/cuda/cudnn/library.h"

namespace anydml::cudnn {

class Graph {
 public:
  struct Shape {
    std::vector<int64_t> sizes, strides;

    static Shape Packed(const std::vector<int64_t>& sizes);
    std::string Key() const;  // different for different shapes
  };
  // A convolution's windows, by spatial dimension.
  struct Windows {
    std::vector<int64_t> steps, dilations, pre_paddings, post_paddings;
  };
  using Tensor = const Descriptor*;

  explicit Graph(Handles* handles) : handles_(handles) {}

  // Tensors for which Run gets addresses. A value is read from host memory at every run.
  Tensor AddTensor(DataTypeNumber type, const Shape& shape);
  Tensor AddValue(DataTypeNumber type, size_t rank);
  // An intermediate tensor.
  Tensor AddBetween(DataTypeNumber type, const Shape& shape);

  // Computes in FLOAT32. `b` is null for functions of one operand.
  void AddPointwise(PointwiseFunction function, Tensor x, Tensor b, Tensor y);
  // y is x clamped to limits; NaNs are kept.
  void AddLimits(float least, float most, Tensor x, Tensor y);
  void AddReduction(ReductionFunctionNumber function, Tensor x, Tensor y);
  void AddMatmul(Tensor a, Tensor b, Tensor c);
  // y = the convolution of x with w; the gradient computes x from y and w. The group count is the ratio of
  // their channels.
  void AddConvolution(const Windows& windows, Tensor x, Tensor w, Tensor y);
  void AddConvolutionGradient(const Windows& windows, Tensor x, Tensor w, Tensor y);

  // Takes the first engine whose numerical notes all satisfy `is_allowed`. False, with a reason, if there is
  // none.
  bool Choose(bool (*is_allowed)(int note), std::string* why_not);

  uint64_t workspace_bytes() const { return workspace_bytes_; }
  std::string name() const;  // "cuDNN 9.10.2 engine 5"

  // Enqueues the graph. `addresses`: of the tensors and values, in the order in which they were added.
  // Returns an error message, or an empty string.
  std::string Run(void* stream, std::span<const void* const> addresses, void* workspace) const;

 private:
  enum class Place : uint8_t { kMemory, kValue, kBetween };

  Descriptor* Add(Kind kind, const char* name);
  Tensor AddTensor(DataTypeNumber type, const Shape& shape, Place place);
  Descriptor* AddFunction(PointwiseFunction function);
  void AddPointwise(Descriptor* function, Tensor x, Tensor b, Tensor y);
  const Descriptor* AddWindows(const Windows& windows);
  bool Finish(std::string* why_not);
  std::vector<std::unique_ptr<Descriptor>> Configs(HeuristicsModeNumber mode, std::string* error) const;
  bool TakeEngine(std::unique_ptr<Descriptor> config, int64_t engine, std::string* error);

  Handles* handles_;
  // Everything that the plan refers to, in the order of creation.
  std::vector<std::unique_ptr<Descriptor>> descriptors_;
  std::vector<void*> operations_;
  std::vector<int64_t> ids_;  // of tensors and values
  int64_t last_id_ = 0;
  Descriptor* graph_ = nullptr;
  std::unique_ptr<Descriptor> config_, plan_;
  uint64_t workspace_bytes_ = 0;
  int64_t engine_ = 0;
};

// The graph that `describe` describes, with an engine whose notes are all allowed. Compiling engines may take
// long, so all users of a key share one graph while any of them lives. Null, with a reason, on failure. The
// device must be current.
std::shared_ptr<const Graph> FindOrCreate(const std::string& key, int device,
                                          const std::function<void(Graph*)>& describe,
                                          bool (*is_allowed)(int note), std::string* why_not);

}  // namespace anydml::cudnn
