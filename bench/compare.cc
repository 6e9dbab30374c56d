#include "compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <stdexcept>

#include "base/half.h"

namespace anydml::bench {
namespace {

template <typename T>
T Load(const Bytes& bytes, uint64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

double LoadNumber(DataType type, const Bytes& bytes, uint64_t index) {
  switch (type) {
    case DataType::kFloat32:
      return Load<float>(bytes, index);
    case DataType::kFloat16:
      return ToFloat(Load<Half>(bytes, index));
    case DataType::kInt32:
      return Load<int32_t>(bytes, index);
    case DataType::kInt64:
      return static_cast<double>(Load<int64_t>(bytes, index));
    case DataType::kUInt8:
      return Load<uint8_t>(bytes, index);
    case DataType::kInt8:
      return Load<int8_t>(bytes, index);
    default:
      throw std::runtime_error("no results of this type are compared");
  }
}

bool SameNumber(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::string Differs(uint64_t index, double expected, double got) {
  std::ostringstream text;
  text.precision(9);
  text << "wrong: value " << index << " is " << got << ", not " << expected;
  return text.str();
}

std::string CompareTopK(const Case& c, const Bytes& input, const Bytes& reference, const Bytes& values,
                        const std::vector<uint64_t>& indices) {
  const TensorDesc& tensor = c.tensor("InputTensor");
  const DataType type = tensor.type;
  const uint64_t count = indices.size();
  for (uint64_t i = 0; i < count; ++i) {
    const double expected = LoadNumber(type, reference, i), got = LoadNumber(type, values, i);
    if (!SameNumber(expected, got)) return Differs(i, expected, got);
  }
  const uint64_t n = tensor.sizes[c.desc.uint("Axis")], k = c.desc.uint("K"), stride = c.axis_stride();
  std::vector<uint64_t> seen(k);
  for (uint64_t sequence = 0; sequence < count / k; ++sequence) {
    const uint64_t outer = sequence / stride, inner = sequence % stride;
    for (uint64_t j = 0; j < k; ++j) {
      const uint64_t at = (outer * k + j) * stride + inner;
      const uint64_t index = seen[j] = indices[at];
      if (index >= n || !SameNumber(LoadNumber(type, input, (outer * n + index) * stride + inner),
                                    LoadNumber(type, values, at))) {
        return "wrong: index " + std::to_string(at) + " is " + std::to_string(index) +
               ", where another value is";
      }
    }
    std::sort(seen.begin(), seen.end());
    if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) return "wrong: an index twice";
  }
  return "ties";
}

std::string CompareIndices(const Case& c, const Inputs& inputs, const std::vector<Bytes>& reference,
                           const std::vector<Bytes>& outputs) {
  const Bytes &values = outputs[0], &indices = outputs[1];
  const uint64_t count = ElementCount(c.tensor("OutputIndexTensor"));
  std::vector<uint64_t> wide(count);
  if (indices.size() == count * sizeof(uint32_t)) {
    for (uint64_t i = 0; i < count; ++i) wide[i] = Load<uint32_t>(indices, i);
  } else if (indices.size() == count * sizeof(uint64_t)) {
    for (uint64_t i = 0; i < count; ++i) wide[i] = Load<uint64_t>(indices, i);
  } else {
    return "wrong: the size of the indices";
  }
  bool same = values == reference[0];
  for (uint64_t i = 0; same && i < count; ++i) same = wide[i] == Load<uint32_t>(reference[1], i);
  return same ? "equal" : CompareTopK(c, inputs[0], reference[0], values, wide);
}

std::string CompareScatter(const Case& c, const Bytes& indices, const Bytes& reference, const Bytes& values) {
  if (values == reference) return "equal";
  const TensorDesc& input = c.tensor("InputTensor");
  const uint32_t first = input.rank - c.desc.uint("InputDimensionCount");  // the first ones are padding
  const uint64_t slice = c.slice(), count = ElementCount(input);
  std::vector<uint8_t> hits(count / slice);
  for (uint64_t t = 0; t < c.tuples(); ++t) {
    uint64_t target = 0;
    for (uint32_t d = 0; d < c.tuple_size(); ++d) {
      target = target * input.sizes[first + d] + Load<uint32_t>(indices, t * c.tuple_size() + d);
    }
    if (hits[target] < 2) ++hits[target];
  }
  for (uint64_t i = 0; i < count; ++i) {
    const double expected = LoadNumber(input.type, reference, i), got = LoadNumber(input.type, values, i);
    if (!SameNumber(expected, got) && hits[i / slice] < 2) return Differs(i, expected, got);
  }
  return "duplicates";
}

// A type's precision: its relative spacing (`step`), its smallest number (`least`), and the error, relative
// to numbers above 1, from which on a result counts as wrong (`loose`).
struct Precision {
  double step, least, max, loose;
};

Precision PrecisionOf(DataType type) {
  if (type == DataType::kFloat32) return {0x1p-23, 0x1p-149, 0x1.fffffep127, 1e-4};
  if (type == DataType::kFloat16) return {0x1p-10, 0x1p-24, 65504, 1e-2};
  return {0, 1, std::numeric_limits<double>::max(), 0};
}

// The largest power of two not above |x|.
double PowerBelow(double x) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x) & 0x7FF0000000000000u);
}

