// Filters of one input channel. A band of the input is copied to scratch with its padding, one plane per
// phase of the strides, so that each tap of a row of outputs is contiguous and at a fixed offset from the
// row's begin.
#include "ops/product/depthwise.h"

#include <algorithm>
#include <vector>

#include "kernel/scratch_layout.h"
#include "ops/common/parallel.h"
#include "ops/numbers/convert_rows.h"
#include "ops/numbers/epilogue.h"
#include "ops/numbers/load_store.h"
#include "ops/product/depthwise_loops.h"
#include "ops/product/outside_taps.h"
#include "ops/product/panel_rows.h"

namespace anydml {
namespace {

constexpr uint32_t kY = kMaxSpatial - 2, kX = kMaxSpatial - 1;
constexpr uint64_t kBandFloats = 8192;     // stays in L1
constexpr double kMaxBandFloats = 0x1p22;  // this kernel does not take strides that skip most of the input
// One input channel with this many filters of this many taps (a Fourier transform, the first layer of speech
// models) would be read again for each filter; a matrix product packs it once.
constexpr uint64_t kMatrixChannels = 16, kMatrixTaps = 16;
constexpr uint64_t kLongRow = 16;                           // shorter rows are converted several at a time
constexpr uint64_t kProductsPerThread = uint64_t{1} << 17;  // with fewer, a thread costs more than it saves

uint64_t DivideUp(uint64_t value, uint64_t by) { return (value + by - 1) / by; }

// The reach of a dimension's taps, in outputs.
uint64_t Reach(const ConvolutionWindow& window) {
  return uint64_t{window.taps - 1} * window.dilation / window.stride;
}

// For one row of outputs.
double LeastFloats(const ConvolutionWindow& y, const ConvolutionWindow& x) {
  return static_cast<double>(x.output + Reach(x)) * x.stride * y.stride * static_cast<double>(1 + Reach(y));
}

class ConvolutionDepthwise final : public Kernel {
 public:
  ConvolutionDepthwise(const DepthwiseProblem& problem, uint32_t threads)
      : problem_(problem),
        shape_(problem_.shape),
        epilogue_(problem.activation),
        outside_(shape_),
        load_(FindLoad(problem.input_type, Class::kF32)),
        load_weights_(FindLoad(problem.filter_type, Class::kF32)),
        store_(FindStore(Class::kF32, problem.output_type)) {
    const ConvolutionShape& p = shape_;
    const ConvolutionWindow &y = p.windows[kY], &x = p.windows[kX];
    pitch_ = x.output + Reach(x);
    before_ = std::min<uint64_t>(x.start_padding, pitch_ * x.stride);
    columns_ = std::min<uint64_t>(x.input, pitch_ * x.stride - before_);
    const bool halves = problem.input_type == DataType::kFloat16 && columns_ >= kLongRow;
    reads_input_ = (problem.input_type == DataType::kFloat32 || halves) && p.input.spatial[kX] == 1;
    const uint64_t row = pitch_ * y.stride * x.stride;  // of all planes
    const uint64_t rows = kBandFloats / row > Reach(y) ? kBandFloats / row - Reach(y) : 1;
    bands_ = DivideUp(y.output, rows);
    band_ = DivideUp(y.output, bands_);
    bands_ = DivideUp(y.output, band_);
    plane_ = (band_ + Reach(y)) * pitch_;
    for (uint64_t ty = 0; ty < y.taps; ++ty) {
      for (uint64_t tx = 0; tx < x.taps; ++tx) {
        const uint64_t at_y = ty * y.dilation, at_x = tx * x.dilation;
        offsets_.push_back((at_y % y.stride * x.stride + at_x % x.stride) * plane_ +
                           at_y / y.stride * pitch_ + at_x / x.stride);
      }
    }
    parts_ = p.Matrices() * bands_;
    const auto useful =
        static_cast<uint32_t>(std::clamp<uint64_t>(p.Elements() * p.Taps() / kProductsPerThread, 1, threads));
    workers_ = static_cast<uint32_t>(std::min<uint64_t>(parts_, useful));
    worker_.planes = own_.Add("planes", (row / pitch_ * plane_ + kDepthwiseSlack) * sizeof(float), 64);
    worker_.sums = own_.Add("sums", band_ * x.output * sizeof(float), 64);
    if (!reads_input_) {
      const uint64_t rows_of_input = (band_ + Reach(y)) * y.stride;
      worker_.numbers = own_.Add("numbers", rows_of_input * columns_ * sizeof(float), 64);
    }
    worker_.row = own_.Add("a row", pitch_ * x.stride * sizeof(float), 64);
    worker_.weights = own_.Add("weights", p.Taps() * sizeof(float), 64);
    worker_bytes_ = SaturatingAlignUp(own_.bytes(), 64);
  }

