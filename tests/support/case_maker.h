// Makes valid problems from bytes, for the cases of the operator families.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "support/byte_source.h"
#include "support/operator_runner.h"

namespace anydml::testing {

struct Case {
  OperatorDesc desc;
  std::vector<Bytes> inputs;  // in binding order; empty for absent tensors
  bool in_place = false;      // output 0 is input 0
};

// Element counts of the tensor that decides about the others' sizes. Most cases are small, so that there can
// be many.
inline constexpr uint32_t kFewElements = 1 << 9, kMaxElements = 1 << 13;

// Draws the parts of problems. Layouts have more freedom than bytes are worth: those that are not chosen come
// from a seed.
class CaseMaker {
 public:
  // Tensors of Sizes() have at least `least` elements.
  explicit CaseMaker(ByteSource source, uint32_t least = 0)
      : source_(source),
        random_(source_.Word()),
        elements_(source_.OneIn(8) ? kMaxElements : kFewElements),
        least_(least) {}

  ByteSource& source() { return source_; }
  std::mt19937_64& random() { return random_; }

  // Usually few and small dimensions; sometimes a long one.
  std::vector<uint32_t> Sizes(uint32_t max_rank) {
    std::vector<uint32_t> sizes(source_.Between(1, max_rank));
    uint64_t count = 1;
    for (uint32_t& size : sizes) {
      const auto most = static_cast<uint32_t>(elements_ / count);
      size = std::min(most, source_.OneIn(16) ? source_.Between(1, elements_) : source_.Between(1, 12));
      count *= size;
    }
    if (count < least_) {
      uint32_t& longest = *std::max_element(sizes.begin(), sizes.end());
      const uint64_t others = count / longest;
      longest = static_cast<uint32_t>((least_ + others - 1) / others);
    }
    return sizes;
  }

  // The factor for a dimension with which `count` elements reach Sizes()' minimum.
  uint32_t FactorFor(uint64_t count) const {
    return static_cast<uint32_t>(std::max<uint64_t>(1, (least_ + count - 1) / count));
  }

  TensorDesc Input(DataType type, const std::vector<uint32_t>& sizes) {
    return MakeTensor(type, sizes, source_.Any(kInputLayouts), random_);
  }
  TensorDesc Output(DataType type, const std::vector<uint32_t>& sizes) {
    return MakeTensor(type, sizes, source_.Any(kOutputLayouts), random_);
  }

  // The input's own bytes repeated, or random ones.
  Bytes Content(const TensorDesc& tensor) {
    Bytes bytes = RandomBytes(tensor, random_);
    if (source_.OneIn(2)) {
      const auto pattern = source_.Take(source_.Between(1, 64));
      for (size_t i = 0; !pattern.empty() && i < bytes.size(); ++i) bytes[i] = pattern[i % pattern.size()];
    }
    return bytes;
  }

  // Usually in [-size, size), some just outside or anywhere.
  Bytes Indices(const TensorDesc& tensor, uint32_t size) {
    const bool wild = source_.OneIn(4);
    const size_t width = BitSize(tensor.type) / 8;
    Bytes bytes(tensor.total_bytes);
    for (size_t at = 0; at + width <= bytes.size(); at += width) {
      uint64_t index = random_() % size;
      const uint64_t kind = random_() % 16;
      if (kind < 4) index -= size;
      if (kind == 15 && wild) index = random_();
      if (kind == 14 && wild) index = random_() % 2 == 0 ? size : uint64_t{0} - size - 1;
      std::memcpy(bytes.data() + at, &index, width);
    }
    return bytes;
  }

 private:
  ByteSource source_;
  std::mt19937_64 random_;
  const uint32_t elements_, least_;
};

}  // namespace anydml::testing
