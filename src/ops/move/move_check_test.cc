// Invalid moving operators and their error messages.
#include <gtest/gtest.h>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Sizes = std::vector<uint32_t>;

TensorDesc Floats(const Sizes& sizes) { return Packed(DataType::kFloat32, sizes); }

std::string Message(const OperatorDesc& desc) {
  return ImplementationOf(desc).check(desc, kLatestFeatureLevel).message();
}

TEST(MoveCheck, Slice) {
  const auto slice = [](const Sizes& output, const Sizes& offsets, const Sizes& sizes, const Sizes& strides) {
    return Message(MakeDesc("SLICE", {{"InputTensor", Floats({4, 5})},
                                      {"OutputTensor", Floats(output)},
                                      {"DimensionCount", static_cast<uint32_t>(offsets.size())},
                                      {"Offsets", offsets},
                                      {"Sizes", sizes},
                                      {"Strides", strides}}));
  };
  EXPECT_EQ(slice({2, 2}, {0, 1}, {2, 2}, {3, 3}), "");
  EXPECT_EQ(slice({2, 2}, {0}, {2}, {1}),
            "SLICE: DimensionCount is 1 but must be 2, the dimension count of the tensors");
  EXPECT_EQ(slice({2, 2}, {0, 0}, {2, 2}, {1, 0}), "SLICE: Strides[1] is 0 but must be at least 1");
  EXPECT_EQ(slice({2, 2}, {0, 0}, {0, 2}, {1, 1}), "SLICE: Sizes[0] is 0 but must be at least 1");
  EXPECT_EQ(slice({2, 2}, {0, 2}, {2, 2}, {3, 3}),
            "SLICE: Offsets[1] 2, Sizes[1] 2 and Strides[1] 3 reach element 5 but InputTensor.Sizes[1] is 5");
  EXPECT_EQ(slice({2, 3}, {0, 0}, {2, 2}, {1, 1}),
            "SLICE: OutputTensor.Sizes is {2,3} but must be {2,2}: these are Sizes");
}

TEST(MoveCheck, Windows) {
  const auto slice = [](const Sizes& output, const Sizes& offsets, const Sizes& sizes,
                        const std::vector<int32_t>& strides) {
    return Message(MakeDesc("SLICE1", {{"InputTensor", Floats({9})},
                                       {"OutputTensor", Floats(output)},
                                       {"DimensionCount", 1u},
                                       {"InputWindowOffsets", offsets},
                                       {"InputWindowSizes", sizes},
                                       {"InputWindowStrides", strides}}));
  };
  EXPECT_EQ(slice({3}, {2}, {7}, {-3}), "");
  EXPECT_EQ(slice({3}, {2}, {7}, {0}), "SLICE1: InputWindowStrides[0] is 0 but must be another number");
  EXPECT_EQ(slice({3}, {2}, {0}, {1}), "SLICE1: InputWindowSizes[0] is 0 but must be at least 1");
  EXPECT_EQ(slice({3}, {3}, {7}, {1}),
            "SLICE1: InputWindowOffsets[0] is 3 and InputWindowSizes[0] is 7 but InputTensor.Sizes[0] is 9; "
            "the window must be inside");
  EXPECT_EQ(slice({4}, {2}, {7}, {-3}),
            "SLICE1: OutputTensor.Sizes[0] is 4 but must be in [1, 3]: the window has 7 elements and its "
            "stride is -3");
  EXPECT_EQ(Message(MakeDesc("SLICE_GRAD", {{"InputGradientTensor", Floats({3})},
                                            {"OutputGradientTensor", Floats({4})},
                                            {"DimensionCount", 1u},
                                            {"InputWindowOffsets", Sizes{0}},
                                            {"InputWindowSizes", Sizes{4}},
                                            {"InputWindowStrides", std::vector<int32_t>{2}}})),
            "SLICE_GRAD: InputGradientTensor.Sizes[0] is 3 but must be in [1, 2]: the window has 4 elements "
            "and its stride is 2");
}

