#include "onnx/file/model.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "onnx/file/check_model.h"
#include "onnx/file/read_limits.h"
#include "onnx/file/read_tensor.h"

namespace anydml::onnx {
namespace {

// Truncates names for messages, since files may contain any name.
std::string Shown(const std::string& name) { return name.size() <= 80 ? name : name.substr(0, 77) + "..."; }

Status In(const std::string& where, const Status& status) {
  return status.ok() ? Status() : Status(status.code(), StrCat(where, ": ", status.message()));
}

class Reader {
 public:
  Reader(const Blob& file, ExternalFiles* external, Model* model)
      : file_(file), external_(external), model_(*model) {}

  Status Read() {
    WireReader reader(file_.bytes);
    while (reader.Next()) {
      switch (reader.field()) {
        case 1:
          model_.ir_version = reader.Int();
          ANYDML_RETURN_IF_ERROR(CheckIrVersion(model_.ir_version));
          break;
        case 2:
          model_.producer = reader.String();
          break;
        case 7:
          ANYDML_RETURN_IF_ERROR(ReadGraph(reader.Message(), &model_.graph));
          has_graph_ = true;
          break;
        case 8:
          ANYDML_RETURN_IF_ERROR(ReadOpset(reader.Message(), &model_.opsets));
          break;
        case 25:
          ANYDML_RETURN_IF_ERROR(ReadFunction(reader.Message(), &model_.functions.emplace_back()));
          break;
        default:
          break;
      }
    }
    ANYDML_RETURN_IF_ERROR(In("the model", reader.status()));
    if (!has_graph_) return InvalidArgument("it is no ONNX model: it has no graph");
    if (model_.opsets.empty()) return InvalidArgument("it is no ONNX model: it has no opset_import");
    WarnOfConstants();
    return CheckSignature();
  }

 private:
  Status ReadOpset(Bytes message, std::map<std::string, int64_t>* out) {
    WireReader reader(message);
    std::string domain;
    int64_t version = 0;
    while (reader.Next()) {
      if (reader.field() == 1) domain = reader.String();
      if (reader.field() == 2) version = reader.Int();
    }
    ANYDML_RETURN_IF_ERROR(In("opset_import", reader.status()));
    ANYDML_RETURN_IF_ERROR(CheckOpset(domain, version));
    (*out)[domain == "ai.onnx" ? "" : domain] = version;
    return limits_.Count();
  }

  Status ReadDimension(Bytes message, ValueProto* out) {
    WireReader reader(message);
    int64_t size = -1;
    std::string symbol;
    while (reader.Next()) {
      if (reader.field() == 1) size = reader.Int();
      if (reader.field() == 2) symbol = reader.String();
    }
    out->shape.push_back(size < 0 ? -1 : size);
    out->symbols.push_back(size < 0 ? symbol : "");
    ANYDML_RETURN_IF_ERROR(limits_.Count());
    return reader.status();
  }

  Status ReadTensorType(Bytes message, ValueProto* out) {
    WireReader reader(message);
    while (reader.Next()) {
      if (reader.field() == 1) ANYDML_RETURN_IF_ERROR(CheckElementType(reader.Int(), &out->type));
      if (reader.field() != 2) continue;
      out->has_shape = true;
      WireReader dims(reader.Message());
      while (dims.Next()) {
        if (dims.field() == 1) ANYDML_RETURN_IF_ERROR(ReadDimension(dims.Message(), out));
      }
      ANYDML_RETURN_IF_ERROR(dims.status());
    }
    return reader.status();
  }

  Status ReadValue(Bytes message, ValueProto* out) {
    ANYDML_RETURN_IF_ERROR(limits_.Count());
    WireReader reader(message);
    while (reader.Next()) {
      if (reader.field() == 1) out->name = reader.String();
      if (reader.field() != 2) continue;
      WireReader type(reader.Message());
      while (type.Next()) {
        if (type.field() == 1) {
          ANYDML_RETURN_IF_ERROR(In(Shown(out->name), ReadTensorType(type.Message(), out)));
        } else if (type.field() == 4) {
          out->kind = ValueKind::kSequence;
        } else if (type.field() == 9) {
          out->kind = ValueKind::kOptional;
        } else if (type.field() != 6) {
          out->kind = ValueKind::kOther;
        }
      }
      ANYDML_RETURN_IF_ERROR(In(Shown(out->name), type.status()));
    }
    return In("an input or output", reader.status());
  }

