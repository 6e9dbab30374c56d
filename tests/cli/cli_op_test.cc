// Operators on files: the examples of DirectML's pages, every data type, ranks, orders, levels.
#include <numeric>

#include "cli_test_util.h"

namespace anydml::client {
namespace {

using Floats = std::vector<float>;
using Indices = std::vector<uint32_t>;

const Floats kDistinct = {0, 1, 10, 11, 3, 2, 9, 8, 4, 5, 6, 7};
const Floats kTied = {1, 2, 2, 3, 3, 4, 5, 5, 6, 6, 6, 6};

class CliOpTest : public CliTest {
 protected:
  // TOP_K1 reads in.npy and writes v.npy and i.npy.
  CliResult TopK1(const std::string& axis, const std::string& k, const std::string& direction,
                  std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"op",
                                          "TOP_K1",
                                          "InputTensor=in.npy",
                                          "Axis=" + axis,
                                          "K=" + k,
                                          "AxisDirection=" + direction,
                                          "OutputValueTensor=v.npy",
                                          "OutputIndexTensor=i.npy"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }

  CliResult ScatterNd(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"op",
                                          "SCATTER_ND",
                                          "InputTensor=in.npy",
                                          "IndicesTensor=at.npy",
                                          "UpdatesTensor=new.npy",
                                          "OutputTensor=out.npy"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }
};

void ExpectDone(const CliResult& result) {
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
}

TEST_F(CliOpTest, TopK1Example1) {
  WriteNpy("in.npy", "<f4", "(1, 1, 3, 4)", kDistinct);
  ExpectDone(TopK1("3", "2", "DECREASING"));
  EXPECT_EQ(ReadElements<float>("v.npy", {1, 1, 3, 2}), (Floats{11, 10, 9, 8, 7, 6}));
  EXPECT_EQ(ReadElements<uint32_t>("i.npy", {1, 1, 3, 2}), (Indices{3, 2, 2, 3, 3, 2}));
  ExpectOnly({"in.npy", "v.npy", "i.npy"});
}

TEST_F(CliOpTest, TopK1Example2) {
  WriteNpy("in.npy", "<f4", "(1, 1, 3, 4)", kDistinct);
  ExpectDone(TopK1("2", "2", "DML_AXIS_DIRECTION_DECREASING"));
  EXPECT_EQ(ReadElements<float>("v.npy", {1, 1, 2, 4}), (Floats{4, 5, 10, 11, 3, 2, 9, 8}));
  EXPECT_EQ(ReadElements<uint32_t>("i.npy", {1, 1, 2, 4}), (Indices{2, 2, 0, 0, 1, 1, 1, 1}));
}

TEST_F(CliOpTest, TopK1Example3) {
  WriteNpy("in.npy", "<f4", "(1, 1, 3, 4)", kTied);
  ExpectDone(TopK1("3", "3", "decreasing"));
  EXPECT_EQ(ReadElements<float>("v.npy", {1, 1, 3, 3}), (Floats{3, 2, 2, 5, 5, 4, 6, 6, 6}));
  EXPECT_EQ(ReadElements<uint32_t>("i.npy", {1, 1, 3, 3}), (Indices{3, 1, 2, 2, 3, 1, 0, 1, 2}));
}

TEST_F(CliOpTest, TopK1Example4) {
  WriteNpy("in.npy", "<f4", "(1, 1, 3, 4)", kTied);
  ExpectDone(TopK1("3", "3", "INCREASING"));
  EXPECT_EQ(ReadElements<float>("v.npy", {1, 1, 3, 3}), (Floats{1, 2, 2, 3, 4, 5, 6, 6, 6}));
  EXPECT_EQ(ReadElements<uint32_t>("i.npy", {1, 1, 3, 3}), (Indices{0, 1, 2, 0, 1, 2, 0, 1, 2}));
}

// The page's example as it is printed, with ranks 1, 2 and 1: aligned by the tool.
TEST_F(CliOpTest, ScatterNdExampleWithMixedRanks) {
  WriteNpy("in.npy", "<f4", "(8,)", Floats{1, 2, 3, 4, 5, 6, 7, 8});
  WriteNpy("at.npy", "<u4", "(4, 1)", Indices{4, 3, 1, 7});
  WriteNpy("new.npy", "<f4", "(4,)", Floats{9, 10, 11, 12});
  ExpectDone(ScatterNd());
  EXPECT_EQ(ReadElements<float>("out.npy", {8}), (Floats{1, 11, 3, 10, 9, 6, 7, 12}));
}

TEST_F(CliOpTest, ScatterNdFiveDimensions) {
  Floats input(3 * 4 * 5 * 42), updates(2 * 42);
  std::iota(input.begin(), input.end(), 0.0f);
  std::iota(updates.begin(), updates.end(), 10000.0f);
  WriteNpy("in.npy", "<f4", "(3, 4, 5, 6, 7)", input);
  WriteNpy("at.npy", "<i8", "(1, 2, 3)", std::vector<int64_t>{2, 0, 3, -2, 3, -1});
  WriteNpy("new.npy", "<f4", "(1, 2, 6, 7)", updates);
  ExpectDone(ScatterNd());
  std::copy_n(updates.begin(), 42, input.begin() + ((2 * 4 + 0) * 5 + 3) * 42);
  std::copy_n(updates.begin() + 42, 42, input.begin() + ((1 * 4 + 3) * 5 + 4) * 42);
  EXPECT_EQ(ReadElements<float>("out.npy", {3, 4, 5, 6, 7}), input);
}

TEST_F(CliOpTest, DimensionCountsCanBeGiven) {
  WriteNpy("in.npy", "<f4", "(1, 8)", Floats{1, 2, 3, 4, 5, 6, 7, 8});
  WriteNpy("at.npy", "<u4", "(4, 1)", Indices{4, 3, 1, 7});
  WriteNpy("new.npy", "<f4", "(1, 4)", Floats{9, 10, 11, 12});
  ExpectDone(ScatterNd({"InputDimensionCount=1", "IndicesDimensionCount=2"}));
  EXPECT_EQ(ReadElements<float>("out.npy", {1, 8}), (Floats{1, 11, 3, 10, 9, 6, 7, 12}));
}

TEST_F(CliOpTest, OutputsWithoutFilesArePrinted) {
  WriteNpy("in.npy", "<f4", "(3, 4)", kDistinct);
  const CliResult result = Run({"op", "TOP_K1", "InputTensor=in.npy", "Axis=1", "K=2",
                                "AxisDirection=DECREASING", "OutputIndexTensor=i.npy"});
  ExpectDone(result);
  EXPECT_EQ(result.out,
            "OutputValueTensor: (Sizes:{3,2}, DataType:FLOAT32)\n[[11, 10],\n [ 9,  8],\n [ 7,  6]]\n");
  EXPECT_EQ(ReadElements<uint32_t>("i.npy", {3, 2}), (Indices{3, 2, 2, 3, 3, 2}));
}

TEST_F(CliOpTest, ZeroDimensionalInput) {
  WriteNpy("in.npy", "<f4", "()", Floats{7});
  ExpectDone(TopK1("0", "1", "DECREASING"));
  EXPECT_EQ(ReadElements<float>("v.npy", {1}), (Floats{7}));
  ExpectDone(Run({"op", "ELEMENT_WISE_NEGATE", "InputTensor=in.npy", "OutputTensor=v.npy"}));
  EXPECT_EQ(ReadElements<float>("v.npy", {1}), (Floats{-7}));
  NpyArray read;
  ASSERT_TRUE(ReadNpy(Path("v.npy").string(), &read).ok());
  EXPECT_TRUE(read.scalar);
  EXPECT_EQ(Run({"op", "ELEMENT_WISE_NEGATE", "InputTensor=in.npy"}).out,
            "OutputTensor: (Sizes:{}, DataType:FLOAT32)\n-7\n");
}

TEST_F(CliOpTest, NamesInAnyCaseAndByTheirLastWords) {
  ExpectDone(Run({"op", "activation_relu", "InputTensor=[1,-2]"}));
  EXPECT_EQ(Run({"op", "RELU", "InputTensor=[1,-2]"}).err,
            "anydml: there is no operator RELU; did you mean ACTIVATION_RELU?\n");
  EXPECT_EQ(Run({"op", "DML_OPERATOR_ADD", "InputTensor=[1,-2]"}).err,
            "anydml: there is no operator DML_OPERATOR_ADD; did you mean ELEMENT_WISE_ADD?\n");
}

TEST_F(CliOpTest, AddedDimensionsAreTold) {
  const std::vector<std::string> arguments = {
      "op", "TOP_K1", "InputTensor=[3,1,2]", "Axis=0", "AxisDirection=DECREASING", "--feature-level=2.1"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), more.begin(), more.end());
    return Run(all);
  };
  const std::string added = "InputTensor {3} is taken as {1,1,1,3}, Axis 0 as 3";
  EXPECT_EQ(with({"K=5"}).err,
            "anydml: TOP_K1: K is 5 but InputTensor.Sizes[Axis=0] is 3; K must be in [1, 3]\n");
  EXPECT_EQ(with({"K=1", "OutputValueTensor=:2:float32"}).err,
            "anydml: TOP_K1: OutputValueTensor.Sizes is {2} but must be {1}: the sizes of InputTensor with K "
            "along Axis\n");
  EXPECT_NE(with({"K=1", "--index-type=uint64"}).err.find("DML_FEATURE_LEVEL_5_0 allows it (" + added + ")"),
            std::string::npos);
  EXPECT_TRUE(with({"K=1", "--why"}).out.starts_with(added + "\n"));
  EXPECT_NE(with({"K=1", "--json"}).out.find("\"addedDimensions\":\"" + added + "\""), std::string::npos);
}