TEST(MoveCheck, SplitAndJoin) {
  const auto split = [](const std::vector<TensorDesc>& outputs, uint32_t axis) {
    return Message(MakeDesc("SPLIT", {{"InputTensor", Floats({2, 5})},
                                      {"OutputCount", static_cast<uint32_t>(outputs.size())},
                                      {"OutputTensors", outputs},
                                      {"Axis", axis}}));
  };
  EXPECT_EQ(split({Floats({2, 3}), Floats({2, 2})}, 1), "");
  EXPECT_EQ(split({Floats({2, 3}), Floats({2, 2})}, 2),
            "SPLIT: Axis is 2 but InputTensor.DimensionCount is 2; Axis must be in [0, 1]");
  EXPECT_EQ(
      split({Floats({2, 3}), Floats({2, 1})}, 1),
      "SPLIT: the Sizes[Axis=1] of OutputTensors add up to 4 but must add up to 5, that of InputTensor");
  EXPECT_EQ(
      split({Floats({2, 3}), Floats({1, 2})}, 1),
      "SPLIT: OutputTensors[1].Sizes[0] is 1 but must be 2, that of InputTensor: only Sizes[Axis=1] may "
      "differ");
  EXPECT_EQ(Message(MakeDesc("JOIN", {{"InputCount", 1u},
                                      {"InputTensors", std::vector<TensorDesc>{Floats({2, 3})}},
                                      {"OutputTensor", Floats({2, 4})},
                                      {"Axis", 1u}})),
            "JOIN: the Sizes[Axis=1] of InputTensors add up to 3 but must add up to 4, that of OutputTensor");
}

TEST(MoveCheck, TileAndPadding) {
  const auto tile = [](const Sizes& output, const Sizes& repeats) {
    return Message(MakeDesc("TILE", {{"InputTensor", Floats({2, 3})},
                                     {"OutputTensor", Floats(output)},
                                     {"RepeatsCount", static_cast<uint32_t>(repeats.size())},
                                     {"Repeats", repeats}}));
  };
  EXPECT_EQ(tile({4, 3}, {2, 1}), "");
  EXPECT_EQ(tile({4, 3}, {2}), "TILE: RepeatsCount is 1 but must be 2, the dimension count of the tensors");
  EXPECT_EQ(tile({4, 3}, {2, 0}), "TILE: Repeats[1] is 0 but must be at least 1");
  EXPECT_EQ(tile({4, 4}, {2, 1}),
            "TILE: OutputTensor.Sizes[1] is 4 but must be 3: InputTensor.Sizes[1] times Repeats[1]");
  EXPECT_EQ(Message(MakeDesc("PADDING", {{"InputTensor", Floats({3})},
                                         {"OutputTensor", Floats({5})},
                                         {"PaddingMode", 0u},
                                         {"PaddingValue", 0.0f},
                                         {"DimensionCount", 1u},
                                         {"StartPadding", Sizes{0xFFFFFFFFu}},
                                         {"EndPadding", Sizes{3}}})),
            "PADDING: OutputTensor.Sizes[0] is 5 but must be 4294967301: InputTensor.Sizes[0], "
            "StartPadding[0] and EndPadding[0] together");
}

TEST(MoveCheck, DepthAndSpace) {
  const auto blocks = [](const char* name, const Sizes& input, const Sizes& output, uint32_t block) {
    return Message(MakeDesc(
        name, {{"InputTensor", Floats(input)}, {"OutputTensor", Floats(output)}, {"BlockSize", block}}));
  };
  EXPECT_EQ(blocks("DEPTH_TO_SPACE", {1, 8, 2, 3}, {1, 2, 4, 6}, 2), "");
  EXPECT_EQ(blocks("SPACE_TO_DEPTH", {1, 2, 4, 6}, {1, 8, 2, 3}, 2), "");
  EXPECT_EQ(blocks("DEPTH_TO_SPACE", {1, 8, 2, 3}, {1, 2, 4, 6}, 0),
            "DEPTH_TO_SPACE: BlockSize is 0 but must be at least 1");
  EXPECT_EQ(blocks("DEPTH_TO_SPACE", {1, 6, 2, 3}, {1, 2, 4, 6}, 2),
            "DEPTH_TO_SPACE: InputTensor.Sizes[1] is 6 but must be a multiple of 4, the square of BlockSize");
  EXPECT_EQ(blocks("SPACE_TO_DEPTH", {1, 2, 4, 5}, {1, 8, 2, 3}, 2),
            "SPACE_TO_DEPTH: InputTensor.Sizes[3] is 5 but must be a multiple of 2, BlockSize");
  EXPECT_EQ(blocks("SPACE_TO_DEPTH", {1, 8, 4, 6}, {1, 2, 8, 12}, 2),
            "SPACE_TO_DEPTH: OutputTensor.Sizes is {1,2,8,12} but must be {1,32,2,3}: blocks of pixels are "
            "channels");
}

