#include "ops/convolution/taste.h"

namespace anydml {
namespace {

constexpr uint32_t kChannel = 1;  // the dimension
constexpr uint32_t kFewChannels = 4;

// Convolutions of whole units of channels, which are copied as they are.
LayoutTaste TasteOfGpu(const ConvolutionDesc& convolution, uint32_t channels) {
  constexpr uint32_t kUnitBytes = 16;
  if (channels <= kFewChannels) {
    return convolution.group_count > 1 ? LayoutTaste::kAgreement : LayoutTaste::kAny;
  }
  const uint32_t width = BitSize(convolution.input.type) / 8;
  return channels * width % kUnitBytes == 0 ? LayoutTaste::kChannels : LayoutTaste::kAny;
}

// Wide vectors of channels: an element of the input meets vectors of filters where it lies, which rows of an
// image, too short for such vectors, have to be packed for. Vectors of 4 fill with either.
LayoutTaste TasteOfCpu(const ConvolutionDesc& convolution, uint32_t channels, uint32_t lanes) {
  constexpr uint32_t kWide = 8;
  const uint32_t groups = convolution.group_count;
  const uint32_t outputs = convolution.output.sizes[kChannel] / groups;
  if (lanes < kWide) return LayoutTaste::kAsGiven;
  if (groups > 1) {
    const bool depthwise = channels == 1 && outputs == 1 && groups >= lanes;
    return depthwise ? LayoutTaste::kChannelsOnly : LayoutTaste::kAny;
  }
  return channels <= kFewChannels || outputs < lanes ? LayoutTaste::kAny : LayoutTaste::kChannels;
}

}  // namespace

LayoutTaste TasteOfConvolution(const ConvolutionDesc& convolution, std::string_view backend, uint32_t lanes) {
  if (convolution.direction != ConvolutionDirection::kForward) return LayoutTaste::kAsGiven;
  const uint32_t channels = convolution.input.sizes[kChannel] / convolution.group_count;
  return backend == "cpu" ? TasteOfCpu(convolution, channels, lanes) : TasteOfGpu(convolution, channels);
}

}  // namespace anydml
