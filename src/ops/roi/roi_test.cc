// Regions of interest against results computed by hand and the page's example.
#include <gtest/gtest.h>

#include <limits>

#include "ops/roi/samples.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Floats = std::vector<float>;
using Sizes = std::vector<uint32_t>;

constexpr uint32_t kNearest = 0, kLinear = 1, kAverage = 2, kMax = 7;
constexpr uint32_t kMany = std::numeric_limits<uint32_t>::max();

struct Alignment {
  uint32_t function = kAverage;
  uint32_t mode = kLinear;
  float scale_x = 1, scale_y = 1;
  float input_offset = 0.5f, output_offset = -0.5f;
  float outside = 0;
  uint32_t min_samples = 1, max_samples = 1;
  bool corners = false;
};

// One image with one channel.
struct Image {
  uint32_t height, width;
  Floats values;

  TensorDesc tensor() const { return Packed(DataType::kFloat32, {1, 1, height, width}); }
};

// x + 10 y
Image Plane(uint32_t height, uint32_t width) {
  Image image = {height, width, {}};
  for (uint32_t y = 0; y < height; ++y) {
    for (uint32_t x = 0; x < width; ++x) image.values.push_back(static_cast<float>(x + 10 * y));
  }
  return image;
}

OperatorDesc AlignDesc(const TensorDesc& image, const TensorDesc& roi, const TensorDesc& indices,
                       const TensorDesc& output, const Alignment& a) {
  return MakeDesc("ROI_ALIGN1", {{"InputTensor", image},
                                 {"ROITensor", roi},
                                 {"BatchIndicesTensor", indices},
                                 {"OutputTensor", output},
                                 {"ReductionFunction", a.function},
                                 {"InterpolationMode", a.mode},
                                 {"SpatialScaleX", a.scale_x},
                                 {"SpatialScaleY", a.scale_y},
                                 {"InputPixelOffset", a.input_offset},
                                 {"OutputPixelOffset", a.output_offset},
                                 {"OutOfBoundsInputValue", a.outside},
                                 {"MinimumSamplesPerOutput", a.min_samples},
                                 {"MaximumSamplesPerOutput", a.max_samples},
                                 {"AlignRegionsToCorners", a.corners ? 1u : 0u}});
}

Floats Align(const Image& image, const Floats& regions, Size2D grid, const Alignment& a,
             const char* implementation = nullptr) {
  const auto count = static_cast<uint32_t>(regions.size() / 4);
  const TensorDesc roi = Packed(DataType::kFloat32, {count, 4}), indices = Packed(DataType::kUInt32, {count});
  const TensorDesc output = Packed(DataType::kFloat32, {count, 1, grid.height, grid.width});
  const OperatorDesc desc = AlignDesc(image.tensor(), roi, indices, output, a);
  const std::vector<Bytes> inputs = {Scattered(image.tensor(), image.values), Scattered(roi, regions),
                                     Scattered(indices, std::vector<uint32_t>(count, 0))};
  const RunResult result = implementation == nullptr
                               ? ExpectAllAgree(desc, inputs)
                               : RunOperator(desc, inputs, {.implementation = implementation});
  return Gathered<float>(output, result.outputs[0]);
}

struct Gradients {
  Floats image, roi;
};

OperatorDesc GradientDesc(const TensorDesc* image, const TensorDesc& grid, const TensorDesc& roi,
                          const TensorDesc* image_gradient, const TensorDesc* roi_gradient,
                          const Alignment& a) {
  const auto optional = [](const TensorDesc* tensor) {
    return tensor == nullptr ? FieldValue() : FieldValue(*tensor);
  };
  return MakeDesc("ROI_ALIGN_GRAD", {{"InputTensor", optional(image)},
                                     {"InputGradientTensor", grid},
                                     {"ROITensor", roi},
                                     {"BatchIndicesTensor", Packed(DataType::kUInt32, {roi.sizes[0]})},
                                     {"OutputGradientTensor", optional(image_gradient)},
                                     {"OutputROIGradientTensor", optional(roi_gradient)},
                                     {"ReductionFunction", a.function},
                                     {"InterpolationMode", a.mode},
                                     {"SpatialScaleX", a.scale_x},
                                     {"SpatialScaleY", a.scale_y},
                                     {"InputPixelOffset", a.input_offset},
                                     {"OutputPixelOffset", a.output_offset},
                                     {"MinimumSamplesPerOutput", a.min_samples},
                                     {"MaximumSamplesPerOutput", a.max_samples},
                                     {"AlignRegionsToCorners", a.corners ? 1u : 0u}});
}

