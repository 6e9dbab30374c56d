// A model's buffers and operators on a device.
#pragma once

#include <utility>
#include <vector>

#include "anydml/model/model.h"
#include "anydml/model/model_graph.h"
#include "client/session.h"

namespace anydml::client {

// The session must outlive it.
class ModelOnDevice {
 public:
  ModelOnDevice(Model model, Session* session) : model_(std::move(model)), session_(session) {}

  // Uploads the buffers, moving their bytes out of the model, and compiles the operators.
  Status Prepare();
  // The same with all dispatches as one graph; results that no command shows are dropped.
  Status PrepareAsGraph();

  const Model& model() const { return model_; }

  Status Record(const DispatchCommand& command);
  Status RecordGraph();

  ID3D12Resource* buffer(size_t index) const { return buffers_[index].Get(); }
  const CompiledOperator& op(size_t index) const { return operators_[index]; }

 private:
  Status Upload();
  Status Compile(const ModelOperator& op);
  // Bindings for values of the graph: those that DirectML does not own or, with `owned`, only those that it
  // owns.
  std::vector<DML_BUFFER_BINDING> BindValues(const std::vector<uint32_t>& values, bool owned) const;
  std::vector<DML_BUFFER_BINDING> Bind(const std::vector<ModelBinding>& bindings) const;

  Model model_;
  Session* const session_;
  std::vector<Microsoft::WRL::ComPtr<ID3D12Resource>> buffers_;  // one per Model::buffers
  std::vector<CompiledOperator> operators_;                      // one per Model::operators, or the graph
  ModelGraph graph_;
};

// The same failure, prefixed with the position.
Status At(const std::string& where, const Status& status);

}  // namespace anydml::client
