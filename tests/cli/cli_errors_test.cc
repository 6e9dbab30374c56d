// Errors of the tool: exit code, one message, and no file is written.
#include "cli_test_util.h"

namespace anydml::client {
namespace {

class CliErrorsTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    WriteNpy("in.npy", "<f4", "(3, 4)", std::vector<float>{0, 1, 10, 11, 3, 2, 9, 8, 4, 5, 6, 7});
  }

  // TOP_K1 with one argument replaced or added; a value of "" leaves the field out.
  std::vector<std::string> TopK1(const std::string& field = "", const std::string& value = "") const {
    std::vector<std::pair<std::string, std::string>> fields = {{"InputTensor", "in.npy"},
                                                               {"Axis", "1"},
                                                               {"K", "2"},
                                                               {"AxisDirection", "DECREASING"},
                                                               {"OutputValueTensor", "v.npy"},
                                                               {"OutputIndexTensor", "i.npy"}};
    bool replaced = field.empty();
    for (auto& [name, text] : fields) {
      if (name != field) continue;
      text = value;
      replaced = true;
    }
    if (!replaced) fields.emplace_back(field, value);
    std::vector<std::string> arguments = {"op", "TOP_K1"};
    for (const auto& [name, text] : fields) {
      if (!text.empty()) arguments.push_back(name + "=" + text);
    }
    return arguments;
  }

