// Dispatchables: operator descriptions.
#include <algorithm>

#include "anydml/model/model_parts.h"
#include "anydml/values/tensor_source.h"
#include "client/describe/desc_fields.h"
#include "client/describe/field_values.h"
#include "client/suggest.h"
#include "client/text.h"

namespace anydml::client {
namespace {

// A name, or an array of names.
Status ReadFlags(const JsonNode& node, const char* enumeration, uint32_t* flags) {
  if (node.kind() == JsonNode::Kind::kArray) {
    return node.ForEach([&](const JsonNode& element) { return ReadFlags(element, enumeration, flags); });
  }
  std::string text;
  uint32_t value = 0;
  ANYDML_RETURN_IF_ERROR(node.Get(&text));
  ANYDML_RETURN_IF_ERROR(node.At(ParseEnumMember(*FindEnum(enumeration), text, &value)));
  *flags |= value;
  return {};
}

Status ReadSizes(const JsonNode& node, TensorDesc* tensor) {
  std::vector<uint32_t> sizes, strides;
  ANYDML_RETURN_IF_ERROR(node.GetRequired("Sizes", &sizes));
  if (sizes.empty() || sizes.size() > kMaxDimensions) {
    return node.Error("Sizes has ", sizes.size(), " dimensions; tensors have 1 to ", kMaxDimensions);
  }
  tensor->rank = static_cast<uint32_t>(sizes.size());
  uint32_t count = tensor->rank;
  ANYDML_RETURN_IF_ERROR(node.GetOptional("DimensionCount", &count));
  if (count != tensor->rank) {
    return node.Error("DimensionCount is ", count, " but Sizes has ", tensor->rank, " elements");
  }
  std::copy(sizes.begin(), sizes.end(), tensor->sizes.begin());
  SetPackedStrides(tensor);
  const std::optional<JsonNode> given = node.Find("Strides");
  if (!given || given->kind() == JsonNode::Kind::kNull) return {};
  ANYDML_RETURN_IF_ERROR(given->Get(&strides));
  if (strides.empty()) return {};  // packed, as by default
  if (strides.size() != sizes.size()) {
    return given->Error("Strides has ", strides.size(), " elements but Sizes has ", sizes.size());
  }
  std::copy(strides.begin(), strides.end(), tensor->strides.begin());
  return {};
}

Status ReadBufferTensor(const JsonNode& node, TensorDesc* tensor) {
  ANYDML_RETURN_IF_ERROR(ReadSizes(node, tensor));
  std::optional<JsonNode> type;
  ANYDML_RETURN_IF_ERROR(node.Require("DataType", &type));
  std::string text;
  uint32_t value = 0;
  ANYDML_RETURN_IF_ERROR(type->Get(&text));
  ANYDML_RETURN_IF_ERROR(type->At(ParseEnumMember(*FindEnum("DML_TENSOR_DATA_TYPE"), text, &value)));
  tensor->type = static_cast<DataType>(value);
  if (const std::optional<JsonNode> flags_node = node.Find("Flags")) {
    uint32_t flags = 0;
    ANYDML_RETURN_IF_ERROR(ReadFlags(*flags_node, "DML_TENSOR_FLAGS", &flags));
    tensor->owned_by_dml = flags != 0;  // the only existing flag
  }
  ANYDML_RETURN_IF_ERROR(node.GetOptional("TotalTensorSizeInBytes", &tensor->total_bytes));
  if (tensor->total_bytes == 0) tensor->total_bytes = MinimumTotalBytes(*tensor);
  return node.GetOptional("GuaranteedBaseOffsetAlignment", &tensor->alignment);
}

// {"Type": "BUFFER", "Desc": {...}}, or the inner object's fields in the outer one.
Status ReadTensor(const JsonNode& node, TensorDesc* tensor) {
  constexpr std::string_view kFields[] = {"DataType",
                                          "Flags",
                                          "DimensionCount",
                                          "Sizes",
                                          "Strides",
                                          "TotalTensorSizeInBytes",
                                          "GuaranteedBaseOffsetAlignment",
                                          "Type"};
  constexpr std::string_view kOuter[] = {"Type", "Desc"};
  const std::optional<JsonNode> inner = node.Find("Desc");
  ANYDML_RETURN_IF_ERROR(inner ? node.ExpectKeys(kOuter) : node.ExpectKeys(kFields));
  if (const std::optional<JsonNode> type = node.Find("Type")) {
    std::string text;
    uint32_t value = 0;
    ANYDML_RETURN_IF_ERROR(type->Get(&text));
    ANYDML_RETURN_IF_ERROR(type->At(ParseEnumMember(*FindEnum("DML_TENSOR_TYPE"), text, &value)));
  }
  if (!inner) return ReadBufferTensor(node, tensor);
  ANYDML_RETURN_IF_ERROR(inner->ExpectKeys(std::span(kFields).first(std::size(kFields) - 1)));
  return ReadBufferTensor(*inner, tensor);
}

// "1,2"
Status AppendNumber(const JsonNode& node, std::string* text) {
  std::string_view number;
  ANYDML_RETURN_IF_ERROR(node.GetNumberText(&number));
  if (!text->empty()) *text += ',';
  *text += number;
  return {};
}

Status PairText(const JsonNode& node, std::string_view first, std::string_view second, std::string* text) {
  const std::string_view keys[] = {first, second};
  ANYDML_RETURN_IF_ERROR(node.ExpectKeys(keys));
  std::optional<JsonNode> a, b;
  ANYDML_RETURN_IF_ERROR(node.Require(first, &a));
  ANYDML_RETURN_IF_ERROR(node.Require(second, &b));
  ANYDML_RETURN_IF_ERROR(AppendNumber(*a, text));
  return AppendNumber(*b, text);
}

// The text that `anydml op` takes after "Field=", so that both check values alike.
Status FieldText(const JsonNode& node, const FieldSchema& field, std::string* text) {
  switch (field.type) {
    case FieldType::kEnum:
      return node.Get(text);
    case FieldType::kBool:
      *text = node.value().text;
      return node.kind() == JsonNode::Kind::kNumber ? Status()
                                                    : node.Expect(JsonNode::Kind::kBool, "true or false");
    case FieldType::kUIntArray:
    case FieldType::kIntArray:
    case FieldType::kFloatArray:
      ANYDML_RETURN_IF_ERROR(node.Expect(JsonNode::Kind::kArray, "an array of numbers"));
      return node.ForEach([text](const JsonNode& element) { return AppendNumber(element, text); });
    case FieldType::kScaleBias:
      return PairText(node, "Scale", "Bias", text);
    case FieldType::kSize2D:
      return PairText(node, "Width", "Height", text);
    default: {
      std::string_view number;
      ANYDML_RETURN_IF_ERROR(node.GetNumberText(&number));
      *text = number;
      return {};
    }
  }
}

// A number of the union's type, or {"Float32": number}; for FLOAT16 {"UInt16": bits}.
Status ReadScalar(const JsonNode& node, const FieldSchema& field, DataType type, FieldValue* value) {
  const bool by_member = node.kind() == JsonNode::Kind::kObject && node.value().keys.size() == 1;
  if (by_member && type == DataType::kFloat16) type = DataType::kUInt16;
  if (by_member && ParseDataType(node.value().keys[0]) != type) {
    return node.Error("'", Printable(node.value().keys[0]), "' is not the member for ", Name(type));
  }
  const JsonNode number = by_member ? node.Member(0) : node;
  std::string text;
  ANYDML_RETURN_IF_ERROR(FieldText(number, field, &text));
  return number.At(ParseFieldValue(field, text, type, value));
}

Status ReadTensors(const JsonNode& node, FieldValue* value) {
  ANYDML_RETURN_IF_ERROR(node.Expect(JsonNode::Kind::kArray, "an array of tensors"));
  std::vector<TensorDesc> tensors;
  ANYDML_RETURN_IF_ERROR(node.ForEach(
      [&tensors](const JsonNode& element) { return ReadTensor(element, &tensors.emplace_back()); }));
  *value = std::move(tensors);
  return {};
}

Status ReadFused(const JsonNode& node, OperatorDesc* desc);

Status ReadFusedOperators(const JsonNode& node, FieldValue* value) {
  ANYDML_RETURN_IF_ERROR(node.Expect(JsonNode::Kind::kArray, "an array of operators"));
  std::vector<OperatorDesc> operators;
  ANYDML_RETURN_IF_ERROR(node.ForEach(
      [&operators](const JsonNode& element) { return ReadFused(element, &operators.emplace_back()); }));
  *value = std::move(operators);
  return {};
}

Status ReadField(const JsonNode& node, const FieldSchema& field, const OperatorDesc& desc,
                 FieldValue* value) {
  if (node.kind() == JsonNode::Kind::kNull && field.optional) return {};
  switch (field.type) {
    case FieldType::kTensor:
      *value = TensorDesc();
      return ReadTensor(node, &std::get<TensorDesc>(*value));
    case FieldType::kTensorArray:
      return ReadTensors(node, value);
    case FieldType::kOperatorDesc: {
      auto op = std::make_shared<OperatorDesc>();
      ANYDML_RETURN_IF_ERROR(ReadFused(node, op.get()));
      *value = std::shared_ptr<const OperatorDesc>(std::move(op));
      return {};
    }
    case FieldType::kOperatorDescArray:
      return ReadFusedOperators(node, value);
    case FieldType::kScalarUnion:
      return ReadScalar(node, field, ScalarType(desc), value);
    default: {
      std::string text;
      ANYDML_RETURN_IF_ERROR(FieldText(node, field, &text));
      return node.At(ParseFieldValue(field, text, DataType::kUnknown, value));
    }
  }
}

// `node` has the fields and possibly `other_keys`. A fused operator has no tensors of its own.
Status ReadDesc(const JsonNode& node, std::span<const std::string_view> other_keys, bool fused,
                OperatorDesc* desc) {
  const OperatorSchema& schema = *desc->schema;
  ANYDML_RETURN_IF_ERROR(node.Expect(JsonNode::Kind::kObject, "an object"));
  for (size_t i = 0; i < node.value().keys.size(); ++i) {
    const std::string& key = node.value().keys[i];
    size_t field = 0;
    if (std::find(other_keys.begin(), other_keys.end(), key) != other_keys.end()) continue;
    ANYDML_RETURN_IF_ERROR(node.Member(i).At(FindSchemaField(schema, key, &field)));
  }
  desc->fields.assign(schema.fields.size(), {});
  // Scalars last, because their type is another field.
  for (const bool scalars : {false, true}) {
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      const FieldSchema& field = schema.fields[i];
      if ((field.type == FieldType::kScalarUnion) != scalars) continue;
      if (const std::optional<JsonNode> value = node.Find(field.name)) {
        ANYDML_RETURN_IF_ERROR(ReadField(*value, field, *desc, &desc->fields[i]));
      } else if (!field.optional && !IsCount(schema, i) && !(fused && field.kind != FieldKind::kAttribute)) {
        return node.Error(schema.name, ": ", field.name, " is missing (", FieldTypeName(field), ")");
      }
    }
  }
  return node.At(SetCounts(desc));
}

Status FindOperatorType(const JsonNode& node, const OperatorSchema** schema) {
  std::optional<JsonNode> type;
  ANYDML_RETURN_IF_ERROR(node.Require(node.Find("Type") ? "Type" : "type", &type));
  std::string name;
  ANYDML_RETURN_IF_ERROR(type->Get(&name));
  for (const char* other : {"hlsl", "onnx", "dmlSerializedGraph"}) {
    if (!EqualIgnoringCase(name, other)) continue;
    return type->At(Status(Code::kUnsupported, StrCat("dispatchables of type ", other,
                                                      " are not supported; DirectML operators are")));
  }
  return type->At(FindSchema(name, schema));
}

std::optional<JsonNode> FindDesc(const JsonNode& node) {
  return node.Find(node.Find("Desc") ? "Desc" : "desc");
}

Status ReadFused(const JsonNode& node, OperatorDesc* desc) {
  constexpr std::string_view kKeys[] = {"Type", "Desc", "type", "desc"};
  ANYDML_RETURN_IF_ERROR(FindOperatorType(node, &desc->schema));
  const std::optional<JsonNode> inner = FindDesc(node);
  if (!inner) return ReadDesc(node, kKeys, /*fused=*/true, desc);
  ANYDML_RETURN_IF_ERROR(node.ExpectKeys(kKeys));
  return ReadDesc(*inner, {}, /*fused=*/true, desc);
}

// The object {"Type": NAME}.
JsonValue TypeOnly(std::string_view name) {
  JsonValue type;
  type.kind = JsonValue::Kind::kString;
  type.text = name;
  JsonValue object;
  object.kind = JsonValue::Kind::kObject;
  object.line = object.column = type.line = type.column = 1;
  object.keys = {"Type"};
  object.elements = {std::move(type)};
  return object;
}

Status ReadCompileType(const JsonNode& node, bool* as_graph) {
  const std::optional<JsonNode> type = node.Find("dmlCompileType");
  if (!type) return {};
  std::string text;
  ANYDML_RETURN_IF_ERROR(type->Get(&text));
  *as_graph = text == "DmlCompileGraph";
  if (*as_graph || text == "DmlCompileOp") return {};
  constexpr std::string_view kNames[] = {"DmlCompileOp", "DmlCompileGraph"};
  return type->Error("'", Printable(text), "' is neither DmlCompileOp nor DmlCompileGraph",
                     DidYouMean(text, kNames));
}

}  // namespace

