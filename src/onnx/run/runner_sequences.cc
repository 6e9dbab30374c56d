// Sequences, optional values, and operators that run a body for each of many elements. Longer than most
// files: a function per operator of one class.
#include <algorithm>
#include <cstring>

#include "onnx/run/runner.h"

namespace anydml::onnx {
namespace {

// When a tensor is cut into a sequence.
constexpr int64_t kMaxSequence = int64_t{1} << 20;
// Of a batch: sequences without elements can have any number of steps, at no cost.
constexpr int64_t kMaxEmptySteps = int64_t{1} << 16;
// Of zeros whose shape only the file gives.
constexpr uint64_t kMaxClaimedBytes = uint64_t{1} << 24;

// Elements [from, from + count) along an axis.
Tensor Cut(const Tensor& tensor, uint32_t axis, int64_t from, int64_t count) {
  Shape shape = tensor.shape;
  shape[axis] = count;
  std::byte* target = nullptr;
  Tensor part = MakeTensor(tensor.type, shape, &target);
  const auto rows = static_cast<size_t>(ElementCount(std::span(tensor.shape).first(axis)).value_or(0));
  const size_t inner =
      static_cast<size_t>(ElementCount(std::span(tensor.shape).subspan(axis + 1)).value_or(0)) *
      (BitsOf(tensor.type) / 8);
  const size_t row_bytes = static_cast<size_t>(tensor.shape[axis]) * inner;
  const size_t bytes = static_cast<size_t>(count) * inner;
  for (size_t row = 0; row < rows && bytes > 0; ++row) {
    std::memcpy(target + row * bytes,
                tensor.data.data() + row * row_bytes + static_cast<size_t>(from) * inner, bytes);
  }
  return part;
}

Tensor Without(Tensor tensor, uint32_t axis) {
  tensor.shape.erase(tensor.shape.begin() + axis);
  return tensor;
}

// Joins parts along an axis that all of them have.
Status Join(const std::vector<Tensor>& parts, uint32_t axis, Tensor* out) {
  if (BitsOf(parts[0].type) < 8) return Unsupported(Name(parts[0].type));
  Shape shape = parts[0].shape;
  shape[axis] = 0;
  for (const Tensor& part : parts) {
    Shape other = part.shape;
    if (other.size() != shape.size() || part.type != parts[0].type)
      return InvalidArgument("elements that do not fit together");
    shape[axis] += other[axis];
    other[axis] = shape[axis];
    if (other != shape) return InvalidArgument("elements that do not fit together");
  }
  if (!ElementCount(shape)) return InvalidArgument("a result of ", ShapeToString(shape), " is too large");
  std::byte* target = nullptr;
  *out = MakeTensor(parts[0].type, shape, &target);
  const auto rows = static_cast<size_t>(ElementCount(std::span(shape).first(axis)).value_or(0));
  for (size_t row = 0; row < rows && !out->data.empty(); ++row) {
    for (const Tensor& part : parts) {
      const size_t bytes = part.data.size() / rows;
      if (bytes > 0) std::memcpy(target, part.data.data() + row * bytes, bytes);
      target += bytes;
    }
  }
  return {};
}

Status Position(int64_t given, size_t size, bool end_allowed, size_t* out) {
  const auto limit = static_cast<int64_t>(size);
  const int64_t at = given < 0 ? given + limit : given;
  if (at < 0 || at > limit || (at == limit && !end_allowed)) {
    return InvalidArgument("position ", given, " of a sequence of ", size);
  }
  *out = static_cast<size_t>(at);
  return {};
}

// Results of sequences without steps: zeros with the shape of the others, or else the shape in the file,
// within limits.
Status FillSequences(int64_t steps, std::vector<Tensor>* results) {
  if (steps == 0) return {};
  const auto is_empty = [](const Tensor& result) { return result.shape[1] == 0; };
  const auto full = std::find_if_not(results->begin(), results->end(), is_empty);
  Shape shape = full != results->end() ? full->shape : results->front().shape;
  shape[1] = steps;
  const uint64_t most = kMaxClaimedBytes / results->size();
  if (full == results->end() && PackedBytes(results->front().type, shape).value_or(UINT64_MAX) > most)
    return InvalidArgument(results->size(), " results of ", ShapeToString(shape),
                           ", of sequences without steps, are too large");
  for (Tensor& result : *results) {
    std::byte* zeros = nullptr;
    if (is_empty(result)) result = MakeTensor(result.type, shape, &zeros);
  }
  return {};
}

}  // namespace

Status ProgramRunner::RunSplitToSequence(const ProgramNode& node, RuntimeValue* out) {
  const NodeFacts facts(*node.proto, node.version);
  RuntimeValue* const input = ValueOf(node.inputs[0]);
  ANYDML_RETURN_IF_ERROR(EnsureHost(input));
  const Tensor& tensor = *input->host;
  if (BitsOf(tensor.type) < 8) return Unsupported(Name(tensor.type));
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(facts.Int("axis", 0), tensor.shape.size(), &axis));
  const int64_t size = tensor.shape[axis];
  std::vector<int64_t> sizes;
  const bool has_split = node.inputs.size() > 1 && node.inputs[1] != kAbsent;
  if (has_split) ANYDML_RETURN_IF_ERROR(HostInts(node.inputs[1], &sizes));
  if (!has_split || ValueOf(node.inputs[1])->shape.empty()) {  // one number: parts of that size
    const int64_t part = has_split && !sizes.empty() ? sizes[0] : 1;
    if (part < 1) return InvalidArgument("parts of ", part, " elements");
    sizes.clear();
    if (size / part > kMaxSequence) return Unsupported("a sequence of ", size / part, " elements");
    for (int64_t at = 0; at < size; at += part) sizes.push_back(std::min(part, size - at));
  }
  const bool keep = has_split || facts.Int("keepdims", 1) != 0;
  ANYDML_RETURN_IF_ERROR(facts.attribute_kinds());
  std::vector<RuntimeValue> parts;
  int64_t at = 0;
  for (const int64_t part : sizes) {
    if (part < 0 || part > size - at) return InvalidArgument("a part of ", part, " elements");
    Tensor cut = Cut(tensor, axis, at, part);
    parts.push_back(RuntimeValue::Of(keep ? std::move(cut) : Without(std::move(cut), axis)));
    at += part;
  }
  *out = RuntimeValue::Sequence(std::move(parts));
  return {};
}