TEST_F(CliOpTest, Float64GetsAHint) {
  WriteNpy("in.npy", "<f8", "(2,)", std::vector<double>{1, 2});
  EXPECT_NE(Run({"op", "ELEMENT_WISE_ABS", "InputTensor=in.npy"}).err.find("x.astype('float32')"),
            std::string::npos);
}

TEST_F(CliOpTest, FortranOrderGivesTheSameResult) {
  WriteNpy("in.npy", "<f4", "(2, 3, 4)", Floats{5, 1, 4, 2, 9, 9, 3, 8, 7, 6, 0, 1,  //
                                                2, 8, 8, 1, 4, 3, 6, 5, 0, 9, 7, 2});
  ExpectDone(TopK1("1", "2", "INCREASING"));
  const Floats values = ReadElements<float>("v.npy", {2, 2, 4});
  const Indices indices = ReadElements<uint32_t>("i.npy", {2, 2, 4});
  const Floats c_order = ReadElements<float>("in.npy", {2, 3, 4});
  Floats fortran(24);
  for (size_t a = 0; a < 2; ++a) {
    for (size_t b = 0; b < 3; ++b) {
      for (size_t c = 0; c < 4; ++c) fortran[a + 2 * (b + 3 * c)] = c_order[(a * 3 + b) * 4 + c];
    }
  }
  WriteNpy("in.npy", "<f4", "(2, 3, 4)", fortran, /*fortran=*/true);
  ExpectDone(TopK1("1", "2", "INCREASING"));
  EXPECT_EQ(ReadElements<float>("v.npy", {2, 2, 4}), values);
  EXPECT_EQ(ReadElements<uint32_t>("i.npy", {2, 2, 4}), indices);
}

