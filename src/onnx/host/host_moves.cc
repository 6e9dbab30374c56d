// Operators on the host that move elements as bytes.
#include <algorithm>
#include <cstring>

#include "onnx/host/host.h"

namespace anydml::onnx::host {
namespace {

// An element of the output for every coordinate, found by strides (in elements, of any sign) from an offset.
struct Walk {
  onnx::Shape shape;
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

std::vector<int64_t> PackedStrides(const onnx::Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride = static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(shape[i]));
  }
  return strides;
}

Status CheckMovable(const Tensor& tensor, const onnx::Shape& result) {
  if (BitsOf(tensor.type) < 8) return Unsupported("this type on the host");
  const std::optional<int64_t> count = ElementCount(result);
  return count && *count <= 4 * kMaxHostElements ? Status() : Unsupported("a large result on the host");
}

Status Copy(const Tensor& x, const Walk& walk, Tensor* out) {
  ANYDML_RETURN_IF_ERROR(CheckMovable(x, walk.shape));
  const size_t width = BitsOf(x.type) / 8;
  std::byte* target = nullptr;
  *out = MakeTensor(x.type, walk.shape, &target);
  std::vector<int64_t> at(walk.shape.size(), 0);
  for (int64_t n = out->count(); n > 0; --n) {
    int64_t offset = walk.offset;
    for (size_t i = 0; i < at.size(); ++i) offset += at[i] * walk.strides[i];
    std::memcpy(target, x.data.data() + static_cast<size_t>(offset) * width, width);
    target += width;
    for (size_t i = at.size(); i-- > 0 && ++at[i] == walk.shape[i];) at[i] = 0;
  }
  return {};
}

}  // namespace

Status Transpose(HostCall& call) {
  const Tensor& x = call.In(0);
  const std::vector<int64_t> strides = PackedStrides(x.shape);
  std::vector<int64_t> perm = call.Ints("perm");
  std::vector<uint32_t> sorted;
  if (perm.empty()) {
    for (size_t i = x.shape.size(); i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  }
  ANYDML_RETURN_IF_ERROR(ResolveAxes(perm, x.shape.size(), &sorted));
  if (sorted.size() != x.shape.size()) return InvalidArgument("perm has ", perm.size(), " elements");
  Walk walk;
  for (const int64_t given : perm) {
    uint32_t axis = 0;
    ANYDML_RETURN_IF_ERROR(ResolveAxis(given, x.shape.size(), &axis));
    walk.shape.push_back(x.shape[axis]);
    walk.strides.push_back(strides[axis]);
  }
  return Copy(x, walk, &call.outputs[0]);
}

Status Expand(HostCall& call) {
  const Tensor& x = call.In(0);
  Walk walk;
  ANYDML_RETURN_IF_ERROR(BroadcastShape(x.shape, ToInts(call.In(1)), &walk.shape));
  const std::vector<int64_t> strides = PackedStrides(x.shape);
  walk.strides.assign(walk.shape.size(), 0);
  const size_t ahead = walk.shape.size() - x.shape.size();
  for (size_t i = 0; i < x.shape.size(); ++i) walk.strides[ahead + i] = x.shape[i] == 1 ? 0 : strides[i];
  return Copy(x, walk, &call.outputs[0]);
}

Status Slice(HostCall& call) {
  const Tensor& x = call.In(0);
  const bool attributes = call.version() < 10;
  const auto list = [&](const char* name, size_t input) {
    return attributes ? call.Ints(name) : call.Has(input) ? ToInts(call.In(input)) : std::vector<int64_t>();
  };
  std::vector<SliceRange> ranges;
  ANYDML_RETURN_IF_ERROR(ResolveSlice(x.shape, list("starts", 1), list("ends", 2), list("axes", 3),
                                      attributes ? std::vector<int64_t>() : list("", 4), &ranges));
  const std::vector<int64_t> strides = PackedStrides(x.shape);
  Walk walk;
  for (size_t i = 0; i < ranges.size(); ++i) {
    walk.shape.push_back(ranges[i].count);
    walk.strides.push_back(strides[i] * ranges[i].step);
    walk.offset += strides[i] * ranges[i].start;
  }
  return Copy(x, walk, &call.outputs[0]);
}

Status Split(HostCall& call) {
  const Tensor& x = call.In(0);
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(call.Int("axis", 0), x.shape.size(), &axis));
  std::vector<int64_t> sizes;
  ANYDML_RETURN_IF_ERROR(SplitSizes(call, call.Has(1),
                                    call.Has(1) ? ToInts(call.In(1)) : std::vector<int64_t>(), x.shape[axis],
                                    call.outputs.size(), &sizes));
  const std::vector<int64_t> strides = PackedStrides(x.shape);
  int64_t at = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Walk walk{x.shape, strides, at * strides[axis]};
    walk.shape[axis] = sizes[i];
    ANYDML_RETURN_IF_ERROR(Copy(x, walk, &call.outputs[i]));
    at += sizes[i];
  }
  return {};
}