  uint64_t temporary_bytes() const override { return workers_ * worker_bytes_; }

  Status Run(const KernelArguments& arguments) const override {
    SharedParts shared(parts_, workers_);
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      const Buffer memory = {arguments.temporary.data + worker * worker_bytes_, worker_bytes_};
      for (uint64_t part; shared.Take(worker, &part);) {
        RunBand(part / bands_, part % bands_ * band_, arguments, memory);
      }
    });
    return {};
  }

 private:
  static uint64_t Width(DataType type) { return BitSize(type) / 8; }

  // Computes output rows from `first` on, for all output channels of a group.
  void RunBand(uint64_t matrix, uint64_t first, const KernelArguments& arguments,
               const Buffer& memory) const {
    const ConvolutionShape& p = shape_;
    const uint64_t batch = matrix / p.outer[1], group = matrix % p.outer[1];
    const uint64_t rows = std::min(band_, p.windows[kY].output - first);
    const float zero = ZeroPoint(problem_.input_zero, load_, 0, 0, arguments);
    LoadPlanes(
        arguments.inputs[problem_.input].data + p.input.Matrix(batch, group) * Width(problem_.input_type),
        zero, first, rows, memory);
    auto* const weights = worker_.weights.In<float>(memory);
    auto* const sums = worker_.sums.In<float>(memory);
    for (uint64_t channel = 0; channel < p.output_channels; ++channel) {
      LoadDepthwiseFilter(p, problem_.filter_type, arguments.inputs[problem_.filter].data,
                          p.filter.Matrix(batch, group) + channel * p.filter.output_channel, weights);
      const float filter_zero = ZeroPoint(problem_.filter_zero, load_weights_, channel, group, arguments);
      for (uint64_t t = 0; t < p.Taps() && filter_zero != 0; ++t) weights[t] -= filter_zero;
      float bias = 0;
      if (problem_.bias) {
        const uint64_t number = group * p.output_channels + channel;
        load_(arguments.inputs[2].data, {.offset = number * *problem_.bias}, &bias);
      }
      const DepthwiseBand band = {worker_.planes.In<float>(memory),       pitch_, offsets_.data(), weights,
                                  static_cast<uint32_t>(offsets_.size()), bias};
      if (problem_.sink != nullptr) {
        const uint64_t columns = p.windows[kX].output;
        AddTaps(band, rows, columns, sums, columns);
        problem_.sink->Finish(arguments, {batch, group}, channel, first * columns, rows * columns, sums);
        continue;
      }
      const uint64_t at =
          p.output.Matrix(batch, group) + channel * p.output.channel + first * p.output.spatial[kY];
      const Repair repair = {outside_.any() && !AreFinite(weights, p.Taps()),
                             arguments.inputs[problem_.input].data, p.input.Matrix(batch, group), first};
      Finish(band, rows, repair, arguments.outputs[0].data + at * Width(problem_.output_type), sums);
    }
  }

  // What is needed to recompute sums whose padding was multiplied by infinities or NaNs.
  struct Repair {
    bool is_needed;
    const std::byte* input;
    uint64_t matrix, first_row;
  };

  void AddInside(const DepthwiseBand& band, uint64_t rows, const Repair& repair, float* sums) const {
    const uint64_t columns = shape_.windows[kX].output, first = repair.first_row * columns;
    outside_.ForPositions(first, first + rows * columns, [&](uint64_t position) {
      const double sum = SumInside(shape_, problem_.input_type, repair.input, repair.matrix, position, 0,
                                   band.taps, band.weights);
      sums[position - first] = static_cast<float>(sum + band.start);
    });
  }

