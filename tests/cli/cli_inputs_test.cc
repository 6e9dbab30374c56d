// `anydml op` without files: literals and random values.
#include <random>

#include "anydml/values/tensor_source.h"
#include "cli_test_util.h"

namespace anydml::client {
namespace {

class CliInputsTest : public CliTest {
 protected:
  static std::vector<std::string> Identity(const std::string& input) {
    return {"op", "ELEMENT_WISE_IDENTITY", "InputTensor=" + input};
  }
  // The printed result of an identity of the input.
  std::string Printed(const std::string& input) const {
    const CliResult result = Run(Identity(input));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
  std::string Values(const std::string& input) const {
    return Text(RunJson(0, Identity(input)), {"outputs", "0", "values"});
  }
  void ExpectWrong(const std::string& input, const std::string& words) const {
    const std::string sentence = RunFailing(2, Identity(input));
    EXPECT_NE(sentence.find(words), std::string::npos) << words << "\nin: " << sentence;
    EXPECT_NE(sentence.find("InputTensor="), std::string::npos) << sentence;
  }
};

TEST_F(CliInputsTest, Literals) {
  EXPECT_EQ(Printed("[[1,2.5],[-3,4]]:float16"),
            "OutputTensor: (Sizes:{2,2}, DataType:FLOAT16)\n[[  1, 2.5],\n [ -3,   4]]\n");
  EXPECT_EQ(Printed("[1, \"nan\", \"-inf\"]"),
            "OutputTensor: (Sizes:{3}, DataType:FLOAT32)\n[   1,  nan, -inf]\n");
  EXPECT_EQ(Printed("[1, NaN, -Infinity]"), Printed("[1, \"nan\", \"-inf\"]"));
  // Sizes in bytes that are not multiples of four.
  EXPECT_EQ(Values("[1,255,3]:uint8"), "[1,255,3]");
  EXPECT_EQ(Values("[[[-9223372036854775808]]]:INT64"), "[[[-9223372036854775808]]]");
}

TEST_F(CliInputsTest, LiteralsBesideFiles) {
  WriteNpy("in.npy", "<f4", "(4,)", std::vector<float>{1, 2, 3, 4});
  const CliResult result = Run({"op", "SCATTER_ND", "InputTensor=in.npy", "IndicesTensor=[[3],[0]]:uint32",
                                "UpdatesTensor=[40,10]", "OutputTensor=out.npy"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(ReadElements<float>("out.npy", {4}), (std::vector<float>{10, 2, 3, 40}));
}

TEST_F(CliInputsTest, Random) {
  // SplitMix64 of seed 1, as in models.
  EXPECT_EQ(Values("random:2x2:float64:seed=1"),
            "[[0.5665615751722809,0.7457817572627011],[0.9710027535867962,0.4443592170557721]]");
  EXPECT_EQ(Values("random:4:int32:seed=1:min=-2:max=2"), "[0,1,2,0]");
  EXPECT_EQ(Values("random:3:float32"), Values("random:3"));
  EXPECT_EQ(Values("random:3"), Values("random:3:seed=0"));
  EXPECT_NE(Values("random:3"), Values("random:3:seed=1"));
  // Long ones are shortened in human-readable output.
  EXPECT_NE(Printed("random:8x1000:float32:seed=1").find("..."), std::string::npos);
}

TEST_F(CliInputsTest, WrongLiterals) {
  ExpectWrong("[1,2", "no ']'");
  ExpectWrong("[[1,2],[3]]", "a list of 1 where the first of its level has 2");
  ExpectWrong("[[1,2],3]", "a number where the first of its level is a list");
  ExpectWrong("[1,[2]]", "a list where the first of its level is a number");
  ExpectWrong("[]", "cannot be empty");
  ExpectWrong("[[[[[[[[[1]]]]]]]]]", "more than 8 deep");
  ExpectWrong("[1]:float23", "'float23' is no data type");
  ExpectWrong("[8]:int4", "'8' is out of range (INT4)");
  ExpectWrong("[-9]:int4", "'-9' is out of range (INT4)");
  ExpectWrong("[16]:uint4", "'16' is out of range (UINT4)");
  ExpectWrong("[1]float32", "have to follow the last ']'");
  ExpectWrong("[1,two]", "found 'two'");
  ExpectWrong("[256]:uint8", "'256' is out of range (UINT8)");
  ExpectWrong("[1.5]:int32", "'1.5' is not a number of this type");
}

TEST_F(CliInputsTest, WrongRandom) {
  ExpectWrong("random:", "are no sizes");
  ExpectWrong("random:0x4", "are no sizes");
  ExpectWrong("random:-1", "are no sizes");
  ExpectWrong("random:1x1x1x1x1x1x1x1x1", "are no sizes");
  ExpectWrong("random:65536x65536", "are no sizes");
  ExpectWrong("random:4:floatt", "is no data type");
  ExpectWrong("random:4:float32:sed=1", "none of seed=, min= and max=");
  ExpectWrong("random:4:float32:seed=-1", "negative");
  ExpectWrong("random:4:uint8:max=300", "out of range");
  ExpectWrong("random:4:float32:min=2", "lower bound");
  ExpectWrong("random:4:float32:max=inf", "finite");
}

// Every text gives either a tensor that fits its data or an error.
TEST_F(CliInputsTest, BrokenTextNeverCrashes) {
  const std::string good[] = {"[[1,-2.5e3],[\"nan\",4]]:float16", "random:8x12:int32:seed=1:min=-2:max=7"};
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string text = good[i % 2];
    for (unsigned change = random() % 3 + 1; change > 0; --change) {
      text[random() % text.size()] = text[random() % text.size()];
    }
    if (text[0] != '[' && text.find("random:") != 0) continue;  // a path
    NpyArray array;
    const Status status = ReadTensorSource("Field", text, &array);
    if (status.ok()) {
      EXPECT_EQ(array.data.size(), array.tensor.total_bytes) << text;
      EXPECT_EQ(MinimumTotalBytes(array.tensor), array.tensor.total_bytes) << text;
    } else {
      EXPECT_EQ(status.message().substr(0, 6), "Field=") << status.message();
    }
    for (const std::string& part : SplitTensors(text)) EXPECT_LE(part.size(), text.size());
  }
}

}  // namespace
}  // namespace anydml::client