Status ProgramRunner::RunConcatFromSequence(const ProgramNode& node, RuntimeValue* out) {
  const NodeFacts facts(*node.proto, node.version);
  std::vector<Tensor> parts;
  for (RuntimeValue& element : ValueOf(node.inputs[0])->elements) {
    ANYDML_RETURN_IF_ERROR(EnsureHost(&element));
    parts.push_back(*element.host);
  }
  if (parts.empty()) return InvalidArgument("the sequence is empty");
  const bool new_axis = facts.Int("new_axis", 0) != 0;
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(
      ResolveAxis(facts.Int("axis", 0), parts[0].shape.size() + (new_axis ? 1 : 0), &axis));
  ANYDML_RETURN_IF_ERROR(facts.attribute_kinds());
  for (Tensor& part : parts) {
    if (!new_axis) continue;
    if (part.shape.size() < axis) return InvalidArgument("elements that do not fit together");
    part.shape.insert(part.shape.begin() + axis, 1);
  }
  Tensor joined;
  ANYDML_RETURN_IF_ERROR(Join(parts, axis, &joined));
  *out = RuntimeValue::Of(std::move(joined));
  return {};
}

// Runs the body for the i-th elements of the sequences; tensors are the same for all.
Status ProgramRunner::RunSequenceMap(const ProgramNode& node) {
  const auto body = node.bodies.find("body");
  if (body == node.bodies.end()) return InvalidArgument("it has no body");
  if (std::find(node.inputs.begin(), node.inputs.end(), kAbsent) != node.inputs.end())
    return InvalidArgument("an input is left out");
  const size_t count = ValueOf(node.inputs[0])->elements.size();
  std::vector<std::vector<RuntimeValue>> collected(node.outputs.size());
  for (size_t i = 0; i < count; ++i) {
    std::vector<RuntimeValue> inputs, results;
    for (const ValueId id : node.inputs) {
      const RuntimeValue& value = *ValueOf(id);
      const bool sequence = value.kind == RuntimeValue::Kind::kSequence;
      if (sequence && value.elements.size() != count)
        return InvalidArgument("sequences of different lengths");
      inputs.push_back(sequence ? value.elements[i] : value);
    }
    ANYDML_RETURN_IF_ERROR(RunIteration(*body->second, std::move(inputs), &results));
    if (results.size() != collected.size())
      return InvalidArgument("the body has ", results.size(), " outputs");
    for (size_t j = 0; j < collected.size(); ++j) collected[j].push_back(std::move(results[j]));
  }
  for (size_t j = 0; j < collected.size(); ++j) {
    if (node.outputs[j] != kAbsent)
      values_[node.outputs[j]] = RuntimeValue::Sequence(std::move(collected[j]));
  }
  return {};
}

