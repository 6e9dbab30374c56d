#include "ops/convolution/layout_preference.h"

#include "ops/convolution/cpu/pixel_tile.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

constexpr uint32_t kChannel = 1;  // the channels' dimension
constexpr uint32_t kFewChannels = 4;

// For convolutions of whole units of channels, which can be copied in place.
LayoutPreference PreferWholeUnits(const ConvolutionDesc& convolution, uint32_t channels,
                                  uint32_t unit_bytes) {
  if (channels <= kFewChannels) {
    return convolution.group_count > 1 ? LayoutPreference::kAgreement : LayoutPreference::kAny;
  }
  const uint32_t width = BitSize(convolution.input.type) / 8;
  return channels * width % unit_bytes == 0 ? LayoutPreference::kChannels : LayoutPreference::kAny;
}

// For wide vectors of channels: an input element is multiplied with vectors of filters in place, whereas rows
// of an image, too short for such vectors, would have to be packed. Vectors of 4 are filled either way.
LayoutPreference PreferWholeVectors(const ConvolutionDesc& convolution, uint32_t channels, uint32_t lanes) {
  constexpr uint32_t kWide = 8;
  const uint32_t groups = convolution.group_count;
  const uint32_t outputs = convolution.output.sizes[kChannel] / groups;
  if (lanes < kWide) return LayoutPreference::kAsGiven;
  if (groups > 1) {
    const bool depthwise = channels == 1 && outputs == 1 && groups >= lanes;
    return depthwise ? LayoutPreference::kChannelsOnly : LayoutPreference::kAny;
  }
  return channels <= kFewChannels || outputs < lanes ? LayoutPreference::kAny : LayoutPreference::kChannels;
}

}  // namespace

LayoutPreference LayoutOfConvolution(const OperatorDesc& desc, const DeviceTraits& device) {
  const auto convolution = ConvolutionDesc::From(desc);
  if (convolution.direction != ConvolutionDirection::kForward) return LayoutPreference::kAsGiven;
  const uint32_t channels = convolution.input.sizes[kChannel] / convolution.group_count;
  switch (device.convolution_channels) {
    case ConvolutionChannels::kAsGiven:
      return LayoutPreference::kAsGiven;
    case ConvolutionChannels::kFillUnits:
      return PreferWholeUnits(convolution, channels, device.unit_bytes);
    case ConvolutionChannels::kFillVectors:
      break;
  }
  const uint32_t lanes = device.vector_lanes != 0 ? device.vector_lanes : ConvolutionPixelTiles().lanes;
  return PreferWholeVectors(convolution, channels, lanes);
}

}  // namespace anydml
