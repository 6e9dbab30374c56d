// Regions of images, and images made of columns.
#include <algorithm>
#include <cmath>

#include "onnx/host/host_numbers.h"
#include "onnx/lower/compose.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

// The limit along each dimension of an element. More would take days.
constexpr int64_t kMostSamples = 1 << 10;
// The limit of all elements together, on the host.
constexpr int64_t kMostHostSamples = int64_t{1} << 32;

// Without the shift by half a pixel a region is at least one pixel wide and high, as in the implementations
// with which models of that time were trained: its far corner {x2, y2} is moved accordingly.
Status AtLeastOnePixel(Lowering& n, float scale, View* rois) {
  View corners[2], nearest;
  for (const uint32_t i : {0, 1}) ANYDML_RETURN_IF_ERROR(Part(n, *rois, 1, 2 * i, 2, &corners[i]));
  ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, corners[0], &nearest, 1, 1 / scale));
  ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_MAX, corners[1], nearest, &corners[1]));
  return Join(n, corners, 1, rois);
}

// Whether the maximum or the average is taken, and whether regions are shifted by half a pixel.
Status ReadModes(const NodeFacts& node, bool* largest, bool* shifted) {
  const bool old = node.version() < 16;
  std::string mode, coordinates;
  ANYDML_RETURN_IF_ERROR(node.OneOf("mode", {"avg", "max"}, &mode));
  ANYDML_RETURN_IF_ERROR(node.OneOf(
      "coordinate_transformation_mode",
      {old ? "output_half_pixel" : "half_pixel", old ? "half_pixel" : "output_half_pixel"}, &coordinates));
  *largest = mode == "max";
  *shifted = coordinates == "half_pixel";
  return {};
}

// X, rois {R,4}, batch_indices {R}
Status RoiAlign(Lowering& n) {
  bool largest = false, shifted = false;
  ANYDML_RETURN_IF_ERROR(ReadModes(n, &largest, &shifted));
  if (largest) return Unsupported("the largest of weighted elements on the device");
  const int64_t height = n.Int("output_height", 1), width = n.Int("output_width", 1),
                samples = n.Int("sampling_ratio", 0);
  if (n.rank(0) != 4 || n.rank(1) != 2 || n.shape(1)[1] != 4 || height < 1 || width < 1 || samples < 0)
    return InvalidArgument("an output of ", height, "x", width);
  if (samples > kMostSamples) return Unsupported("sampling_ratio ", samples);
  const Shape shape = {n.shape(1)[0], n.shape(0)[1], height, width};
  const View x = n.In(0);
  View rois = n.In(1), batch = n.In(2);
  batch.type = BitSize(batch.type) == 64 ? DataType::kUInt64 : DataType::kUInt32;  // never negative
  View y = n.New(x.type, shape);
  const float scale = n.Float("spatial_scale", 1);
  if (!shifted && scale > 0 && !rois.empty()) ANYDML_RETURN_IF_ERROR(AtLeastOnePixel(n, scale, &rois));
  const DML_ROI_ALIGN1_OPERATOR_DESC desc{n.graph().In(x),
                                          n.graph().In(rois),
                                          n.graph().In(batch),
                                          n.graph().Out(&y),
                                          DML_REDUCE_FUNCTION_AVERAGE,
                                          DML_INTERPOLATION_MODE_LINEAR,
                                          scale,
                                          scale,
                                          shifted ? 0.5f : 0.0f,
                                          -0.5f,
                                          0,
                                          samples == 0 ? 1 : static_cast<UINT>(samples),
                                          samples == 0 ? UINT32_MAX : static_cast<UINT>(samples),
                                          FALSE};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ROI_ALIGN1, desc));
  n.Return(0, y, n.type(0), shape);
  return {};
}

// The two elements beside a position, and their weights.
struct Neighbours {
  int64_t at[2] = {0, 0};
  double weight[2] = {0, 0};
};

Neighbours Beside(double place, int64_t size) {
  const auto last = static_cast<double>(size - 1);
  if (!(place >= -1 && place <= last + 1)) return {};  // outside
  const double x = std::clamp(place, 0.0, last), low = std::floor(x);
  const auto i = static_cast<int64_t>(low);
  return {{i, std::min(i + 1, size - 1)}, {1 - (x - low), x - low}};
}

// The positions of a region's samples along one dimension: `grid` of them in each of `bins`.
struct Samples {
  double first = 0, step = 0;
  int64_t bins = 1, grid = 0;

  std::vector<Neighbours> In(int64_t bin, int64_t size) const {
    std::vector<Neighbours> found;
    for (int64_t i = 0; i < grid; ++i) {
      const double part = (static_cast<double>(i) + 0.5) / static_cast<double>(grid);
      found.push_back(Beside(first + (static_cast<double>(bin) + part) * step, size));
    }
    return found;
  }
};

