#include "case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <numbers>
#include <sstream>
#include <stdexcept>

#include "base/half.h"

namespace anydml::bench {
namespace {

const std::string& Word(const Words& words, const char* key) {
  const auto found = words.find(key);
  if (found == words.end()) throw std::runtime_error(std::string("the request lacks ") + key);
  return found->second;
}

uint32_t Number(const Words& words, const char* key, uint32_t otherwise) {
  const auto found = words.find(key);
  return found == words.end() ? otherwise : static_cast<uint32_t>(std::stoul(found->second));
}

// splitmix64: the same numbers everywhere, which the standard's distributions do not promise.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(((Next() >> 32) * limit) >> 32); }
  double Uniform() { return (static_cast<double>(Next() >> 11) + 0.5) * 0x1p-53; }  // in (0, 1)
  float Normal() {
    return static_cast<float>(std::sqrt(-2 * std::log(Uniform())) *
                              std::cos(2 * std::numbers::pi * Uniform()));
  }

 private:
  uint64_t state_;
};

template <typename T>
Bytes ToBytes(const std::vector<T>& elements) {
  Bytes bytes(elements.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

template <typename T>
T Load(const Bytes& bytes, uint64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

double LoadNumber(const std::string& type, const Bytes& bytes, uint64_t index) {
  if (type == "float32") return Load<float>(bytes, index);
  if (type == "float16") return ToFloat(Load<Half>(bytes, index));
  return Load<int8_t>(bytes, index);
}

bool SameNumber(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// What the elements of a kind of data are, by their position.
float Element(const std::string& data, uint64_t i, uint64_t count, Random& random) {
  if (data == "normal") return random.Normal();
  if (data == "ascending") return static_cast<float>(i);
  if (data == "descending") return static_cast<float>(count - i);
  if (data == "equal") return 1.5f;
  if (data == "ties") return static_cast<float>(random.Below(16));
  if (data == "nan") {
    const float value = random.Normal();
    return random.Below(100) == 0 ? std::numeric_limits<float>::quiet_NaN() : value;
  }
  throw std::runtime_error("unknown data: " + data);
}

Bytes MakeElements(const Case& c, uint64_t count, uint64_t seed) {
  Random random(seed);
  if (c.type == "int8") {  // "normal" in 8 bits: all of them, equally often
    std::vector<int8_t> elements(count);
    for (int8_t& element : elements) element = static_cast<int8_t>(random.Next() >> 56);
    return ToBytes(elements);
  }
  std::vector<float> elements(count);
  for (uint64_t i = 0; i < count; ++i) elements[i] = Element(c.data, i, count, random);
  if (c.type == "float32") return ToBytes(elements);
  std::vector<Half> halves(count);
  std::transform(elements.begin(), elements.end(), halves.begin(), ToHalf);
  return ToBytes(halves);
}

// Random targets, several of them the same.
std::vector<uint32_t> MakeIndices(const Case& c) {
  Random random(2);
  std::vector<uint32_t> indices(uint64_t{c.tuples} * c.tuple_size);
  for (uint64_t i = 0; i < indices.size(); ++i) indices[i] = random.Below(c.sizes[i % c.tuple_size]);
  return indices;
}

std::string Differs(const Case& c, const Bytes& reference, const Bytes& got, uint64_t index) {
  std::ostringstream text;
  text << "wrong: value " << index << " is " << LoadNumber(c.type, got, index) << ", not "
       << LoadNumber(c.type, reference, index);
  return text.str();
}

std::string CompareTopK(const Case& c, const Bytes& input, const Bytes& reference, const Bytes& values,
                        const std::vector<uint64_t>& indices) {
  const uint64_t count = values.size() / c.element_bytes();
  for (uint64_t i = 0; i < count; ++i) {
    if (!SameNumber(LoadNumber(c.type, reference, i), LoadNumber(c.type, values, i))) {
      return Differs(c, reference, values, i);
    }
  }
  const uint64_t n = c.sizes[c.axis], stride = c.axis_stride();
  std::vector<uint64_t> seen(c.k);
  for (uint64_t sequence = 0; sequence < count / c.k; ++sequence) {
    const uint64_t outer = sequence / stride, inner = sequence % stride;
    for (uint32_t j = 0; j < c.k; ++j) {
      const uint64_t at = (outer * c.k + j) * stride + inner;
      const uint64_t index = seen[j] = indices[at];
      if (index >= n || !SameNumber(LoadNumber(c.type, input, (outer * n + index) * stride + inner),
                                    LoadNumber(c.type, values, at))) {
        return "wrong: index " + std::to_string(at) + " is " + std::to_string(index) +
               ", where another value is";
      }
    }
    std::sort(seen.begin(), seen.end());
    if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) return "wrong: an index twice";
  }
  return "ties";
}

std::string CompareScatter(const Case& c, const Bytes& indices, const Bytes& reference, const Bytes& values) {
  const uint64_t slice = c.slice();
  std::vector<uint8_t> hits(c.elements() / slice);
  for (uint64_t t = 0; t < c.tuples; ++t) {
    uint64_t target = 0;
    for (uint32_t d = 0; d < c.tuple_size; ++d) {
      target = target * c.sizes[d] + Load<uint32_t>(indices, t * c.tuple_size + d);
    }
    if (hits[target] < 2) ++hits[target];
  }
  for (uint64_t i = 0; i < c.elements(); ++i) {
    const bool same = SameNumber(LoadNumber(c.type, reference, i), LoadNumber(c.type, values, i));
    if (!same && hits[i / slice] < 2) return Differs(c, reference, values, i);
  }
  return "duplicates";
}

}  // namespace

uint64_t Case::elements() const {
  uint64_t count = 1;
  for (uint32_t size : sizes) count *= size;
  return count;
}

uint32_t Case::element_bytes() const {
  return type == "int8" ? 1 : type == "float16" ? 2 : type == "int64" ? 8 : 4;
}

uint64_t Case::axis_stride() const {
  uint64_t stride = 1;
  for (size_t d = axis + 1; d < sizes.size(); ++d) stride *= sizes[d];
  return stride;
}

uint64_t Case::slice() const {
  uint64_t count = 1;
  for (size_t d = tuple_size; d < sizes.size(); ++d) count *= sizes[d];
  return count;
}

Case ParseCase(const Words& words) {
  Case c;
  c.op = Word(words, "op");
  c.type = Word(words, "type");
  c.data = Word(words, "data");
  std::istringstream sizes(Word(words, "sizes"));
  for (std::string size; std::getline(sizes, size, ',');) {
    c.sizes.push_back(static_cast<uint32_t>(std::stoul(size)));
  }
  const char* const types[] = {"float32", "float16", "int8", "int32", "int64"};
  if (std::find(std::begin(types), std::end(types), c.type) == std::end(types)) {
    throw std::runtime_error("unknown type: " + c.type);
  }
  if (c.sizes.empty()) throw std::runtime_error("no sizes");
  c.axis = Number(words, "axis", 0);
  c.k = Number(words, "k", 0);
  c.tuples = Number(words, "tuples", 0);
  c.tuple_size = Number(words, "tuple", 0);
  c.in_place = Number(words, "in_place", 0) != 0;
  c.dispatches = Number(words, "dispatches", 1);
  if (words.count("floor")) c.floor = words.at("floor");
  const bool top_k = c.op == "topk" && c.axis < c.sizes.size() && c.k >= 1 && c.k <= c.sizes[c.axis];
  const bool scatter =
      c.op == "scatter" && c.tuples >= 1 && c.tuple_size >= 1 && c.tuple_size <= c.sizes.size();
  if (!top_k && !scatter) throw std::runtime_error("neither a topk nor a scatter");
  return c;
}

Bytes ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error("cannot open " + path);
  Bytes bytes(static_cast<size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) throw std::runtime_error("cannot read " + path);
  return bytes;
}

void WriteFile(const std::string& path, const Bytes& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

void WriteInputs(const Case& c) {
  WriteFile("input.bin", MakeElements(c, c.elements(), 1));
  if (c.op != "scatter") return;
  const std::vector<uint32_t> indices = MakeIndices(c);
  WriteFile("indices.bin", ToBytes(indices));
  // The peers take 64-bit indices only.
  WriteFile("indices64.bin", ToBytes(std::vector<int64_t>(indices.begin(), indices.end())));
  WriteFile("updates.bin", MakeElements(c, c.tuples * c.slice(), 3));
}

Inputs ReadInputs(const Case& c) {
  Inputs inputs;
  inputs.input = ReadFile("input.bin");
  if (c.op == "scatter") {
    inputs.indices = ReadFile("indices.bin");
    inputs.updates = ReadFile("updates.bin");
  }
  return inputs;
}

std::string Compare(const Case& c, const Inputs& inputs, const Bytes& reference_values,
                    const Bytes& reference_indices, const Bytes& values, const Bytes& indices) {
  if (values.size() != reference_values.size()) return "wrong: the size of the values";
  if (c.op == "scatter") {
    if (values == reference_values) return "equal";
    return CompareScatter(c, inputs.indices, reference_values, values);
  }
  const uint64_t count = values.size() / c.element_bytes();
  std::vector<uint64_t> wide(count);
  if (indices.size() == count * sizeof(uint32_t)) {
    for (uint64_t i = 0; i < count; ++i) wide[i] = Load<uint32_t>(indices, i);
  } else if (indices.size() == count * sizeof(uint64_t)) {
    for (uint64_t i = 0; i < count; ++i) wide[i] = Load<uint64_t>(indices, i);
  } else {
    return "wrong: the size of the indices";
  }
  bool same = values == reference_values;
  for (uint64_t i = 0; same && i < count; ++i) same = wide[i] == Load<uint32_t>(reference_indices, i);
  return same ? "equal" : CompareTopK(c, inputs.input, reference_values, values, wide);
}

}  // namespace anydml::bench