// Level 2.1 requires four dimensions; the tool adds and removes leading 1s.
TEST_F(CliOpTest, HeldFeatureLevelPads) {
  WriteNpy("in.npy", "<f4", "(3, 4)", kDistinct);
  ExpectDone(TopK1("0", "2", "DECREASING", {"--feature-level", "2.1"}));
  EXPECT_EQ(ReadElements<float>("v.npy", {2, 4}), (Floats{4, 5, 10, 11, 3, 2, 9, 8}));
  EXPECT_EQ(ReadElements<uint32_t>("i.npy", {2, 4}), (Indices{2, 2, 0, 0, 1, 1, 1, 1}));
  WriteNpy("in.npy", "<f4", "(8,)", Floats{1, 2, 3, 4, 5, 6, 7, 8});
  WriteNpy("at.npy", "<u4", "(4, 1)", Indices{4, 3, 1, 7});
  WriteNpy("new.npy", "<f4", "(4,)", Floats{9, 10, 11, 12});
  ExpectDone(ScatterNd({"--feature-level=DML_FEATURE_LEVEL_2_1"}));
  EXPECT_EQ(ReadElements<float>("out.npy", {8}), (Floats{1, 11, 3, 10, 9, 6, 7, 12}));
}

TEST_F(CliOpTest, IndexType) {
  WriteNpy("in.npy", "<f4", "(3, 4)", kDistinct);
  ExpectDone(TopK1("1", "2", "DECREASING", {"--index-type", "uint64"}));
  EXPECT_EQ(ReadElements<uint64_t>("i.npy", {3, 2}), (std::vector<uint64_t>{3, 2, 2, 3, 3, 2}));
  ExpectDone(TopK1("1", "2", "DECREASING", {"--index-type", "UINT32"}));
  EXPECT_EQ(ReadElements<uint32_t>("i.npy", {3, 2}), (Indices{3, 2, 2, 3, 3, 2}));
}

