// ROI_POOLING, the ROI_ALIGN operators and their gradient: every region of an image becomes a grid of
// numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ops/implementation_list.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

std::span<const Operator> RoiOperators();

enum class RoiKind : uint8_t { kPooling, kAlign, kAlignGradient };

// Plain data, since kernels of devices take it as it is. Strides are in elements.
struct RoiProblem {
  static constexpr std::string_view kFamily = "roi";

  RoiKind kind = RoiKind::kAlign;
  DataType type = DataType::kFloat32;       // FLOAT16 is computed in FLOAT32
  DataType index_type = DataType::kUInt32;  // of the regions' image indices; or UINT64
  bool maximum = false;                     // the maximum of the samples; otherwise their mean
  bool linear = true;                       // otherwise the nearest elements
  bool corners = false;                     // the first and the last sample are at the region's ends
  bool has_image_gradient = false;
  bool has_roi_gradient = false;
  float scale_x = 1, scale_y = 1;  // of the regions' coordinates
  float input_offset = 0, output_offset = 0;
  float outside = 0;                          // the value of samples outside the image
  uint32_t min_samples = 1, max_samples = 1;  // per number, in each direction

  uint32_t images = 1, channels = 1, height = 1, width = 1;
  uint32_t regions = 1, grid_height = 1, grid_width = 1;

  uint32_t image_strides[4] = {};  // image, channel, row, column
  uint32_t grid_strides[4] = {};   // region, channel, row, column; of the output, or of the incoming gradient
  uint32_t roi_strides[2] = {};    // region, coordinate: x1, y1, x2, y2; for pooling they follow the image's
                                   // index
  uint32_t index_stride = 0;
  uint32_t image_gradient_strides[4] = {};
  uint32_t roi_gradient_strides[2] = {};
};

std::unique_ptr<const Kernel> CreateRoiCpu(const RoiProblem& problem, const LowerContext& context,
                                           std::string* why_not);
std::unique_ptr<const Kernel> CreateRoiCuda(const RoiProblem& problem, const LowerContext& context,
                                            std::string* why_not);
std::unique_ptr<const Kernel> CreateRoiReference(const RoiProblem& problem, const LowerContext& context,
                                                 std::string* why_not);

}  // namespace anydml
