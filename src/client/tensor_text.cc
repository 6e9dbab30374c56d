#include "client/tensor_text.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/half.h"
#include "base/status.h"
#include "client/packed_elements.h"

namespace anydml::client {
namespace {

constexpr uint32_t kWidestEdge = 3;
constexpr const char* kGap = "...";

// How many elements to print at each end of a long dimension; 0: the whole tensor is short enough. With many
// dimensions fewer, since the text would still be long.
uint32_t EdgeFor(const TensorDesc& tensor, uint64_t limit) {
  if (ElementCount(tensor) <= limit) return 0;
  for (uint32_t edge = kWidestEdge; edge > 1; --edge) {
    uint64_t kept = 1;
    for (uint32_t i = 0; i < tensor.rank; ++i) kept *= std::min(tensor.sizes[i], 2 * edge);
    if (kept <= limit) return edge;
  }
  return 1;
}

template <typename T>
T Load(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof(value));
  return value;
}

template <typename T>
std::string NumberToString(T value) {
  char text[64];
  const std::to_chars_result result = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, result.ptr);
}

// Walks a tensor twice with the same recursion: first for the column width, then for the text.
class Printer {
 public:
  Printer(const TensorDesc& tensor, std::span<const std::byte> data, uint64_t limit)
      : tensor_(tensor), data_(data), edge_(EdgeFor(tensor, limit)) {}

  std::string Print() {
    Walk(0, 0, [this](const std::string& element) { width_ = std::max(width_, element.size()); });
    text_.clear();
    Walk(0, 0, [this](const std::string& element) {
      text_.append(width_ - element.size(), ' ');
      text_ += element;
    });
    return std::move(text_);
  }

 private:
  template <typename Visit>
  void Walk(uint32_t dimension, uint64_t offset, const Visit& visit) {
    if (dimension == tensor_.rank) {
      visit(ElementToString(tensor_.type, data_.data(), offset));
      return;
    }
    text_ += '[';
    const uint32_t size = tensor_.sizes[dimension];
    const bool shorten = edge_ > 0 && size > 2 * edge_;
    for (uint32_t i = 0; i < size; ++i) {
      if (i > 0) Separate(dimension);
      if (shorten && i == edge_) {
        text_ += kGap;
        i = size - edge_;
        Separate(dimension);
      }
      Walk(dimension + 1, offset + uint64_t{i} * tensor_.strides[dimension], visit);
    }
    text_ += ']';
  }

  // Rows on separate lines, blank lines between matrices.
  void Separate(uint32_t dimension) {
    const uint32_t inner = tensor_.rank - 1 - dimension;
    if (inner == 0) {
      text_ += ", ";
      return;
    }
    text_ += ',';
    text_.append(inner, '\n');
    text_.append(dimension + 1, ' ');
  }

  const TensorDesc& tensor_;
  std::span<const std::byte> data_;
  const uint32_t edge_;
  size_t width_ = 0;
  std::string text_;
};

}  // namespace

std::string ElementToString(DataType type, const std::byte* data, uint64_t index) {
  if (IsFourBits(type)) return NumberToString(FourBits(type, data, index));
  const std::byte* const element = data + index * (BitSize(type) / 8);
  switch (type) {
    case DataType::kFloat64:
      return NumberToString(Load<double>(element));
    case DataType::kFloat32:
      return NumberToString(Load<float>(element));
    case DataType::kFloat16:
      return NumberToString(ToFloat(Load<Half>(element)));
    case DataType::kUInt64:
      return NumberToString(Load<uint64_t>(element));
    case DataType::kUInt32:
      return NumberToString(Load<uint32_t>(element));
    case DataType::kUInt16:
      return NumberToString(Load<uint16_t>(element));
    case DataType::kUInt8:
      return NumberToString(uint32_t{Load<uint8_t>(element)});
    case DataType::kInt64:
      return NumberToString(Load<int64_t>(element));
    case DataType::kInt32:
      return NumberToString(Load<int32_t>(element));
    case DataType::kInt16:
      return NumberToString(Load<int16_t>(element));
    case DataType::kInt8:
      return NumberToString(int32_t{Load<int8_t>(element)});
    case DataType::kUInt4:
    case DataType::kInt4:
    case DataType::kUnknown:
      break;
  }
  return "?";
}

std::string TensorToString(const TensorDesc& tensor, std::span<const std::byte> data, uint64_t print_limit) {
  return Printer(tensor, data, print_limit).Print();
}

std::string DescribeTensor(const std::string& name, const TensorDesc& tensor, std::span<const std::byte> data,
                           uint64_t print_limit) {
  return StrCat(name, ": (Sizes:", SizesToString(tensor), ", DataType:", Name(tensor.type), ")\n",
                TensorToString(tensor, data, print_limit), "\n");
}

}  // namespace anydml::client