TEST(MoveCheck, LengthsAndChannels) {
  EXPECT_EQ(
      Message(MakeDesc("REVERSE_SUBSEQUENCES", {{"InputTensor", Floats({2, 3})},
                                                {"SequenceLengthsTensor", Packed(DataType::kUInt32, {2, 3})},
                                                {"OutputTensor", Floats({2, 3})},
                                                {"Axis", 1u}})),
      "REVERSE_SUBSEQUENCES: SequenceLengthsTensor.Sizes is {2,3} but must be {2,1}: there is one "
      "length for each sequence along Axis");
  const auto scale = [](uint32_t channels, const std::vector<float>& bias) {
    return Message(MakeDesc("VALUE_SCALE_2D", {{"InputTensor", Floats({1, channels, 2, 2})},
                                               {"OutputTensor", Floats({1, channels, 2, 2})},
                                               {"Scale", 1.0f},
                                               {"ChannelCount", static_cast<uint32_t>(bias.size())},
                                               {"Bias", bias}}));
  };
  EXPECT_EQ(scale(1, {1}), "");
  EXPECT_EQ(scale(2, {1, 2}), "VALUE_SCALE_2D: ChannelCount is 2 but must be 1 or 3");
  EXPECT_EQ(scale(2, {1, 2, 3}),
            "VALUE_SCALE_2D: ChannelCount is 3 but must be 2, that of InputTensor.Sizes[1]");
}

// The error of infer, or the sizes that it derives.
std::string Inferred(OperatorDesc desc, const char* output = "OutputTensor") {
  const Status status = ImplementationOf(desc).infer(&desc);
  return status.ok() ? SizesToString(*desc.tensor(output)) : status.message();
}

TEST(MoveInfer, WindowsWithoutElements) {
  const auto slice = [](const Sizes& sizes) {
    return Inferred(MakeDesc("SLICE", {{"InputTensor", Floats({4, 5})},
                                       {"DimensionCount", 2u},
                                       {"Offsets", Sizes{0, 0}},
                                       {"Sizes", sizes},
                                       {"Strides", Sizes{1, 1}}}));
  };
  EXPECT_EQ(slice({2, 3}), "{2,3}");
  EXPECT_EQ(slice({2, 0}), "SLICE: Sizes[1] is 0 but must be at least 1");
  const auto window = [](const Sizes& sizes, const std::vector<int32_t>& strides) {
    return Inferred(MakeDesc("SLICE1", {{"InputTensor", Floats({9})},
                                        {"DimensionCount", 1u},
                                        {"InputWindowOffsets", Sizes{0}},
                                        {"InputWindowSizes", sizes},
                                        {"InputWindowStrides", strides}}));
  };
  EXPECT_EQ(window({7}, {-3}), "{3}");
  EXPECT_EQ(window({7}, {0}), "SLICE1: InputWindowStrides[0] is 0 but must be another number");
  EXPECT_EQ(window({0}, {1}), "SLICE1: InputWindowSizes[0] is 0 but must be at least 1");
  const auto gradient = [](uint32_t offset, uint32_t size) {
    return Inferred(MakeDesc("SLICE_GRAD", {{"InputGradientTensor", Floats({3})},
                                            {"DimensionCount", 1u},
                                            {"InputWindowOffsets", Sizes{offset}},
                                            {"InputWindowSizes", Sizes{size}},
                                            {"InputWindowStrides", std::vector<int32_t>{1}}}),
                    "OutputGradientTensor");
  };
  EXPECT_EQ(gradient(2, 3), "{5}");
  EXPECT_EQ(gradient(2, 0), "SLICE_GRAD: InputWindowSizes[0] is 0 but must be at least 1");
  EXPECT_EQ(gradient(0xFFFFFFFFu, 3),
            "SLICE_GRAD: the sum of InputWindowOffsets[0] and InputWindowSizes[0] is 4294967298 but must be "
            "below 2^32");
}