Status SamplesOf(double begin, double end, bool at_least_one, int64_t samples, Samples* out) {
  const double length = at_least_one ? std::max(end - begin, 1.0) : end - begin;
  out->first = begin;
  out->step = length / static_cast<double>(out->bins);
  if (!(std::abs(begin) < 0x1p40 && out->step < kMostSamples) || samples > kMostSamples)
    return Unsupported("so many samples on the host");
  out->grid = samples > 0 ? samples : static_cast<int64_t>(std::ceil(std::max(out->step, 0.0)));
  return {};
}

double LargestOf(const double* plane, int64_t width, std::span<const Neighbours> rows,
                 std::span<const Neighbours> columns) {
  std::optional<double> most;
  for (const Neighbours& y : rows) {
    for (const Neighbours& x : columns) {
      for (const size_t k : {0, 1, 2, 3}) {
        const double value = y.weight[k / 2] * x.weight[k % 2] * plane[y.at[k / 2] * width + x.at[k % 2]];
        if (!most || value > *most) most = value;
      }
    }
  }
  return most.value_or(0);
}

// RoiAlign with mode "max": in ONNX the maximum over the four weighted elements around each sample; in
// DirectML the largest sample.
Status LargestOfRegions(HostCall& call) {
  bool largest = false, shifted = false;
  ANYDML_RETURN_IF_ERROR(ReadModes(call, &largest, &shifted));
  if (!largest) return Unsupported("on the host");
  const Shape &x = call.In(0).shape, &r = call.In(1).shape;
  const int64_t height = call.Int("output_height", 1), width = call.Int("output_width", 1),
                samples = call.Int("sampling_ratio", 0);
  if (x.size() != 4 || r.size() != 2 || r[1] != 4 || height < 1 || width < 1 || samples < 0 || x[2] < 1 ||
      x[3] < 1 || call.In(2).count() != r[0]) {
    return InvalidArgument("an output of ", height, "x", width, " for X ", ShapeToString(x), " and rois ",
                           ShapeToString(r));
  }
  const Shape shape = {r[0], x[1], height, width};
  const std::optional<int64_t> count = ElementCount(shape);
  if (!IsFloat(call.In(0).type) || !IsFloat(call.In(1).type) || !count || *count > host::kMostHostNumbers)
    return Unsupported("this type or size on the host");
  const std::vector<double> values = ToDoubles(call.In(0)), rois = ToDoubles(call.In(1));
  const std::vector<int64_t> batches = ToInts(call.In(2));
  if (static_cast<int64_t>(batches.size()) != r[0])
    return InvalidArgument("batch_indices of ", Name(call.In(2).type), "; integers are allowed");
  const double scale = call.Float("spatial_scale", 1), offset = shifted ? 0.5 : 0;
  std::vector<double> result(static_cast<size_t>(*count));
  int64_t work = 0;
  for (int64_t region = 0; region < r[0] && *count > 0; ++region) {
    const int64_t batch = batches[static_cast<size_t>(region)];
    if (batch < 0 || batch >= x[0])
      return InvalidArgument("batch_indices[", region, "] is ", batch, " of ", x[0], " images");
    const double* const corners = rois.data() + region * 4;  // x1, y1, x2, y2
    Samples along[2] = {{.bins = height}, {.bins = width}};
    for (const size_t d : {0, 1}) {
      ANYDML_RETURN_IF_ERROR(SamplesOf(corners[1 - d] * scale - offset, corners[3 - d] * scale - offset,
                                       !shifted, samples, &along[d]));
    }
    work += x[1] * height * width * along[0].grid * along[1].grid;
    if (work > kMostHostSamples) return Unsupported("so many samples on the host");
    for (int64_t i = 0; i < height * width; ++i) {
      const std::vector<Neighbours> rows = along[0].In(i / width, x[2]),
                                    columns = along[1].In(i % width, x[3]);
      for (int64_t c = 0; c < x[1]; ++c) {
        const double* const plane = values.data() + (batch * x[1] + c) * x[2] * x[3];
        result[static_cast<size_t>((region * x[1] + c) * height * width + i)] =
            LargestOf(plane, x[3], rows, columns);
      }
    }
  }
  call.outputs[0] = FromDoubles(call.In(0).type, shape, result);
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
    {kOnnx, "RoiAlign", 3, 3, 0, RoiAlign, LargestOfRegions},
    {kOnnx, "MaxRoiPool", 2, 2, 0, MaxRoiPool, nullptr},
    {kOnnx, "Col2Im", 3, 3, 0b110, Col2Im, nullptr},
};

}  // namespace

std::span<const OperatorRow> ImageRegionOperators() { return kRegionRows; }

}  // namespace anydml::onnx
