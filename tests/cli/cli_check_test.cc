// `anydml check`: validity and feature levels, without a device.
#include "cli_test_util.h"
#include "client/describe/desc_fields.h"
#include "schema/schema.h"

namespace anydml::client {
namespace {

class CliCheckTest : public CliTest {
 protected:
  void WriteModel(const std::string& dispatchables) const {
    WriteBytes("m.json",
               "{ \"resources\": {}, \"commands\": [], \"dispatchables\": {" + dispatchables + "} }");
  }
};

std::string TopK1(const std::string& sizes, const std::string& index_type = "UINT32", int k = 2) {
  const std::string tail = "\", \"Sizes\": [" + sizes + "2] }";
  return R"({ "type": "TOP_K1", "desc": { "InputTensor": { "DataType": "FLOAT32)" + tail +
         R"(, "OutputValueTensor": { "DataType": "FLOAT32)" + tail +
         R"(, "OutputIndexTensor": { "DataType": ")" + index_type + tail +
         R"(, "Axis": 0, "AxisDirection": "DECREASING", "K": )" + std::to_string(k) + "} }";
}

TEST_F(CliCheckTest, LowestFeatureLevels) {
  WriteModel("\"a\": " + TopK1("2,1,1,") + ", \"b\": " + TopK1("") + ", \"c\": " + TopK1("", "UINT64"));
  const JsonValue document = RunJson(0, {"check", "m.json"});
  EXPECT_EQ(Text(document, {"valid"}), "true");
  EXPECT_EQ(Text(document, {"featureLevel"}), "6.4");
  EXPECT_EQ(Text(document, {"dispatchables", "0", "lowestFeatureLevel"}), "2.1");
  EXPECT_EQ(Text(document, {"dispatchables", "1", "lowestFeatureLevel"}), "3.1");
  EXPECT_EQ(Text(document, {"dispatchables", "2", "lowestFeatureLevel"}), "5.0");
}

