// A conformance pack: folders of models ("groups"), each with a file expected.json that
// says what has to come of them. conformance/README.md describes the format.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "anydml/json/json.h"
#include "anydml/model/model.h"
#include "base/status.h"
#include "schema/schema.h"

namespace anydml::tools {

struct ConformanceCase {
  std::string group;  // "top_k1/ties"
  std::string name;   // within it
  std::string claim;  // what it shows
  std::string model_path;
  FeatureLevel since = 0;          // devices below it cannot be judged by it
  FeatureLevel feature_level = 0;  // to hold the device to; 0: as it is
  bool refused = false;            // with E_INVALIDARG, when the operator is created
  // Otherwise what the model writes, by the resource's name. The path is of expected.json.
  std::string expected_path;
  std::shared_ptr<const std::vector<std::byte>> expected_text;  // which `outputs` refers to
  JsonValue outputs;
  JsonValue tolerances;  // an object, or nothing: all of them are compared exactly

  std::string FullName() const { return group + "/" + name; }
};

// All cases below `folder`, in the order of their names.
Status LoadConformancePack(const std::string& folder, std::vector<ConformanceCase>* cases);

// The model of a case, with expectations where the file writes results.
Status LoadConformanceModel(const ConformanceCase& test, Model* model);

}  // namespace anydml::tools
