// A group of nodes in a separate onnxruntime session on the CPU provider: the fallback for groups that AnyDML
// cannot run once their sizes are known.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "onnx/file/model.h"
#include "ort/api.h"

namespace anydml::ort {

class CpuSession {
 public:
  // Larger weights are not written into the model that onnxruntime reads; it may copy them. `model` has to
  // outlive the session.
  static Status Create(const Api& api, const onnx::Model& model, std::unique_ptr<CpuSession>* out);
  ~CpuSession();
  CpuSession(const CpuSession&) = delete;
  CpuSession& operator=(const CpuSession&) = delete;

  // `inputs` and `outputs` are in the model's order.
  Status Run(std::span<const onnx::Tensor> inputs, std::vector<onnx::Tensor>* outputs) const;

 private:
  CpuSession(const Api& api, const onnx::Model& model) : api_(api), model_(model), weights_(api_) {}
  Status Load();
  Status Configure(OrtSessionOptions* options);

  const Api api_;
  const onnx::Model& model_;
  Values weights_;
  OrtEnv* env_ = nullptr;  // the application's environment: onnxruntime has one and counts its users
  OrtSession* session_ = nullptr;
};

}  // namespace anydml::ort