TEST_F(CliOpTest, OutputMayReplaceInput) {
  WriteNpy("in.npy", "<f4", "(4,)", Floats{1, 2, 3, 4});
  WriteNpy("at.npy", "<u4", "(1, 1)", Indices{2});
  WriteNpy("new.npy", "<f4", "(1,)", Floats{30});
  ExpectDone(Run({"op", "SCATTER_ND", "InputTensor=in.npy", "IndicesTensor=at.npy", "UpdatesTensor=new.npy",
                  "OutputTensor=in.npy"}));
  EXPECT_EQ(ReadElements<float>("in.npy", {4}), (Floats{1, 2, 30, 4}));
  ExpectOnly({"in.npy", "at.npy", "new.npy"});
}

TEST_F(CliOpTest, OutputThroughALinkKeepsTheLink) {
  WriteNpy("in.npy", "<f4", "(2,)", Floats{1, 2});
  WriteBytes("real.npy", "old");
  std::filesystem::create_symlink("real.npy", Path("v.npy"));
  ExpectDone(TopK1("0", "1", "DECREASING"));
  EXPECT_TRUE(std::filesystem::is_symlink(Path("v.npy")));
  EXPECT_EQ(ReadElements<float>("real.npy", {1}), (Floats{2}));
}

TEST_F(CliOpTest, ScatterElements) {
  WriteNpy("in.npy", "<i4", "(1, 5)", std::vector<int32_t>{1, 2, 3, 4, 5});
  WriteNpy("at.npy", "<i4", "(1, 2)", std::vector<int32_t>{1, -2});
  WriteNpy("new.npy", "<i4", "(1, 2)", std::vector<int32_t>{20, 40});
  for (const char* name : {"SCATTER_ELEMENTS", "SCATTER", "DML_OPERATOR_SCATTER_ELEMENTS"}) {
    ExpectDone(Run({"op", name, "InputTensor=in.npy", "IndicesTensor=at.npy", "UpdatesTensor=new.npy",
                    "OutputTensor=out.npy", "Axis=1"}));
    EXPECT_EQ(ReadElements<int32_t>("out.npy", {1, 5}), (std::vector<int32_t>{1, 20, 3, 40, 5}));
  }
}