TEST_F(CliCheckTest, HeldFeatureLevel) {
  WriteModel("\"a\": " + TopK1("2,1,1,") + ", \"b\": " + TopK1("", "UINT64"));
  EXPECT_EQ(Run({"check", "m.json", "--feature-level", "5.0"}).exit_code, 0);
  const CliResult result = Run({"check", "m.json", "--feature-level", "3.1"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("a (TOP_K1): valid, accepted from feature level 2.1 on\n"), std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("b (TOP_K1): not valid, accepted from feature level 5.0 on\n"), std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("m.json:1:"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("OutputIndexTensor"), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("1 of 2 operators are not valid at feature level 3.1"), std::string::npos)
      << result.err;
  RunFailing(2, {"check", "m.json", "--feature-level", "3.2"});
}

TEST_F(CliCheckTest, RulesOfTheOperatorItself) {
  WriteModel("\"a\": " + TopK1("", "UINT32", 3));
  const JsonValue document = RunJson(1, {"check", "m.json"});
  EXPECT_EQ(Text(document, {"valid"}), "false");
  EXPECT_EQ(Text(document, {"dispatchables", "0", "valid"}), "false");
  EXPECT_EQ(Text(document, {"dispatchables", "0", "lowestFeatureLevel"}), "null");
  EXPECT_NE(Text(document, {"dispatchables", "0", "reason"}).find("K is 3"), std::string::npos);
  EXPECT_EQ(Text(document, {"error", "exitCode"}), "1");
}

// A value for a required field.
std::string AnyValue(const FieldSchema& field) {
  const std::string tensor = R"({ "DataType": "FLOAT32", "Sizes": [1, 1, 1, 1] })";
  switch (field.type) {
    case FieldType::kTensor:
      return tensor;
    case FieldType::kTensorArray:
      return "[" + tensor + "]";
    case FieldType::kBool:
      return "true";
    case FieldType::kEnum: {
      const bool is_type = std::string_view(field.enumeration->name) == "DML_TENSOR_DATA_TYPE";
      return std::string("\"") + (is_type ? "FLOAT32" : field.enumeration->members[0].name) + "\"";
    }
    case FieldType::kUIntArray:
    case FieldType::kIntArray:
    case FieldType::kFloatArray:
      return "[1]";
    case FieldType::kScaleBias:
      return R"({ "Scale": 1, "Bias": 0 })";
    case FieldType::kSize2D:
      return R"({ "Width": 1, "Height": 1 })";
    case FieldType::kOperatorDesc:
      return R"({ "Type": "ACTIVATION_RELU" })";
    case FieldType::kOperatorDescArray:
      return R"([{ "Type": "ACTIVATION_RELU" }])";
    default:
      return "1";
  }
}

// Every operator is valid or gives a reason. All of them in one model.
TEST_F(CliCheckTest, EveryOperator) {
  std::string dispatchables;
  for (const OperatorSchema& schema : AllOperators()) {
    std::string fields;
    for (size_t i = 0; i < schema.fields.size(); ++i) {
      const FieldSchema& field = schema.fields[i];
      if (field.optional || IsCount(schema, i)) continue;
      fields += (fields.empty() ? "\"" : ", \"") + std::string(field.name) + "\": " + AnyValue(field);
    }
    dispatchables += (dispatchables.empty() ? "\"" : ",\n\"") + std::string(schema.name) +
                     "\": { \"type\": \"" + schema.name + "\", \"desc\": { " + fields + " } }";
  }
  WriteModel(dispatchables);
  const JsonValue document = RunJson(1, {"check", "m.json"});
  int valid = 0;
  for (size_t i = 0; i < AllOperators().size(); ++i) {
    const std::string index = std::to_string(i), name = AllOperators()[i].name;
    EXPECT_EQ(Text(document, {"dispatchables", index, "operator"}), name);
    if (Text(document, {"dispatchables", index, "valid"}) == "true") {
      ++valid;
      const std::string lowest = Text(document, {"dispatchables", index, "lowestFeatureLevel"});
      EXPECT_GE(ParseFeatureLevel(lowest), AllOperators()[i].level) << name << " " << lowest;
    } else {
      const std::string reason = Text(document, {"dispatchables", index, "reason"});
      EXPECT_NE(reason.find("dispatchables." + name.substr(0, 40) + ": "), std::string::npos) << reason;
      EXPECT_NE(reason.find(name + ": "), std::string::npos) << reason;
    }
  }
  EXPECT_GE(valid, 100);  // element-wise ones, mostly
}

TEST_F(CliCheckTest, NeedsNoDevice) {
  WriteModel("\"a\": " + TopK1(""));
  const std::vector<std::string> no_device = {"ANYDML_FEATURE_LEVEL=9.9"};
  EXPECT_NE(Run({"run", "m.json"}, no_device).exit_code, 0);
  const CliResult result = Run({"check", "m.json"}, no_device);
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(CliCheckTest, BrokenModels) {
  WriteBytes("m.json", "{ \"resources\": {}, \"dispatchables\": {}, \"command\": [] }");
  const JsonValue document = RunJson(1, {"check", "m.json"});
  EXPECT_EQ(Text(document, {"valid"}), "false");
  EXPECT_NE(Text(document, {"error", "message"}).find("did you mean commands?"), std::string::npos);
  WriteBytes("m.json", "{");
  EXPECT_NE(RunFailing(1, {"check", "m.json"}).find("m.json:1:2: found the end of the file"),
            std::string::npos);
  WriteModel(R"("x": { "type": "onnx" })");
  EXPECT_EQ(Text(RunJson(3, {"check", "m.json"}), {"error", "kind"}), "unsupported");
  RunFailing(1, {"check", "none.json"});
  RunFailing(2, {"check"});
  RunFailing(2, {"check", "m.json", "n.json"});
}

}  // namespace
}  // namespace anydml::client