// From version 9 on: states, then sequences along axes; the body returns states, then elements of the
// results. `inputs` are states, then sequences, of which `most` steps count.
Status ProgramRunner::Scan(const ProgramNode& node, const Program& body, std::vector<RuntimeValue> inputs,
                           size_t states, int64_t most, std::vector<RuntimeValue>* outputs) {
  const NodeFacts facts(*node.proto, node.version);
  const auto item = [&](const char* name, size_t i) {
    const std::vector<int64_t> list = facts.Ints(name);
    return i < list.size() ? list[i] : 0;
  };
  const char* const directions = node.version < 9 ? "directions" : "scan_input_directions";
  for (const char* const name : {directions, "scan_input_axes", "scan_output_axes", "scan_output_directions"})
    item(name, 0);
  ANYDML_RETURN_IF_ERROR(facts.attribute_kinds());
  std::vector<Tensor> sequences;
  std::vector<uint32_t> axes;
  int64_t steps = -1;
  for (size_t i = states; i < inputs.size(); ++i) {
    RuntimeValue& value = inputs[i];
    ANYDML_RETURN_IF_ERROR(EnsureHost(&value));
    if (BitsOf(value.type) < 8) return Unsupported(Name(value.type));
    sequences.push_back(*value.host);
    ANYDML_RETURN_IF_ERROR(
        ResolveAxis(item("scan_input_axes", i - states), value.shape.size(), &axes.emplace_back()));
    const int64_t size = value.shape[axes.back()];
    if (steps >= 0 && steps != size) return InvalidArgument("sequences of ", steps, " and ", size, " steps");
    steps = size;
  }
  steps = std::min(steps, most);
  const bool empty = std::all_of(sequences.begin(), sequences.end(),
                                 [](const Tensor& tensor) { return tensor.data.empty(); });
  if (empty && steps > kMaxEmptySteps)
    return InvalidArgument(steps, " steps over sequences without elements; at most ", kMaxEmptySteps,
                           " are allowed");
  std::vector<RuntimeValue> state(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(states));
  std::vector<std::vector<Tensor>> collected(body.outputs().size() - states);
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<RuntimeValue> given = state, results;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const int64_t at = item(directions, i) != 0 ? steps - 1 - step : step;
      given.push_back(RuntimeValue::Of(Without(Cut(sequences[i], axes[i], at, 1), axes[i])));
    }
    ANYDML_RETURN_IF_ERROR(RunIteration(body, std::move(given), &results));
    for (size_t i = 0; i < states; ++i) state[i] = std::move(results[i]);
    for (size_t i = 0; i < collected.size(); ++i) {
      ANYDML_RETURN_IF_ERROR(EnsureHost(&results[states + i]));
      collected[i].push_back(*results[states + i].host);
    }
  }
  *outputs = std::move(state);
  for (size_t i = 0; i < collected.size(); ++i) {
    std::vector<Tensor>& parts = collected[i];
    const ProgramValue& declared = body.values()[body.outputs()[states + i]];
    const size_t rank = !parts.empty()                 ? parts[0].shape.size()
                        : declared.declared != nullptr ? declared.declared->shape.size()
                                                       : 0;
    uint32_t axis = 0;
    Tensor joined;
    ANYDML_RETURN_IF_ERROR(ResolveAxis(item("scan_output_axes", i), rank + 1, &axis));
    if (parts.empty()) {
      ANYDML_RETURN_IF_ERROR(NothingOf(body, states + i, axis, &joined));
    } else {
      if (item("scan_output_directions", i) != 0) std::reverse(parts.begin(), parts.end());
      for (Tensor& part : parts)
        part.shape.insert(part.shape.begin() + std::min<size_t>(axis, part.shape.size()), 1);
      ANYDML_RETURN_IF_ERROR(Join(parts, axis, &joined));
    }
    outputs->push_back(RuntimeValue::Of(std::move(joined)));
  }
  return {};
}

