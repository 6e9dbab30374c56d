// Models: results, every kind of initial value, bindings, files.
#include <random>

#include "anydml/model/model.h"
#include "cli_test_util.h"
#include "client/values/input_file.h"

namespace anydml::client {
namespace {

class CliRunTest : public CliTest {
 protected:
  // A model whose buffers are `resources` and whose commands are `commands`, with
  // "copy": FLOAT32 identity of `count` elements, and "top": TOP_K1 of 4 elements, K = 2.
  void WriteModel(const std::string& resources, const std::string& commands, int count = 4) const {
    const std::string sizes = "\"Sizes\": [" + std::to_string(count) + "] }";
    const std::string f32 = "{ \"DataType\": \"FLOAT32\", ";
    WriteBytes("m.json", "{ \"resources\": {" + resources + R"(}, "dispatchables": {
      "copy": { "type": "DML_OPERATOR_ELEMENT_WISE_IDENTITY",
                "desc": { "InputTensor": )" +
                             f32 + sizes + R"(, "OutputTensor": )" + f32 + sizes + R"( } },
      "top": { "type": "TOP_K1", "Axis": 0, "K": 2, "AxisDirection": "DML_AXIS_DIRECTION_INCREASING",
               "InputTensor": { "Type": "BUFFER", "Desc": )" +
                             f32 + R"( "Sizes": [4], "Strides": [1],
                                "DimensionCount": 1, "TotalTensorSizeInBytes": 16, "Flags": ["NONE"] } },
               "OutputValueTensor": )" +
                             f32 + R"( "Sizes": [2] },
               "OutputIndexTensor": { "DataType": "DML_TENSOR_DATA_TYPE_UINT32", "Sizes": [2] } }
      }, "commands": [)" + commands +
                             "] }");
  }

  std::string Output(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"run", "m.json"});
    const CliResult result = Run(more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return result.out;
  }

  // The output of print for one buffer.
  std::string Printed(const std::string& buffer) const {
    WriteModel("\"x\": " + buffer, R"({ "type": "print", "resource": "x" })");
    return Output();
  }
};

TEST_F(CliRunTest, InitialValues) {
  EXPECT_EQ(Printed(R"({ "initialValuesDataType": "FLOAT32", "initialValues": [1, -2.5, "nan", "-inf"] })"),
            "Resource 'x': 1, -2.5, nan, -inf\n");
  EXPECT_EQ(Printed(R"({ "initialValuesDataType": "FLOAT16", "initialValues": [[1, 65504], ["inf"]] })"),
            "Resource 'x': 1, 65504, inf\n");
  EXPECT_EQ(Printed(R"({ "initialValuesDataType": "UINT64", "initialValues": [18446744073709551615] })"),
            "Resource 'x': 18446744073709551615\n");
  EXPECT_EQ(
      Printed(R"({ "initialValuesDataType": "INT8", "initialValues": { "valueCount": 3, "value": -7 } })"),
      "Resource 'x': -7, -7, -7\n");
  EXPECT_EQ(Printed(R"({ "initialValuesDataType": "FLOAT32",
                         "initialValues": { "valueCount": 4, "valueStart": 1, "valueDelta": 2.5 } })"),
            "Resource 'x': 1, 3.5, 6, 8.5\n");
  EXPECT_EQ(Printed(R"({ "initialValuesDataType": "INT16",
                         "initialValues": { "valueCount": 3, "valueStart": 1, "valueDelta": -1 } })"),
            "Resource 'x': 1, 0, -1\n");
  EXPECT_EQ(Printed(R"({ "initialValuesDataType": "UINT8", "initialValues": [1, 2, 3], "sizeInBytes": 64 })"),
            "Resource 'x': 1, 2, 3\n");
}

