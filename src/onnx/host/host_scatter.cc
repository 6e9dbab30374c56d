// Scatters on the host, with reductions, which DirectML lacks.
#include <algorithm>
#include <cstring>

#include "onnx/host/host_numbers.h"

namespace anydml::onnx::host {
namespace {

// Combines an element with an update.
template <typename Number>
Number Reduced(const std::string& how, Number old, Number update) {
  if (how == "max") return old > update ? old : update;
  if (how == "min") return old < update ? old : update;
  if (how == "none") return update;
  if constexpr (std::is_integral_v<Number>) {
    const auto a = static_cast<uint64_t>(old), b = static_cast<uint64_t>(update);
    return static_cast<Number>(how == "add" ? a + b : a * b);
  } else {
    return how == "add" ? old + update : old * update;
  }
}

// `targets[i]` is the place of update i, in units of `inner` elements.
Status Apply(HostCall& call, const std::vector<size_t>& targets, size_t inner) {
  const std::string how = call.Text("reduction", "none");
  if (how != "none" && how != "add" && how != "mul" && how != "max" && how != "min")
    return Unsupported("reduction ", how.substr(0, 20));
  const Tensor &data = call.In(0), &updates = call.In(2);
  if (!IsNumber(data.type) || data.type != updates.type) return Unsupported("this type on the host");
  const auto run = [&](auto result, const auto& values) {
    for (size_t i = 0; i < targets.size(); ++i) {
      for (size_t j = 0; j < inner; ++j) {
        auto& element = result[targets[i] * inner + j];
        element = Reduced(how, element, values[i * inner + j]);
      }
    }
    return result;
  };
  call.outputs[0] = IsFloat(data.type)
                        ? FromDoubles(data.type, data.shape, run(ToDoubles(data), ToDoubles(updates)))
                        : FromInts(data.type, data.shape, run(ToInts(data), ToInts(updates)));
  return {};
}

Status CheckSizes(const HostCall& call) {
  for (size_t i = 0; i < 3; ++i) {
    if (call.In(i).count() > kMostHostNumbers) return Unsupported("a large input on the host");
  }
  return {};
}

}  // namespace

Status ScatterElements(HostCall& call) {
  ANYDML_RETURN_IF_ERROR(CheckSizes(call));
  const onnx::Shape &data = call.In(0).shape, &at = call.In(1).shape;
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(call.Int("axis", 0), data.size(), &axis));
  if (at.size() != data.size() || at != call.In(2).shape)
    return InvalidArgument("indices ", ShapeToString(at), " for data ", ShapeToString(data));
  const std::vector<int64_t> indices = ToInts(call.In(1));
  if (static_cast<int64_t>(indices.size()) != call.In(1).count()) return Unsupported("such indices");
  std::vector<size_t> targets;
  std::vector<int64_t> place(at.size(), 0);
  for (const int64_t given : indices) {
    size_t offset = 0;
    for (size_t i = 0; i < data.size(); ++i) {
      int64_t x = i == axis ? given : place[i];
      if (x < 0) x += data[i];
      if (x < 0 || x >= data[i]) return InvalidArgument("index ", given, " of an axis of ", data[axis]);
      offset = offset * static_cast<size_t>(data[i]) + static_cast<size_t>(x);
    }
    targets.push_back(offset);
    for (size_t i = at.size(); i-- > 0 && ++place[i] == at[i];) place[i] = 0;
  }
  return Apply(call, targets, 1);
}

Status ScatterNd(HostCall& call) {
  ANYDML_RETURN_IF_ERROR(CheckSizes(call));
  const onnx::Shape &data = call.In(0).shape, &at = call.In(1).shape;
  if (at.empty() || at.back() < 0 || at.back() > static_cast<int64_t>(data.size()))
    return InvalidArgument("indices ", ShapeToString(at), " for data ", ShapeToString(data));
  const auto depth = static_cast<size_t>(at.back());
  onnx::Shape expected(at.begin(), at.end() - 1);
  expected.insert(expected.end(), data.begin() + at.back(), data.end());
  if (expected != call.In(2).shape)
    return InvalidArgument("updates ", ShapeToString(call.In(2).shape), "; ", ShapeToString(expected),
                           " are needed");
  const std::vector<int64_t> indices = ToInts(call.In(1));
  const auto inner = static_cast<size_t>(ElementCount(std::span(data).subspan(depth)).value_or(0));
  const int64_t count = ElementCount(std::span(at).first(at.size() - 1)).value_or(0);
  if (static_cast<int64_t>(indices.size()) != call.In(1).count()) return Unsupported("such indices");
  std::vector<size_t> targets;
  for (size_t i = 0; i < static_cast<size_t>(inner == 0 ? 0 : count); ++i) {
    size_t offset = 0;
    for (size_t j = 0; j < depth; ++j) {
      const int64_t given = indices[i * depth + j], x = given < 0 ? given + data[j] : given;
      if (x < 0 || x >= data[j]) return InvalidArgument("index ", given, " of an axis of ", data[j]);
      offset = offset * static_cast<size_t>(data[j]) + static_cast<size_t>(x);
    }
    targets.push_back(offset);
  }
  return Apply(call, targets, inner);
}

}  // namespace anydml::onnx::host
