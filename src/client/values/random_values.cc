#include "client/values/random_values.h"

#include <algorithm>
#include <cmath>

#include "client/packed_elements.h"
#include "client/values/element_number.h"

namespace anydml::client {
namespace {

// SplitMix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  // In [0, 1).
  double Next() {
    state_ += 0x9E3779B97F4A7C15;
    uint64_t bits = state_;
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB;
    bits ^= bits >> 31;
    return static_cast<double>(bits >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

// Every integer of the range equally often, including both ends.
double Range(const RandomValues& values, DataType type) {
  const bool is_float =
      type == DataType::kFloat16 || type == DataType::kFloat32 || type == DataType::kFloat64;
  return values.high - values.low + (is_float ? 0 : 1);
}

}  // namespace

const char* RandomValues::Problem(DataType type) const {
  if (!std::isfinite(low) || !std::isfinite(high)) return "the bounds have to be finite";
  if (low > high) return "the lower bound is above the upper one";
  return std::isfinite(Range(*this, type)) ? nullptr : "the bounds are too far apart";
}

void RandomValues::Append(DataType type, uint64_t count, std::vector<std::byte>* bytes) const {
  const double range = Range(*this, type);
  Random random(seed);
  const uint32_t element_bytes = BitSize(Unpacked(type)) / 8;
  bytes->reserve(count * element_bytes + 3);  // and for padding
  for (uint64_t i = 0; i < count; ++i) {
    const Scalar element = ScalarFromDouble(type, std::min(low + random.Next() * range, high));
    const auto* data = reinterpret_cast<const std::byte*>(element.bytes.data());
    bytes->insert(bytes->end(), data, data + element_bytes);
  }
}

}  // namespace anydml::client
