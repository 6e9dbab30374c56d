#include <algorithm>

#include "onnx/lower/graph_builder.h"

namespace anydml::onnx {
namespace {

std::vector<uint32_t> SizesOf(std::span<const int64_t> shape) {
  // DirectML refuses larger sizes: no tensor has them.
  std::vector<uint32_t> sizes;
  for (const int64_t size : shape)
    sizes.push_back(static_cast<uint32_t>(std::min<int64_t>(size, UINT32_MAX)));
  if (sizes.empty()) sizes.push_back(1);
  return sizes;
}

std::vector<uint32_t> PackedStrides(std::span<const uint32_t> sizes) {
  std::vector<uint32_t> strides(sizes.size());
  uint64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = static_cast<uint32_t>(stride);
    stride *= sizes[i];
  }
  return strides;
}

}  // namespace

bool View::empty() const { return std::find(sizes.begin(), sizes.end(), 0u) != sizes.end(); }

View PackedView(DataType type, std::span<const int64_t> shape) {
  View view;
  view.type = type;
  view.sizes = SizesOf(shape);
  view.strides = PackedStrides(view.sizes);
  const auto count = static_cast<uint64_t>(ElementCount(shape).value_or(0));
  view.bytes = ((count * BitSize(type) + 7) / 8 + 3) / 4 * 4;
  return view;
}

View Reshaped(View view, std::span<const int64_t> shape) {
  view.sizes = SizesOf(shape);
  view.strides = PackedStrides(view.sizes);
  return view;
}

View Permuted(const View& view, std::span<const uint32_t> order) {
  View result = view;
  for (size_t i = 0; i < order.size(); ++i) {
    result.sizes[i] = view.sizes[order[i]];
    result.strides[i] = view.strides[order[i]];
  }
  return result;
}

View AtLeast(View view, size_t rank) {
  if (view.rank() >= rank) return view;
  const size_t ones = rank - view.rank();
  const uint64_t span = view.sizes.empty() ? 1 : uint64_t{view.sizes[0]} * view.strides[0];
  view.strides.insert(view.strides.begin(), ones, static_cast<uint32_t>(span));
  view.sizes.insert(view.sizes.begin(), ones, 1);
  return view;
}

View TrailingOnes(View view, size_t rank) {
  while (view.rank() < rank) {
    view.sizes.push_back(1);
    view.strides.push_back(1);
  }
  return view;
}

View Broadcast(const View& view, std::span<const int64_t> shape) {
  const std::vector<uint32_t> sizes = SizesOf(shape);
  View result = AtLeast(view, sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (result.sizes[i] != sizes[i]) result.strides[i] = 0;
    result.sizes[i] = sizes[i];
  }
  return result;
}

}  // namespace anydml::onnx
