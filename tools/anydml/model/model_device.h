// A model's buffers and operators on a device.
#pragma once

#include <utility>
#include <vector>

#include "anydml/model/model.h"
#include "common/session.h"

namespace anydml::tools {

// The session has to outlive it.
class ModelOnDevice {
 public:
  ModelOnDevice(Model model, Session* session) : model_(std::move(model)), session_(session) {}

  // Uploads the buffers, whose bytes the model has no longer then, and compiles the operators.
  Status Prepare();

  const Model& model() const { return model_; }

  Status Record(const DispatchCommand& command);

  ID3D12Resource* buffer(size_t index) const { return buffers_[index].Get(); }
  const CompiledOperator& op(size_t index) const { return operators_[index]; }

 private:
  Status Compile(const ModelOperator& op);
  std::vector<DML_BUFFER_BINDING> Bind(const std::vector<ModelBinding>& bindings) const;

  Model model_;
  Session* const session_;
  std::vector<Microsoft::WRL::ComPtr<ID3D12Resource>> buffers_;  // one per Model::buffers
  std::vector<CompiledOperator> operators_;                      // one per Model::operators
};

// The same failure, with the place in front.
Status At(const std::string& where, const Status& status);

}  // namespace anydml::tools
