#include <algorithm>

#include "ops/element/element_cases.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

using Type = OperatorType;

constexpr Type kOperators[] = {Type::kRoiPooling, Type::kRoiAlign, Type::kRoiAlign1, Type::kRoiAlignGrad};
constexpr uint32_t kAverage = 2, kMax = 7;

void Set(OperatorDesc* desc, const char* name, FieldValue value) {
  const int field = FindField(*desc->schema, name);
  if (field >= 0) desc->fields[static_cast<size_t>(field)] = std::move(value);
}

template <typename T>
void Write(const TensorDesc& tensor, uint64_t offset, T value, Bytes* bytes) {
  std::memcpy(bytes->data() + offset * BitSize(tensor.type) / 8, &value, sizeof(value));
}

// Regions in and around an image, sometimes with NaNs or infinities. Strides may let them share numbers.
Bytes Regions(const TensorDesc& roi, uint32_t images, float width, float height, CaseMaker& make) {
  const bool wild = make.source().OneIn(8);
  std::mt19937_64 random(make.source().Word());
  const uint32_t numbers = roi.sizes[roi.rank - 1];
  Bytes bytes = wild ? ElementContent(roi, make) : Bytes(roi.total_bytes, kGap);
  uint64_t at = 0;
  for (const uint64_t offset : RowMajorOffsets(roi)) {
    const uint64_t number = at++ % numbers;
    if (wild && random() % 2 == 0) continue;
    const float size = (number + numbers) % 2 == 0 ? width : height;
    float value = static_cast<float>(random() % 193) / 128 * size - size / 4;
    if (random() % 4 == 0) value = static_cast<float>(random() % 12);
    if (numbers == 5 && number == 0) value = static_cast<float>(random() % (images + 1));
    if (roi.type == DataType::kFloat16) {
      Write(roi, offset, ToHalf(value), &bytes);
    } else {
      Write(roi, offset, value, &bytes);
    }
  }
  return bytes;
}

Bytes ImageNumbers(const TensorDesc& tensor, uint32_t images, CaseMaker& make) {
  std::mt19937_64 random(make.source().Word());
  Bytes bytes(tensor.total_bytes, kGap);
  for (const uint64_t offset : RowMajorOffsets(tensor)) {
    const uint64_t number = random() % 16 == 0 ? random() : random() % images;
    if (tensor.type == DataType::kUInt64) {
      Write(tensor, offset, number, &bytes);
    } else {
      Write(tensor, offset, static_cast<uint32_t>(number), &bytes);
    }
  }
  return bytes;
}

std::vector<uint32_t> WithOnes(std::vector<uint32_t> sizes, uint32_t ones) {
  sizes.insert(sizes.begin(), ones, 1);
  return sizes;
}

void SetAttributes(OperatorDesc* desc, CaseMaker& make) {
  ByteSource& source = make.source();
  constexpr float kScales[] = {1, 1, 0.5f, 2, 0.0625f, 7, -1};
  constexpr float kInputOffsets[] = {0.5f, 0, 0.25f}, kOutputOffsets[] = {-0.5f, 0, 0.25f};
  constexpr float kOutside[] = {0, -1.5f, 1e30f};
  Set(desc, "ReductionFunction", source.OneIn(2) ? kMax : kAverage);
  Set(desc, "InterpolationMode", source.Between(0, 2) == 0 ? 0u : 1u);
  Set(desc, "SpatialScale", source.Any(kScales));
  Set(desc, "SpatialScaleX", source.Any(kScales));
  Set(desc, "SpatialScaleY", source.Any(kScales));
  Set(desc, "InputPixelOffset", source.Any(kInputOffsets));
  Set(desc, "OutputPixelOffset", source.Any(kOutputOffsets));
  Set(desc, "OutOfBoundsInputValue", source.Any(kOutside));
  const uint32_t minimum = source.Between(0, 3);
  Set(desc, "MinimumSamplesPerOutput", minimum);
  Set(desc, "MaximumSamplesPerOutput", minimum + source.Between(0, 4));
  Set(desc, "AlignRegionsToCorners", source.Between(0, 1));
}

Case MakeRoi(Type type, CaseMaker& make) {
  ByteSource& source = make.source();
  const DataType element = source.OneIn(2) ? DataType::kFloat16 : DataType::kFloat32;
  const uint32_t images = source.Between(1, 3), channels = source.Between(1, 5);
  const uint32_t height = source.Between(1, 20), width = source.Between(1, 20);
  const uint32_t regions = source.Between(1, 6);
  const uint32_t grid_height = source.Between(1, 7), grid_width = source.Between(1, 7);
  const bool pooling = type == Type::kRoiPooling, gradient = type == Type::kRoiAlignGrad;
  const std::vector<uint32_t> image_sizes = {images, channels, height, width};
  const std::vector<uint32_t> grid_sizes = {regions, channels, grid_height, grid_width};
  const std::vector<uint32_t> roi_sizes =
      WithOnes({regions, pooling ? 5u : 4u}, pooling ? 2 : source.Between(0, 2));
  const TensorDesc image = make.Input(element, image_sizes), roi = make.Input(element, roi_sizes);
  const TensorDesc indices = make.Input(!gradient && source.OneIn(2) ? DataType::kUInt64 : DataType::kUInt32,
                                        WithOnes({regions}, source.Between(0, 3)));

  Case problem;
  OperatorDesc& desc = problem.desc;
  desc.schema = FindOperator(type);
  desc.fields.resize(desc.schema->fields.size());
  SetAttributes(&desc, make);
  Set(&desc, "ROITensor", roi);
  const Bytes roi_bytes = Regions(roi, images, static_cast<float>(width), static_cast<float>(height), make);
  const Bytes index_bytes = ImageNumbers(indices, images, make);
  if (!gradient) {
    Set(&desc, "InputTensor", image);
    Set(&desc, "OutputTensor", make.Output(element, grid_sizes));
    Set(&desc, "PooledSize", Size2D{grid_width, grid_height});
    problem.inputs = {ElementContent(image, make), roi_bytes};
    if (pooling) return problem;
    Set(&desc, "BatchIndicesTensor", indices);
    problem.inputs.push_back(index_bytes);
    return problem;
  }
  const TensorDesc grid = make.Input(element, grid_sizes);
  Set(&desc, "InputGradientTensor", grid);
  Set(&desc, "BatchIndicesTensor", indices);
  const uint32_t outputs = source.Between(1, 3);
  if ((outputs & 1) != 0) Set(&desc, "OutputGradientTensor", make.Output(element, image_sizes));
  if ((outputs & 2) != 0) Set(&desc, "OutputROIGradientTensor", make.Output(element, roi_sizes));
  const bool needs_image = desc.uint("ReductionFunction") == kMax || (outputs & 2) != 0;
  const bool has_image = needs_image || source.OneIn(2);
  if (has_image) Set(&desc, "InputTensor", image);
  problem.inputs = {has_image ? ElementContent(image, make) : Bytes{}, ElementContent(grid, make), roi_bytes,
                    index_bytes};
  return problem;
}

}  // namespace

CaseFamily family::roi::Cases() { return {"roi", kOperators, MakeRoi}; }

}  // namespace anydml::testing