TEST_F(CliOpTest, OutOfRangeCanBeAllowed) {
  WriteNpy("in.npy", "<f4", "(4,)", Floats{1, 2, 3, 4});
  WriteNpy("at.npy", "<u4", "(2, 1)", Indices{9, 1});
  WriteNpy("new.npy", "<f4", "(2,)", Floats{30, 20});
  const CliResult result = ScatterNd({"--allow-out-of-range"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.err.find("9"), std::string::npos) << result.err;
  EXPECT_EQ(ReadElements<float>("out.npy", {4}), (Floats{1, 20, 3, 4}));
}

TEST_F(CliOpTest, WhyNamesTheImplementation) {
  WriteNpy("in.npy", "<f4", "(2,)", Floats{1, 2});
  const CliResult chosen = TopK1("0", "1", "DECREASING", {"--why", "--adapter", "0"});
  ExpectDone(chosen);
  EXPECT_NE(chosen.out.find("reference"), std::string::npos) << chosen.out;
  const CliResult forced = TopK1("0", "1", "DECREASING", {"--why", "--implementation", "cpu.reference"});
  ExpectDone(forced);
  EXPECT_NE(forced.out.find("cpu.reference"), std::string::npos) << forced.out;
}

template <typename T>
class CliTypeTest : public CliTest {};

template <typename T>
struct Number {
  static const char* Descr() {
    constexpr bool kFloat = std::is_floating_point_v<T>;
    static const std::string descr = std::string(sizeof(T) == 1 ? "|" : "<") +
                                     (kFloat                ? "f"
                                      : std::is_signed_v<T> ? "i"
                                                            : "u") +
                                     std::to_string(sizeof(T));
    return descr.c_str();
  }
};

using Numbers =
    testing::Types<float, uint8_t, uint16_t, uint32_t, uint64_t, int8_t, int16_t, int32_t, int64_t>;
TYPED_TEST_SUITE(CliTypeTest, Numbers);

TYPED_TEST(CliTypeTest, TopK1) {
  const TypeParam minus = std::is_signed_v<TypeParam> ? static_cast<TypeParam>(-5) : TypeParam{5};
  this->WriteNpy("in.npy", Number<TypeParam>::Descr(), "(5,)", std::vector<TypeParam>{7, minus, 100, 6, 100});
  const CliResult result =
      this->Run({"op", "TOP_K1", "InputTensor=in.npy", "Axis=0", "K=5", "AxisDirection=INCREASING",
                 "OutputValueTensor=v.npy", "OutputIndexTensor=i.npy"});
  ExpectDone(result);
  EXPECT_EQ(this->template ReadElements<TypeParam>("v.npy", {5}),
            (std::vector<TypeParam>{minus, 6, 7, 100, 100}));
  EXPECT_EQ(this->template ReadElements<uint32_t>("i.npy", {5}), (Indices{1, 3, 0, 2, 4}));
}

TYPED_TEST(CliTypeTest, ScatterNd) {
  this->WriteNpy("in.npy", Number<TypeParam>::Descr(), "(3,)", std::vector<TypeParam>{1, 2, 3});
  this->WriteNpy("at.npy", "<i4", "(2, 1)", std::vector<int32_t>{-1, 0});
  this->WriteNpy("new.npy", Number<TypeParam>::Descr(), "(2,)", std::vector<TypeParam>{30, 10});
  ExpectDone(this->Run({"op", "SCATTER_ND", "InputTensor=in.npy", "IndicesTensor=at.npy",
                        "UpdatesTensor=new.npy", "OutputTensor=out.npy"}));
  EXPECT_EQ(this->template ReadElements<TypeParam>("out.npy", {3}), (std::vector<TypeParam>{10, 2, 30}));
}

TEST_F(CliOpTest, Float16) {
  WriteNpy("in.npy", "<f2", "(3,)", std::vector<uint16_t>{0x3C00, 0x4400, 0xC000});  // 1, 4, -2
  const CliResult result =
      Run({"op", "TOP_K1", "InputTensor=in.npy", "Axis=0", "K=3", "AxisDirection=DECREASING"});
  ExpectDone(result);
  EXPECT_NE(result.out.find("DataType:FLOAT16)\n[ 4,  1, -2]\n"), std::string::npos) << result.out;
}

TEST_F(CliOpTest, Float64AndBoolScatter) {
  WriteNpy("at.npy", "<u8", "(1, 1)", std::vector<uint64_t>{1});
  WriteNpy("in.npy", "<f8", "(2,)", std::vector<double>{1, 2});
  WriteNpy("new.npy", "<f8", "(1,)", std::vector<double>{0.1});
  ExpectDone(ScatterNd());
  EXPECT_EQ(ReadElements<double>("out.npy", {2}), (std::vector<double>{1, 0.1}));
  WriteNpy("in.npy", "|b1", "(2,)", std::vector<uint8_t>{1, 0});
  WriteNpy("new.npy", "|b1", "(1,)", std::vector<uint8_t>{1});
  ExpectDone(ScatterNd());
  EXPECT_EQ(ReadElements<uint8_t>("out.npy", {2}), (std::vector<uint8_t>{1, 1}));
}

// An output's sizes alone suffice if an input has its data type.
TEST_F(CliOpTest, OutputsGivenByTheirSizes) {
  const auto output = [this](std::vector<std::string> arguments, const char* field) {
    arguments.insert(arguments.begin(), "op");
    const JsonValue document = RunJson(0, arguments);
    return Text(document, {"outputs", "0", field});
  };
  const std::vector<std::string> one_hot = {"ONE_HOT", "IndicesTensor=[[1],[0]]:uint32",
                                            "ValuesTensor=[[0,1]]:float16", "OutputTensor=:2x3", "Axis=1"};
  EXPECT_EQ(output(one_hot, "values"), "[[0,1,0],[1,0,0]]");
  EXPECT_EQ(output(one_hot, "dataType"), "FLOAT16");
  const std::vector<std::string> fold = {"FOLD",
                                         "InputTensor=[[[1,2]]]:float16",
                                         "OutputTensor=:1x1x2",
                                         "WindowSizes=[1]",
                                         "Strides=[1]",
                                         "Dilations=[1]",
                                         "StartPadding=[0]",
                                         "EndPadding=[0]"};
  EXPECT_EQ(output(fold, "values"), "[[[1,2]]]");
  EXPECT_EQ(output(fold, "dataType"), "FLOAT16");
  // The other output gets the rest.
  ExpectDone(Run({"op", "SPLIT", "InputTensor=[1,2,3,4,5]", "OutputTensors=:4,rest.npy", "Axis=0"}));
  EXPECT_EQ(ReadElements<float>("rest.npy", {1}), (Floats{5}));
}

}  // namespace
}  // namespace anydml::client