Gradients Gradient(const Image& image, const Floats& regions, Size2D grid, const Floats& values,
                   const Alignment& a) {
  const auto count = static_cast<uint32_t>(regions.size() / 4);
  const TensorDesc roi = Packed(DataType::kFloat32, {count, 4}), indices = Packed(DataType::kUInt32, {count});
  const TensorDesc given = Packed(DataType::kFloat32, {count, 1, grid.height, grid.width});
  const TensorDesc input = image.tensor();
  const RunResult result =
      ExpectAllAgree(GradientDesc(&input, given, roi, &input, &roi, a),
                     {Scattered(input, image.values), Scattered(given, values), Scattered(roi, regions),
                      Scattered(indices, std::vector<uint32_t>(count, 0))});
  return {Gathered<float>(input, result.outputs[0]), Gathered<float>(roi, result.outputs[1])};
}

OperatorDesc PoolingDesc(const TensorDesc& image, const TensorDesc& roi, const TensorDesc& output,
                         float scale, Size2D size) {
  return MakeDesc("ROI_POOLING", {{"InputTensor", image},
                                  {"ROITensor", roi},
                                  {"OutputTensor", output},
                                  {"SpatialScale", scale},
                                  {"PooledSize", size}});
}

Floats Pool(const Image& image, const Floats& regions, Size2D grid, float scale = 1) {
  const auto count = static_cast<uint32_t>(regions.size() / 5);
  const TensorDesc roi = Packed(DataType::kFloat32, {1, 1, count, 5});
  const TensorDesc output = Packed(DataType::kFloat32, {count, 1, grid.height, grid.width});
  const RunResult result = ExpectAllAgree(PoolingDesc(image.tensor(), roi, output, scale, grid),
                                          {Scattered(image.tensor(), image.values), Scattered(roi, regions)});
  return Gathered<float>(output, result.outputs[0]);
}

TEST(RoiPooling, MaximaOfBoxes) {
  const Image image = Plane(4, 4);
  EXPECT_EQ(Pool(image, {0, 0, 0, 3, 3}, {2, 2}), (Floats{11, 13, 31, 33}));
  // Three columns for two numbers: [0, 2) and [1, 3).
  EXPECT_EQ(Pool(image, {0, 0, 0, 2, 0}, {2, 1}), (Floats{1, 2}));
  EXPECT_EQ(Pool(image, {0, 0, 0, 6, 6}, {2, 1}, 0.5f), (Floats{31, 33}));
}

TEST(RoiPooling, CoordinatesRoundHalvesAway) {
  EXPECT_EQ(Pool(Plane(4, 4), {0, 0.5f, 0.5f, 2.4f, 2.4f}, {1, 1}), (Floats{22}));
  EXPECT_EQ(Pool(Plane(4, 4), {0, -0.5f, 0, -0.5f, 0}, {1, 1}), (Floats{0}));  // column -1: nothing
}

TEST(RoiPooling, NothingIsZeroAndImagesAreClamped) {
  Image image = Plane(2, 2);
  for (float& value : image.values) value -= 100;
  EXPECT_EQ(Pool(image, {0, 10, 10, 12, 12}, {1, 1}), (Floats{0}));
  EXPECT_EQ(Pool(image, {7, 0, 0, 1, 1}, {1, 1}), (Floats{-89}));
  // A region that ends before it begins has one element.
  EXPECT_EQ(Pool(image, {0, 1, 1, 0, 0}, {1, 1}), (Floats{-89}));
}

