#include "onnx/file/read_tensor.h"
#include "onnx/run/session.h"

namespace anydml::onnx {
namespace {

constexpr int kMaxDepth = 8;

Status ParseTensorValue(Bytes message, const Blob& file, RuntimeValue* out) {
  std::string name;
  Tensor tensor;
  ANYDML_RETURN_IF_ERROR(ParseTensor(message, file, nullptr, &name, &tensor));
  *out = RuntimeValue::Of(std::move(tensor));
  return {};
}

// SequenceProto: tensors are field 3, sequences 5.
Status ParseSequence(Bytes message, const Blob& file, int depth, RuntimeValue* out) {
  if (depth > kMaxDepth) return InvalidArgument("sequences are nested more than ", kMaxDepth, " deep");
  WireReader reader(message);
  std::vector<RuntimeValue> elements;
  while (reader.Next()) {
    if (reader.field() == 3)
      ANYDML_RETURN_IF_ERROR(ParseTensorValue(reader.Message(), file, &elements.emplace_back()));
    if (reader.field() == 5)
      ANYDML_RETURN_IF_ERROR(ParseSequence(reader.Message(), file, depth + 1, &elements.emplace_back()));
  }
  ANYDML_RETURN_IF_ERROR(reader.status());
  *out = RuntimeValue::Sequence(std::move(elements));
  return {};
}

// OptionalProto: a tensor is field 3, a sequence 5.
Status ParseOptional(Bytes message, const Blob& file, RuntimeValue* out) {
  WireReader reader(message);
  out->kind = RuntimeValue::Kind::kNothing;
  while (reader.Next()) {
    if (reader.field() == 3) ANYDML_RETURN_IF_ERROR(ParseTensorValue(reader.Message(), file, out));
    if (reader.field() == 5) ANYDML_RETURN_IF_ERROR(ParseSequence(reader.Message(), file, 0, out));
  }
  return reader.status();
}

}  // namespace

Status ReadValue(const Blob& file, ValueKind kind, RuntimeValue* out) {
  switch (kind) {
    case ValueKind::kTensor:
      return ParseTensorValue(file.bytes, file, out);
    case ValueKind::kSequence:
      return ParseSequence(file.bytes, file, 0, out);
    case ValueKind::kOptional:
      return ParseOptional(file.bytes, file, out);
    case ValueKind::kOther:
      break;
  }
  return Status(Code::kUnsupported, "unsupported: a value that is no tensor, sequence or optional");
}

}  // namespace anydml::onnx
