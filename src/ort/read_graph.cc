#include "ort/read_graph.h"

#include <cstring>

namespace anydml::ort {
namespace {

using Infos = std::vector<const OrtValueInfo*>;

constexpr std::string_view kFunctionWithBody = "SequenceMap";

template <typename T>
Status ReadNumbers(const Api& api, const OrtOpAttr* attribute, OrtOpAttrType type, std::vector<T>* out) {
  size_t bytes = 0;
  // With too small a buffer it fails and reports the required size.
  OrtStatus* const status = api.Call(kReadOpAttr, attribute, type, nullptr, size_t{0}, &bytes);
  if (status == nullptr) return {};  // empty
  api.Call(kReleaseStatus, status);
  out->resize(bytes / sizeof(T));
  return api.Try(kReadOpAttr, attribute, type, out->data(), bytes, &bytes);
}

Status ReadTensor(const Api& api, const OrtOpAttr* attribute, onnx::Tensor* out) {
  OrtValue* value = nullptr;
  ANYDML_RETURN_IF_ERROR(api.Try(kOpAttrGetTensor, attribute, &value));
  onnx::Tensor tensor;
  Status status = api.TensorOf(value, &tensor);
  if (status.ok()) {
    *out = onnx::MakeTensor(tensor.type, tensor.shape,
                            std::vector<std::byte>(tensor.data.begin(), tensor.data.end()));
  }
  api.Call(kReleaseValue, value);
  return status;
}

void SplitTexts(const std::vector<char>& bytes, std::vector<std::string>* out) {
  for (size_t at = 0; at < bytes.size();) {
    out->emplace_back(&bytes[at], strnlen(&bytes[at], bytes.size() - at));
    at += out->back().size() + 1;
  }
}

Status ReadAttribute(const Api& api, const OrtOpAttr* given, onnx::Attribute* out) {
  const char* name = nullptr;
  OrtOpAttrType type{};
  ANYDML_RETURN_IF_ERROR(api.Try(kOpAttrGetName, given, &name));
  ANYDML_RETURN_IF_ERROR(api.Try(kOpAttrGetType, given, &type));
  out->name = name;
  size_t bytes = 0;
  std::vector<char> text;
  switch (type) {
    case kOrtInt:
      out->kind = onnx::AttributeKind::kInt;
      return api.Try(kReadOpAttr, given, type, &out->integer, sizeof(out->integer), &bytes);
    case kOrtFloat:
      out->kind = onnx::AttributeKind::kFloat;
      return api.Try(kReadOpAttr, given, type, &out->number, sizeof(out->number), &bytes);
    case kOrtInts:
      out->kind = onnx::AttributeKind::kInts;
      return ReadNumbers(api, given, type, &out->integers);
    case kOrtFloats:
      out->kind = onnx::AttributeKind::kFloats;
      return ReadNumbers(api, given, type, &out->numbers);
    case kOrtString:
      out->kind = onnx::AttributeKind::kString;
      ANYDML_RETURN_IF_ERROR(ReadNumbers(api, given, type, &text));
      // Without a trailing NUL, which some versions may count.
      out->text.assign(text.begin(), text.end());
      while (out->text.ends_with('\0')) out->text.pop_back();
      return {};
    case kOrtStrings:
      out->kind = onnx::AttributeKind::kStrings;
      ANYDML_RETURN_IF_ERROR(ReadNumbers(api, given, type, &text));
      SplitTexts(text, &out->texts);
      return {};
    case kOrtTensor:
      out->kind = onnx::AttributeKind::kTensor;
      return ReadTensor(api, given, &out->tensor);
    default:
      return Status(Code::kUnsupported, StrCat("attribute \"", name, "\" is of another kind"));
  }
}

Status ReadType(const Api& api, const OrtValueInfo* info, onnx::ValueProto* out) {
  const OrtTypeInfo* type = nullptr;
  OnnxType kind{};
  ANYDML_RETURN_IF_ERROR(api.Try(kGetValueInfoTypeInfo, info, &type));
  if (type != nullptr) ANYDML_RETURN_IF_ERROR(api.Try(kGetOnnxTypeFromTypeInfo, type, &kind));
  out->kind = kind == kOnnxTensor ? onnx::ValueKind::kTensor : onnx::ValueKind::kOther;
  if (kind != kOnnxTensor) return {};
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  ANYDML_RETURN_IF_ERROR(api.Try(kCastTypeInfoToTensorInfo, type, &tensor));
  int32_t element = 0;
  size_t rank = 0;
  ANYDML_RETURN_IF_ERROR(api.Try(kGetTensorElementType, tensor, &element));
  ANYDML_RETURN_IF_ERROR(api.Try(kGetDimensionsCount, tensor, &rank));
  out->type = static_cast<onnx::ElementType>(element);
  out->has_shape = rank > 0;
  out->shape.resize(rank);
  out->symbols.resize(rank);
  if (rank == 0) return {};
  std::vector<const char*> symbols(rank);
  ANYDML_RETURN_IF_ERROR(api.Try(kGetDimensions, tensor, out->shape.data(), rank));
  ANYDML_RETURN_IF_ERROR(api.Try(kGetSymbolicDimensions, tensor, symbols.data(), rank));
  for (size_t i = 0; i < rank; ++i) out->symbols[i] = symbols[i] == nullptr ? "" : symbols[i];
  return {};
}

// `infos` by name; adds new ones to the known values.
Status AddValues(const Api& api, const Infos& infos, Graph* graph, std::vector<std::string>* names) {
  for (const OrtValueInfo* const info : infos) {
    const char* name = "";
    if (info != nullptr) ANYDML_RETURN_IF_ERROR(api.Try(kGetValueInfoName, info, &name));
    names->emplace_back(name);
    if (info == nullptr || *name == '\0') continue;
    const auto [value, added] = graph->values.try_emplace(name);
    if (!added) continue;
    value->second.info = info;
    value->second.facts.name = name;
    ANYDML_RETURN_IF_ERROR(ReadType(api, info, &value->second.facts));
    ANYDML_RETURN_IF_ERROR(api.Try(kValueInfoIsConstantInitializer, info, &value->second.constant));
  }
  return {};
}

Status ReadNode(const Api& api, const OrtNode* node, Graph* graph, GraphNode* out) {
  out->node = node;
  const char *name = nullptr, *type = nullptr, *domain = nullptr;
  ANYDML_RETURN_IF_ERROR(api.Try(kNodeGetName, node, &name));
  ANYDML_RETURN_IF_ERROR(api.Try(kNodeGetOperatorType, node, &type));
  ANYDML_RETURN_IF_ERROR(api.Try(kNodeGetDomain, node, &domain));
  out->proto.name = name;
  out->proto.type = type;
  out->proto.domain = domain;
  Infos inputs, outputs, captures;
  ANYDML_RETURN_IF_ERROR(api.List(kNodeGetNumInputs, kNodeGetInputs, node, &inputs));
  ANYDML_RETURN_IF_ERROR(api.List(kNodeGetNumOutputs, kNodeGetOutputs, node, &outputs));
  ANYDML_RETURN_IF_ERROR(api.List(kNodeGetNumImplicitInputs, kNodeGetImplicitInputs, node, &captures));
  ANYDML_RETURN_IF_ERROR(AddValues(api, inputs, graph, &out->proto.inputs));
  ANYDML_RETURN_IF_ERROR(AddValues(api, outputs, graph, &out->proto.outputs));
  ANYDML_RETURN_IF_ERROR(AddValues(api, captures, graph, &out->captures));
  // Omitted trailing optional inputs count as not given.
  while (!out->proto.inputs.empty() && out->proto.inputs.back().empty()) out->proto.inputs.pop_back();
  size_t graphs = 0;
  ANYDML_RETURN_IF_ERROR(api.Try(kNodeGetNumSubgraphs, node, &graphs));
  out->readable = graphs == 0;
  if (!out->readable) return {};
  std::vector<const OrtOpAttr*> attributes;
  ANYDML_RETURN_IF_ERROR(api.List(kNodeGetNumAttributes, kNodeGetAttributes, node, &attributes));
  for (const OrtOpAttr* const attribute : attributes) {
    if (!ReadAttribute(api, attribute, &out->proto.attributes.emplace_back()).ok()) out->readable = false;
  }
  return {};
}

}  // namespace

Status ReadGraph(const Api& api, const OrtGraph* graph, Graph* out) {
  ANYDML_RETURN_IF_ERROR(api.Try(kGraphGetOnnxIrVersion, graph, &out->ir_version));
  size_t opsets = 0;
  ANYDML_RETURN_IF_ERROR(api.Try(kGraphGetNumOperatorSets, graph, &opsets));
  std::vector<const char*> domains(opsets);
  std::vector<int64_t> versions(opsets);
  ANYDML_RETURN_IF_ERROR(api.Try(kGraphGetOperatorSets, graph, domains.data(), versions.data(), opsets));
  for (size_t i = 0; i < opsets; ++i) out->opsets[domains[i]] = versions[i];
  std::vector<const OrtNode*> nodes;
  ANYDML_RETURN_IF_ERROR(api.List(kGraphGetNumNodes, kGraphGetNodes, graph, &nodes));
  for (const OrtNode* const node : nodes) {
    ANYDML_RETURN_IF_ERROR(ReadNode(api, node, out, &out->nodes.emplace_back()));
  }
  return {};
}

Status IsInFunction(const Api& api, const OrtGraph* graph, std::map<std::string, bool>* files, bool* out) {
  const OrtNode* node = nullptr;
  const char *type = "", *path = nullptr;
  ANYDML_RETURN_IF_ERROR(api.Try(kGraphGetParentNode, graph, &node));
  *out = false;
  if (node == nullptr) return {};
  ANYDML_RETURN_IF_ERROR(api.Try(kNodeGetOperatorType, node, &type));
  *out = std::string_view(type) == kFunctionWithBody;
  if (*out) return {};
  // onnxruntime does not say what is around that node. The model's file does, where there is one.
  ANYDML_RETURN_IF_ERROR(api.Try(kGraphGetModelPath, graph, &path));
  *out = path == nullptr || *path == '\0';  // a model in memory may be such a one
  if (*out) return {};
  const auto [known, is_new] = files->try_emplace(path, false);
  onnx::Blob file;
  if (is_new && onnx::MapFile(path, &file).ok()) {
    const std::string_view text(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
    known->second = text.find(kFunctionWithBody) != std::string_view::npos;
  }
  *out = known->second;
  return {};
}

Status ReadNames(const Api& api, const OrtNode* node, std::vector<std::string>* inputs,
                 std::vector<std::string>* outputs) {
  Graph ignored;
  Infos infos;
  ANYDML_RETURN_IF_ERROR(api.List(kNodeGetNumInputs, kNodeGetInputs, node, &infos));
  ANYDML_RETURN_IF_ERROR(AddValues(api, infos, &ignored, inputs));
  ANYDML_RETURN_IF_ERROR(api.List(kNodeGetNumOutputs, kNodeGetOutputs, node, &infos));
  return AddValues(api, infos, &ignored, outputs);
}

Status ConstantOf(const Api& api, const GraphValue& value, onnx::Tensor* out) {
  const OrtValue* tensor = nullptr;
  ANYDML_RETURN_IF_ERROR(api.Try(kValueInfoGetInitializerValue, value.info, &tensor));
  if (tensor == nullptr) return InvalidArgument("\"", value.facts.name, "\" is no constant");
  return api.TensorOf(tensor, out);
}

}  // namespace anydml::ort