TEST(RoiAlign, SamplesOfAPlane) {
  const Image image = Plane(5, 5);
  EXPECT_EQ(Align(image, {1, 1, 3, 3}, {2, 2}, {}), (Floats{11, 12, 21, 22}));
  // As many samples as the region has pixels: positions 0.75 and 1.25, and so on.
  EXPECT_EQ(Align(image, {1, 1, 3, 3}, {1, 1}, {.max_samples = kMany}), (Floats{16.5f}));
  EXPECT_EQ(Align(image, {1, 1, 3, 3}, {1, 1}, {.function = kMax, .max_samples = kMany}), (Floats{22}));
  EXPECT_EQ(Align(image, {1, 1, 3, 3}, {2, 2}, {.function = kMax, .min_samples = 2, .max_samples = 2}),
            (Floats{13.75f, 14.75f, 23.75f, 24.75f}));
  EXPECT_EQ(Align(image, {2, 2, 6, 6}, {1, 1}, {.scale_x = 0.5f, .scale_y = 0.25f}), (Floats{16.5f - 10}));
}

TEST(RoiAlign, EmptyAndInvertedRegions) {
  EXPECT_EQ(Align(Plane(5, 5), {2, 2, 2, 2}, {2, 1}, {}), (Floats{16.5f, 16.5f}));
  EXPECT_EQ(Align(Plane(5, 5), {3, 1, 1, 3}, {2, 2}, {}), (Floats{12, 11, 22, 21}));
}

TEST(RoiAlign, OutsideBeginsOnePixelAway) {
  const Image image = Plane(4, 4);
  const Alignment a = {.input_offset = 0, .output_offset = 0, .outside = -7};
  const auto at = [&](float x) { return Align(image, {x, 1, x, 1}, {1, 1}, a)[0]; };
  EXPECT_EQ(at(-0.9375f), 10);
  EXPECT_EQ(at(-1), -7);
  EXPECT_EQ(at(3.9375f), 13);
  EXPECT_EQ(at(4), -7);
  // Two of four samples are outside.
  EXPECT_EQ(Align(image, {-4, 0, 4, 2}, {1, 1}, {.outside = -7, .min_samples = 2, .max_samples = 2})[0],
            (1.5f + 11.5f - 14) / 4);
}

TEST(RoiAlign, Nearest) {
  const Alignment a = {.mode = kNearest, .input_offset = 0, .output_offset = 0};
  EXPECT_EQ(Align(Plane(4, 4), {1.5f, 0, 2.5f, 0}, {2, 1}, a), (Floats{2, 2}));
  EXPECT_EQ(Align(Plane(4, 4), {1.25f, 2.75f, 1.25f, 2.75f}, {1, 1}, a), (Floats{31}));
}

// Equals TensorFlow's CropAndResize.
TEST(RoiAlign, Corners) {
  const Alignment a = {.scale_x = 3, .scale_y = 3, .input_offset = 0, .output_offset = 0, .corners = true};
  EXPECT_EQ(Align(Plane(4, 4), {0, 0, 1, 1}, {2, 2}, a), (Floats{0, 3, 30, 33}));
  EXPECT_EQ(Align(Plane(4, 4), {0, 0, 1, 1}, {1, 1}, a), (Floats{16.5f}));
}

// A single FLOAT32 sum over all samples would be 1 % off.
TEST(RoiAlign, MeansOfManySamplesKeepTheirDigits) {
  const Image image = {2, 2, Floats(4, 0.1f)};
  for (const uint32_t mode : {kNearest, kLinear}) {
    const Alignment a = {.mode = mode, .min_samples = 1024, .max_samples = 1024};
    EXPECT_NEAR(Align(image, {0.5f, 0.5f, 1.5f, 1.5f}, {1, 1}, a)[0], 0.1, 1e-5);
  }
}

TEST(RoiAlign, RegionsBeyondAllMeasure) {
  const float value = Align(Plane(4, 4), {0, 0, 1e30f, 1e30f}, {1, 1}, {.outside = 2, .max_samples = kMany},
                            "cpu.samples")[0];
  EXPECT_EQ(value, 2);
}