// Version 8: everything has a leading batch dimension, and input 0 may give the length of each sequence.
// Later elements are 0.
Status ProgramRunner::ScanBatch(const ProgramNode& node, const Program& body,
                                std::vector<RuntimeValue> inputs, size_t states,
                                std::vector<RuntimeValue>* outputs) {
  std::vector<int64_t> lengths;
  if (node.inputs[0] != kAbsent) ANYDML_RETURN_IF_ERROR(HostInts(node.inputs[0], &lengths));
  int64_t batch = -1, steps = 0;
  bool empty = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ANYDML_RETURN_IF_ERROR(EnsureHost(&inputs[i]));
    const Shape& shape = inputs[i].shape;
    if (BitsOf(inputs[i].type) < 8) return Unsupported(Name(inputs[i].type));
    if (shape.size() < (i < states ? 1 : 2) || (batch >= 0 && batch != shape[0]) || shape[0] < 1)
      return InvalidArgument("input ", i + 1, " is ", ShapeToString(shape));
    batch = shape[0];
    if (i < states) continue;
    steps = shape[1];
    empty = empty && inputs[i].host->data.empty();
  }
  if (empty && batch > kMaxEmptySteps / std::max<int64_t>(steps, 1))
    return InvalidArgument("a batch of ", batch, " and ", steps, " steps over sequences without elements");
  if (!lengths.empty() && static_cast<int64_t>(lengths.size()) != batch)
    return InvalidArgument("there are ", lengths.size(), " lengths for a batch of ", batch);
  std::vector<std::vector<Tensor>> parts(body.outputs().size());
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<RuntimeValue> given, results;
    for (const RuntimeValue& input : inputs)
      given.push_back(RuntimeValue::Of(Without(Cut(*input.host, 0, b, 1), 0)));
    const int64_t length =
        lengths.empty() ? steps : std::clamp<int64_t>(lengths[static_cast<size_t>(b)], 0, steps);
    ANYDML_RETURN_IF_ERROR(Scan(node, body, std::move(given), states, length, &results));
    for (size_t i = 0; i < results.size(); ++i) {
      ANYDML_RETURN_IF_ERROR(EnsureHost(&results[i]));
      Tensor result = *results[i].host;
      if (i >= states && length > 0 && length < steps) {
        Shape rest = result.shape;
        rest[0] = steps - length;
        std::byte* zeros = nullptr;
        ANYDML_RETURN_IF_ERROR(Join({result, MakeTensor(result.type, rest, &zeros)}, 0, &result));
      }
      result.shape.insert(result.shape.begin(), 1);
      parts[i].push_back(std::move(result));
    }
  }
  for (size_t i = states; i < parts.size(); ++i) ANYDML_RETURN_IF_ERROR(FillSequences(steps, &parts[i]));
  for (const std::vector<Tensor>& each : parts) {
    Tensor joined;
    ANYDML_RETURN_IF_ERROR(Join(each, 0, &joined));
    outputs->push_back(RuntimeValue::Of(std::move(joined)));
  }
  return {};
}

Status ProgramRunner::RunScan(const ProgramNode& node) {
  const auto body = node.bodies.find("body");
  const int64_t scans = NodeFacts(*node.proto, node.version).Int("num_scan_inputs", 0);
  const size_t first = node.version < 9 ? 1 : 0;  // after the lengths
  if (body == node.bodies.end() || scans < 1 || scans + first > node.inputs.size())
    return InvalidArgument("num_scan_inputs is ", scans);
  const size_t states = node.inputs.size() - first - static_cast<size_t>(scans);
  const size_t body_outputs = body->second->outputs().size();
  if (body_outputs < states || node.outputs.size() > body_outputs)
    return InvalidArgument("the body has ", body_outputs, " outputs");
  std::vector<RuntimeValue> inputs, outputs;
  for (size_t i = first; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kAbsent) return InvalidArgument("an input is left out");
    inputs.push_back(*ValueOf(node.inputs[i]));
  }
  ANYDML_RETURN_IF_ERROR(first > 0
                             ? ScanBatch(node, *body->second, std::move(inputs), states, &outputs)
                             : Scan(node, *body->second, std::move(inputs), states, INT64_MAX, &outputs));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kAbsent) values_[node.outputs[i]] = std::move(outputs[i]);
  }
  return {};
}

