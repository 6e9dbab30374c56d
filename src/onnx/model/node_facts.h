// A node's attributes, with defaults.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/file/model.h"

namespace anydml::onnx {

class NodeFacts {
 public:
  NodeFacts(const NodeProto& proto, int64_t version) : proto_(proto), version_(version) {}

  const NodeProto& proto() const { return proto_; }
  int64_t version() const { return version_; }

  bool HasAttribute(std::string_view name) const { return proto_.Find(name) != nullptr; }
  int64_t Int(std::string_view name, int64_t otherwise) const;
  float Float(std::string_view name, float otherwise) const;
  std::string Text(std::string_view name, std::string_view otherwise) const;
  // One of the allowed values; by default the first one.
  Status OneOf(std::string_view name, std::initializer_list<std::string_view> allowed,
               std::string* out) const;
  std::vector<int64_t> Ints(std::string_view name) const;  // empty if it was not given
  std::vector<float> Floats(std::string_view name) const;
  std::vector<std::string> Texts(std::string_view name) const;
  const Tensor* TensorOf(std::string_view name) const;  // null if it was not given

  // Whether all attributes that were read so far have the expected kind; others count as not given.
  const Status& attribute_kinds() const { return kinds_; }

 private:
  const Attribute* Find(std::string_view name, AttributeKind kind) const;

  const NodeProto& proto_;
  const int64_t version_;
  mutable Status kinds_;
};

template <typename... Args>
Status Unsupported(const Args&... args) {
  return Status(Code::kUnsupported, StrCat(args...));
}

// Negative axes count from the end.
Status ResolveAxis(int64_t axis, size_t rank, uint32_t* out);
// Several axes, in ascending order and without duplicates.
Status ResolveAxes(std::span<const int64_t> axes, size_t rank, std::vector<uint32_t>* out);

// By NumPy's rules. Fails if the sizes are incompatible.
Status BroadcastShape(const Shape& a, const Shape& b, Shape* out);

// Before version 7 an attribute says where in `a` the dimensions of `b`, the second input, begin; `b` then
// gets the trailing dimensions of 1 that NumPy's rules need.
Status AlignOldBroadcast(const NodeFacts& node, const Shape& a, Shape* b);

// Requires an attribute without a default.
Status NeedAttribute(const NodeFacts& node, std::string_view name);

// What Cast makes of its input.
Status CastTarget(const NodeFacts& node, ElementType* out);

// The sizes of Split's parts, in any version; `given` if the second input has them.
Status SplitSizes(const NodeFacts& node, bool has_given, std::vector<int64_t> given, int64_t size,
                  size_t outputs, std::vector<int64_t>* out);

// What Reshape's second input asks for.
Status ResolveReshape(const Shape& from, std::span<const int64_t> wanted, bool allow_zero, Shape* out);

// Slice along one dimension: `count` elements from `start` on, every `step`-th.
struct SliceRange {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};
Status ResolveSlice(const Shape& shape, std::span<const int64_t> starts, std::span<const int64_t> ends,
                    std::span<const int64_t> axes, std::span<const int64_t> steps,
                    std::vector<SliceRange>* out);

}  // namespace anydml::onnx