Status Tile(HostCall& call) {
  const Tensor& x = call.In(0);
  const std::vector<int64_t> repeats = ToInts(call.In(1));
  if (repeats.size() != x.shape.size()) return InvalidArgument("repeats has ", repeats.size(), " elements");
  // {repeat, size} for each dimension, then as one.
  Walk walk;
  onnx::Shape shape = x.shape;
  const std::vector<int64_t> strides = PackedStrides(x.shape);
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0 || repeats[i] > kMaxHostElements) return Unsupported("a large result on the host");
    walk.shape.insert(walk.shape.end(), {repeats[i], x.shape[i]});
    walk.strides.insert(walk.strides.end(), {0, strides[i]});
    shape[i] *= repeats[i];
  }
  ANYDML_RETURN_IF_ERROR(Copy(x, walk, &call.outputs[0]));
  call.outputs[0].shape = shape;
  return {};
}

Status Concat(HostCall& call) {
  const onnx::Shape& first = call.In(0).shape;
  uint32_t axis = 0;
  if (call.version() >= 4) ANYDML_RETURN_IF_ERROR(NeedAttribute(call, "axis"));
  ANYDML_RETURN_IF_ERROR(ResolveAxis(call.Int("axis", 1), first.size(), &axis));
  onnx::Shape shape = first;
  shape[axis] = 0;
  for (size_t i = 0; i < call.inputs(); ++i) {
    if (!call.Has(i)) return InvalidArgument("input ", i, " is left out");
    onnx::Shape other = call.In(i).shape;
    if (other.size() != shape.size() || call.In(i).type != call.In(0).type)
      return InvalidArgument("input ", i, " does not fit input 0");
    shape[axis] += other[axis];
    other[axis] = shape[axis];
    if (other != shape) return InvalidArgument("input ", i, " has shape ", ShapeToString(call.In(i).shape));
  }
  ANYDML_RETURN_IF_ERROR(CheckMovable(call.In(0), shape));
  std::byte* target = nullptr;
  call.outputs[0] = MakeTensor(call.In(0).type, shape, &target);
  const int64_t rows = ElementCount(std::span(shape).first(axis)).value_or(0);
  for (int64_t row = 0; row < rows && !call.outputs[0].data.empty(); ++row) {
    for (size_t i = 0; i < call.inputs(); ++i) {
      const size_t bytes = call.In(i).data.size() / static_cast<size_t>(rows);
      if (bytes == 0) continue;
      std::memcpy(target, call.In(i).data.data() + static_cast<size_t>(row) * bytes, bytes);
      target += bytes;
    }
  }
  return {};
}