Status ProgramRunner::RunSequence(const ProgramNode& node, bool* known) {
  const std::string& type = node.proto->type;
  *known = IsSequenceOperator(type) || type == "Identity";
  if (!*known) return {};
  if (type == "SequenceMap")
    return node.inputs.empty() || node.inputs[0] == kAbsent ? InvalidArgument("it has no input")
                                                            : RunSequenceMap(node);
  const auto has = [&](size_t i) { return i < node.inputs.size() && node.inputs[i] != kAbsent; };
  const bool starts = type == "SequenceEmpty" || type == "Optional" || type == "OptionalHasElement";
  if (!starts && !has(0)) return InvalidArgument("it has no input");
  const auto is_tensor = [](const RuntimeValue& value) { return value.kind == RuntimeValue::Kind::kTensor; };
  RuntimeValue result;
  std::vector<int64_t> position;
  size_t at = 0;
  if (type == "SequenceEmpty") {
    result = RuntimeValue::Sequence({});
  } else if (type == "SequenceConstruct") {
    std::vector<RuntimeValue> elements;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!has(i)) continue;
      elements.push_back(*ValueOf(node.inputs[i]));
      if (!is_tensor(elements.back())) return InvalidArgument("an element is no tensor");
    }
    result = RuntimeValue::Sequence(std::move(elements));
  } else if (type == "SequenceLength") {
    const auto length = static_cast<int64_t>(ValueOf(node.inputs[0])->elements.size());
    result = RuntimeValue::Of(Int64Tensor({}, {&length, 1}));
  } else if (type == "SequenceAt" || type == "SequenceErase" || type == "SequenceInsert") {
    const bool insert = type == "SequenceInsert";
    const size_t where = insert ? 2 : 1;
    result = *ValueOf(node.inputs[0]);
    const size_t size = result.elements.size();
    if ((insert && !has(1)) || (type == "SequenceAt" && !has(1)))
      return InvalidArgument("an input is left out");
    if (insert && (result.kind != RuntimeValue::Kind::kSequence || !is_tensor(*ValueOf(node.inputs[1]))))
      return InvalidArgument("a sequence and a tensor are needed");
    if (has(where)) ANYDML_RETURN_IF_ERROR(HostInts(node.inputs[where], &position));
    const int64_t otherwise = insert ? static_cast<int64_t>(size) : -1;
    ANYDML_RETURN_IF_ERROR(Position(position.empty() ? otherwise : position[0], size, insert, &at));
    const auto place = result.elements.begin() + static_cast<ptrdiff_t>(at);
    if (insert) {
      result.elements.insert(place, *ValueOf(node.inputs[1]));
    } else if (type == "SequenceErase") {
      result.elements.erase(place);
    } else {
      RuntimeValue element = *place;
      result = std::move(element);
    }
  } else if (type == "SplitToSequence") {
    ANYDML_RETURN_IF_ERROR(RunSplitToSequence(node, &result));
  } else if (type == "ConcatFromSequence") {
    ANYDML_RETURN_IF_ERROR(RunConcatFromSequence(node, &result));
  } else if (type == "OptionalHasElement") {
    const int64_t there = has(0) && ValueOf(node.inputs[0])->kind != RuntimeValue::Kind::kNothing;
    result = RuntimeValue::Of(FromInts(ElementType::kBool, {}, {&there, 1}));
  } else if (type == "OptionalGetElement" || (type == "Optional" && has(0))) {
    result = *ValueOf(node.inputs[0]);
    if (result.kind == RuntimeValue::Kind::kNothing) return InvalidArgument("there is no element");
  } else if (type == "Optional") {
    result.kind = RuntimeValue::Kind::kNothing;
  } else if (type == "Identity") {
    result = *ValueOf(node.inputs[0]);
  } else {
    return Unsupported("no such operator is known");
  }
  if (!node.outputs.empty() && node.outputs[0] != kAbsent) values_[node.outputs[0]] = std::move(result);
  return {};
}

}  // namespace anydml::onnx
