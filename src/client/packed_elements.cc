#include "client/packed_elements.h"

namespace anydml::client {

int32_t FourBits(DataType type, const std::byte* data, uint64_t index) {
  const uint32_t bits = std::to_integer<uint32_t>(data[index / 2]) >> (index % 2 * 4) & 15;
  const auto number = static_cast<int32_t>(bits);
  return type == DataType::kInt4 && number >= 8 ? number - 16 : number;
}

void Pack(DataType type, std::vector<std::byte>* elements) {
  if (!IsFourBits(type)) return;
  std::vector<std::byte>& bytes = *elements;
  const size_t count = bytes.size();
  for (size_t i = 0; i < count; i += 2) {
    const std::byte second = i + 1 < count ? bytes[i + 1] : std::byte{0};
    bytes[i / 2] = (bytes[i] & std::byte{15}) | second << 4;
  }
  bytes.resize(PackedBytes(type, count));
}

std::vector<std::byte> Unpack(DataType type, std::span<const std::byte> data, uint64_t count) {
  std::vector<std::byte> elements(count);
  for (uint64_t i = 0; i < count; ++i) elements[i] = static_cast<std::byte>(FourBits(type, data.data(), i));
  return elements;
}

}  // namespace anydml::client