TEST_F(CliRunTest, RandomValues) {
  const auto random = [this](const std::string& type, const std::string& more) {
    return Printed("{ \"initialValuesDataType\": \"" + type +
                   "\", \"initialValues\": { \"valueCount\": 4, \"randomSeed\": 1" + more + " } }");
  };
  // SplitMix64 of seed 1, the upper 53 bits.
  EXPECT_EQ(random("FLOAT64", ""),
            "Resource 'x': 0.5665615751722809, 0.7457817572627011, 0.9710027535867962, 0.4443592170557721\n");
  EXPECT_EQ(random("INT32", R"(, "valueMin": -2, "valueMax": 2)"), "Resource 'x': 0, 1, 2, 0\n");
  EXPECT_EQ(random("UINT64", R"(, "valueMin": 7, "valueMax": 7)"), "Resource 'x': 7, 7, 7, 7\n");
}

TEST_F(CliRunTest, OwnedTensorsAreBoundByTheDispatchable) {
  const std::string model = R"({ "resources": {
      "a": { "initialValuesDataType": "FLOAT32", "initialValues": [1, 2] },
      "b": { "initialValuesDataType": "FLOAT32", "initialValues": [0, 0] } },
    "dispatchables": { "s": { "type": "ELEMENT_WISE_IDENTITY", "desc": {
        "InputTensor": { "DataType": "FLOAT32", "Sizes": [2], "Flags": "OWNED_BY_DML" },
        "OutputTensor": { "DataType": "FLOAT32", "Sizes": [2] } }, "bindings": {BIND} } },
    "commands": [ { "type": "dispatch", "dispatchable": "s", "bindings": { "OutputTensor": "b" } },
                  { "type": "print", "resource": "b" } ] })";
  const auto write = [&](const std::string& bindings) {
    std::string text = model;
    text.replace(text.find("{BIND}"), 6, bindings);
    WriteBytes("m.json", text);
  };
  write(R"({ "InputTensor": "a" })");
  EXPECT_EQ(Output(), "Resource 'b': 1, 2\n");
  write("{}");
  EXPECT_NE(RunFailing(1, {"run", "m.json"}).find("dispatchables.s: InputTensor is not bound"),
            std::string::npos);
  write(R"({ "InputTensor": "a", "OutputTensor": "a" })");
  EXPECT_NE(RunFailing(1, {"run", "m.json"}).find("only tensors with the flag OWNED_BY_DML"),
            std::string::npos);
}

