// Every kind of value in a description, from the command line.
#include "anydml/describe/operation.h"
#include "cli_test_util.h"
#include "client/c_desc.h"
#include "schema/validate.h"

namespace anydml::client {
namespace {

class CliDescribeTest : public CliTest {
 protected:
  static std::vector<std::string> With(std::vector<std::string> arguments, std::vector<std::string> more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  static std::vector<std::string> Gemm(std::vector<std::string> more) {
    return With({"op", "GEMM", "ATensor=[[1,2],[3,4]]", "BTensor=[[1],[1]]", "TransA=NONE", "TransB=NONE",
                 "Alpha=1", "Beta=0"},
                std::move(more));
  }

  void ExpectValid(const std::vector<std::string>& arguments) const {
    const CliResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  void ExpectFails(int exit_code, const std::vector<std::string>& arguments,
                   std::initializer_list<const char*> words) const {
    const std::string sentence = RunFailing(exit_code, arguments);
    for (const char* word : words) {
      EXPECT_NE(sentence.find(word), std::string::npos) << word << " in: " << sentence;
    }
  }
};

// The library's reading of the description that the arguments make.
OperatorDesc Described(const char* name, const std::vector<FieldArgument>& fields) {
  Operation operation(*FindOperator(name));
  for (const Status& status : {operation.MatchFields(fields), operation.LoadInputs(),
                               operation.Describe(kLatestFeatureLevel, DataType::kUnknown)}) {
    EXPECT_TRUE(status.ok()) << status.message();
  }
  const CDesc structs(operation.desc());
  OperatorDesc read;
  const Status status = ReadOperatorDesc(&structs.get(), kLatestFeatureLevel, &read);
  EXPECT_TRUE(status.ok()) << status.message();
  return read;
}

TEST_F(CliDescribeTest, FusedActivations) {
  const std::vector<FieldArgument> fields = {
      {"ATensor", "[[1,2],[3,4]]"}, {"BTensor", "[[1],[1]]"}, {"TransA", "NONE"},
      {"TransB", "NONE"},           {"Alpha", "1"},           {"Beta", "0"},
      {"OutputTensor", ":2x1"}};
  for (const char* text : {R"({"Type": "ACTIVATION_ELU", "Alpha": 0.5})",
                           R"({"Type": "DML_OPERATOR_ACTIVATION_ELU", "Desc": {"Alpha": 0.5}})",
                           R"([{"type": "ACTIVATION_ELU", "desc": {"Alpha": 0.5}}])"}) {
    std::vector<FieldArgument> all = fields;
    all.emplace_back("FusedActivation", text);
    const OperatorDesc desc = Described("GEMM", all);
    const auto fused = std::get<std::shared_ptr<const OperatorDesc>>(desc.fields.back());
    ASSERT_NE(fused, nullptr);
    EXPECT_STREQ(fused->schema->name, "ACTIVATION_ELU");
    EXPECT_EQ(std::get<float>(fused->fields[2]), 0.5f);
  }
  ExpectValid(Gemm({"OutputTensor=:2x1", "FusedActivation=ACTIVATION_RELU"}));
  ExpectValid(Gemm(
      {"OutputTensor=:2x1:float32", R"(FusedActivation={"Type":"ACTIVATION_LINEAR","Alpha":2,"Beta":1})"}));
}

TEST_F(CliDescribeTest, ActivationLists) {
  const std::vector<std::string> rnn = {"op",
                                        "RNN",
                                        "InputTensor=random:1x1x8x4",
                                        "WeightTensor=random:1x2x5x4",
                                        "RecurrenceTensor=random:1x2x5x5",
                                        "OutputSingleTensor=:1x2x8x5",
                                        "Direction=BIDIRECTIONAL"};
  ExpectValid(With(rnn, {"ActivationDescs=ACTIVATION_TANH,ACTIVATION_SIGMOID"}));
  ExpectValid(
      With(rnn, {R"(ActivationDescs=[{"Type":"ACTIVATION_ELU","Alpha":0.5},{"Type":"ACTIVATION_TANH"}])"}));
  ExpectFails(1, With(rnn, {"ActivationDescs=ELEMENT_WISE_ABS,ACTIVATION_TANH"}),
              {"RNN: ActivationDescs[0].Type is ELEMENT_WISE_ABS, allowed"});
}

TEST_F(CliDescribeTest, WrongActivations) {
  const auto with = [](const std::string& text) {
    return Gemm({"OutputTensor=:2x1", "FusedActivation=" + text});
  };
  ExpectFails(2, with("ACTIVATION_RELUU"),
              {"FusedActivation=ACTIVATION_RELUU", "did you mean ACTIVATION_RELU?"});
  ExpectFails(2, with("ACTIVATION_ELU"), {"ACTIVATION_ELU: Alpha is missing"});
  ExpectFails(2, with(R"({"Type":"ACTIVATION_ELU","Alpa":1})"), {"did you mean Alpha?"});
  ExpectFails(2, with(R"({"Type":"ACTIVATION_ELU")"), {"FusedActivation:1:", "expected ',' or '}'"});
  ExpectFails(2, with(R"({"Alpha":1})"), {"type is missing"});
  ExpectFails(2, with("ACTIVATION_RELU,ACTIVATION_RELU"), {"2 operators; the field takes one"});
  ExpectFails(2, with("[]"), {"0 operators; the field takes one"});
  ExpectFails(1, with("ACTIVATION_HARDMAX"), {"GEMM: FusedActivation.Type is ACTIVATION_HARDMAX, allowed"});
  // Braces of JSON are not a list of values.
  EXPECT_NE(Run({"bench", "GEMM", "ATensor=[[1]]", "BTensor=[[1]]", "TransA=NONE", "TransB=NONE", "Alpha=1",
                 "Beta=0", "OutputTensor=:1x1", R"(FusedActivation={"Type":"ACTIVATION_ELU","Alpha":1})",
                 "--iterations=1"})
                .exit_code,
            2);
}

TEST_F(CliDescribeTest, TypesAndSizesOfOutputs) {
  ExpectValid({"op", "CAST", "InputTensor=[1,2]", "OutputTensor=:float16"});
  ExpectValid({"op", "CAST", "InputTensor=[1,2]", "OutputTensor=out.npy:2:uint8"});
  ExpectValid({"op", "ARGMAX", "InputTensor=[[1,2]]", "Axes=1", "AxisDirection=INCREASING",
               "OutputTensor=:1x1:int64"});
  ExpectFails(1,
              {"op", "ARGMAX", "InputTensor=[[1,2]]", "Axes=1", "AxisDirection=INCREASING",
               "OutputTensor=:1x1:float32"},
              {"ARGMAX: OutputTensor.DataType is FLOAT32, allowed"});
  // Also for an operator that runs.
  const std::vector<std::string> top = {"op",     "TOP_K1", "InputTensor=[3,1,2]",
                                        "Axis=0", "K=2",    "AxisDirection=DECREASING"};
  const JsonValue document =
      RunJson(0, With(top, {"OutputIndexTensor=:uint64", "OutputValueTensor=v.npy:2"}));
  EXPECT_EQ(Text(document, {"outputs", "0", "file"}), "v.npy");
  EXPECT_EQ(Text(document, {"outputs", "1", "dataType"}), "UINT64");
  EXPECT_EQ(Text(document, {"outputs", "1", "values"}), "[0,2]");
  EXPECT_EQ(ReadElements<float>("v.npy", {2}), (std::vector<float>{3, 2}));
  EXPECT_EQ(Text(RunJson(0, With(top, {"OutputIndexTensor=:2", "--index-type=uint64"})),
                 {"outputs", "1", "dataType"}),
            "UINT64");
  ExpectFails(1, With(top, {"OutputValueTensor=:3"}), {"OutputValueTensor.Sizes"});
  ExpectFails(1, With(top, {"OutputValueTensor=:float16"}), {"OutputValueTensor.DataType"});
  ExpectFails(2, With(top, {"OutputValueTensor=:float61"}), {"'float61' is no data type, nor sizes"});
  ExpectFails(2, With(top, {"OutputValueTensor=v.npy:flot16"}), {"'flot16' is no data type"});
  ExpectFails(2, With(top, {"OutputValueTensor=:0x2"}), {"'0x2' are no sizes"});
  ExpectOnly({"out.npy", "v.npy"});
  // A colon may be part of a name.
  // interpreted as sizes, which are wrong
  EXPECT_EQ(Run(With(top, {"OutputValueTensor=run:1"})).exit_code, 1);
  EXPECT_EQ(Run(With(top, {"OutputValueTensor=run:one"})).exit_code, 0);
  EXPECT_TRUE(Exists("run:one"));
}

TEST_F(CliDescribeTest, OutputsThatDoNotFit) {
  const std::vector<std::string> sum = {"op", "CUMULATIVE_SUMMATION", "InputTensor=[[1,2],[3,4]]",
                                        "AxisDirection=INCREASING", "HasExclusiveSum=false"};
  ExpectValid(With(sum, {"Axis=1"}));  // the output equals the input
  ExpectValid(With(sum, {"Axis=1", "OutputTensor=out.npy"}));
  ExpectFails(1, With(sum, {"Axis=2"}), {"Axis is 2"});
  ExpectFails(1, With(sum, {"Axis=1", "OutputTensor=:2x3"}), {"CUMULATIVE_SUMMATION: OutputTensor.Sizes"});
  ExpectFails(1, With(sum, {"Axis=1", "OutputTensor=:int8"}),
              {"CUMULATIVE_SUMMATION: OutputTensor.DataType"});
  ExpectFails(1, With(sum, {"Axis=1", "--feature-level=1.0"}), {"CUMULATIVE_SUMMATION", "2_1"});
  ExpectFails(1, Gemm({"OutputTensor=:2x1:float16"}), {"GEMM: OutputTensor.DataType"});
}

TEST_F(CliDescribeTest, FourBits) {
  WriteNpy("in.npy", "|u1", "(2, 2)", std::vector<uint8_t>{0, 15, 1, 2});
  const std::vector<std::string> dequantize = {"op", "DEQUANTIZE", "QuantizationType=SCALE_ZERO_POINT"};
  for (const char* input : {"[[0,15],[1,2]]:uint4", "in.npy:uint4", "random:2x2:uint4:max=15"}) {
    ExpectValid(With(dequantize, {"InputTensor=" + std::string(input),
                                  "QuantizationTensors=[[2]],[[1]]:uint4", "OutputTensor=:2x2:float32"}));
  }
  ExpectFails(1, With(dequantize, {"InputTensor=in.npy:int4", "QuantizationTensors=[[2]],[[1]]:int4"}),
              {"in.npy: has UINT8 elements; INT4 needs INT8"});
  WriteNpy("in.npy", "|u1", "(2, 2)", std::vector<uint8_t>{0, 15, 1, 16});
  ExpectFails(1, With(dequantize, {"InputTensor=in.npy:uint4", "QuantizationTensors=[[2]],[[1]]:uint4"}),
              {"in.npy: element 3 is 16, which UINT4 cannot hold"});
  ExpectFails(1, {"op", "TOP_K1", "InputTensor=[1,2]:uint4", "Axis=0", "K=1", "AxisDirection=DECREASING"},
              {"TOP_K1: InputTensor.DataType is UINT4, allowed"});
}

}  // namespace
}  // namespace anydml::client
