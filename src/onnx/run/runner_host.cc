// The host's work between two parts: operators whose results' sizes depend on data, and control flow.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "onnx/run/runner.h"

namespace anydml::onnx {
namespace {

// What one run may take, of all loops together, unless the environment says otherwise.
constexpr uint64_t kMostIterations = 1'000'000;
constexpr const char* kIterationsVariable = "ANYDML_ONNX_ITERATIONS";

struct IterationLimit {
  Status status;
  uint64_t most = kMostIterations;
};

IterationLimit ReadIterationLimit() {
  const char* const text = std::getenv(kIterationsVariable);
  IterationLimit limit;
  if (text == nullptr || *text == 0) return limit;
  const char* const end = text + std::strlen(text);
  const auto [read, error] = std::from_chars(text, end, limit.most);
  if (error != std::errc() || read != end)
    limit.status = InvalidArgument("the environment variable ", kIterationsVariable, " is \"", text,
                                   "\"; a number of iterations is allowed");
  return limit;
}

// Read when the library is loaded; never destroyed.
const IterationLimit& iteration_limit = *new IterationLimit(ReadIterationLimit());

// Stacks tensors of equal shapes along a new first dimension.
Status Stack(const std::vector<Tensor>& tensors, Tensor* out) {
  Shape shape = tensors[0].shape;
  if (BitsOf(tensors[0].type) < 8) return Unsupported(Name(tensors[0].type));
  std::vector<std::byte> bytes;
  for (const Tensor& tensor : tensors) {
    if (tensor.shape != shape || tensor.type != tensors[0].type) {
      return InvalidArgument("a loop's iterations have results of shapes ", ShapeToString(shape), " and ",
                             ShapeToString(tensor.shape));
    }
    bytes.insert(bytes.end(), tensor.data.begin(), tensor.data.end());
  }
  shape.insert(shape.begin(), static_cast<int64_t>(tensors.size()));
  *out = MakeTensor(tensors[0].type, shape, std::move(bytes));
  return {};
}

// A scalar's shape, or {1} if a body declares its input so, as some converters do.
Shape ScalarShape(const Program& body, size_t input) {
  if (input >= body.inputs().size()) return {};
  const ValueProto* const declared = body.values()[body.inputs()[input]].declared;
  return declared != nullptr && declared->has_shape && declared->shape.size() == 1 ? Shape{1} : Shape{};
}

}  // namespace

Status NothingOf(const Program& body, size_t output, size_t axis, Tensor* out) {
  const ProgramValue& value = body.values()[body.outputs()[output]];
  if (value.declared == nullptr || !value.declared->has_shape || BitsOf(value.declared->type) == 0) {
    return Unsupported("no iterations, and the body does not say what \"", value.name.substr(0, 80),
                       "\" would have been");
  }
  Shape shape = value.declared->shape;
  for (int64_t& size : shape) size = std::max<int64_t>(size, 0);
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(std::min(axis, shape.size())), 0);
  *out = MakeTensor(value.declared->type, shape, std::vector<std::byte>());
  return {};
}

Status ProgramRunner::HostInts(ValueId id, std::vector<int64_t>* out) {
  RuntimeValue* const value = ValueOf(id);
  ANYDML_RETURN_IF_ERROR(EnsureHost(value));
  *out = ToInts(*value->host);
  return {};
}

Status ProgramRunner::RunBody(const Program& body, std::vector<RuntimeValue> inputs,
                              std::vector<RuntimeValue>* outputs) {
  std::unique_ptr<ProgramRunner>& runner = bodies_[&body];
  if (!runner) runner = std::make_unique<ProgramRunner>(body, &session_, flags_);
  runner->around_ = this;
  runner->explain_ = explain_;
  if (inputs.size() != body.inputs().size()) {
    return InvalidArgument("a body has ", body.inputs().size(), " inputs; ", inputs.size(), " are given");
  }
  std::vector<RuntimeValue> captured;
  for (const Capture& capture : body.captures()) captured.push_back(*ValueOf(capture.outer));
  return runner->Run(std::move(inputs), std::move(captured), outputs);
}

Status ProgramRunner::RunIteration(const Program& body, std::vector<RuntimeValue> inputs,
                                   std::vector<RuntimeValue>* outputs) {
  ProgramRunner* outermost = this;
  while (outermost->around_ != nullptr) outermost = outermost->around_;
  if (outermost->poll_) ANYDML_RETURN_IF_ERROR(outermost->poll_());
  ANYDML_RETURN_IF_ERROR(iteration_limit.status);
  if (outermost->iterations_++ < iteration_limit.most) return RunBody(body, std::move(inputs), outputs);
  return Status(Code::kFail, StrCat("the model's loops have run ", iteration_limit.most,
                                    " iterations together, the most that are allowed in a run; ",
                                    kIterationsVariable, "=N in the environment allows N"));
}

Status ProgramRunner::RunIf(const ProgramNode& node) {
  std::vector<int64_t> condition;
  if (node.inputs.size() != 1 || node.inputs[0] == kAbsent) return InvalidArgument("If has no condition");
  ANYDML_RETURN_IF_ERROR(HostInts(node.inputs[0], &condition));
  const auto branch =
      node.bodies.find(condition.size() == 1 && condition[0] != 0 ? "then_branch" : "else_branch");
  if (condition.size() != 1 || branch == node.bodies.end())
    return InvalidArgument("If has no condition or branch");
  std::vector<RuntimeValue> results;
  ANYDML_RETURN_IF_ERROR(RunBody(*branch->second, {}, &results));
  if (results.size() < node.outputs.size())
    return InvalidArgument("a branch has ", results.size(), " outputs");
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kAbsent) values_[node.outputs[i]] = std::move(results[i]);
  }
  return {};
}