  Status ReadAttribute(Bytes message, Attribute* out) {
    ANYDML_RETURN_IF_ERROR(limits_.Count());
    WireReader reader(message);
    std::string tensor_name;
    while (reader.Next()) {
      switch (reader.field()) {
        case 1:
          out->name = reader.String();
          break;
        case 2:
          out->number = reader.Float();
          break;
        case 3:
          out->integer = reader.Int();
          break;
        case 4:
          out->text = reader.String();
          break;
        case 5:
          ANYDML_RETURN_IF_ERROR(ParseTensor(reader.Message(), file_, external_, &tensor_name, &out->tensor));
          break;
        case 6:
          out->graph = std::make_shared<GraphProto>();
          ANYDML_RETURN_IF_ERROR(ReadGraph(reader.Message(), out->graph.get()));
          break;
        case 7:
          reader.Floats(&out->numbers);
          break;
        case 8:
          reader.Ints(&out->integers);
          break;
        case 9:
          out->texts.push_back(reader.String());
          ANYDML_RETURN_IF_ERROR(limits_.Count());
          break;
        case 20:
          out->kind = static_cast<AttributeKind>(reader.Int());
          break;
        case 21:
          out->reference = reader.String();
          break;
        default:
          break;
      }
    }
    return reader.status();
  }

  Status ReadNode(Bytes message, NodeProto* out) {
    ANYDML_RETURN_IF_ERROR(limits_.Count());
    WireReader reader(message);
    while (reader.Next()) {
      switch (reader.field()) {
        case 1:
          out->inputs.push_back(reader.String());
          ANYDML_RETURN_IF_ERROR(limits_.Count());
          break;
        case 2:
          out->outputs.push_back(reader.String());
          ANYDML_RETURN_IF_ERROR(limits_.Count());
          break;
        case 3:
          out->name = reader.String();
          break;
        case 4:
          out->type = reader.String();
          break;
        case 5: {
          Attribute& attribute = out->attributes.emplace_back();
          const Status status = ReadAttribute(reader.Message(), &attribute);
          ANYDML_RETURN_IF_ERROR(In(StrCat("attribute ", Shown(attribute.name)), status));
          break;
        }
        case 7:
          out->domain = reader.String();
          if (out->domain == "ai.onnx") out->domain.clear();
          break;
        case 8:
          out->overload = reader.String();
          break;
        default:
          break;
      }
    }
    return reader.status();
  }

  Status ReadNodeInto(Bytes message, std::vector<NodeProto>* nodes) {
    const size_t index = nodes->size();
    NodeProto& node = nodes->emplace_back();
    const Status status = ReadNode(message, &node);
    return In(StrCat("node ", index, node.name.empty() ? "" : " \"" + Shown(node.name) + "\"", " (",
                     Shown(node.type), ")"),
              status);
  }

  Status ReadInitializer(Bytes message, GraphProto* graph) {
    ANYDML_RETURN_IF_ERROR(limits_.Count());
    std::string name;
    Tensor tensor;
    const Status status = ParseTensor(message, file_, external_, &name, &tensor);
    ANYDML_RETURN_IF_ERROR(In(StrCat("initializer \"", Shown(name), "\""), status));
    model_.weight_bytes += tensor.data.size();
    if (!graph->initializers.insert_or_assign(name, std::move(tensor)).second)
      repeated_constants_.push_back(name);
    return {};
  }

