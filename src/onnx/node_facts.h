// A node's attributes, with defaults, as operators ask for them.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/model.h"

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
  // One of those that are allowed; the first one when it was not given.
  Status OneOf(std::string_view name, std::initializer_list<std::string_view> allowed,
               std::string* out) const;
  std::vector<int64_t> Ints(std::string_view name) const;  // empty when it was not given
  std::vector<float> Floats(std::string_view name) const;
  std::vector<std::string> Texts(std::string_view name) const;
  const Tensor* TensorOf(std::string_view name) const;  // null when it was not given

  // Whether all that were asked for until now are of the kind that they were asked for as; others count as
  // not given.
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
// Several of them, in ascending order and none twice.
Status ResolveAxes(std::span<const int64_t> axes, size_t rank, std::vector<uint32_t>* out);

// NumPy's rules. Fails when the sizes do not go together.
Status BroadcastShape(const Shape& a, const Shape& b, Shape* out);

// Before version 7 an attribute says where in `a` the dimensions of `b`, the second input, begin: then it is
// given the dimensions of 1 that NumPy's rules need behind it.
Status AlignOldBroadcast(const NodeFacts& node, const Shape& a, Shape* b);

// An attribute without a default.
Status NeedAttribute(const NodeFacts& node, std::string_view name);

// What Cast makes of its input.
Status CastTarget(const NodeFacts& node, ElementType* out);

// The sizes of Split's parts, as any version says them; `given` when the second input has them.
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