// Inputs: the maximum number of iterations, a condition, values; the body's: the iteration's number, the
// condition, values. The body's outputs: the condition, values, and collected values.
Status ProgramRunner::RunLoop(const ProgramNode& node) {
  const auto body = node.bodies.find("body");
  if (body == node.bodies.end() || node.inputs.size() < 2) return InvalidArgument("Loop has no body");
  const size_t carried = node.inputs.size() - 2;
  const size_t body_outputs = body->second->outputs().size();
  if (body_outputs < carried + 1 || node.outputs.size() > body_outputs - 1) {
    return InvalidArgument("the body of Loop has ", body_outputs, " outputs");
  }
  int64_t most = INT64_MAX;
  bool go_on = true;
  std::vector<int64_t> number;
  if (node.inputs[0] != kAbsent) {
    ANYDML_RETURN_IF_ERROR(HostInts(node.inputs[0], &number));
    if (number.size() == 1) most = std::min(most, number[0]);
  }
  if (node.inputs[1] != kAbsent) {
    ANYDML_RETURN_IF_ERROR(HostInts(node.inputs[1], &number));
    go_on = number.size() == 1 && number[0] != 0;
  }
  std::vector<RuntimeValue> state;
  for (size_t i = 0; i < carried; ++i) {
    if (node.inputs[i + 2] == kAbsent) return InvalidArgument("a value of Loop is left out");
    state.push_back(*ValueOf(node.inputs[i + 2]));
  }
  std::vector<std::vector<Tensor>> collected(body_outputs - 1 - carried);
  const Shape number_shape = ScalarShape(*body->second, 0), condition_shape = ScalarShape(*body->second, 1);
  for (int64_t i = 0; i < most && go_on; ++i) {
    std::vector<RuntimeValue> inputs = {RuntimeValue::Of(Int64Tensor(number_shape, {&i, 1}))};
    const int64_t yes = 1;
    inputs.push_back(RuntimeValue::Of(FromInts(ElementType::kBool, condition_shape, {&yes, 1})));
    inputs.insert(inputs.end(), state.begin(), state.end());
    std::vector<RuntimeValue> results;
    ANYDML_RETURN_IF_ERROR(RunIteration(*body->second, std::move(inputs), &results));
    ANYDML_RETURN_IF_ERROR(EnsureHost(&results[0]));
    const std::vector<int64_t> condition = ToInts(*results[0].host);
    go_on = condition.size() == 1 && condition[0] != 0;
    for (size_t j = 0; j < carried; ++j) state[j] = std::move(results[j + 1]);
    for (size_t j = 0; j < collected.size(); ++j) {
      ANYDML_RETURN_IF_ERROR(EnsureHost(&results[j + 1 + carried]));
      collected[j].push_back(*results[j + 1 + carried].host);
    }
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kAbsent) continue;
    if (i < carried) {
      values_[node.outputs[i]] = std::move(state[i]);
      continue;
    }
    Tensor stacked;
    ANYDML_RETURN_IF_ERROR(collected[i - carried].empty() ? NothingOf(*body->second, i + 1, 0, &stacked)
                                                          : Stack(collected[i - carried], &stacked));
    values_[node.outputs[i]] = RuntimeValue::Of(std::move(stacked));
  }
  return {};
}

Status ProgramRunner::RunEvaluated(size_t index) {
  const ProgramNode& node = program_.nodes()[index];
  const OperatorRow* const row = FindOperator(node.proto->domain, node.proto->type);
  if (row == nullptr || row->evaluate == nullptr) return Unsupported(WhyUnknown(node.proto->domain));
  ANYDML_RETURN_IF_ERROR(CheckInputs(node, *row));
  std::vector<const Tensor*> inputs;
  for (const ValueId id : node.inputs) {
    if (id != kAbsent) ANYDML_RETURN_IF_ERROR(EnsureHost(ValueOf(id)));
    inputs.push_back(id == kAbsent ? nullptr : &*values_[id].host);
  }
  HostCall call(node, std::move(inputs));
  ANYDML_RETURN_IF_ERROR(EvaluateNode(*row, call));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kAbsent) values_[node.outputs[i]] = RuntimeValue::Of(std::move(call.outputs[i]));
  }
  return {};
}

Status ProgramRunner::RunHostNode(size_t index, const std::string& refused) {
  const ProgramNode& node = program_.nodes()[index];
  bool known = false;
  Status status = RunSequence(node, &known);
  if (!known) {
    const std::string& type = node.proto->type;
    status = type == "If"          ? RunIf(node)
             : type == "Loop"      ? RunLoop(node)
             : type == "Scan"      ? RunScan(node)
             : node.bodies.empty() ? RunEvaluated(index)
                                   : Unsupported("no such control flow");
  }
  if (status.ok()) return {};
  if (status.code() == Code::kUnsupported && !refused.empty() && status.message() != refused)
    status = Unsupported(refused, "; nor ", status.message());
  const bool inner = status.message().starts_with("unsupported: ");  // of a body, whose message already
                                                                     // contains the position
  return inner ? status
               : Status(status.code(), StrCat(status.code() == Code::kUnsupported ? "unsupported: " : "",
                                              Title(node), ": ", status.message()));
}

}  // namespace anydml::onnx
