#include "anydml/model/model.h"

#include "anydml/model/model_parts.h"
#include "client/values/input_file.h"

namespace anydml::client {
namespace {

// A limit for text; large data should be in separate files.
constexpr uint64_t kMaxModelBytes = uint64_t{256} << 20;

Status ReadModel(const JsonNode& root, const ModelFolder& folder, Model* out) {
  constexpr std::string_view kKeys[] = {"$schema", "resources", "dispatchables", "commands"};
  ANYDML_RETURN_IF_ERROR(root.ExpectKeys(kKeys));
  std::optional<JsonNode> resources, dispatchables, commands;
  ANYDML_RETURN_IF_ERROR(root.Require("resources", &resources));
  ANYDML_RETURN_IF_ERROR(root.Require("dispatchables", &dispatchables));
  ANYDML_RETURN_IF_ERROR(root.Require("commands", &commands));
  ANYDML_RETURN_IF_ERROR(resources->Expect(JsonNode::Kind::kObject, "an object"));
  ANYDML_RETURN_IF_ERROR(dispatchables->Expect(JsonNode::Kind::kObject, "an object"));
  ANYDML_RETURN_IF_ERROR(commands->Expect(JsonNode::Kind::kArray, "an array"));
  uint64_t bytes = 0;
  for (size_t i = 0; i < resources->value().keys.size(); ++i) {
    ModelBuffer& buffer = out->buffers.emplace_back();
    buffer.name = resources->value().keys[i];
    ANYDML_RETURN_IF_ERROR(ReadModelBuffer(resources->Member(i), folder, bytes, &buffer));
    bytes += buffer.bytes.size();
    out->buffers_by_name.emplace(buffer.name, i);
  }
  for (size_t i = 0; i < dispatchables->value().keys.size(); ++i) {
    ModelOperator op;
    op.name = dispatchables->value().keys[i];
    ANYDML_RETURN_IF_ERROR(ReadModelOperator(dispatchables->Member(i), *out, &op));
    out->operators_by_name.emplace(op.name, i);
    out->operators.push_back(std::move(op));
  }
  return commands->ForEach([&](const JsonNode& node) {
    return ReadModelCommand(node, folder, *out, &out->commands.emplace_back());
  });
}

}  // namespace

Status LoadModel(const std::string& path, bool allow_outside, Model* out) {
  std::vector<std::byte> bytes;
  ANYDML_RETURN_IF_ERROR(ReadFile(path, kMaxModelBytes, &bytes));
  return ParseModel(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                    {std::filesystem::path(path).parent_path(), allow_outside}, out);
}

Status ParseModel(const std::string& name, std::string_view text, const ModelFolder& folder, Model* out) {
  JsonValue value;
  ANYDML_RETURN_IF_ERROR(ParseJson(name, text, &value));
  return ReadModel(JsonNode(name, value), folder, out);
}

}  // namespace anydml::client