  Status ReadGraph(Bytes message, GraphProto* out) {
    if (++limits_.depth > kMaxGraphDepth) {
      return InvalidArgument("graphs are nested more than ", kMaxGraphDepth, " deep");
    }
    WireReader reader(message);
    while (reader.Next()) {
      switch (reader.field()) {
        case 1:
          ANYDML_RETURN_IF_ERROR(ReadNodeInto(reader.Message(), &out->nodes));
          break;
        case 2:
          out->name = reader.String();
          break;
        case 5:
          ANYDML_RETURN_IF_ERROR(ReadInitializer(reader.Message(), out));
          break;
        case 11:
          ANYDML_RETURN_IF_ERROR(ReadValue(reader.Message(), &out->inputs.emplace_back()));
          break;
        case 12:
          ANYDML_RETURN_IF_ERROR(ReadValue(reader.Message(), &out->outputs.emplace_back()));
          break;
        case 15:
          return Status(Code::kUnsupported, "unsupported: sparse initializers");
        default:
          break;
      }
    }
    --limits_.depth;
    ANYDML_RETURN_IF_ERROR(In("the graph", reader.status()));
    KeepLastConstants(out, &repeated_constants_);
    return CheckInitializers(*out);
  }

  Status ReadFunction(Bytes message, FunctionProto* out) {
    ANYDML_RETURN_IF_ERROR(limits_.Count());
    WireReader reader(message);
    while (reader.Next()) {
      switch (reader.field()) {
        case 1:
          out->name = reader.String();
          break;
        case 4:
          out->inputs.push_back(reader.String());
          break;
        case 5:
          out->outputs.push_back(reader.String());
          break;
        case 7:
          ANYDML_RETURN_IF_ERROR(ReadNodeInto(reader.Message(), &out->nodes));
          break;
        case 9:
          ANYDML_RETURN_IF_ERROR(ReadOpset(reader.Message(), &out->opsets));
          break;
        case 10:
          out->domain = reader.String();
          if (out->domain == "ai.onnx") out->domain.clear();
          break;
        case 11:
          ANYDML_RETURN_IF_ERROR(ReadAttribute(reader.Message(), &out->defaults.emplace_back()));
          break;
        case 13:
          out->overload = reader.String();
          break;
        default:
          break;
      }
      ANYDML_RETURN_IF_ERROR(limits_.Count());
    }
    ANYDML_RETURN_IF_ERROR(In(StrCat("function ", Shown(out->name)), reader.status()));
    if (functions_.emplace(out->domain, out->name, out->overload).second) return {};
    return InvalidArgument("function ", Shown(out->name), " of the domain \"", Shown(out->domain),
                           "\" is given twice");
  }

  // Whoever gives an input has to know its type.
  Status CheckSignature() const {
    for (const ValueProto& input : model_.graph.inputs) {
      if (input.kind == ValueKind::kTensor && input.type == ElementType::kUndefined)
        return InvalidArgument("input \"", Shown(input.name), "\" has no element type");
    }
    return {};
  }

  void WarnOfConstants() {
    constexpr size_t kShown = 3;
    const std::set<std::string> names(repeated_constants_.begin(), repeated_constants_.end());
    if (names.empty()) return;
    std::string list;
    size_t shown = 0;
    for (auto name = names.begin(); name != names.end() && shown < kShown; ++name, ++shown)
      list += StrCat(shown == 0 ? "\"" : ", \"", Shown(*name), "\"");
    if (names.size() > shown) list += StrCat(" and ", names.size() - shown, " more");
    model_.warnings.push_back(
        StrCat("several constants are called ", list, "; the last of a name counts, as in onnxruntime"));
  }

  const Blob& file_;
  ExternalFiles* const external_;
  Model& model_;
  ReadLimits limits_;
  std::set<std::tuple<std::string, std::string, std::string>> functions_;  // domain, name, overload
  std::vector<std::string> repeated_constants_;
  bool has_graph_ = false;
};

}  // namespace

const Attribute* NodeProto::Find(std::string_view attribute) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [attribute](const Attribute& a) { return a.name == attribute; });
  return found == attributes.end() ? nullptr : &*found;
}

Status ReadModel(const Blob& file, ExternalFiles* external, Model* out) {
  return Reader(file, external, out).Read();
}

}  // namespace anydml::onnx
