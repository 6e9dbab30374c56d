#include "onnx/node_facts.h"

#include <algorithm>

namespace anydml::onnx {

int64_t NodeFacts::Int(std::string_view name, int64_t otherwise) const {
  const Attribute* const found = proto_.Find(name);
  return found != nullptr ? found->integer : otherwise;
}

float NodeFacts::Float(std::string_view name, float otherwise) const {
  const Attribute* const found = proto_.Find(name);
  return found != nullptr ? found->number : otherwise;
}

std::string NodeFacts::Text(std::string_view name, std::string_view otherwise) const {
  const Attribute* const found = proto_.Find(name);
  return found != nullptr ? found->text : std::string(otherwise);
}

Status NodeFacts::OneOf(std::string_view name, std::initializer_list<std::string_view> allowed,
                        std::string* out) const {
  *out = Text(name, *allowed.begin());
  if (std::find(allowed.begin(), allowed.end(), *out) != allowed.end()) return {};
  std::string list;
  for (const std::string_view one : allowed) list += StrCat(list.empty() ? "" : ", ", "\"", one, "\"");
  return InvalidArgument(name, " is \"", out->substr(0, 40), "\"; allowed: ", list);
}

std::vector<int64_t> NodeFacts::Ints(std::string_view name) const {
  const Attribute* const found = proto_.Find(name);
  return found != nullptr ? found->integers : std::vector<int64_t>();
}

std::vector<float> NodeFacts::Floats(std::string_view name) const {
  const Attribute* const found = proto_.Find(name);
  return found != nullptr ? found->numbers : std::vector<float>();
}

const Tensor* NodeFacts::TensorOf(std::string_view name) const {
  const Attribute* const found = proto_.Find(name);
  return found != nullptr ? &found->tensor : nullptr;
}

Status ResolveAxis(int64_t axis, size_t rank, uint32_t* out) {
  const auto limit = static_cast<int64_t>(rank);
  if (axis < -limit || axis >= limit) {
    return InvalidArgument("axis is ", axis, "; ", -limit, " to ", limit - 1, " are allowed");
  }
  *out = static_cast<uint32_t>(axis < 0 ? axis + limit : axis);
  return {};
}

Status ResolveAxes(std::span<const int64_t> axes, size_t rank, std::vector<uint32_t>* out) {
  out->clear();
  for (const int64_t axis : axes) {
    uint32_t resolved = 0;
    ANYDML_RETURN_IF_ERROR(ResolveAxis(axis, rank, &resolved));
    out->push_back(resolved);
  }
  std::sort(out->begin(), out->end());
  if (std::adjacent_find(out->begin(), out->end()) == out->end()) return {};
  return InvalidArgument("an axis is given twice");
}

Status BroadcastShape(const Shape& a, const Shape& b, Shape* out) {
  const size_t rank = std::max(a.size(), b.size());
  Shape result(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    const int64_t y = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    if (x != y && x != 1 && y != 1) {
      return InvalidArgument("shapes ", ShapeToString(a), " and ", ShapeToString(b), " do not go together");
    }
    result[i] = x == 1 ? y : x;
  }
  *out = std::move(result);
  return {};
}

Status AlignOldBroadcast(const NodeFacts& node, const Shape& a, Shape* b) {
  if (node.version() >= 7 || node.Int("broadcast", 0) == 0 || !node.HasAttribute("axis") || a.empty())
    return {};
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(node.Int("axis", 0), a.size(), &axis));
  if (b->size() > a.size() - axis)
    return InvalidArgument("axis ", axis, " for shapes ", ShapeToString(a), " and ", ShapeToString(*b));
  b->resize(a.size() - axis, 1);
  return {};
}

Status ResolveReshape(const Shape& from, std::span<const int64_t> wanted, bool allow_zero, Shape* out) {
  Shape shape(wanted.begin(), wanted.end());
  int64_t known = 1;
  size_t open = shape.size();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !allow_zero) {
      if (i >= from.size())
        return InvalidArgument("shape ", ShapeToString(wanted), " keeps a size that is not there");
      shape[i] = from[i];
    }
    if (shape[i] == -1 && open == shape.size()) {
      open = i;
    } else if (shape[i] < 0) {
      return InvalidArgument("shape ", ShapeToString(wanted), " is none");
    } else if (shape[i] != 0 && known > (int64_t{1} << 62) / shape[i]) {
      return InvalidArgument("shape ", ShapeToString(wanted), " is too large");
    } else {
      known *= shape[i];
    }
  }
  const int64_t count = ElementCount(from).value_or(0);
  if (open < shape.size()) shape[open] = known == 0 ? 0 : count / known;
  if (ElementCount(shape) != count) {
    return InvalidArgument("shape ", ShapeToString(wanted), " does not have the ", count, " elements of ",
                           ShapeToString(from));
  }
  *out = std::move(shape);
  return {};
}

Status ResolveSlice(const Shape& shape, std::span<const int64_t> starts, std::span<const int64_t> ends,
                    std::span<const int64_t> axes, std::span<const int64_t> steps,
                    std::vector<SliceRange>* out) {
  out->clear();
  for (const int64_t size : shape) out->push_back({0, 1, size});
  if (ends.size() != starts.size() || (!axes.empty() && axes.size() != starts.size()) ||
      (!steps.empty() && steps.size() != starts.size())) {
    return InvalidArgument("starts, ends, axes and steps are not equally many");
  }
  for (size_t i = 0; i < starts.size(); ++i) {
    uint32_t axis = 0;
    ANYDML_RETURN_IF_ERROR(
        ResolveAxis(axes.empty() ? static_cast<int64_t>(i) : axes[i], shape.size(), &axis));
    const int64_t size = shape[axis];
    const int64_t step = steps.empty() ? 1 : steps[i];
    if (step == 0) return InvalidArgument("a step is 0");
    // Into the range where positions are: ends may be INT64_MIN or INT64_MAX.
    const int64_t low = step > 0 ? 0 : -1;
    const int64_t high = step > 0 ? size : size - 1;
    const auto place = [&](int64_t at) {
      if (at < 0) at = at < -size ? low : at + size;
      return std::clamp(at, low, std::max(low, high));
    };
    // Going down from before the first element, ONNX begins at it, where NumPy would find nothing.
    const int64_t start = std::max<int64_t>(place(starts[i]), size > 0 ? 0 : low);
    const int64_t end = place(ends[i]);
    const int64_t distance = step > 0 ? end - start : start - end;
    const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
    const int64_t count =
        distance <= 0 ? 0 : static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride) + 1;
    (*out)[axis] = {start, count <= 1 ? 1 : step, count};
  }
  return {};
}

}  // namespace anydml::onnx
