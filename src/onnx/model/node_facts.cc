#include "onnx/model/node_facts.h"

#include <algorithm>

namespace anydml::onnx {
namespace {

std::string KindName(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kFloat:
      return "a FLOAT";
    case AttributeKind::kInt:
      return "an INT";
    case AttributeKind::kString:
      return "a STRING";
    case AttributeKind::kTensor:
      return "a TENSOR";
    case AttributeKind::kGraph:
      return "a GRAPH";
    case AttributeKind::kFloats:
      return "FLOATS";
    case AttributeKind::kInts:
      return "INTS";
    case AttributeKind::kStrings:
      return "STRINGS";
    default:
      return StrCat("of kind ", static_cast<int32_t>(kind));
  }
}

}  // namespace

// Old files do not contain the kind.
const Attribute* NodeFacts::Find(std::string_view name, AttributeKind kind) const {
  const Attribute* const found = proto_.Find(name);
  if (found == nullptr || found->kind == kind || found->kind == AttributeKind::kUndefined) return found;
  if (kinds_.ok())
    kinds_ =
        InvalidArgument("attribute ", name, " is ", KindName(found->kind), " but must be ", KindName(kind));
  return nullptr;
}

int64_t NodeFacts::Int(std::string_view name, int64_t otherwise) const {
  const Attribute* const found = Find(name, AttributeKind::kInt);
  return found != nullptr ? found->integer : otherwise;
}

float NodeFacts::Float(std::string_view name, float otherwise) const {
  const Attribute* const found = Find(name, AttributeKind::kFloat);
  return found != nullptr ? found->number : otherwise;
}

std::string NodeFacts::Text(std::string_view name, std::string_view otherwise) const {
  const Attribute* const found = Find(name, AttributeKind::kString);
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
  const Attribute* const found = Find(name, AttributeKind::kInts);
  return found != nullptr ? found->integers : std::vector<int64_t>();
}

std::vector<float> NodeFacts::Floats(std::string_view name) const {
  const Attribute* const found = Find(name, AttributeKind::kFloats);
  return found != nullptr ? found->numbers : std::vector<float>();
}

std::vector<std::string> NodeFacts::Texts(std::string_view name) const {
  const Attribute* const found = Find(name, AttributeKind::kStrings);
  return found != nullptr ? found->texts : std::vector<std::string>();
}

const Tensor* NodeFacts::TensorOf(std::string_view name) const {
  const Attribute* const found = Find(name, AttributeKind::kTensor);
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

Status NeedAttribute(const NodeFacts& node, std::string_view name) {
  return node.HasAttribute(name) ? Status()
                                 : InvalidArgument("attribute ", name, " is missing; it has no default");
}

Status CastTarget(const NodeFacts& node, ElementType* out) {
  const Attribute* const to = node.proto().Find("to");
  if (node.version() < 6 && to != nullptr && to->kind == AttributeKind::kString)  // as it was then
    return Unsupported("to ", to->text.substr(0, 40), ", a type as text");
  *out = static_cast<ElementType>(node.Int("to", 0));
  return {};
}

Status SplitSizes(const NodeFacts& node, bool has_given, std::vector<int64_t> given, int64_t size,
                  size_t outputs, std::vector<int64_t>* out) {
  *out = has_given ? std::move(given) : node.version() < 13 ? node.Ints("split") : std::vector<int64_t>();
  const auto parts = static_cast<int64_t>(outputs);
  if (parts == 0) return InvalidArgument("it has no outputs");
  if (node.version() >= 18 && node.HasAttribute("num_outputs")) {
    if (has_given) return InvalidArgument("split and num_outputs are both given; one of them is allowed");
    if (const int64_t wanted = node.Int("num_outputs", parts); wanted != parts)
      return InvalidArgument("num_outputs is ", wanted, "; there are ", parts, " outputs");
  }
  if (out->empty()) {
    const int64_t most = (size + parts - 1) / parts;  // the last one may be smaller, from version 18 on
    if (node.version() < 18 && size % parts != 0)
      return InvalidArgument("an axis of ", size, " is not ", parts,
                             " equal parts; split has to say the sizes");
    for (int64_t i = 0; i < parts; ++i) out->push_back(std::clamp<int64_t>(size - i * most, 0, most));
  }
  int64_t sum = 0;
  for (const int64_t part : *out) {
    if (part < 0 || part > size) return InvalidArgument("a part of ", part, " elements");
    sum += part;
  }
  if (sum == size && out->size() == outputs) return {};
  return InvalidArgument("the parts have ", sum, " elements together and there are ", outputs,
                         " outputs; the axis has ", size);
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
    // Clamps to the range of positions: ends may be INT64_MIN or INT64_MAX.
    const int64_t low = step > 0 ? 0 : -1;
    const int64_t high = step > 0 ? size : size - 1;
    const auto place = [&](int64_t at) {
      if (at < 0) at = at < -size ? low : at + size;
      return std::clamp(at, low, std::max(low, high));
    };
    // With a negative step from before the first element, ONNX begins at that element, where NumPy would find
    // nothing.
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