  // `sums` is scratch, for outputs that are not contiguous floats.
  void Finish(DepthwiseBand band, uint64_t rows, const Repair& repair, std::byte* output, float* sums) const {
    const uint64_t columns = shape_.windows[kX].output;
    const uint64_t pitch = shape_.output.spatial[kY], stride = shape_.output.spatial[kX];
    const bool neighbours = stride == 1 && (rows == 1 || pitch == columns);
    const bool in_output = problem_.output_type == DataType::kFloat32 && neighbours;
    if (in_output) sums = reinterpret_cast<float*>(output);
    if (in_output && !epilogue_.empty() && epilogue_.limits()) {
      band.clips = true;
      band.low = epilogue_.limits()->low;
      band.high = epilogue_.limits()->high;
    }
    const bool any_nan = AddTaps(band, rows, columns, sums, columns);
    if (repair.is_needed) AddInside(band, rows, repair, sums);
    if (band.clips && !any_nan && !repair.is_needed) return;
    if (neighbours && problem_.output_type != DataType::kInt32) {
      if (in_output && epilogue_.empty()) return;
      return epilogue_.Finish(sums, rows * columns, -0.0f, problem_.output_type, output);
    }
    if (!epilogue_.empty()) epilogue_.Apply(sums, rows * columns);
    if (problem_.output_type == DataType::kInt32 && stride == 1) {
      auto* const integers = reinterpret_cast<int32_t*>(output);
      for (uint64_t y = 0; y < rows; ++y) {
        for (uint64_t x = 0; x < columns; ++x) {
          integers[y * pitch + x] = static_cast<int32_t>(sums[y * columns + x]);
        }
      }
      return;
    }
    Block block = {rows, columns, pitch, stride, 0};
    if (stride == 1 && pitch == columns) block = {.columns = rows * columns};
    store_(sums, block, output);
  }

  static float ZeroPoint(const std::optional<DepthwiseProblem::ZeroPoint>& zero, LoadBlock load,
                         uint64_t channel, uint64_t group, const KernelArguments& arguments) {
    float number = 0;
    if (zero) {
      load(arguments.inputs[zero->input].data, {.offset = channel * zero->channel + group * zero->group},
           &number);
    }
    return number;
  }

  // Loads the input rows that output rows [first, first + rows) use.
  void LoadPlanes(const std::byte* input, float zero, uint64_t first, uint64_t rows,
                  const Buffer& memory) const {
    const ConvolutionWindow &y = shape_.windows[kY], &x = shape_.windows[kX];
    const uint64_t count = (rows + Reach(y)) * y.stride;
    const int64_t start = static_cast<int64_t>(first * y.stride) - y.start_padding;
    const auto inside = [&](int64_t row) { return std::clamp<int64_t>(row, 0, y.input); };
    const int64_t begin = inside(start), end = inside(start + static_cast<int64_t>(count));
    float* const converted = worker_.numbers.In<float>(memory);
    if (!reads_input_) {
      Convert(input, zero, static_cast<uint64_t>(begin), static_cast<uint64_t>(end - begin), converted);
    }
    float* const planes = worker_.planes.In<float>(memory);
    // `row` counts within its phase; no divisions, since short rows take less time than those.
    for (uint64_t i = 0, row = 0, phase = 0; i < count; ++i) {
      float* const to = planes + phase * x.stride * plane_ + row * pitch_;
      if (++phase == y.stride) phase = 0, ++row;
      const int64_t index = start + static_cast<int64_t>(i);
      if (index < begin || index >= end) {
        for (uint64_t phase = 0; phase < x.stride; ++phase) std::fill_n(to + phase * plane_, pitch_, 0.0f);
        continue;
      }
      const auto line = static_cast<uint64_t>(index) * shape_.input.spatial[kY];
      if (!reads_input_) {
        LoadRow(converted + static_cast<uint64_t>(index - begin) * columns_, to, memory);
      } else if (problem_.input_type == DataType::kFloat16) {
        LoadRow(reinterpret_cast<const uint16_t*>(input) + line, to, memory);
      } else {
        LoadRow(reinterpret_cast<const float*>(input) + line, to, memory);
      }
    }
  }

  static void CopyNumbers(const float* from, uint64_t count, float* to) { CopyShortRow(from, count, to); }
  static void CopyNumbers(const uint16_t* from, uint64_t count, float* to) {
    HalvesToFloats(from, to, count);
  }

  // Splits one row, with its padding, into phases.
  template <typename T>
  void LoadRow(const T* from, float* to, const Buffer& memory) const {
    const uint32_t stride = shape_.windows[kX].stride;
    const uint64_t end = before_ + columns_;
    if (stride == 2) {
      float *const even = to, *const odd = to + plane_;
      for (uint64_t i = 0; i < before_; ++i) (i % 2 == 0 ? even : odd)[i / 2] = 0;
      for (uint64_t i = end; i < 2 * pitch_; ++i) (i % 2 == 0 ? even : odd)[i / 2] = 0;
      const bool begins_odd = before_ % 2 != 0;
      SplitNumbers(from, columns_, (begins_odd ? odd : even) + before_ / 2,
                   (begins_odd ? even : odd) + (before_ + 1) / 2);
      return;
    }
    float* const row = stride == 1 ? to : worker_.row.In<float>(memory);
    std::fill_n(row, before_, 0.0f);
    CopyNumbers(from, columns_, row + before_);
    std::fill(row + end, row + pitch_ * stride, 0.0f);
    for (uint64_t phase = 0; phase < stride && stride > 1; ++phase) {
      for (uint64_t i = 0; i < pitch_; ++i) to[phase * plane_ + i] = row[i * stride + phase];
    }
  }

