// Commands and their bindings.
#include <algorithm>

#include "anydml/model/model_parts.h"
#include "client/describe/desc_fields.h"
#include "client/packed_elements.h"
#include "client/suggest.h"
#include "client/text.h"

namespace anydml::client {
namespace {

// The index of the buffer or operator with this name.
Status FindNamed(const JsonNode& node, const char* what,
                 const std::unordered_map<std::string, size_t>& indices, size_t* index) {
  std::string name;
  ANYDML_RETURN_IF_ERROR(node.Get(&name));
  if (const auto found = indices.find(name); found != indices.end()) {
    *index = found->second;
    return {};
  }
  std::vector<std::string_view> names;
  for (const auto& entry : indices) names.push_back(entry.first);
  std::sort(names.begin(), names.end());  // so that the suggestion among equally similar names is always the
                                          // same
  return node.Error("there is no ", what, " '", Printable(name), "'", DidYouMean(name, names));
}

// A buffer's name, or {"name": ..., "elementOffset": ...}. Members for shaders and ONNX models are accepted
// and ignored, as in the original tool.
Status ReadBinding(const JsonNode& node, const Model& model, ModelBinding* out) {
  if (node.kind() == JsonNode::Kind::kString) {
    return FindNamed(node, "resource", model.buffers_by_name, &out->buffer);
  }
  constexpr std::string_view kKeys[] = {
      "name",    "elementOffset",      "elementCount", "elementSizeInBytes", "elementStride", "format",
      "counter", "counterOffsetBytes", "shape"};
  ANYDML_RETURN_IF_ERROR(node.ExpectKeys(kKeys));
  std::optional<JsonNode> name;
  ANYDML_RETURN_IF_ERROR(node.Require("name", &name));
  ANYDML_RETURN_IF_ERROR(FindNamed(*name, "resource", model.buffers_by_name, &out->buffer));
  const ModelBuffer& buffer = model.buffers[out->buffer];
  uint64_t element_bytes = BitSize(buffer.type) / 8;
  uint64_t offset = 0, count = 0, end = 0;
  ANYDML_RETURN_IF_ERROR(node.GetOptional("elementStride", &element_bytes));
  ANYDML_RETURN_IF_ERROR(node.GetOptional("elementSizeInBytes", &element_bytes));
  ANYDML_RETURN_IF_ERROR(node.GetOptional("elementOffset", &offset));
  ANYDML_RETURN_IF_ERROR(node.GetOptional("elementCount", &count));
  if (element_bytes == 0 && offset + count > 0) {
    return node.Error("'", Printable(buffer.name), "' has elements of ",
                      IsFourBits(buffer.type) ? "half a byte" : "several types", "; give elementSizeInBytes");
  }
  if (__builtin_add_overflow(offset, count, &end) || __builtin_mul_overflow(end, element_bytes, &end) ||
      end > buffer.bytes.size()) {
    return node.Error("elementOffset ", offset, " and elementCount ", count, " with elements of ",
                      element_bytes, " bytes reach beyond the ", buffer.bytes.size(), " bytes of '",
                      Printable(buffer.name), "'");
  }
  out->offset = offset * element_bytes;
  return {};
}

// The tensors of a tensor field; an absent tensor is null, but an absent array has none.
std::vector<const TensorDesc*> TensorsOf(const FieldValue& value, const FieldSchema& field) {
  std::vector<const TensorDesc*> tensors;
  if (const auto* array = std::get_if<std::vector<TensorDesc>>(&value)) {
    for (const TensorDesc& tensor : *array) tensors.push_back(&tensor);
  } else if (field.type == FieldType::kTensor) {
    tensors.push_back(std::get_if<TensorDesc>(&value));
  }
  return tensors;
}

// Whether the tensor is bound at initialisation. An output never is; the library refuses a description with
// that flag on one.
bool IsOwned(const FieldSchema& field, const TensorDesc& tensor) {
  return field.kind == FieldKind::kInput && tensor.owned_by_dml;
}

Status BindTensor(const JsonNode& node, const Model& model, const FieldSchema& field,
                  const TensorDesc* tensor, bool initial, ModelBinding* out) {
  if (tensor == nullptr) return node.Error("is bound, but the description has no such tensor");
  if (IsOwned(field, *tensor) != initial) {
    return node.Error(initial ? "only tensors with the flag OWNED_BY_DML are bound by the dispatchable"
                              : "is owned by DirectML; it has to be bound by the dispatchable");
  }
  ANYDML_RETURN_IF_ERROR(ReadBinding(node, model, out));
  const ModelBuffer& buffer = model.buffers[out->buffer];
  const uint64_t bytes = buffer.bytes.size() - out->offset;
  if (bytes >= tensor->total_bytes) return {};
  return node.Error("the tensor needs ", tensor->total_bytes, " bytes, but '", Printable(buffer.name),
                    "' has ", bytes, out->offset > 0 ? " from that offset on" : "");
}

// All tensors of one field; `given` is the model's binding for it.
Status BindField(const JsonNode& parent, const std::optional<JsonNode>& given, const Model& model,
                 const FieldSchema& field, const FieldValue& value, bool initial,
                 std::vector<ModelBinding>* out) {
  const std::vector<const TensorDesc*> tensors = TensorsOf(value, field);
  if (given) {
    const bool is_list = given->kind() == JsonNode::Kind::kArray;
    if (const size_t count = is_list ? CountElements(given->value()) : 1; count != tensors.size()) {
      return given->Error(count, " resources are bound to ", tensors.size(), " tensors");
    }
    size_t next = 0;
    const auto bind = [&](const JsonNode& node) {
      return BindTensor(node, model, field, tensors[next++], initial, &out->emplace_back());
    };
    return is_list ? given->ForEach(bind) : bind(*given);
  }
  for (const TensorDesc* tensor : tensors) {
    out->emplace_back();
    if (tensor == nullptr || IsOwned(field, *tensor) != initial) continue;
    return parent.Error(field.name, " is not bound to a resource");
  }
  return {};
}

Status ReadSizes(const JsonNode& node, const ModelBuffer& buffer, std::vector<uint32_t>* sizes) {
  const std::optional<JsonNode> dimensions = node.Find("dimensions");
  if (!dimensions) return {};
  ANYDML_RETURN_IF_ERROR(dimensions->Get(sizes));
  const uint64_t elements = buffer.value_count();
  if (!sizes->empty() && sizes->size() <= kMaxDimensions) {
    const TensorDesc tensor = PackedTensor(buffer.type, sizes->data(), static_cast<uint32_t>(sizes->size()));
    if (ElementCount(tensor) == elements) return {};
  }
  return dimensions->Error("1 to ", kMaxDimensions, " sizes are needed that make the ", elements,
                           " elements of '", Printable(buffer.name), "'");
}

Status FindBuffer(const JsonNode& node, const Model& model, size_t* index) {
  std::optional<JsonNode> resource;
  ANYDML_RETURN_IF_ERROR(node.Require("resource", &resource));
  return FindNamed(*resource, "resource", model.buffers_by_name, index);
}

Status FindTypedBuffer(const JsonNode& node, const Model& model, size_t* index) {
  ANYDML_RETURN_IF_ERROR(FindBuffer(node, model, index));
  if (model.buffers[*index].type != DataType::kUnknown) return {};
  return node.Error("'", Printable(model.buffers[*index].name), "' has values of several data types");
}

Status ReadDispatch(const JsonNode& node, const Model& model, DispatchCommand* out) {
  constexpr std::string_view kKeys[] = {"type", "dispatchable", "bindings", "threadGroupCount"};
  ANYDML_RETURN_IF_ERROR(node.ExpectKeys(kKeys));
  std::optional<JsonNode> op;
  ANYDML_RETURN_IF_ERROR(node.Require("dispatchable", &op));
  ANYDML_RETURN_IF_ERROR(FindNamed(*op, "dispatchable", model.operators_by_name, &out->op));
  return ReadBindings(node, model, model.operators[out->op].desc, /*initial=*/false, out);
}

Status ReadPrint(const JsonNode& node, const Model& model, PrintCommand* out) {
  constexpr std::string_view kKeys[] = {"type", "resource", "verbose", "dimensions"};
  ANYDML_RETURN_IF_ERROR(node.ExpectKeys(kKeys));
  ANYDML_RETURN_IF_ERROR(FindTypedBuffer(node, model, &out->buffer));
  ANYDML_RETURN_IF_ERROR(node.GetOptional("verbose", &out->verbose));
  return ReadSizes(node, model.buffers[out->buffer], &out->sizes);
}

Status ReadWriteFile(const JsonNode& node, const ModelFolder& folder, const Model& model,
                     WriteFileCommand* out) {
  constexpr std::string_view kKeys[] = {"type", "resource", "targetPath", "dimensions"};
  ANYDML_RETURN_IF_ERROR(node.ExpectKeys(kKeys));
  std::optional<JsonNode> target;
  ANYDML_RETURN_IF_ERROR(node.Require("targetPath", &target));
  ANYDML_RETURN_IF_ERROR(ResolveTarget(*target, folder, &out->path));
  out->npy = HasExtension(out->path, ".npy");
  // Raw files have neither a data type nor dimensions.
  ANYDML_RETURN_IF_ERROR(out->npy ? FindTypedBuffer(node, model, &out->buffer)
                                  : FindBuffer(node, model, &out->buffer));
  if (IsImage(out->path)) {
    return target->At(Status(Code::kUnsupported,
                             StrCat("'", Printable(target->value().text), "': images are not supported")));
  }
  if (!out->npy) return {};
  out->sizes = model.buffers[out->buffer].sizes;
  return ReadSizes(node, model.buffers[out->buffer], &out->sizes);
}

Status ReadExpectedFile(const JsonNode& source, const ModelFolder& folder, const ModelBuffer& buffer,
                        std::vector<std::byte>* values) {
  InputPath path;
  ANYDML_RETURN_IF_ERROR(ResolveSource(source, folder, &path));
  DataType type = buffer.type;
  ModelBuffer file;
  ANYDML_RETURN_IF_ERROR(source.At(ReadPackedNpy(path, &type, &file.sizes, values)));
  if (type == buffer.type && file.value_count() == buffer.value_count()) return {};
  return source.Error("the file has ", file.value_count(), " elements of ", Name(type), ", '",
                      Printable(buffer.name), "' has ", buffer.value_count(), " of ", Name(buffer.type));
}

Status ReadExpect(const JsonNode& node, const ModelFolder& folder, const Model& model, ExpectCommand* out) {
  constexpr std::string_view kKeys[] = {"type",       "resource",          "values",
                                        "sourcePath", "relativeTolerance", "absoluteTolerance"};
  ANYDML_RETURN_IF_ERROR(node.ExpectKeys(kKeys));
  ANYDML_RETURN_IF_ERROR(FindTypedBuffer(node, model, &out->buffer));
  ANYDML_RETURN_IF_ERROR(node.GetOptional("relativeTolerance", &out->relative_tolerance));
  ANYDML_RETURN_IF_ERROR(node.GetOptional("absoluteTolerance", &out->absolute_tolerance));
  const ModelBuffer& buffer = model.buffers[out->buffer];
  const std::optional<JsonNode> values = node.Find("values"), source = node.Find("sourcePath");
  if (values.has_value() == source.has_value()) return node.Error("needs either values or sourcePath");
  return values ? ReadExpectedElements(*values, buffer, &out->values)
                : ReadExpectedFile(*source, folder, buffer, &out->values);
}

}  // namespace

Status ReadBindings(const JsonNode& parent, const Model& model, const OperatorDesc& desc, bool initial,
                    DispatchCommand* out) {
  const std::optional<JsonNode> bindings = parent.Find("bindings");
  if (bindings) {
    std::vector<std::string_view> names;
    for (const FieldSchema& field : desc.schema->fields) {
      if (field.kind != FieldKind::kAttribute) names.push_back(field.name);
    }
    ANYDML_RETURN_IF_ERROR(bindings->ExpectKeys(names));
  }
  for (size_t i = 0; i < desc.fields.size(); ++i) {
    const FieldSchema& field = desc.schema->fields[i];
    if (field.kind == FieldKind::kAttribute) continue;
    const std::optional<JsonNode> given = bindings ? bindings->Find(field.name) : std::nullopt;
    ANYDML_RETURN_IF_ERROR(BindField(parent, given, model, field, desc.fields[i], initial,
                                     field.kind == FieldKind::kInput ? &out->inputs : &out->outputs));
  }
  return {};
}

Status ReadModelCommand(const JsonNode& node, const ModelFolder& folder, const Model& model,
                        ModelCommand* out) {
  constexpr std::string_view kTypes[] = {"dispatch", "print", "writeFile", "expect"};
  out->where = node.Where();
  std::string type;
  ANYDML_RETURN_IF_ERROR(node.GetRequired("type", &type));
  if (EqualIgnoringCase(type, kTypes[0])) {
    return ReadDispatch(node, model, &out->action.emplace<DispatchCommand>());
  }
  if (EqualIgnoringCase(type, kTypes[1])) {
    return ReadPrint(node, model, &out->action.emplace<PrintCommand>());
  }
  if (EqualIgnoringCase(type, kTypes[2])) {
    return ReadWriteFile(node, folder, model, &out->action.emplace<WriteFileCommand>());
  }
  if (EqualIgnoringCase(type, kTypes[3])) {
    return ReadExpect(node, folder, model, &out->action.emplace<ExpectCommand>());
  }
  return node.Error("there is no command '", Printable(type), "' (dispatch, print, writeFile, expect)",
                    DidYouMean(type, kTypes));
}

}  // namespace anydml::client