// With ties rounded down instead of up.
TEST(RoiAlignGrad, PagesExample) {
  const Image image = {4, 4, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
  const Floats regions = {0, 0, 2, 2, 2, 0, 4, 2, 0, 2, 2, 4, 2, 2, 4, 4};
  const Alignment a = {.mode = kNearest, .input_offset = 0.625f};
  EXPECT_EQ(Align(image, regions, {3, 1}, a), (Floats{1, 1, 2, 3, 3, 4, 9, 9, 10, 11, 11, 12}));
  const Gradients gradients = Gradient(image, regions, {3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, a);
  EXPECT_EQ(gradients.image, (Floats{3, 3, 9, 6, 0, 0, 0, 0, 15, 9, 21, 12, 0, 0, 0, 0}));
  EXPECT_EQ(gradients.roi, Floats(16, 0));
}

TEST(RoiAlignGrad, LinearSpreadsOverNeighbours) {
  const Gradients gradients = Gradient(Plane(3, 3), {0.75f, 1, 1.75f, 2}, {1, 1}, {8}, {});
  // Its sample is at x = 0.75, y = 1.
  EXPECT_EQ(gradients.image, (Floats{0, 0, 0, 2, 6, 0, 0, 0, 0}));
  // Along y both neighbours are the same element.
  EXPECT_EQ(gradients.roi, (Floats{4, 0, 4, 0}));
}

TEST(RoiAlignGrad, RegionsOfAPlane) {
  // Positions 1.25 and 2.25, with fractions of a quarter; the slopes are 1 and 10.
  const Gradients gradients = Gradient(Plane(5, 5), {1.25f, 1.25f, 3.25f, 3.25f}, {2, 2}, {1, 1, 1, 1}, {});
  EXPECT_EQ(gradients.roi, (Floats{2, 20, 2, 20}));
  const Gradients right =
      Gradient(Plane(5, 5), {1.25f, 1.25f, 3.25f, 3.25f}, {2, 2}, {0, 4, 0, 0}, {.scale_x = 1, .scale_y = 1});
  EXPECT_EQ(right.roi, (Floats{1, 30, 3, 10}));
}

TEST(RoiAlignGrad, MaximumGoesToOneSample) {
  const Alignment a = {.function = kMax, .min_samples = 2, .max_samples = 2};
  // Samples at 0.75 and 1.25: the last is the largest; among equal samples the first wins.
  const Gradients last = Gradient(Plane(3, 3), {0.5f, 0.5f, 2.5f, 2.5f}, {1, 1}, {16}, a);
  EXPECT_EQ(last.image, (Floats{0, 0, 0, 0, 4, 4, 0, 4, 4}));
  const Gradients first = Gradient({3, 3, Floats(9, 5)}, {0.5f, 0.5f, 2.5f, 2.5f}, {1, 1}, {16}, a);
  EXPECT_EQ(first.image, (Floats{4, 4, 0, 4, 4, 0, 0, 0, 0}));
}

// Devices search for the samples to which an element of the image contributes.
TEST(RoiSamples, AreFoundFromTheirElements) {
  std::mt19937_64 random(TestSeed());
  const auto any = [&](int low, int high) {
    return static_cast<float>(static_cast<int>(random() % static_cast<unsigned>(4 * (high - low))) +
                              4 * low) /
           4;
  };
  for (int i = 0; i < TestIterations(400); ++i) {
    RoiProblem p;
    p.linear = random() % 3 != 0;
    p.corners = random() % 2 == 0;
    p.input_offset = any(0, 1);
    p.output_offset = any(-1, 0);
    p.min_samples = Uniform(random, 1, 3);
    p.max_samples = p.min_samples + Uniform(random, 0, 3);
    const RegionAxis axis =
        RegionAxisOf(p, any(-4, 12), any(-4, 12), 1, Uniform(random, 1, 5), Uniform(random, 1, 9));
    const uint64_t all = uint64_t{axis.outputs} * axis.samples;
    for (uint32_t index = 0; index < axis.size; ++index) {
      const SampleRange range = SamplesThatTake(axis, index);
      for (uint64_t k = 0; k < all; ++k) {
        const float x = SamplePlace(axis, k);
        const Taps taps = SampleTaps(axis, x);
        const bool inside = x > -1 && x < static_cast<float>(axis.size);
        const bool takes = inside && index >= taps.first && index < taps.first + taps.count;
        EXPECT_EQ(k >= range.first && k < range.end, takes) << k << " at " << x << ", " << index;
      }
    }
  }
}

std::string Message(const OperatorDesc& desc) {
  return ImplementationOf(desc).check(desc, kLatestFeatureLevel).message();
}

TEST(RoiCheck, Pooling) {
  const auto message = [](const Sizes& roi, const Sizes& output, Size2D size) {
    return Message(PoolingDesc(Packed(DataType::kFloat32, {2, 3, 8, 8}), Packed(DataType::kFloat32, roi),
                               Packed(DataType::kFloat32, output), 1, size));
  };
  EXPECT_EQ(message({1, 1, 4, 5}, {4, 3, 2, 6}, {6, 2}), "");
  EXPECT_EQ(message({1, 1, 4, 5}, {4, 3, 2, 6}, {2, 6}), "");  // as ONNX Runtime sends it
  EXPECT_EQ(message({1, 1, 4, 5}, {4, 3, 2, 6}, {6, 3}),
            "ROI_POOLING: PooledSize is {Width 6, Height 3} but must be {Width 6, Height 2}, the last "
            "dimensions of "
            "OutputTensor");
  EXPECT_EQ(message({1, 1, 4, 4}, {4, 3, 2, 6}, {6, 2}),
            "ROI_POOLING: ROITensor.Sizes is {1,1,4,4} but must be {NumROIs,5}, with 1s before it");
  EXPECT_EQ(
      message({1, 1, 4, 5}, {3, 3, 2, 6}, {6, 2}),
      "ROI_POOLING: OutputTensor.Sizes is {3,3,2,6} but must be {4,3,2,6}: there are so many regions, and "
      "channels in the image");
}

TEST(RoiCheck, Alignment) {
  const auto message = [](const Sizes& roi, const Sizes& indices, const Alignment& a) {
    return Message(AlignDesc(Packed(DataType::kFloat32, {2, 3, 8, 8}), Packed(DataType::kFloat32, roi),
                             Packed(DataType::kUInt32, indices), Packed(DataType::kFloat32, {4, 3, 2, 2}),
                             a));
  };
  EXPECT_EQ(message({4, 4}, {4}, {}), "");
  EXPECT_EQ(message({1, 4, 4}, {1, 1, 1, 4}, {.min_samples = 0, .max_samples = 0}), "");
  EXPECT_EQ(message({2, 4, 4}, {4}, {}),
            "ROI_ALIGN1: ROITensor.Sizes is {2,4,4} but must be {NumROIs,4}, with 1s before it");
  EXPECT_EQ(message({4, 4}, {5}, {}),
            "ROI_ALIGN1: BatchIndicesTensor.Sizes is {5} but must be {4}: every region has an image");
  EXPECT_EQ(
      message({4, 4}, {4}, {.min_samples = 3, .max_samples = 2}),
      "ROI_ALIGN1: MinimumSamplesPerOutput is 3 but MaximumSamplesPerOutput is 2; it must not be larger");
  EXPECT_EQ(message({4, 4}, {4}, {.function = 10}),
            "ROI_ALIGN1: ReductionFunction is 10 but must be AVERAGE (2) or MAX (7)");
}

TEST(RoiCheck, Gradient) {
  const TensorDesc image = Packed(DataType::kFloat32, {2, 3, 8, 8}), roi = Packed(DataType::kFloat32, {4, 4});
  const TensorDesc grid = Packed(DataType::kFloat32, {4, 3, 2, 2});
  EXPECT_EQ(Message(GradientDesc(nullptr, grid, roi, &image, nullptr, {})), "");
  EXPECT_EQ(
      Message(GradientDesc(&image, grid, roi, nullptr, nullptr, {})),
      "ROI_ALIGN_GRAD: OutputGradientTensor and OutputROIGradientTensor are null; one of them must be there");
  EXPECT_EQ(Message(GradientDesc(nullptr, grid, roi, &image, nullptr, {.function = kMax})),
            "ROI_ALIGN_GRAD: InputTensor is null but must be there when ReductionFunction is MAX");
  EXPECT_EQ(Message(GradientDesc(nullptr, grid, roi, &image, &roi, {})),
            "ROI_ALIGN_GRAD: InputTensor is null but must be there when OutputROIGradientTensor is");
  const TensorDesc other = Packed(DataType::kFloat32, {2, 3, 8, 9});
  EXPECT_EQ(
      Message(GradientDesc(&image, grid, roi, &other, nullptr, {})),
      "ROI_ALIGN_GRAD: OutputGradientTensor.Sizes is {2,3,8,9} but must be {2,3,8,8}: it is the gradient of "
      "InputTensor");
}

}  // namespace
}  // namespace anydml::testing