Status ParseFusedOperators(const FieldSchema& field, std::string_view text, std::vector<OperatorDesc>* out) {
  const std::string name = field.name;
  const auto read = [out](const JsonNode& node) { return ReadFused(node, &out->emplace_back()); };
  const auto read_all = [&]() -> Status {
    if (!text.starts_with('{') && !text.starts_with('[')) {
      for (const std::string& part : SplitTensors(std::string(text))) {
        const JsonValue value = TypeOnly(part);
        ANYDML_RETURN_IF_ERROR(read(JsonNode(name, value)));
      }
      return {};
    }
    JsonValue value;
    ANYDML_RETURN_IF_ERROR(ParseJson(name, text, &value));
    const JsonNode node(name, value);
    return node.kind() == JsonNode::Kind::kArray ? node.ForEach(read) : read(node);
  };
  const Status status = read_all();
  if (!status.ok()) return UsageError(name, "=", Printable(text), ": ", status.message());
  if (field.type == FieldType::kOperatorDescArray || out->size() == 1) return {};
  return UsageError(name, "=", Printable(text), ": ", out->size(), " operators; the field takes one");
}

Status ReadModelOperator(const JsonNode& node, const Model& model, ModelOperator* out) {
  constexpr std::string_view kKeys[] = {"type",     "Type",           "desc",          "Desc",
                                        "bindings", "dmlCompileType", "executionFlags"};
  ANYDML_RETURN_IF_ERROR(FindOperatorType(node, &out->desc.schema));
  ANYDML_RETURN_IF_ERROR(ReadCompileType(node, &out->as_graph));
  out->where = node.Where();
  if (const std::optional<JsonNode> flags = node.Find("executionFlags")) {
    ANYDML_RETURN_IF_ERROR(ReadFlags(*flags, "DML_EXECUTION_FLAGS", &out->execution_flags));
  }
  const std::optional<JsonNode> desc = FindDesc(node);
  if (desc) {
    ANYDML_RETURN_IF_ERROR(node.ExpectKeys(kKeys));
    ANYDML_RETURN_IF_ERROR(ReadDesc(*desc, {}, /*fused=*/false, &out->desc));
  } else {  // the fields may also be beside the type
    ANYDML_RETURN_IF_ERROR(ReadDesc(node, kKeys, /*fused=*/false, &out->desc));
  }
  DispatchCommand initial;
  ANYDML_RETURN_IF_ERROR(ReadBindings(node, model, out->desc, /*initial=*/true, &initial));
  const bool any = std::any_of(initial.inputs.begin(), initial.inputs.end(), [](const ModelBinding& binding) {
    return binding.buffer != ModelBinding::kAbsent;
  });
  if (any) out->owned = std::move(initial.inputs);
  return {};
}

}  // namespace anydml::client
