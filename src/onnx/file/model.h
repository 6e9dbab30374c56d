// An ONNX model as read from its file, not yet interpreted.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/file/tensor.h"
#include "onnx/file/wire.h"

namespace anydml::onnx {

struct GraphProto;

// AttributeProto.AttributeType, as far as it is used.
enum class AttributeKind : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
};

struct Attribute {
  std::string name;
  AttributeKind kind = AttributeKind::kUndefined;
  float number = 0;
  int64_t integer = 0;
  std::string text;
  Tensor tensor;
  std::shared_ptr<GraphProto> graph;  // shared by copies
  std::vector<float> numbers;
  std::vector<int64_t> integers;
  std::vector<std::string> texts;
  std::string reference;  // in a function: the caller's attribute of this name
};

struct NodeProto {
  std::string name;
  std::string type;                 // "Conv"
  std::string domain;               // "" for ai.onnx
  std::vector<std::string> inputs;  // "" for omitted optional ones
  std::vector<std::string> outputs;
  std::vector<Attribute> attributes;
  std::string overload{};  // of functions that share a name

  const Attribute* Find(std::string_view attribute) const;  // null if it was not given
};

enum class ValueKind { kTensor, kSequence, kOptional, kOther };

struct ValueProto {
  std::string name;
  ValueKind kind = ValueKind::kTensor;
  ElementType type = ElementType::kUndefined;
  bool has_shape = false;
  Shape shape;                       // -1 for sizes unknown before the model runs
  std::vector<std::string> symbols;  // the names of such sizes; "" for others
};

struct GraphProto {
  std::string name;
  std::vector<NodeProto> nodes;
  std::map<std::string, Tensor> initializers;
  std::vector<ValueProto> inputs;
  std::vector<ValueProto> outputs;
};

struct FunctionProto {
  std::string name;
  std::string domain;
  std::string overload;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<NodeProto> nodes;
  std::vector<Attribute> defaults;
  std::map<std::string, int64_t> opsets;
};

struct Model {
  int64_t ir_version = 0;
  std::string producer;
  std::map<std::string, int64_t> opsets;  // by domain
  GraphProto graph;
  std::vector<FunctionProto> functions;
  uint64_t weight_bytes = 0;          // of initializers, inside and outside the file
  std::vector<std::string> warnings;  // about what is wrong in the file and read all the same: sentences
};

// A file, or a part of one, into which tensors point.
struct Blob {
  Bytes bytes;
  std::shared_ptr<const void> owner;
  bool mapped = false;  // pages can be dropped and read again
};

// Opens files of external data; `location` is relative and stays inside the model's folder.
class ExternalFiles {
 public:
  virtual ~ExternalFiles() = default;
  virtual Status Open(const std::string& location, Blob* out) = 0;
};

// Error messages begin with the position in the model. `external` may be null: then external data is an
// error.
Status ReadModel(const Blob& file, ExternalFiles* external, Model* out);

// Loads the file and the files beside it. They are mapped, so that weights are read when they are used.
Status LoadModel(const std::string& path, Model* out);

// A file with a single TensorProto, as in ONNX's tests.
Status ReadTensor(const Blob& file, Tensor* out);

Status MapFile(const std::string& path, Blob* out);

// Drops the elements' pages until they are read again; does nothing for tensors outside files.
void DropPages(const Tensor& tensor);

}  // namespace anydml::onnx