  std::vector<std::string> With(std::vector<std::string> arguments, std::vector<std::string> more) const {
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  void ExpectFails(int exit_code, const std::vector<std::string>& arguments,
                   std::initializer_list<const char*> words) const {
    const std::string sentence = RunFailing(exit_code, arguments);
    for (const char* word : words)
      EXPECT_NE(sentence.find(word), std::string::npos) << word << " in: " << sentence;
    EXPECT_FALSE(Exists("v.npy"));
    EXPECT_FALSE(Exists("i.npy"));
    EXPECT_FALSE(Exists("out.npy"));
  }

  void ExpectBadFile(const std::string& bytes, std::initializer_list<const char*> words) const {
    WriteBytes("bad.npy", bytes);
    ExpectFails(1, TopK1("InputTensor", "bad.npy"), words);
  }
};

// Unused arguments are errors.
TEST_F(CliErrorsTest, EnvironmentThatCannotBeFollowed) {
  const auto expect = [this](const char* variable, const char* sentence) {
    for (const auto& arguments : {std::vector<std::string>{"adapters"}, TopK1()}) {
      const CliResult result = Run(arguments, {variable});
      EXPECT_EQ(result.exit_code, 1) << variable;
      EXPECT_NE(result.err.find(sentence), std::string::npos) << result.err;
    }
  };
  expect("ANYDML_ADAPTER=cuda:77",
         "the environment variable ANYDML_ADAPTER is \"cuda:77\" but this machine has ");
  expect("ANYDML_THREADS=four",
         "the environment variable ANYDML_THREADS is \"four\" but must be a number from 1 on");
  expect("ANYDML_THREADS=0", "ANYDML_THREADS is \"0\"");
  expect("ANYDML_THREADS=2x", "ANYDML_THREADS is \"2x\"");
  EXPECT_EQ(Run({"adapters"}, {"ANYDML_ADAPTER=", "ANYDML_THREADS="}).exit_code, 0);
}

TEST_F(CliErrorsTest, BadFiles) {
  const std::string good = ReadBytes("in.npy");
  ExpectBadFile("", {"bad.npy", "not a .npy file"});
  ExpectBadFile("hello, world", {"bad.npy", "not a .npy file"});
  ExpectBadFile(good.substr(0, 7), {"bad.npy", "truncated"});
  ExpectBadFile(good.substr(0, 30), {"bad.npy", "truncated"});
  ExpectBadFile(good.substr(0, good.size() - 1), {"bad.npy", "truncated", "48", "47"});
  ExpectBadFile(good + "x", {"bad.npy", "1 bytes follow"});
  ExpectBadFile(Header(">f4", "(1,)") + "1234", {"bad.npy", "big-endian"});
  ExpectBadFile(Header("|O", "(1,)"), {"bad.npy", "objects"});
  ExpectBadFile(Header("<U2", "(1,)") + "12345678", {"bad.npy", "'<U2'"});
  ExpectBadFile(Header("|S4", "(1,)") + "1234", {"bad.npy", "'|S4'"});
  ExpectBadFile(Header("<c8", "(1,)") + "12345678", {"bad.npy", "'<c8'"});
  ExpectBadFile(Header("<f4", "(3, 0)"), {"bad.npy", "size 0"});
  ExpectBadFile(Header("<f4", "(4294967296, 4294967296)"), {"bad.npy", "too large"});
  ExpectBadFile(Header("<f4", "(99999999999999999999999,)"), {"bad.npy", "too large"});
  ExpectBadFile(Header("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)") + "1234", {"bad.npy", "9 dimensions"});
  ExpectBadFile(Header("<f4", "(-1,)"), {"bad.npy", "wrong header", "shape"});
  ExpectBadFile(Header("<f4", "[1]") + "1234", {"bad.npy", "wrong header", "shape"});
}

// Larger than memory, although it takes no space on the disk (a sparse file).
TEST_F(CliErrorsTest, HugeFile) {
  WriteBytes("huge.npy", ReadBytes("in.npy"));
  std::error_code error;
  std::filesystem::resize_file(Path("huge.npy"), uint64_t{1} << 42, error);
  if (error) GTEST_SKIP() << error.message();
  ExpectFails(1, TopK1("InputTensor", "huge.npy"), {"huge.npy", "is longer than"});
}

TEST_F(CliErrorsTest, MissingFile) {
  ExpectFails(1, TopK1("InputTensor", "absent.npy"), {"absent.npy", "No such file"});
  ExpectFails(1, TopK1("InputTensor", "."), {"directory"});
}

TEST_F(CliErrorsTest, UnknownNames) {
  ExpectFails(2, {"op", "TOPK1", "InputTensor=in.npy"}, {"TOPK1", "did you mean TOP_K1?"});
  ExpectFails(2, {"op", "SCATER_ND"}, {"SCATER_ND", "did you mean SCATTER_ND?"});
  ExpectFails(2, TopK1("AxisDirecton", "DECREASING"), {"AxisDirecton", "did you mean AxisDirection?"});
  ExpectFails(2, TopK1("k", "3"), {"has no field k", "did you mean K?"});
  ExpectFails(2, TopK1("AxisDirection", "DECREASE"), {"DECREASE", "did you mean DECREASING?"});
  ExpectFails(2, With(TopK1(), {"--adaptor=0"}), {"--adaptor", "did you mean --adapter?"});
  ExpectFails(2, {"opp"}, {"opp", "did you mean op?"});
}

TEST_F(CliErrorsTest, BadUsage) {
  ExpectFails(2, {}, {"no command"});
  ExpectFails(2, {"op"}, {"no operator"});
  ExpectFails(2, {"op", "TOP_K1", "in.npy"}, {"in.npy", "Field=value"});
  ExpectFails(2, With(TopK1(), {"K=3"}), {"K is given twice"});
  ExpectFails(2, With(TopK1("K", ""), {"K="}), {"K is given without a value"});
  ExpectFails(2, With(TopK1(), {"--adapter"}), {"--adapter needs a value"});
  ExpectFails(2, With(TopK1(), {"--feature-level", "7.0"}), {"7.0", "not a feature level"});
  ExpectFails(2, With(TopK1(), {"--index-type", "int7"}), {"int7", "not a data type"});
  ExpectFails(2, TopK1("InputTensor", ""), {"InputTensor is missing"});
  ExpectFails(2, TopK1("K", ""), {"K is missing", "UINT"});
  ExpectFails(2, TopK1("AxisDirection", ""), {"AxisDirection is missing"});
  ExpectFails(2, TopK1("OutputIndexTensor", "./v.npy"), {"same file"});
}

TEST_F(CliErrorsTest, BadNumbers) {
  ExpectFails(2, TopK1("K", "-1"), {"K=-1", "negative"});
  ExpectFails(2, TopK1("Axis", "-1"), {"Axis=-1", "negative"});
  ExpectFails(2, TopK1("K", "4294967296"), {"4294967296", "out of range"});
  ExpectFails(2, TopK1("K", "two"), {"two", "not a number"});
  ExpectFails(2, TopK1("K", "2.5"), {"2.5", "not a number"});
  ExpectFails(2, TopK1("K", "2 "), {"not a number"});
  ExpectFails(1, TopK1("K", "0"), {"TOP_K1: K is 0", "[1, 4]"});
  ExpectFails(1, TopK1("K", "5"), {"TOP_K1: K is 5", "[1, 4]"});
  ExpectFails(1, TopK1("K", "4294967295"), {"TOP_K1: K is 4294967295", "[1, 4]"});
  ExpectFails(1, TopK1("Axis", "2"), {"Axis is 2", "2 dimensions"});
  ExpectFails(1, TopK1("Axis", "4294967295"), {"Axis is 4294967295"});
  ExpectFails(1, With(TopK1("Axis", "2"), {"--feature-level=2.1"}), {"Axis is 2", "2 dimensions"});
}

// The message names the missing or wrong argument, not the output that depends on it.
TEST_F(CliErrorsTest, OutputsThatCannotBe) {
  ExpectFails(1, {"op", "SPLIT", "InputTensor=[1,2,3]", "Axis=0"},
              {"SPLIT: OutputCount is 0; it must be at least 1"});
  ExpectFails(1, {"op", "TILE", "InputTensor=[1,2]", "Repeats=[0]"}, {"TILE: Repeats[0] is 0"});
  ExpectFails(
      1, {"op", "UPSAMPLE_2D", "InputTensor=random:1x1x2x2", "ScaleSize=0,1", "InterpolationMode=LINEAR"},
      {"UPSAMPLE_2D: ScaleSize is {Width 0, Height 1}"});
  ExpectFails(
      1, {"op", "JOIN", "InputTensors=[1,2],[[3]]", "Axis=0"},
      {"JOIN: InputTensors[0] has 1 dimensions but InputTensors[1] has 2; they must have equally many"});
}

// Every text that cannot be parsed, with its operator and field.
TEST_F(CliErrorsTest, TextsNameTheirOperator) {
  const auto expect = [this](const char* field, const char* text) {
    const std::string sentence = RunFailing(2, TopK1(field, text));
    EXPECT_EQ(sentence.find(StrCat("anydml: TOP_K1: ", field, "=", text, ": ")), 0u) << sentence;
  };
  expect("InputTensor", "[1,2");
  expect("InputTensor", "[1,a]");
  expect("InputTensor", "[1]:flaot");
  expect("InputTensor", "random:2x");
  expect("Axis", "zero");
  expect("K", "-1");
  expect("AxisDirection", "UP");
  expect("OutputValueTensor", ":2x0");
  const std::string sentence =
      RunFailing(2, {"op", "ELEMENT_WISE_ADD1", "ATensor=[1]", "BTensor=[1]", "FusedActivation={\"Type\":"});
  EXPECT_EQ(sentence.find("anydml: ELEMENT_WISE_ADD1: FusedActivation="), 0u) << sentence;
}

TEST_F(CliErrorsTest, UnsupportedTypesAndLevels) {
  WriteNpy("double.npy", "<f8", "(2,)", std::vector<double>{1, 2});
  std::vector<std::string> arguments = TopK1("InputTensor", "double.npy");
  arguments[3] = "Axis=0";
  ExpectFails(1, arguments, {"TOP_K1", "FLOAT64"});
  ExpectFails(1, With(TopK1(), {"--index-type", "int32"}), {"OutputIndexTensor", "INT32"});
  ExpectFails(1, With(TopK1(), {"--index-type", "uint64", "--feature-level", "4.1"}),
              {"OutputIndexTensor", "UINT64"});
  const CliResult too_low = Run(With(TopK1(), {"--feature-level", "1.0"}));
  EXPECT_NE(too_low.exit_code, 0);
  EXPECT_NE(too_low.err.find("2_1"), std::string::npos) << too_low.err;
  ExpectFails(3, With(TopK1(), {"--adapter", "no such adapter"}), {"no such adapter"});
  ExpectFails(2,
              {"op", "SCATTER_ND", "InputTensor=in.npy", "IndicesTensor=in.npy", "UpdatesTensor=in.npy",
               "--index-type=uint32"},
              {"no index output"});
}

class CliScatterErrorsTest : public CliErrorsTest {
 protected:
  std::vector<std::string> Scatter() const {
    return {"op",
            "SCATTER_ND",
            "InputTensor=data.npy",
            "IndicesTensor=at.npy",
            "UpdatesTensor=new.npy",
            "OutputTensor=out.npy"};
  }
};

TEST_F(CliScatterErrorsTest, IndexOutOfRange) {
  WriteNpy("data.npy", "<f4", "(4,)", std::vector<float>{1, 2, 3, 4});
  WriteNpy("at.npy", "<i4", "(3, 1)", std::vector<int32_t>{1, 17, -5});
  WriteNpy("new.npy", "<f4", "(3,)", std::vector<float>{20, 30, 40});
  ExpectFails(1, Scatter(), {"SCATTER_ND", "17"});
  WriteNpy("at.npy", "<i4", "(3, 1)", std::vector<int32_t>{1, 3, -5});
  ExpectFails(1, Scatter(), {"SCATTER_ND", "-5"});
  WriteBytes("out.npy", "precious");
  const std::string sentence = RunFailing(1, Scatter());
  EXPECT_NE(sentence.find("-5"), std::string::npos) << sentence;
  EXPECT_EQ(ReadBytes("out.npy"), "precious");
  ExpectOnly({"in.npy", "data.npy", "at.npy", "new.npy", "out.npy"});
}

TEST_F(CliScatterErrorsTest, WrongShapesAndTypes) {
  WriteNpy("data.npy", "<f4", "(4,)", std::vector<float>{1, 2, 3, 4});
  WriteNpy("at.npy", "<i4", "(3, 1)", std::vector<int32_t>{1, 2, 3});
  WriteNpy("new.npy", "<f4", "(2,)", std::vector<float>{20, 30});
  ExpectFails(1, Scatter(), {"SCATTER_ND", "UpdatesTensor"});
  WriteNpy("new.npy", "<f2", "(3,)", std::vector<uint16_t>{20, 30, 40});
  ExpectFails(1, Scatter(), {"SCATTER_ND", "FLOAT16"});
  WriteNpy("new.npy", "<f4", "(3,)", std::vector<float>{20, 30, 40});
  WriteNpy("at.npy", "<f4", "(3, 1)", std::vector<float>{1, 2, 3});
  ExpectFails(1, Scatter(), {"SCATTER_ND", "IndicesTensor", "FLOAT32"});
  WriteNpy("at.npy", "<i4", "(3, 2)", std::vector<int32_t>{1, 2, 3, 1, 2, 3});
  ExpectFails(1, Scatter(), {"SCATTER_ND"});
}

// Only operators that state the number of dimensions right-align.
TEST_F(CliScatterErrorsTest, ScatterElementsDoesNotAlign) {
  WriteNpy("data.npy", "<f4", "(1, 4)", std::vector<float>{1, 2, 3, 4});
  WriteNpy("at.npy", "<i4", "(4,)", std::vector<int32_t>{0, 1, 2, 3});
  WriteNpy("new.npy", "<f4", "(4,)", std::vector<float>{20, 30, 40, 50});
  ExpectFails(1,
              {"op", "SCATTER_ELEMENTS", "InputTensor=data.npy", "IndicesTensor=at.npy",
               "UpdatesTensor=new.npy", "OutputTensor=out.npy", "Axis=1"},
              {"SCATTER_ELEMENTS", "2 dimensions", "has 1"});
}

TEST_F(CliErrorsTest, UnwritableOutput) {
  ExpectFails(1, TopK1("OutputIndexTensor", "no/such/folder/i.npy"),
              {"no/such/folder/i.npy", "cannot be written"});
  ExpectFails(1, TopK1("OutputIndexTensor", "in.npy/i.npy"), {"in.npy/i.npy", "cannot be written"});
  ExpectFails(1, TopK1("OutputValueTensor", "/dev/null"), {"/dev/null", "not a regular file"});
  ExpectFails(1, TopK1("OutputValueTensor", "."), {"not a regular file"});
  WriteBytes("v.npy", "precious");  // written first, but only once the other one can be written, too
  RunFailing(1, TopK1("OutputIndexTensor", "no/such/folder/i.npy"));
  EXPECT_EQ(ReadBytes("v.npy"), "precious");
  ExpectOnly({"in.npy", "v.npy"});
}

}  // namespace
}  // namespace anydml::client
