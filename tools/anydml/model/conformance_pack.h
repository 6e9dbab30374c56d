// A conformance pack: folders of models ("groups"), each with a file expected.json that gives their results.
// conformance/README.md describes the format.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "anydml/model/model.h"
#include "base/status.h"
#include "client/json/json.h"
#include "schema/schema.h"

namespace anydml::client {

struct ConformanceCase {
  std::string group;  // "top_k1/ties"
  std::string name;   // within the group
  std::string claim;  // what it tests
  std::string model_path;
  FeatureLevel since = 0;          // not for devices of a lower level
  FeatureLevel feature_level = 0;  // the level to limit the device to; 0: no limit
  bool refused = false;            // with E_INVALIDARG, when the operator is created
  // Otherwise the model's outputs, by the resource's name. The path is that of expected.json.
  std::string expected_path;
  std::shared_ptr<const std::vector<std::byte>> expected_text;  // the text that `outputs` refers to
  JsonValue outputs;
  JsonValue tolerances;  // an object, or null: all are compared exactly

  std::string FullName() const { return group + "/" + name; }
};

// All cases below `folder`, sorted by name.
Status LoadConformancePack(const std::string& folder, std::vector<ConformanceCase>* cases);

// The model of a case, with expectations in place of the files that it writes.
Status LoadConformanceModel(const ConformanceCase& test, Model* model);

}  // namespace anydml::client
