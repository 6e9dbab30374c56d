// Invalid convolutions and their error messages.
#include <gtest/gtest.h>

#include "ops/convolution/convolution_test_support.h"

namespace anydml::testing {
namespace {

constexpr uint32_t kMost = 0xFFFFFFFF;

std::string Refusal(const OperatorDesc& desc) {
  return ImplementationOf(desc).check(desc, kLatestFeatureLevel).message();
}

std::string Refusal(const Sizes& input, const Sizes& filter, const Sizes& output,
                    const Attributes& attributes = {}) {
  return Refusal(Convolution(input, filter, output, attributes));
}

TEST(ConvolutionCheck, Channels) {
  EXPECT_EQ(Refusal({2, 4, 5}, {6, 2, 3}, {2, 6, 3}, {.groups = 2}), "");
  EXPECT_EQ(Refusal({2, 4, 5}, {6, 2, 3}, {2, 6, 3}, {.groups = 0}),
            "CONVOLUTION: GroupCount is 0 but must be at least 1");
  EXPECT_EQ(Refusal({2, 4, 5}, {6, 2, 3}, {2, 6, 3}, {.groups = 3}),
            "CONVOLUTION: InputTensor.Sizes[1] is 4 but must be a multiple of GroupCount, which is 3");
  EXPECT_EQ(Refusal({2, 4, 5}, {7, 2, 3}, {2, 7, 3}, {.groups = 2}),
            "CONVOLUTION: OutputTensor.Sizes[1] is 7 but must be a multiple of GroupCount, which is 2");
  EXPECT_EQ(Refusal({2, 4, 5}, {6, 4, 3}, {2, 6, 3}, {.groups = 2}),
            "CONVOLUTION: FilterTensor.Sizes[1] is 4 but must be 2, the input channels of a group");
  EXPECT_EQ(Refusal({2, 4, 5}, {5, 4, 3}, {2, 6, 3}),
            "CONVOLUTION: FilterTensor.Sizes[0] is 5 but must be 6, the output channels");
  EXPECT_EQ(Refusal({2, 4, 5}, {6, 3, 3}, {2, 6, 7}, {.backward = true, .groups = 2}),
            "CONVOLUTION: FilterTensor.Sizes[0] is 6 but must be 4, the input channels");
  EXPECT_EQ(Refusal({2, 4, 5}, {6, 4, 3}, {3, 6, 3}),
            "CONVOLUTION: OutputTensor.Sizes[0] is 3 but must be 2, that of InputTensor.Sizes[0]");
}

TEST(ConvolutionCheck, Windows) {
  EXPECT_EQ(Refusal({1, 1, 5}, {1, 1, 3}, {1, 1, 2}), "");
  EXPECT_EQ(Refusal({1, 1, 5}, {1, 1, 3}, {1, 1, 4}),
            "CONVOLUTION: OutputTensor.Sizes[2] is 4 but must be at most 3, the number of windows");
  EXPECT_EQ(Refusal({1, 1, 5}, {1, 1, 3}, {1, 1, 1}, {.dilation = 4, .padding = 1}),
            "CONVOLUTION: FilterTensor.Sizes[2] is 3 with Dilations[0] = 4, which does not fit into "
            "InputTensor.Sizes[2] = 5 with its padding (1 and 1)");
  EXPECT_EQ(Refusal({1, 1, 5}, {1, 1, 3}, {1, 1, 1}, {.stride = 0}),
            "CONVOLUTION: Strides[0] is 0 but must be at least 1");
  EXPECT_EQ(Refusal({1, 1, 5}, {1, 1, 3}, {1, 1, 1}, {.dilation = 0}),
            "CONVOLUTION: Dilations[0] is 0 but must be at least 1");
  // Outputs of backward convolutions may be larger than the formula says.
  EXPECT_EQ(Refusal({1, 1, 5}, {1, 1, 3}, {1, 1, 9}, {.backward = true}), "");
  EXPECT_EQ(
      Refusal({1, 1, 5}, {1, 1, 3}, {1, 1, 9}, {.backward = true, .stride = 2, .padding = 6}),
      "CONVOLUTION: StartPadding[0] and EndPadding[0] are 6 and 6 but together must be less than 11, what "
      "InputTensor.Sizes[2] = 5 makes without them");
  // Or they may exist only because of the output padding that their size implies.
  EXPECT_EQ(Refusal({1, 1, 1}, {1, 1, 2}, {1, 1, 1}, {.backward = true, .stride = 2, .padding = 1}), "");
  EXPECT_EQ(
      Refusal({1, 1, 1}, {1, 1, 2}, {1, 1, 2}, {.backward = true, .stride = 2, .padding = 1}),
      "CONVOLUTION: StartPadding[0] and EndPadding[0] are 1 and 1 but together must be less than 2, what "
      "InputTensor.Sizes[2] = 1 makes without them");
}

// Products and sums that exceed 32 bits.
TEST(ConvolutionCheck, SizesThatNeedAll64Bits) {
  EXPECT_EQ(
      Refusal({1, 1, 8}, {1, 1, kMost}, {1, 1, 8}, {.dilation = kMost}),
      "CONVOLUTION: FilterTensor.Sizes[2] is 4294967295 with Dilations[0] = 4294967295, which does not fit "
      "into InputTensor.Sizes[2] = 8 with its padding (0 and 0)");
  EXPECT_EQ(Refusal({1, 1, 8}, {1, 1, 3}, {1, 1, 8}, {.padding = kMost}), "");
  EXPECT_EQ(Refusal({1, 1, kMost}, {1, 1, 2}, {1, 1, 8}, {.backward = true, .stride = kMost}), "");
  EXPECT_EQ(Refusal({1, 1, kMost}, {1, 1, kMost}, {1, 1, 8},
                    {.backward = true, .stride = kMost, .dilation = kMost, .padding = kMost}),
            "");
}

}  // namespace
}  // namespace anydml::testing
