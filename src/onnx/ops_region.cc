// Regions of images, and images out of columns.
#include "onnx/compose.h"
#include "onnx/operators.h"

namespace anydml::onnx {
namespace {

// Without the shift by half a pixel a region is at least one pixel wide and high, as in what models of that
// time were trained with: its far corner {x2, y2} is no nearer than that.
Status AtLeastOnePixel(Lowering& n, float scale, View* rois) {
  View corners[2], nearest;
  for (const uint32_t i : {0, 1}) ANYDML_RETURN_IF_ERROR(Part(n, *rois, 1, 2 * i, 2, &corners[i]));
  ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, corners[0], &nearest, 1, 1 / scale));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_MAX, corners[1], nearest, &corners[1]));
  return Join(n, corners, 1, rois);
}

// X, rois {R,4}, batch_indices {R}
Status RoiAlign(Lowering& n) {
  const std::string mode = n.Text("mode", "avg");
  const std::string coordinates =
      n.Text("coordinate_transformation_mode", n.version() < 16 ? "output_half_pixel" : "half_pixel");
  const int64_t height = n.Int("output_height", 1), width = n.Int("output_width", 1),
                samples = n.Int("sampling_ratio", 0);
  if (n.rank(0) != 4 || n.rank(1) != 2 || n.shape(1)[1] != 4 || height < 1 || width < 1 || samples < 0)
    return InvalidArgument("an output of ", height, "x", width);
  const Shape shape = {n.shape(1)[0], n.shape(0)[1], height, width};
  const View x = n.In(0);
  View rois = n.In(1), batch = n.In(2);
  batch.type = BitSize(batch.type) == 64 ? DataType::kUInt64 : DataType::kUInt32;  // never negative
  View y = n.New(x.type, shape);
  const float scale = n.Float("spatial_scale", 1);
  if (coordinates != "half_pixel" && scale > 0 && !rois.empty())
    ANYDML_RETURN_IF_ERROR(AtLeastOnePixel(n, scale, &rois));
  const DML_ROI_ALIGN1_OPERATOR_DESC desc{
      n.graph().In(x),
      n.graph().In(rois),
      n.graph().In(batch),
      n.graph().Out(&y),
      mode == "max" ? DML_REDUCE_FUNCTION_MAX : DML_REDUCE_FUNCTION_AVERAGE,
      DML_INTERPOLATION_MODE_LINEAR,
      scale,
      scale,
      coordinates == "half_pixel" ? 0.5f : 0.0f,
      -0.5f,
      0,
      samples == 0 ? 1 : static_cast<UINT>(samples),
      samples == 0 ? UINT32_MAX : static_cast<UINT>(samples),
      FALSE};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ROI_ALIGN1, desc));
  n.Return(0, y, n.type(0), shape);
  return {};
}

// X, rois {R,5}
Status MaxRoiPool(Lowering& n) {
  const std::vector<int64_t> pooled = n.Ints("pooled_shape");
  if (n.rank(0) != 4 || n.rank(1) != 2 || pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1)
    return InvalidArgument("pooled_shape ", ShapeToString(pooled));
  const Shape shape = {n.shape(1)[0], n.shape(0)[1], pooled[0], pooled[1]};
  const View x = n.In(0), rois = AtLeast(n.In(1), 4);
  View y = n.New(x.type, shape);
  const DML_ROI_POOLING_OPERATOR_DESC desc{n.graph().In(x),
                                           n.graph().In(rois),
                                           n.graph().Out(&y),
                                           n.Float("spatial_scale", 1),
                                           {static_cast<UINT>(pooled[1]), static_cast<UINT>(pooled[0])}};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ROI_POOLING, desc));
  n.Return(0, y, n.type(0), shape);
  return {};
}

// columns {N, C * block, L}, image_shape, block_shape
Status Col2Im(Lowering& n) {
  const std::vector<int64_t> image = n.HostInts(1), block = n.HostInts(2);
  const size_t rank = image.size();
  const auto list = [&](const char* name, size_t count, int64_t otherwise) {
    std::vector<int64_t> values = n.Ints(name);
    if (values.empty()) values.assign(count, otherwise);
    return values;
  };
  const std::vector<int64_t> strides = list("strides", rank, 1), dilations = list("dilations", rank, 1),
                             pads = list("pads", 2 * rank, 0);
  const int64_t window = ElementCount(block).value_or(0);
  if (n.rank(0) != 3 || rank == 0 || block.size() != rank || strides.size() != rank ||
      dilations.size() != rank || pads.size() != 2 * rank || window < 1 || n.shape(0)[1] % window != 0) {
    return InvalidArgument("image_shape ", ShapeToString(image), " with block_shape ", ShapeToString(block));
  }
  Shape shape = {n.shape(0)[0], n.shape(0)[1] / window};
  shape.insert(shape.end(), image.begin(), image.end());
  const auto narrow = [](std::span<const int64_t> values) {
    return std::vector<UINT>(values.begin(), values.end());
  };
  const std::vector<UINT> windows = narrow(block), steps = narrow(strides), spread = narrow(dilations),
                          begin = narrow(std::span(pads).first(rank)),
                          end = narrow(std::span(pads).subspan(rank));
  const View x = n.In(0);
  View y = n.New(x.type, shape);
  const DML_FOLD_OPERATOR_DESC desc{n.graph().In(x), n.graph().Out(&y), static_cast<UINT>(rank),
                                    windows.data(),  steps.data(),      spread.data(),
                                    begin.data(),    end.data()};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_FOLD, desc));
  n.Return(0, y, n.type(0), shape);
  return {};
}

constexpr OperatorRow kRegionRows[] = {
    {kOnnx, "RoiAlign", 3, 3, 0, RoiAlign, nullptr},
    {kOnnx, "MaxRoiPool", 2, 2, 0, MaxRoiPool, nullptr},
    {kOnnx, "Col2Im", 3, 3, 0b110, Col2Im, nullptr},
};

}  // namespace

std::span<const OperatorRow> RegionOperators() { return kRegionRows; }

}  // namespace anydml::onnx
