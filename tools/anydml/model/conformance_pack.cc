#include "anydml/model/conformance_pack.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "anydml/model/model_parts.h"
#include "client/values/input_file.h"

namespace anydml::client {
namespace {

namespace fs = std::filesystem;

constexpr char kExpectedName[] = "expected.json";
constexpr uint64_t kMaxExpectedBytes = uint64_t{64} << 20;

Status ReadLevel(const JsonNode& parent, std::string_view key, FeatureLevel* level) {
  const std::optional<JsonNode> node = parent.Find(key);
  if (!node) return {};
  std::string text;
  ANYDML_RETURN_IF_ERROR(node->Get(&text));
  *level = ParseFeatureLevel(text);
  return *level != 0 ? Status() : node->Error("'", text, "' is not a feature level");
}

Status ReadCase(const JsonNode& node, ConformanceCase* out) {
  constexpr std::string_view kKeys[] = {"claim", "since", "featureLevel", "refused", "outputs", "tolerances"};
  ANYDML_RETURN_IF_ERROR(node.ExpectKeys(kKeys));
  ANYDML_RETURN_IF_ERROR(node.GetRequired("claim", &out->claim));
  ANYDML_RETURN_IF_ERROR(ReadLevel(node, "since", &out->since));
  ANYDML_RETURN_IF_ERROR(ReadLevel(node, "featureLevel", &out->feature_level));
  const std::optional<JsonNode> refused = node.Find("refused"), outputs = node.Find("outputs");
  if (refused.has_value() == outputs.has_value()) return node.Error("needs either refused or outputs");
  if (refused) {
    std::string code;
    ANYDML_RETURN_IF_ERROR(refused->Get(&code));
    out->refused = true;
    return code == "E_INVALIDARG" ? Status() : refused->Error("only E_INVALIDARG can be expected");
  }
  ANYDML_RETURN_IF_ERROR(outputs->Expect(JsonNode::Kind::kObject, "an object"));
  out->outputs = outputs->value();
  if (const std::optional<JsonNode> tolerances = node.Find("tolerances")) {
    std::vector<std::string_view> names(out->outputs.keys.begin(), out->outputs.keys.end());
    ANYDML_RETURN_IF_ERROR(tolerances->ExpectKeys(names));
    out->tolerances = tolerances->value();
  }
  return {};
}

// Every model of a folder needs an expectation: otherwise it would not be tested, unnoticed.
Status CheckAllExpected(const fs::path& folder, const JsonNode& models) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.extension() != ".json" || path.filename() == kExpectedName) continue;
    if (!models.Find(path.stem().string())) {
      return models.Error("nothing is expected of ", path.filename().string(), ", which is in the folder");
    }
  }
  return {};
}

Status LoadGroup(const fs::path& file, const std::string& group, std::vector<ConformanceCase>* cases) {
  constexpr std::string_view kKeys[] = {"proves", "basis", "models"};
  const auto bytes = std::make_shared<std::vector<std::byte>>();
  ANYDML_RETURN_IF_ERROR(ReadFile(file.string(), kMaxExpectedBytes, bytes.get()));
  JsonValue value;
  const std::string path = file.string();
  ANYDML_RETURN_IF_ERROR(
      ParseJson(path, {reinterpret_cast<const char*>(bytes->data()), bytes->size()}, &value));
  const JsonNode root(path, value);
  ANYDML_RETURN_IF_ERROR(root.ExpectKeys(kKeys));
  std::optional<JsonNode> models;
  ANYDML_RETURN_IF_ERROR(root.Require("models", &models));
  ANYDML_RETURN_IF_ERROR(models->Expect(JsonNode::Kind::kObject, "an object"));
  for (size_t i = 0; i < models->value().keys.size(); ++i) {
    ConformanceCase& test = cases->emplace_back();
    test.group = group;
    test.name = models->value().keys[i];
    test.model_path = (file.parent_path() / (test.name + ".json")).string();
    test.expected_path = path;
    test.expected_text = bytes;
    ANYDML_RETURN_IF_ERROR(ReadCase(models->Member(i), &test));
  }
  return CheckAllExpected(file.parent_path(), *models);
}

