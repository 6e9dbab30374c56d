#include "onnx/run/session.h"

#include <algorithm>

#include "onnx/model/normalized_convolutions.h"
#include "onnx/model/quantized_convolutions.h"

namespace anydml::onnx {
namespace {

std::string Expected(const Signature& signature) {
  if (!signature.has_shape) return Name(signature.type);
  std::string text;
  for (size_t i = 0; i < signature.shape.size(); ++i) {
    const std::string& symbol = signature.symbols[i];
    text += StrCat(i == 0 ? "" : "x", signature.shape[i] >= 0 ? StrCat(signature.shape[i])
                                      : symbol.empty()        ? "?"
                                                              : symbol);
  }
  return StrCat(text.empty() ? "a scalar" : text, " of ", Name(signature.type));
}

Status CheckInput(const Signature& signature, const Tensor& given, std::map<std::string, int64_t>* symbols) {
  bool fits =
      given.type == signature.type && (!signature.has_shape || given.shape.size() == signature.shape.size());
  for (size_t i = 0; fits && signature.has_shape && i < given.shape.size(); ++i) {
    if (signature.shape[i] >= 0) {
      fits = signature.shape[i] == given.shape[i];
    } else if (!signature.symbols[i].empty()) {
      fits = symbols->try_emplace(signature.symbols[i], given.shape[i]).first->second == given.shape[i];
    }
  }
  if (fits) return {};
  return InvalidArgument("input \"", signature.name, "\" is ", ShapeToString(given.shape), " of ",
                         Name(given.type), "; the model takes ", Expected(signature));
}

}  // namespace

Status ModelSession::Create(std::unique_ptr<Model> model, client::Session* session,
                            std::unique_ptr<ModelSession>* out) {
  std::unique_ptr<ModelSession> created(new ModelSession);
  created->model_ = std::move(model);
  FoldNormalizations(created->model_.get());
  // Faster where operators run on the host; not measured elsewhere. Limits of bytes are CLIP1.
  if (session->adapter().traits.RunsOnHost != 0 && session->feature_level() >= DML_FEATURE_LEVEL_5_0)
    TakeQuantizedConvolutions(created->model_.get());
  ANYDML_RETURN_IF_ERROR(Program::Create(*created->model_, &created->program_));
  created->session_ = session;
  created->runner_ = std::make_unique<ProgramRunner>(*created->program_, session);
  *out = std::move(created);
  return {};
}

std::vector<Signature> ModelSession::Signatures(const std::vector<ValueId>& ids) const {
  std::vector<Signature> signatures;
  for (const ValueId id : ids) {
    const ProgramValue& value = program_->values()[id];
    Signature& signature = signatures.emplace_back();
    signature.name = value.name;
    if (value.declared == nullptr) continue;
    signature.kind = value.declared->kind;
    signature.type = value.declared->type;
    signature.has_shape = value.declared->has_shape;
    signature.shape = value.declared->shape;
    signature.symbols = value.declared->symbols;
  }
  return signatures;
}

Status ModelSession::Run(const std::map<std::string, Tensor>& inputs, std::vector<NamedResult>* results) {
  std::map<std::string, RuntimeValue> values;
  for (const auto& [name, tensor] : inputs) values[name] = RuntimeValue::Of(tensor);
  std::vector<NamedValue> outputs;
  ANYDML_RETURN_IF_ERROR(Run(values, &outputs));
  for (NamedValue& output : outputs) {
    if (!output.value.host) return Unsupported("unsupported: output \"", output.name, "\" is no tensor");
    results->push_back({output.name, *output.value.host});
  }
  return {};
}

Status ModelSession::CheckNames(const std::map<std::string, RuntimeValue>& inputs) const {
  std::string names;
  for (const ValueId id : program_->inputs()) {
    names += StrCat(names.empty() ? "" : ", ", program_->values()[id].name);
  }
  for (const auto& [name, value] : inputs) {
    const bool known =
        std::any_of(program_->inputs().begin(), program_->inputs().end(),
                    [&, &wanted = name](ValueId id) { return program_->values()[id].name == wanted; });
    if (known) continue;
    const std::vector<ValueProto>& declared = model_->graph.inputs;
    if (std::any_of(declared.begin(), declared.end(),
                    [&, &wanted = name](const ValueProto& input) { return input.name == wanted; }))
      return InvalidArgument("\"", name, "\" has a value in the model, which cannot be replaced; inputs are ",
                             names.empty() ? "none" : names);
    return InvalidArgument("the model has no input \"", name, "\"; it has ", names.empty() ? "none" : names);
  }
  return {};
}

Status ModelSession::Run(const std::map<std::string, RuntimeValue>& inputs,
                         std::vector<NamedValue>* results) {
  ANYDML_RETURN_IF_ERROR(CheckNames(inputs));
  std::vector<RuntimeValue> values;
  std::map<std::string, int64_t> symbols;
  for (const Signature& signature : this->inputs()) {
    const auto given = inputs.find(signature.name);
    if (given == inputs.end())
      return InvalidArgument("input \"", signature.name, "\" is missing: ", Expected(signature));
    if (signature.kind == ValueKind::kTensor) {
      if (!given->second.host) return InvalidArgument("input \"", signature.name, "\" is no tensor");
      ANYDML_RETURN_IF_ERROR(CheckInput(signature, *given->second.host, &symbols));
    }
    values.push_back(given->second);
  }
  std::vector<RuntimeValue> outputs;
  Status status = runner_->Run(std::move(values), {}, &outputs);
  if (!status.ok()) {
    session_->Discard();  // drops what was recorded until then
    return status;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    RuntimeValue& value = outputs[i];
    if (value.kind == RuntimeValue::Kind::kTensor) ANYDML_RETURN_IF_ERROR(runner_->EnsureHost(&value));
    for (RuntimeValue& element : value.elements) ANYDML_RETURN_IF_ERROR(runner_->EnsureHost(&element));
    results->push_back({program_->values()[program_->outputs()[i]].name, std::move(value)});
  }
  return {};
}

}  // namespace anydml::onnx