TEST_F(CliRunTest, FilesBesideTheModel) {
  std::filesystem::create_directory(Path("sub"));
  WriteNpy("sub/a.npy", "<f4", "(2, 2)", std::vector<float>{1, 3, 2, 4}, /*fortran=*/true);
  WriteBytes("sub/b.dat", std::string("\1\0\2\0\3\0", 6));
  WriteModel(R"("a": { "initialValues": { "sourcePath": "a.npy" } },
                "b": { "initialValuesDataType": "UINT16", "initialValues": { "sourcePath": "b.dat" } })",
             R"({ "type": "print", "resource": "a" }, { "type": "print", "resource": "b" },
                { "type": "writeFile", "resource": "a", "targetPath": "c.npy" },
                { "type": "writeFile", "resource": "a", "targetPath": "d.npy", "dimensions": [1, 4] },
                { "type": "writeFile", "resource": "b", "targetPath": "e.bin" })");
  std::filesystem::rename(Path("m.json"), Path("sub/m.json"));
  const CliResult result = Run({"run", "sub/m.json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "Resource 'a': 1, 2, 3, 4\nResource 'b': 1, 2, 3\n");
  EXPECT_EQ(ReadElements<float>("sub/c.npy", {2, 2}), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(ReadElements<float>("sub/d.npy", {1, 4}), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(ReadBytes("sub/e.bin"), std::string("\1\0\2\0\3\0", 6));
  ExpectOnly({"sub"});
}

constexpr const char* kBuffers =
    R"("in": { "initialValuesDataType": "FLOAT32", "initialValues": [4, 3, 2, 1, 8, 6, 7, 5] },
       "v": { "initialValuesDataType": "FLOAT32", "initialValues": { "valueCount": 6, "value": 0 } },
       "i": { "initialValuesDataType": "UINT32", "initialValues": { "valueCount": 2, "value": 0 } })";

TEST_F(CliRunTest, RegionsOfBuffers) {
  WriteModel(kBuffers, R"(
      { "type": "dispatch", "dispatchable": "top", "bindings": { "InputTensor": "in",
        "OutputValueTensor": ["v"], "OutputIndexTensor": "i" } },
      { "type": "print", "resource": "i" },
      { "type": "Dispatch", "dispatchable": "top", "bindings": {
        "InputTensor": { "name": "in", "elementOffset": 4, "elementCount": 4 },
        "OutputValueTensor": { "name": "v", "elementOffset": 4 }, "OutputIndexTensor": "i" } },
      { "type": "print", "resource": "i" },
      { "type": "print", "resource": "v" })");
  EXPECT_EQ(Output(), "Resource 'i': 3, 2\nResource 'i': 3, 1\nResource 'v': 1, 2, 0, 0, 5, 6\n");
}

TEST_F(CliRunTest, ShapedAndVerbosePrinting) {
  WriteModel(kBuffers, R"({ "type": "print", "resource": "in", "dimensions": [2, 4] },
                          { "type": "print", "resource": "i", "verbose": true })");
  EXPECT_EQ(Output(),
            "Resource 'in': (Sizes:{2,4}, DataType:FLOAT32)\n[[4, 3, 2, 1],\n [8, 6, 7, 5]]\n"
            "Resource 'i':\n[0] 0 (0x00000000)\n[1] 0 (0x00000000)\n");
}

TEST_F(CliRunTest, Expectations) {
  WriteNpy("good.npy", "<f4", "(8,)", std::vector<float>{4, 3, 2, 1, 8, 6, 7, 5});
  WriteModel(kBuffers, R"({ "type": "expect", "resource": "in", "sourcePath": "good.npy" },
      { "type": "expect", "resource": "in", "values": [4.1, 3, 2, 1, 8, 6, 7, 5], "absoluteTolerance": 0.2 },
      { "type": "expect", "resource": "in", "values": [4, 3, 2, 1, 8.5, 6, 7, 5], "relativeTolerance": 0.1 })");
  EXPECT_EQ(Output(), "");
  WriteModel(kBuffers, R"({ "type": "expect", "resource": "in", "values": [4, 3, 0, 1, 8, 6, 7, "nan"] })");
  const std::string sentence = RunFailing(1, {"run", "m.json"});
  EXPECT_NE(
      sentence.find("commands[0]: 'in': 2 of 8 elements are not as expected; element 2 is 2, expected 0"),
      std::string::npos)
      << sentence;
}

TEST_F(CliRunTest, WhyAndOptions) {
  WriteModel(kBuffers, "");
  EXPECT_NE(Output({"--why", "--adapter=cpu"}).find("copy: "), std::string::npos);
  EXPECT_NE(Output({"--why", "--implementation", "cpu.reference"}).find("cpu.reference"), std::string::npos);
}

TEST_F(CliRunTest, Examples) {
  for (const auto& entry : std::filesystem::directory_iterator(ANYDML_EXAMPLE_MODELS)) {
    const CliResult result = Run({"run", entry.path().string()});
    EXPECT_EQ(result.exit_code, 0) << entry.path() << result.err;
  }
}

// Exit code 2: the model is invalid, and nothing was run.
TEST_F(CliRunTest, WrongModels) {
  const std::string in = R"("in": { "initialValuesDataType": "FLOAT32", "initialValues": [1, 2, 3, 4] })";
  const std::string bind = R"({ "type": "dispatch", "dispatchable": "copy", "bindings": )";
  const struct {
    std::string resources, commands, sentence;
  } cases[] = {
      {in + ",", R"({ "type": "print", "resource": "inn" })",
       "commands[0].resource: there is no resource 'inn'; did you mean in?"},
      {in, R"({ "type": "prin" })", "commands[0]: there is no command 'prin'"},
      {in, R"({ "type": "print", "resouce": "in" })", "commands[0].resouce: unknown key"},
      {in, R"({ "type": "dispatch", "dispatchable": "copi" })", "did you mean copy?"},
      {in, bind + R"({ "InputTensor": "in" } })", "commands[0]: OutputTensor is not bound"},
      {in, bind + R"({ "InputTensr": "in" } })", "did you mean InputTensor?"},
      {in, bind + R"({ "InputTensor": { "name": "in", "elementOffset": 1 } } })",
       "the tensor needs 16 bytes, but 'in' has 12 from that offset on"},
      {in, bind + R"({ "InputTensor": { "name": "in", "elementOffset": 4611686018427387904 } } })",
       "reach beyond the 16 bytes"},
      {in, bind + R"({ "InputTensor": ["in", "in"] } })", "2 resources are bound to 1 tensors"},
      {in, R"({ "type": "print", "resource": "in", "dimensions": [3] })", "that make the 4 elements"},
      {in, R"({ "type": "expect", "resource": "in", "values": [1] })",
       "1 values are expected, but 'in' has 4"},
      {R"("x": 1)", "", "resources.x: expected an object, found the number 1"},
      {R"("x": { "initialValues": [] })", "", "an empty list"},
      {R"("x": { "initialValuesDataType": "UINT8", "initialValues": [[], [[]]] })", "", "an empty list"},
      {R"("x": { "initialValuesDataType": "FLOAT23", "initialValues": [1] })", "", "did you mean FLOAT32?"},
      {R"("x": { "initialValuesDataType": "UINT8", "initialValues": [1, 256] })", "",
       "m.json:1:79: resources.x.initialValues[1]: '256' is out of range (UINT8)"},
      {R"("x": { "initialValuesDataType": "UINT8", "initialValues": [1.5] })", "", "is not a number"},
      {R"("x": { "initialValuesDataType": "FLOAT32", "initialValues": ["one"] })", "",
       "found the string 'one'"},
      {R"("x": { "initialValuesDataType": "FLOAT32", "initialValues": [1], "sizeInBytes": 2 })", "",
       "sizeInBytes is 2"},
      {R"("x": { "initialValuesDataType": "FLOAT32", "initialValues": [1], "sizeInBytes": 18446744073709551615 })",
       "", "more than a quarter of this machine's memory"},
  };
  for (const auto& bad : cases) {
    WriteModel(bad.resources, bad.commands);
    const std::string sentence = RunFailing(1, {"run", "m.json"});
    EXPECT_NE(sentence.find(bad.sentence), std::string::npos) << bad.sentence << "\nin: " << sentence;
    EXPECT_EQ(sentence.substr(0, 15), "anydml: m.json:");
  }
}

// Each is allowed alone, both together are not.
TEST_F(CliRunTest, BuffersBeyondTheMemoryTogether) {
  WriteModel(R"("a": { "initialValuesDataType": "FLOAT32", "initialValues": [1] },
      "b": { "initialValuesDataType": "FLOAT32", "initialValues": [1], "sizeInBytes": )" +
                 std::to_string(LargestBuffer()) + " }",
             "");
  const std::string sentence = RunFailing(1, {"run", "m.json"});
  EXPECT_NE(sentence.find("resources.b: with the 4 bytes of the buffers before it more than a quarter"),
            std::string::npos)
      << sentence;
}

TEST_F(CliRunTest, WrongDescriptions) {
  const auto fails = [this](int code, const std::string& dispatchable, const std::string& words) {
    WriteBytes("m.json",
               "{ \"resources\": {}, \"commands\": [], \"dispatchables\": { \"d\": " + dispatchable + "} }");
    const std::string sentence = RunFailing(code, {"run", "m.json"});
    EXPECT_NE(sentence.find(words), std::string::npos) << words << "\nin: " << sentence;
    EXPECT_NE(sentence.find("dispatchables.d"), std::string::npos) << sentence;
  };
  const std::string tensor = R"({ "DataType": "FLOAT32", "Sizes": [4] })";
  const std::string input = R"({ "type": "ELEMENT_WISE_IDENTITY", "desc": { "InputTensor": )" + tensor;
  const std::string both = input + R"(, "OutputTensor": )" + tensor;
  fails(1, "{}", "type is missing");
  fails(1, R"({ "type": "DML_OPERATOR_TOPK1" })", "did you mean TOP_K1?");
  fails(1, input + "} }", "OutputTensor is missing");
  fails(1, both + R"(, "ScaleBia": 1 } })", "did you mean ScaleBias?");
  fails(1, both + R"(, "ScaleBias": { "Scale": 1 } } })", "Bias is missing");
  fails(1, both + R"(, "ScaleBias": { "Scale": "x", "Bias": 1 } } })", "found the string 'x'");
  fails(1, input + R"(, "OutputTensor": { "DataType": "FLOAT32", "Sizes": [1,1,1,1,1,1,1,1,1] } } })",
        "Sizes has 9 dimensions");
  fails(1, input + R"(, "OutputTensor": { "DataType": "FLOAT32", "Sizes": [4], "Strides": [1, 1] } } })",
        "Strides has 2 elements but Sizes has 1");
  fails(1, input + R"(, "OutputTensor": { "DataType": "FLOAT32", "Sizes": [4], "Flags": "OWNED" } } })",
        "OWNED_BY_DML");
  fails(1, input + R"(, "OutputTensor": { "DataType": "FLOAT32", "Sizes": [5] } } })",
        "ELEMENT_WISE_IDENTITY");
  const std::string fused = R"({ "type": "ELEMENT_WISE_ADD1", "desc": { "ATensor": )" + tensor +
                            R"(, "BTensor": )" + tensor + R"(, "OutputTensor": )" + tensor +
                            R"(, "FusedActivation": )";
  for (const char* elu : {R"({ "Type": "ACTIVATION_ELU", "Alpha": 0.5 } } })",
                          R"({ "Type": "ACTIVATION_ELU", "Desc": { "Alpha": 0.5 } } } })"}) {
    WriteBytes("m.json",
               R"({ "resources": {}, "commands": [], "dispatchables": { "d": )" + fused + elu + "} }");
    EXPECT_EQ(Run({"run", "m.json"}).exit_code, 0) << elu;
  }
  fails(1, fused + R"({ "Type": "ACTIVATION_ELU" } } })",
        "FusedActivation: ACTIVATION_ELU: Alpha is missing");
  fails(3, R"({ "type": "hlsl" })", "hlsl");
}

// Arbitrary bytes give an error with a position; the sanitizers run this, too.
TEST_F(CliRunTest, BrokenModelsNeverCrash) {
  std::filesystem::copy(std::filesystem::path(ANYDML_EXAMPLE_MODELS) / "chain.json", Path("m.json"));
  const std::string good = ReadBytes("m.json");
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string text = good;
    for (unsigned change = random() % 3 + 1; change > 0; --change) {
      // Mostly characters of the file itself, which get further than random bytes.
      text[random() % text.size()] =
          random() % 4 > 0 ? good[random() % good.size()] : static_cast<char>(random());
    }
    WriteBytes("m.json", text);
    Model model;
    const Status status = LoadModel(Path("m.json").string(), /*allow_outside=*/false, &model);
    if (!status.ok()) {
      EXPECT_NE(status.message().find("m.json:"), std::string::npos) << status.message();
    }
  }
}

TEST_F(CliRunTest, WrongFiles) {
  EXPECT_NE(RunFailing(1, {"run", "none.json"}).find("none.json"), std::string::npos);
  EXPECT_NE(RunFailing(1, {"run", "."}).find("directory"), std::string::npos);
  RunFailing(2, {"run"});
  RunFailing(2, {"run", "a.json", "b.json"});
  RunFailing(2, {"run", "a.json", "--wy"});
  WriteModel(R"("x": { "initialValues": { "sourcePath": "none.npy" } })", "");
  EXPECT_NE(RunFailing(1, {"run", "m.json"}).find("none.npy"), std::string::npos);
  WriteModel(R"("x": { "initialValues": { "sourcePath": "cat.jpg" } })", "");
  RunFailing(3, {"run", "m.json"});
  WriteModel(kBuffers, R"({ "type": "writeFile", "resource": "in", "targetPath": "m.json/out.npy" })");
  EXPECT_NE(RunFailing(1, {"run", "m.json"}).find("m.json/out.npy: cannot be written"), std::string::npos);
  ExpectOnly({"m.json"});
}

}  // namespace
}  // namespace anydml::client
