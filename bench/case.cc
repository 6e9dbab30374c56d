#include "case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <numbers>
#include <sstream>
#include <stdexcept>

#include "base/half.h"
#include "client/describe/desc_fields.h"
#include "client/describe/field_values.h"

namespace anydml::bench {
namespace {

uint32_t Number(const Words& words, const char* key, uint32_t otherwise) {
  const auto found = words.find(key);
  return found == words.end() ? otherwise : static_cast<uint32_t>(std::stoul(found->second));
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// splitmix64: the same numbers everywhere, which the standard's distributions do not guarantee.
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

// Element i of a kind of data.
float Element(const std::string& data, uint64_t i, uint64_t count, Random& random) {
  if (data == "normal") return random.Normal();
  if (data == "small") return 0.03f * random.Normal();
  if (data == "positive") return static_cast<float>(0.5 + 3.5 * random.Uniform());
  if (data == "whole") return static_cast<float>(random.Below(2001)) - 1000.0f;
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

// "below-8-9": indices alternately below 8 and below 9; some of them are equal.
Bytes MakeIndices(const std::string& data, uint64_t count, Random& random) {
  const std::vector<std::string> limits = Split(data, '-');
  std::vector<uint32_t> indices(count);
  for (uint64_t i = 0; i < count; ++i) {
    indices[i] = random.Below(static_cast<uint32_t>(std::stoul(limits[1 + i % (limits.size() - 1)])));
  }
  return ToBytes(indices);
}

Bytes MakeElements(const TensorDesc& tensor, const std::string& data, uint64_t seed) {
  Random random(seed);
  const uint64_t count = ElementSpan(tensor);
  if (data.starts_with("below-")) return MakeIndices(data, count, random);
  if (tensor.type == DataType::kInt8 && data == "normal") {  // all values of 8 bits, equally often
    std::vector<int8_t> elements(count);
    for (int8_t& element : elements) element = static_cast<int8_t>(random.Next() >> 56);
    return ToBytes(elements);
  }
  std::vector<float> elements(count);
  for (uint64_t i = 0; i < count; ++i) elements[i] = Element(data, i, count, random);
  if (tensor.type == DataType::kFloat32) return ToBytes(elements);
  if (tensor.type == DataType::kInt32) {
    return ToBytes(std::vector<int32_t>(elements.begin(), elements.end()));
  }
  if (tensor.type != DataType::kFloat16) throw std::runtime_error("no data of this type");
  std::vector<Half> halves(count);
  std::transform(elements.begin(), elements.end(), halves.begin(), ToHalf);
  return ToBytes(halves);
}

void ParseDimensions(const std::string& text, Dimensions* out, uint32_t* count) {
  const std::vector<std::string> parts = Split(text, ',');
  if (parts.empty() || parts.size() > kMaxDimensions) throw std::runtime_error("bad dimensions: " + text);
  *count = static_cast<uint32_t>(parts.size());
  for (size_t d = 0; d < parts.size(); ++d) (*out)[d] = static_cast<uint32_t>(std::stoul(parts[d]));
}

TensorDesc ParseTensor(const std::string& text, std::string* data) {
  std::vector<std::string> parts = Split(text, ':');
  parts.resize(4);
  TensorDesc tensor;
  tensor.type = parts[0] == "bool" ? DataType::kUInt8 : client::ParseDataType(parts[0]);
  if (tensor.type == DataType::kUnknown) throw std::runtime_error("unknown type: " + parts[0]);
  ParseDimensions(parts[1], &tensor.sizes, &tensor.rank);
  SetPackedStrides(&tensor);
  uint32_t rank = tensor.rank;
  if (!parts[2].empty()) ParseDimensions(parts[2], &tensor.strides, &rank);
  if (rank != tensor.rank) throw std::runtime_error("other strides than sizes: " + text);
  tensor.total_bytes = MinimumTotalBytes(tensor);
  *data = parts[3];
  return tensor;
}

// The schema of a graph as if it were an operator, with any number of inputs.
const OperatorSchema* GraphSchema() {
  static constexpr FieldSchema kFields[] = {
      {"InputTensors", FieldKind::kInput, FieldType::kTensorArray, false, 0, -1, nullptr},
      {"OutputTensors", FieldKind::kOutput, FieldType::kTensorArray, false, 0, -1, nullptr}};
  static constexpr OperatorSchema kSchema = {"GRAPH", 0, 0, 0, false, kFields, {}, {}, true, -1};
  return &kSchema;
}

CaseNode ParseNode(const std::string& text, size_t first_weight) {
  const std::vector<std::string> parts = Split(text, '/');
  Words words;
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t equals = parts[i].find('=');
    words[parts[i].substr(0, equals)] = parts[i].substr(equals + 1);
  }
  CaseNode node;
  Check(client::FindSchema(parts.at(0), &node.desc.schema));
  for (const FieldSchema& field : node.desc.schema->fields) {
    FieldValue& value = node.desc.fields.emplace_back();
    const auto word = words.find(field.name);
    if (field.kind == FieldKind::kAttribute) {
      if (word != words.end())
        Check(client::ParseFieldValue(field, word->second, DataType::kUnknown, &value));
      continue;
    }
    std::string& name = (field.kind == FieldKind::kInput ? node.inputs : node.outputs).emplace_back();
    if (word == words.end()) continue;
    const size_t at = word->second.find('@');
    std::string data;
    name = word->second.substr(0, at);
    TensorDesc tensor = ParseTensor(word->second.substr(at + 1), &data);
    tensor.owned_by_dml = name[0] == 'i' && std::stoul(name.substr(1)) >= first_weight;
    value = tensor;
  }
  Check(client::SetCounts(&node.desc));
  return node;
}

template <typename Visit>
void ForEachInput(const Case& c, Visit visit) {
  size_t position = 0;
  for (size_t i = 0; i < c.desc.fields.size(); ++i) {
    const FieldSchema& field = c.desc.schema->fields[i];
    if (field.kind != FieldKind::kInput) continue;
    const std::string name = field.name;
    if (const auto* tensors = std::get_if<std::vector<TensorDesc>>(&c.desc.fields[i])) {
      for (size_t t = 0; t < tensors->size(); ++t) {
        visit(position++, name + std::to_string(t) + ".bin", &(*tensors)[t]);
      }
    } else {
      visit(position++, name + ".bin", std::get_if<TensorDesc>(&c.desc.fields[i]));
    }
  }
}

}  // namespace

void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

uint64_t DataBytes(const TensorDesc& tensor) { return ElementSpan(tensor) * BitSize(tensor.type) / 8; }

uint64_t Case::axis_stride() const { return tensor("InputTensor").strides[desc.uint("Axis")]; }

uint64_t Case::tuples() const { return ElementCount(tensor("IndicesTensor")) / tuple_size(); }

uint32_t Case::tuple_size() const {
  const TensorDesc& indices = tensor("IndicesTensor");
  return indices.sizes[indices.rank - 1];
}

uint64_t Case::slice() const { return ElementCount(tensor("UpdatesTensor")) / tuples(); }

Case ParseCase(const Words& words) {
  Case c;
  const auto op = words.find("op");
  if (op == words.end()) throw std::runtime_error("the request lacks op");
  const bool is_graph = op->second == GraphSchema()->name;
  c.desc.schema = GraphSchema();
  if (!is_graph) Check(client::FindSchema(op->second, &c.desc.schema));
  c.desc.fields.resize(c.desc.schema->fields.size());
  c.result_text = op->second;
  for (size_t i = 0; i < c.desc.fields.size(); ++i) {
    const FieldSchema& field = c.desc.schema->fields[i];
    const bool is_array = field.type == FieldType::kTensorArray;
    const auto word = words.find(field.name);
    if (word == words.end()) {
      if (field.kind == FieldKind::kInput) c.data.emplace_back();
      continue;
    }
    const std::string text = " " + word->first + "=" + word->second;
    c.result_text += text;
    if (field.type != FieldType::kTensor && !is_array) {
      Check(client::ParseFieldValue(field, word->second, client::ScalarType(c.desc), &c.desc.fields[i]));
      continue;
    }
    std::vector<TensorDesc> tensors;
    for (const std::string& part : Split(word->second, ';')) {
      std::string data;
      tensors.push_back(ParseTensor(part, &data));
      if (field.kind == FieldKind::kInput) c.data.push_back(data);
    }
    if (field.kind == FieldKind::kInput) c.inputs_text += text;
    if (is_array) {
      c.desc.fields[i] = std::move(tensors);
    } else {
      c.desc.fields[i] = tensors.at(0);
    }
  }
  Check(client::SetCounts(&c.desc));
  if (is_graph) {
    c.first_weight = Number(words, "first_weight", UINT32_MAX);
    c.compiles = Number(words, "compiles", 0) != 0;
    for (const std::string& node : Split(words.at("nodes"), '|')) {
      c.nodes.push_back(ParseNode(node, c.first_weight));
    }
    c.result_text += " " + words.at("nodes");
  }
  c.ulps = words.count("ulps") ? std::stod(words.at("ulps")) : 0;
  c.absolute = words.count("absolute") ? std::stod(words.at("absolute")) : 0;
  c.moved = words.count("moved") ? std::stoull(words.at("moved")) : 0;
  c.in_place = Number(words, "in_place", 0) != 0;
  c.dispatches = Number(words, "dispatches", 1);
  if (words.count("floor")) c.floor = words.at("floor");
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
  ForEachInput(c, [&c](size_t position, const std::string& file, const TensorDesc* tensor) {
    if (tensor) WriteFile(file, MakeElements(*tensor, c.data[position], position + 1));
  });
}

Inputs ReadInputs(const Case& c) {
  Inputs inputs;
  ForEachInput(c, [&inputs](size_t, const std::string& file, const TensorDesc* tensor) {
    inputs.push_back(tensor ? ReadFile(file) : Bytes());
    if (tensor && inputs.back().size() != DataBytes(*tensor)) {
      throw std::runtime_error(file + " is of another size");
    }
  });
  return inputs;
}

}  // namespace anydml::bench
