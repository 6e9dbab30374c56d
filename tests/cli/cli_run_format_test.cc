// Corner cases of DxDispatch's format that its models use.
#include "cli_test_util.h"

namespace anydml::client {
namespace {

class CliRunFormatTest : public CliTest {
 protected:
  void WriteModel(const std::string& resources, const std::string& commands) const {
    WriteBytes("m.json", "{ \"resources\": {" + resources + "}, \"dispatchables\": {}, \"commands\": [" +
                             commands + "] }");
  }
  std::string Output() const {
    const CliResult result = Run({"run", "m.json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
};

TEST_F(CliRunFormatTest, OtherExtensionsAreRaw) {
  WriteBytes("a.raw", std::string("\1\0\2\0", 4));
  WriteModel(R"("a": { "initialValuesDataType": "INT16", "initialValues": { "sourcePath": "a.raw" } },
                "m": { "initialValues": [ { "type": "UINT8", "value": 7 }, { "type": "FLOAT32", "value": 1 } ] })",
             R"({ "type": "print", "resource": "a" },
                { "type": "writeFile", "resource": "m", "targetPath": "sub/folder/m.out" })");
  EXPECT_EQ(Output(), "Resource 'a': 1, 2\n");
  EXPECT_EQ(ReadBytes("sub/folder/m.out"), std::string("\7\0\0\x80\x3F", 5));
  WriteModel(R"("m": { "initialValues": [ { "type": "UINT8", "value": 7 } ] })",
             R"({ "type": "writeFile", "resource": "m", "targetPath": "m.npy" })");
  EXPECT_NE(RunFailing(1, {"run", "m.json"}).find("several data types"), std::string::npos);
  WriteModel(R"("a": { "initialValuesDataType": "INT16", "initialValues": [1] })",
             R"({ "type": "writeFile", "resource": "a", "targetPath": "m.png" })");
  RunFailing(3, {"run", "m.json"});
}

TEST_F(CliRunFormatTest, PathsFromWindows) {
  std::filesystem::create_directory(Path("sub"));
  WriteNpy("sub/a.npy", "<f4", "(2,)", std::vector<float>{1, 2});
  WriteModel(R"("a": { "initialValues": { "sourcePath": ".\\sub\\a.npy" } })",
             R"({ "type": "writeFile", "resource": "a", "targetPath": "sub\\b.npy" })");
  EXPECT_EQ(Output(), "");
  EXPECT_EQ(ReadElements<float>("sub/b.npy", {2}), (std::vector<float>{1, 2}));
}

TEST_F(CliRunFormatTest, PathsWithNul) {
  WriteModel(R"("a": { "initialValuesDataType": "UINT8", "initialValues": [1] })",
             R"({ "type": "writeFile", "resource": "a", "targetPath": "b\u0000.npy" })");
  EXPECT_NE(RunFailing(1, {"run", "m.json"}).find("commands[0].targetPath: the string holds a NUL"),
            std::string::npos);
  ExpectOnly({"m.json"});
}

TEST_F(CliRunFormatTest, TypeOfAnArrayFile) {
  WriteNpy("a.npy", "<f4", "(2,)", std::vector<float>{1, 2});
  const auto write = [this](const std::string& type) {
    WriteModel("\"a\": { \"initialValuesDataType\": \"" + type +
                   "\", \"initialValues\": { \"sourcePath\": \"a.npy\" } }",
               R"({ "type": "print", "resource": "a" })");
  };
  write("FLOAT32");
  EXPECT_EQ(Output(), "Resource 'a': 1, 2\n");
  write("INT32");
  EXPECT_NE(RunFailing(1, {"run", "m.json"})
                .find("'a.npy' has FLOAT32 elements, but initialValuesDataType is INT32"),
            std::string::npos);
}

// 0 and an empty list mean: derived from the sizes.
TEST_F(CliRunFormatTest, EmptyStridesAndSize) {
  const std::string tensor =
      R"({ "DataType": "FLOAT32", "Sizes": [2], "Strides": [], "TotalTensorSizeInBytes": 0 })";
  WriteBytes("m.json", R"({ "resources": {
      "x": { "initialValuesDataType": "FLOAT32", "initialValues": [1, 2] } },
    "dispatchables": { "copy": { "type": "ELEMENT_WISE_IDENTITY", "desc": {
        "ScaleBias": { "Scale": 10, "Bias": 0 }, "InputTensor": )" +
                           tensor + R"(, "OutputTensor": )" + tensor + R"( } } },
    "commands": [
      { "type": "dispatch", "dispatchable": "copy", "bindings": { "InputTensor": "x", "OutputTensor": "x" } },
      { "type": "print", "resource": "x" } ] })");
  EXPECT_EQ(Output(), "Resource 'x': 10, 20\n");
}

}  // namespace
}  // namespace anydml::client
