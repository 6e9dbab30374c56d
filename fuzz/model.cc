// The reader of JSON models: any text must give a model or an error with a position. An operator read from
// JSON must mean the same as one read from C structs.
#include "fuzz.h"

#include "anydml/model/model.h"
#include "client/c_desc.h"
#include "client/json/json.h"
#include "schema/validate.h"

namespace anydml::fuzz {
namespace {

using client::JsonValue;

// The reader only gets files of this folder. Valid numbers for which it would fill megabytes are excluded;
// numbers that it must refuse are included.
bool IsHarmless(const JsonValue& value) {
  for (size_t i = 0; i < value.elements.size(); ++i) {
    const JsonValue& element = value.elements[i];
    if (!IsHarmless(element)) return false;
    if (i >= value.keys.size()) continue;
    const std::string& key = value.keys[i];
    if (key == "sourcePath" && element.text.find('/') != std::string::npos) return false;
    const bool size = key == "valueCount" || key == "sizeInBytes" || key == "initialValuesOffsetInBytes";
    if (size && element.text.size() > 4 && element.text.size() < 16) return false;
  }
  return true;
}

// "model.json:LINE:COLUMN: "
bool SaysWhere(const std::string& message) {
  return message.starts_with("model.json:") && message.size() > 11 && message[11] >= '1' &&
         message[11] <= '9';
}

void CheckOperator(const OperatorDesc& desc) {
  const Status expected = ValidateOperatorDesc(desc, kLatestFeatureLevel);
  const client::CDesc structs(desc);
  OperatorDesc read;
  Status status = ReadOperatorDesc(&structs.get(), kLatestFeatureLevel, &read);
  if (status.ok()) status = ValidateOperatorDesc(read, kLatestFeatureLevel);
  Require(status.ok() == expected.ok(),
          StrCat("read: ", expected.message(), "\nas C structs: ", status.message()));
}

void Run(std::string_view text) {
  JsonValue value;
  const Status parsed = client::ParseJson("model.json", text, &value);
  Require(parsed.ok() || SaysWhere(parsed.message()), "no place: " + parsed.message());
  if (parsed.ok() && !IsHarmless(value)) return;
  client::Model model;
  const Status status = client::ParseModel("model.json", text, {ANYDML_FUZZ_FILES}, &model);
  Require(status.ok() || SaysWhere(status.message()), "no place: " + status.message());
  if (!status.ok()) return;
  Require(parsed.ok(), "a model that is no JSON");
  for (const client::ModelOperator& op : model.operators) CheckOperator(op.desc);
}

}  // namespace
}  // namespace anydml::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  anydml::fuzz::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
