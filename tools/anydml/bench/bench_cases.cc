#include "anydml/bench/bench_cases.h"

#include <algorithm>

#include "client/exit_status.h"

namespace anydml::client {
namespace {

constexpr size_t kMaxCases = 10000;

// Expands an argument to all its values: "a{1,2}" is "a1" and "a2".
Status ExpandBraces(const FieldArgument& argument, const std::string& text, std::vector<std::string>* out) {
  const size_t open = text.find('{'), close = text.find('}');
  const bool is_json = text.find('"') != std::string::npos;  // an activation, with braces of its own
  if (is_json || (open == std::string::npos && close == std::string::npos)) {
    if (std::find(out->begin(), out->end(), text) != out->end()) return {};  // once is enough
    if (out->size() >= kMaxCases) return UsageError(argument.first, " has more than ", kMaxCases, " values");
    out->push_back(text);
    return {};
  }
  const size_t next = open == std::string::npos ? open : text.find('{', open + 1);
  if (open == std::string::npos || close == std::string::npos || close < open || next < close) {
    return UsageError(argument.first, "=", argument.second,
                      ": braces come in pairs and not inside each other, as in {1,10}");
  }
  for (size_t start = open + 1; start <= close;) {
    const size_t end = std::min(text.find(',', start), close);
    ANYDML_RETURN_IF_ERROR(ExpandBraces(
        argument, text.substr(0, open) + text.substr(start, end - start) + text.substr(close + 1), out));
    start = end + 1;
  }
  return {};
}

struct SweptField {
  std::string name;
  std::vector<std::string> values;
};

bool IsSwept(const std::vector<FieldArguments>& sweep, size_t field) {
  return std::any_of(sweep.begin(), sweep.end(), [&sweep, field](const FieldArguments& fields) {
    return fields[field].second != sweep[0][field].second;
  });
}

// The part of an input's text that the case's name does not already contain through sizes and type: for
// random values, the settings that follow these.
std::string BesidesShape(const std::string& text) {
  if (!text.starts_with("random:")) return StrCat(" ", text);
  const size_t equals = text.find('=');
  return equals == std::string::npos ? "" : StrCat(" ", text.substr(text.rfind(':', equals) + 1));
}

// Makes a model with one dispatch of the operator.
void MakeModel(Operation* operation, Model* model) {
  ModelOperator& op = model->operators.emplace_back();
  op.name = operation->desc().schema->name;
  op.desc = operation->desc();
  DispatchCommand dispatch;
  const auto add = [model](const std::string& name, const TensorDesc* tensor, std::vector<std::byte> bytes) {
    if (bytes.empty()) return ModelBinding();
    const uint64_t size = bytes.size();
    model->buffers.push_back({name,
                              tensor->type,
                              {tensor->sizes.begin(), tensor->sizes.begin() + tensor->rank},
                              std::move(bytes),
                              0,
                              size});
    return ModelBinding{model->buffers.size() - 1, 0};
  };
  const std::vector<const TensorDesc*> inputs = op.desc.inputs();
  std::vector<std::vector<std::byte>> data = operation->TakeInputData();
  for (size_t i = 0; i < inputs.size(); ++i) {
    dispatch.inputs.push_back(add("input", inputs[i], std::move(data[i])));
  }
  for (const OutputSlot& output : operation->Outputs()) {
    dispatch.outputs.push_back(
        add(output.name, &output.tensor, std::vector<std::byte>(output.tensor.total_bytes)));
  }
  model->commands.push_back({"", std::move(dispatch)});
}

}  // namespace

Status ExpandSweep(const FieldArguments& given, std::vector<FieldArguments>* out) {
  std::vector<SweptField> fields;
  for (const FieldArgument& argument : given) {
    auto field = std::find_if(fields.begin(), fields.end(), [&argument](const SweptField& candidate) {
      return candidate.name == argument.first;
    });
    if (field == fields.end()) field = fields.insert(fields.end(), {argument.first, {}});
    ANYDML_RETURN_IF_ERROR(ExpandBraces(argument, argument.second, &field->values));
  }
  out->assign(1, {});
  for (const SweptField& field : fields) {
    std::vector<FieldArguments> longer;
    if (out->size() * field.values.size() > kMaxCases) {
      return UsageError("the fields' values make more than ", kMaxCases, " combinations");
    }
    for (const FieldArguments& begun : *out) {
      for (const std::string& value : field.values) {
        longer.push_back(begun);
        longer.back().emplace_back(field.name, value);
      }
    }
    *out = std::move(longer);
  }
  return {};
}

std::string SizesText(const std::vector<uint64_t>& sizes) {
  std::string text;
  for (const uint64_t size : sizes) text += StrCat(text.empty() ? "" : "x", size);
  return text;
}

Status LoadOperatorCase(const OperatorSchema& schema, const std::vector<FieldArguments>& sweep,
                        const FieldArguments& fields, FeatureLevel level, DataType index_type,
                        BenchCase* out) {
  Operation operation(schema);
  ANYDML_RETURN_IF_ERROR(operation.MatchFields(fields));
  ANYDML_RETURN_IF_ERROR(operation.LoadInputs());
  ANYDML_RETURN_IF_ERROR(operation.Describe(level, index_type));
  const OperatorDesc& desc = operation.desc();
  out->op = schema.name;
  out->name = schema.name;
  const std::vector<const TensorDesc*> inputs = desc.inputs();
  if (!inputs.empty() && inputs[0] != nullptr) {
    const TensorDesc first = operation.AsInFile(*inputs[0]);
    out->sizes.assign(first.sizes.begin(), first.sizes.begin() + first.rank);
    out->type = Name(first.type);
    out->name += StrCat(" ", SizesText(out->sizes), " ", out->type);
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto& [name, text] = fields[i];
    const auto field = static_cast<size_t>(FindField(schema, name));  // MatchFields found it
    const uint32_t* number = std::get_if<uint32_t>(&desc.fields[field]);
    const bool is_k = name == "K" && number != nullptr;
    if (is_k) out->k = *number;
    if (!IsSwept(sweep, i)) continue;
    const bool is_first_input = field == 0 && schema.fields[0].kind == FieldKind::kInput;
    const std::string part = is_first_input ? BesidesShape(text) : StrCat(" ", name, "=", text);
    out->name += part;
    if (!is_k) out->variant += part;
  }
  MakeModel(&operation, &out->model);
  return {};
}

Status LoadModelCase(const std::string& path, bool allow_outside, BenchCase* out) {
  out->op = "model";
  out->name = path;
  ANYDML_RETURN_IF_ERROR(LoadModel(path, allow_outside, &out->model));
  const auto& commands = out->model.commands;
  const bool dispatches = std::any_of(commands.begin(), commands.end(), [](const ModelCommand& command) {
    return std::holds_alternative<DispatchCommand>(command.action);
  });
  if (dispatches) return {};
  return UsageError(path, ": has no dispatch command; there is nothing to time");
}

}  // namespace anydml::client