  // Converts rows of the input to floats and subtracts their zero point.
  void Convert(const std::byte* input, float zero, uint64_t first, uint64_t rows, float* to) const {
    const uint64_t row = shape_.input.spatial[kY], column = shape_.input.spatial[kX], count = rows * columns_;
    if (count == 0) return;
    Block block = {rows, columns_, row, column, first * row};
    if (column == 1 && row == columns_) block = {.columns = count, .offset = first * row};
    load_(input, block, to);
    for (uint64_t i = 0; i < count && zero != 0; ++i) to[i] -= zero;
  }

  DepthwiseProblem problem_;
  const ConvolutionShape& shape_;
  Epilogue epilogue_;
  OutsideTaps outside_;
  LoadBlock load_, load_weights_;
  StoreBlock store_;
  bool reads_input_;               // reads rows of floats or halves without conversion
  uint64_t before_, columns_;      // padding before a row, and input elements in use
  uint64_t pitch_;                 // stride between rows of outputs, or of a plane
  uint64_t plane_;                 // stride between planes
  uint64_t band_, bands_, parts_;  // rows per band
  std::vector<uint64_t> offsets_;  // per tap
  uint32_t workers_;
  uint64_t worker_bytes_;
  ScratchLayout own_;  // per worker
  struct {
    ScratchLayout::Piece planes, sums, numbers, row, weights;
  } worker_;
};

}  // namespace

void LoadDepthwiseFilter(const ConvolutionShape& p, DataType type, const std::byte* filter, uint64_t at,
                         float* to) {
  const LoadBlock load = FindLoad(type, Class::kF32);
  const uint64_t row = p.filter.spatial[kY], column = p.filter.spatial[kX];
  const uint32_t rows = p.windows[kY].taps, columns = p.windows[kX].taps;
  constexpr uint64_t kNegative = uint64_t{1} << 63;  // strides of a mirrored filter are negative
  if (((row | column) & kNegative) == 0) return load(filter, {rows, columns, row, column, at}, to);
  for (uint64_t y = 0; y < rows; ++y) {
    for (uint64_t x = 0; x < columns; ++x) {
      const uint64_t offset = (at + y * row + x * column) * (BitSize(type) / 8);
      load(filter + static_cast<ptrdiff_t>(offset), {}, to++);
    }
  }
}

std::string WhyNotDepthwise(const ConvolutionShape& p) {
  const ConvolutionWindow& depth = p.windows[0];
  if (p.input_channels != 1) return StrCat("filters have ", p.input_channels, " input channels");
  if (p.backward) return "it is backward";
  if (depth.input != 1 || depth.output != 1 || depth.taps != 1) return "there are three spatial dimensions";
  if (depth.start_padding != 0 || p.windows[kY].reached < p.windows[kY].output ||
      p.windows[kX].reached < p.windows[kX].output || depth.reached == 0) {
    return "outputs have no taps";
  }
  return p.Taps() > kMaxDepthwiseTaps ? StrCat("filters have ", p.Taps(), " taps") : "";
}

std::unique_ptr<const Kernel> CreateDepthwise(const DepthwiseProblem& problem, uint32_t threads,
                                              std::string* why_not) {
  const ConvolutionShape& p = problem.shape;
  *why_not = WhyNotDepthwise(p);
  if (!why_not->empty()) return nullptr;
  if (p.output_channels >= kMatrixChannels && p.Taps() >= kMatrixTaps) {
    *why_not = StrCat(p.output_channels, " filters of ", p.Taps(), " taps are a matrix");
  } else if (LeastFloats(p.windows[kY], p.windows[kX]) > kMaxBandFloats) {
    *why_not = "its rows reach too far";
  } else {
    return std::make_unique<ConvolutionDepthwise>(problem, threads);
  }
  return nullptr;
}

std::unique_ptr<const Kernel> CreateConvolutionDepthwise(const ConvolutionProblem& problem,
                                                         const LowerContext& context, std::string* why_not) {
  return CreateDepthwise({.shape = problem.shape,
                          .input_type = problem.type,
                          .filter_type = problem.type,
                          .output_type = problem.type,
                          .bias = problem.bias,
                          .activation = problem.activation},
                         context.threads, why_not);
}

}  // namespace anydml