TEST(MoveInfer, SizesThatDoNotFit) {
  const auto tile = [](uint32_t repeats) {
    return Inferred(MakeDesc(
        "TILE", {{"InputTensor", Floats({1, 2})}, {"RepeatsCount", 2u}, {"Repeats", Sizes{1, repeats}}}));
  };
  EXPECT_EQ(tile(0x7FFFFFFFu), "{1,4294967294}");
  EXPECT_EQ(tile(0), "TILE: Repeats[1] is 0 but must be at least 1");
  EXPECT_EQ(tile(0x80000000u),
            "TILE: InputTensor.Sizes[1] times Repeats[1] is 4294967296 but must be below 2^32");
  for (const char* name : {"PADDING", "PADDING1"}) {
    const auto padding = [name](uint32_t start, uint32_t end) {
      return Inferred(MakeDesc(name, {{"InputTensor", Floats({2})},
                                      {"DimensionCount", 1u},
                                      {"StartPadding", Sizes{start}},
                                      {"EndPadding", Sizes{end}}}));
    };
    EXPECT_EQ(padding(0xFFFFFFFCu, 1), "{4294967295}");
    EXPECT_EQ(padding(0xFFFFFFFEu, 0),
              std::string(name) +
                  ": the sum of InputTensor.Sizes[0], StartPadding[0] and EndPadding[0] is "
                  "4294967296 but must be below 2^32");
  }
  const auto join = [](const std::vector<TensorDesc>& inputs) {
    return Inferred(MakeDesc(
        "JOIN",
        {{"InputCount", static_cast<uint32_t>(inputs.size())}, {"InputTensors", inputs}, {"Axis", 1u}}));
  };
  EXPECT_EQ(join({Floats({1, 0x80000000u}), Floats({1, 2})}), "{1,2147483650}");
  EXPECT_EQ(join({Floats({1, 0x80000000u}), Floats({1, 0x80000000u})}),
            "JOIN: the sum of Sizes[Axis=1] of InputTensors is 4294967296 but must be below 2^32");
}

// The check must reject it, too: sizes truncated to 32 bits would match by chance.
TEST(MoveInfer, BlocksThatDoNotFit) {
  const auto refused = [](const char* name, const Sizes& input, uint32_t block, const Sizes& cut) {
    OperatorDesc desc = MakeDesc(name, {{"InputTensor", Floats(input)}, {"BlockSize", block}});
    const std::string sentence = Inferred(desc);
    desc.fields[static_cast<size_t>(FindField(*desc.schema, "OutputTensor"))] = Floats(cut);
    EXPECT_EQ(Message(desc), sentence);
    return sentence;
  };
  EXPECT_EQ(refused("DEPTH_TO_SPACE", {1, 4, 0x80000001u, 1}, 2, {1, 1, 2, 2}),
            "DEPTH_TO_SPACE: InputTensor.Sizes[2] times BlockSize is 4294967298 but must be below 2^32");
  EXPECT_EQ(refused("SPACE_TO_DEPTH", {1, 0x40000001u, 2, 2}, 2, {1, 4, 1, 1}),
            "SPACE_TO_DEPTH: InputTensor.Sizes[1] times BlockSize or its square is 4294967300 but must be "
            "below 2^32");
}

}  // namespace
}  // namespace anydml::testing
