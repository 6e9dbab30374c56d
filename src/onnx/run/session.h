// A model, ready to run any number of times.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onnx/run/runner.h"

namespace anydml::onnx {

// An input or output of a model.
struct Signature {
  std::string name;
  ValueKind kind = ValueKind::kTensor;
  ElementType type = ElementType::kUndefined;
  bool has_shape = false;
  Shape shape;  // -1 for any size
  std::vector<std::string> symbols;
};

struct NamedResult {
  std::string name;
  Tensor tensor;
};

struct NamedValue {
  std::string name;
  RuntimeValue value;  // on the host
};

// Used by one thread at a time.
class ModelSession {
 public:
  // `session` must outlive it.
  static Status Create(std::unique_ptr<Model> model, client::Session* session,
                       std::unique_ptr<ModelSession>* out);

  const Model& model() const { return *model_; }
  size_t node_count() const { return program_->nodes().size(); }
  // Called while parts are compiled with the number of nodes read so far.
  void set_progress(std::function<void(size_t)> progress) { runner_->set_progress(std::move(progress)); }
  // Asked before every iteration of a loop; an error ends the run. Loops run as long as the model likes.
  void set_poll(std::function<Status()> poll) { runner_->set_poll(std::move(poll)); }
  // Called for every compiled part of the model with lines about what was folded, fused and chosen.
  void set_explain(std::function<void(const std::string&)> explain) {
    runner_->set_explain(std::move(explain));
  }
  // From now on runs are timed by the device's clock, if the model is a single graph.
  void set_timed() { runner_->set_timed(); }
  // The graph's time in the latest run; empty if unknown.
  std::optional<double> device_seconds() const { return runner_->device_seconds(); }
  std::vector<Signature> inputs() const { return Signatures(program_->inputs()); }
  std::vector<Signature> outputs() const { return Signatures(program_->outputs()); }

  // Every input by name. Sizes with the same symbol must agree.
  Status Run(const std::map<std::string, Tensor>& inputs, std::vector<NamedResult>* results);
  // The same with sequences and optional values.
  Status Run(const std::map<std::string, RuntimeValue>& inputs, std::vector<NamedValue>* results);

 private:
  ModelSession() = default;
  Status CheckNames(const std::map<std::string, RuntimeValue>& inputs) const;
  std::vector<Signature> Signatures(const std::vector<ValueId>& ids) const;

  client::Session* session_ = nullptr;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<ProgramRunner> runner_;
};

// Reads a file with one value of this kind, as in ONNX's tests: a TensorProto, SequenceProto or
// OptionalProto.
Status ReadValue(const Blob& file, ValueKind kind, RuntimeValue* out);

// The result of `anydml check`: for these shapes of inputs, without a device.
struct ModelReport {
  std::map<std::string, uint64_t> operators;  // "Conv-11": how many
  std::vector<std::string> unsupported;       // one message each, at most one per operator
  uint32_t feature_level = 0;                 // the lowest that accepts everything
  uint64_t parameters = 0;
  uint64_t weight_bytes = 0;
  uint64_t intermediate_bytes = 0;  // the most that is needed at a time, before fusion
  // Why from some node on only operators' names were looked at; empty: everything was.
  std::string names_only;
};
Status InspectModel(const Model& model, const std::map<std::string, Shape>& shapes, ModelReport* report);

}  // namespace anydml::onnx