Status Gather(HostCall& call) {
  const Tensor& x = call.In(0);
  const Tensor& indices = call.In(1);
  uint32_t axis = 0;
  ANYDML_RETURN_IF_ERROR(ResolveAxis(call.Int("axis", 0), x.shape.size(), &axis));
  onnx::Shape shape(x.shape.begin(), x.shape.begin() + axis);
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), x.shape.begin() + axis + 1, x.shape.end());
  ANYDML_RETURN_IF_ERROR(CheckMovable(x, shape));
  const int64_t rows = ElementCount(std::span(x.shape).first(axis)).value_or(0);
  const size_t bytes = static_cast<size_t>(ElementCount(std::span(x.shape).subspan(axis + 1)).value_or(0)) *
                       (BitsOf(x.type) / 8);
  const int64_t size = x.shape[axis];
  std::byte* target = nullptr;
  call.outputs[0] = MakeTensor(x.type, shape, &target);
  if (call.outputs[0].data.empty()) return {};
  for (int64_t row = 0; row < rows; ++row) {
    for (const int64_t given : ToInts(indices)) {
      const int64_t index = given < 0 ? given + size : given;
      if (index < 0 || index >= size) return InvalidArgument("index ", given, " of an axis of ", size);
      std::memcpy(target, x.data.data() + static_cast<size_t>(row * size + index) * bytes, bytes);
      target += bytes;
    }
  }
  return {};
}

Status Where(HostCall& call) {
  onnx::Shape shape;
  ANYDML_RETURN_IF_ERROR(BroadcastShape(call.In(0).shape, call.In(1).shape, &shape));
  ANYDML_RETURN_IF_ERROR(BroadcastShape(shape, call.In(2).shape, &shape));
  Tensor full[3];
  for (size_t i = 0; i < 3; ++i) {
    const onnx::Shape& given = call.In(i).shape;
    const std::vector<int64_t> strides = PackedStrides(given);
    Walk walk{shape, std::vector<int64_t>(shape.size(), 0), 0};
    const size_t ahead = shape.size() - given.size();
    for (size_t d = 0; d < given.size(); ++d) walk.strides[ahead + d] = given[d] == 1 ? 0 : strides[d];
    ANYDML_RETURN_IF_ERROR(Copy(call.In(i), walk, &full[i]));
  }
  if (full[1].type != full[2].type || full[0].type != ElementType::kBool)
    return InvalidArgument("types that do not go together");
  const size_t width = BitsOf(full[1].type) / 8;
  std::byte* target = nullptr;
  call.outputs[0] = MakeTensor(full[1].type, shape, &target);
  for (size_t i = 0; i < full[0].data.size(); ++i) {
    const Tensor& chosen = full[0].data[i] != std::byte{0} ? full[1] : full[2];
    std::memcpy(target + i * width, chosen.data.data() + i * width, width);
  }
  return {};
}

Status ConstantOfShape(HostCall& call) {
  const onnx::Shape shape = ToInts(call.In(0));
  const Tensor* const given = call.TensorOf("value");
  const std::optional<int64_t> count = ElementCount(shape);
  if (!count) return InvalidArgument("shape ", ShapeToString(shape), " is none");
  if (*count > kMaxHostElements) return Unsupported("a large result on the host");
  std::byte* target = nullptr;
  call.outputs[0] = MakeTensor(given != nullptr ? given->type : ElementType::kFloat, shape, &target);
  if (given == nullptr) return {};
  const size_t width = BitsOf(given->type) / 8;
  if (width == 0 || given->data.size() != width) return Unsupported("this value on the host");
  for (int64_t i = 0; i < *count; ++i)
    std::memcpy(target + static_cast<size_t>(i) * width, given->data.data(), width);
  return {};
}

Status NonZero(HostCall& call) {
  const Tensor& x = call.In(0);
  const std::vector<double> values = ToDoubles(x);
  if (values.size() != static_cast<size_t>(x.count())) return Unsupported("this type on the host");
  std::vector<size_t> found;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0) found.push_back(i);
  }
  const std::vector<int64_t> strides = PackedStrides(x.shape);
  std::vector<int64_t> coordinates;
  for (size_t d = 0; d < x.shape.size(); ++d) {
    for (const size_t at : found) coordinates.push_back(static_cast<int64_t>(at) / strides[d] % x.shape[d]);
  }
  call.outputs[0] =
      Int64Tensor({static_cast<int64_t>(x.shape.size()), static_cast<int64_t>(found.size())}, coordinates);
  return {};
}

}  // namespace anydml::onnx::host