std::string CompareNumbers(const Case& c, const Expected& expected, const Bytes& values) {
  const DataType type = c.desc.outputs()[0]->type;
  const Precision precision = PrecisionOf(type);
  // Correct rounding is half a unit, slightly more for results that go through FLOAT32. FLOAT16's last
  // rounding is allowed one unit more, and so is the reference's own.
  double bound = std::max(c.ulps, 0.5) + 0.001;
  if (c.ulps > 0 && type == DataType::kFloat16) bound += 1;
  const bool by_reference = expected.values.empty();
  if (by_reference) bound += 0.5;
  double worst = 0;
  uint64_t where = 0;
  const uint64_t count = values.size() / (BitSize(type) / 8);
  for (uint64_t i = 0; i < count; ++i) {
    const double got = LoadNumber(type, values, i);
    const double wanted = by_reference ? LoadNumber(type, expected.outputs[0], i) : expected.values[i];
    if (SameNumber(got, wanted) ||
        (std::isinf(got) && got * wanted > 0 && std::abs(wanted) > precision.max)) {
      continue;
    }
    const double distance = std::abs(got - wanted);
    if (distance <= c.absolute) continue;
    if (!(distance <= precision.loose * std::max(1.0, std::abs(wanted)))) return Differs(i, wanted, got);
    const double ulps = distance / std::max(PowerBelow(wanted) * precision.step, precision.least);
    if (ulps > worst) worst = ulps, where = i;
  }
  if (worst <= bound) return "equal";
  std::ostringstream text;
  text << "inexact: value " << where << " is " << worst << " ulp away";
  return text.str();
}

}  // namespace

std::string Compare(const Case& c, const Inputs& inputs, const Expected& expected,
                    const std::vector<Bytes>& outputs) {
  if (outputs[0].size() != DataBytes(*c.desc.outputs()[0])) return "wrong: the size of the values";
  if (c.Is("TOP_K1")) return CompareIndices(c, inputs, expected.outputs, outputs);
  if (c.Is("SCATTER_ND")) return CompareScatter(c, inputs[1], expected.outputs[0], outputs[0]);
  return CompareNumbers(c, expected, outputs[0]);
}

std::vector<Bytes> Shortened(const std::vector<Bytes>& outputs, const Case& largest, const Case& c) {
  if (largest.result_text == c.result_text) return outputs;
  const uint64_t from_k = largest.desc.uint("K"), to_k = c.desc.uint("K");
  std::vector<Bytes> shortened;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const uint64_t inner = c.axis_stride() * BitSize(c.desc.outputs()[i]->type) / 8;
    Bytes& to = shortened.emplace_back();
    for (uint64_t at = 0; at < outputs[i].size(); at += from_k * inner) {
      const auto begin = outputs[i].begin() + static_cast<ptrdiff_t>(at);
      to.insert(to.end(), begin, begin + static_cast<ptrdiff_t>(to_k * inner));
    }
  }
  return shortened;
}

}  // namespace anydml::bench