// Bytes of the buffer that must not change (gaps, bytes after a tensor) are compared exactly.
Status ReadTolerance(const JsonNode& node, const ModelBuffer& buffer, ExpectCommand* out) {
  constexpr std::string_view kKeys[] = {"ulps", "relative", "absolute"};
  ANYDML_RETURN_IF_ERROR(node.ExpectKeys(kKeys));
  ANYDML_RETURN_IF_ERROR(node.GetOptional("ulps", &out->ulps));
  ANYDML_RETURN_IF_ERROR(node.GetOptional("relative", &out->relative_tolerance));
  ANYDML_RETURN_IF_ERROR(node.GetOptional("absolute", &out->absolute_tolerance));
  if (buffer.type != DataType::kFloat32 && buffer.type != DataType::kFloat16)
    return node.Error("'", buffer.name, "' is not FLOAT32 or FLOAT16; only those may differ");
  const uint64_t bytes = BitSize(buffer.type) / 8;
  const std::byte* const initial = buffer.bytes.data() + buffer.values_offset;
  for (uint64_t i = 0; i < buffer.value_count(); ++i) {
    out->exact.push_back(std::memcmp(initial + i * bytes, out->values.data() + i * bytes, bytes) == 0);
  }
  return {};
}

// Replaces a writeFile command.
Status ReadExpectation(const ConformanceCase& test, const ModelBuffer& buffer, ExpectCommand* out) {
  const JsonNode outputs(test.expected_path, test.outputs, StrCat("models.", test.name, ".outputs"));
  std::optional<JsonNode> values;
  ANYDML_RETURN_IF_ERROR(outputs.Require(buffer.name, &values));
  ANYDML_RETURN_IF_ERROR(ReadExpectedElements(*values, buffer, &out->values));
  const JsonNode tolerances(test.expected_path, test.tolerances, StrCat("models.", test.name, ".tolerances"));
  const std::optional<JsonNode> tolerance = tolerances.Find(buffer.name);
  return tolerance ? ReadTolerance(*tolerance, buffer, out) : Status();
}

}  // namespace

Status LoadConformancePack(const std::string& folder, std::vector<ConformanceCase>* cases) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename() != kExpectedName) continue;
    const fs::path group = entry->path().parent_path().lexically_relative(folder);
    ANYDML_RETURN_IF_ERROR(LoadGroup(entry->path(), group.generic_string(), cases));
  }
  if (error) return Status(Code::kFail, StrCat(folder, " cannot be read: ", error.message()));
  if (cases->empty()) return Status(Code::kFail, StrCat(folder, " has no ", kExpectedName, " in it"));
  std::sort(cases->begin(), cases->end(), [](const ConformanceCase& a, const ConformanceCase& b) {
    return std::tie(a.group, a.name) < std::tie(b.group, b.name);
  });
  return {};
}

Status LoadConformanceModel(const ConformanceCase& test, Model* model) {
  ANYDML_RETURN_IF_ERROR(LoadModel(test.model_path, /*allow_outside=*/false, model));
  std::vector<ModelCommand> commands;
  size_t expectations = 0;
  for (ModelCommand& command : model->commands) {
    if (const auto* write = std::get_if<WriteFileCommand>(&command.action)) {
      if (test.refused) continue;
      ExpectCommand expect;
      expect.buffer = write->buffer;
      ANYDML_RETURN_IF_ERROR(ReadExpectation(test, model->buffers[write->buffer], &expect));
      command.action = std::move(expect);
      ++expectations;
    }
    commands.push_back(std::move(command));
  }
  model->commands = std::move(commands);
  if (expectations == test.outputs.keys.size()) return {};
  return InvalidArgument(test.model_path, ": writes ", expectations, " results, but ",
                         test.outputs.keys.size(), " are expected");
}

}  // namespace anydml::client
