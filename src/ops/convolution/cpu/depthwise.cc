// Filters of one input channel. A band of the input is put into scratch with its padding, one plane for each
// phase of the strides, so that every tap of all of the band's outputs is a run of neighbours, a fixed
// distance from where the run of outputs begins: rows follow each other in both, and what is computed between
// them is not used.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernel/scratch_layout.h"
#include "ops/common/parallel.h"
#include "ops/convolution/cpu/depthwise_loops.h"
#include "ops/convolution/problem.h"
#include "ops/element/cpu/blocks.h"
#include "ops/element/cpu/epilogue.h"

namespace anydml {
namespace {

constexpr uint32_t kY = kMaxSpatial - 2, kX = kMaxSpatial - 1;
constexpr uint64_t kBandFloats = 8192;     // what stays in the first-level cache
constexpr double kMaxBandFloats = 0x1p22;  // strides that skip most of the input are not for us
// One input channel with so many filters of so many taps (a Fourier transform, the first layer of speech
// models) is read again for each here; as a product it is packed once.
constexpr uint64_t kMatrixChannels = 16, kMatrixTaps = 16;
constexpr uint64_t kProductsPerThread = uint64_t{1} << 17;  // below this a thread costs more than it saves

uint64_t DivideUp(uint64_t value, uint64_t by) { return (value + by - 1) / by; }

// How far the taps of a dimension reach, in outputs.
uint64_t Reach(const ConvolutionWindow& window) {
  return uint64_t{window.taps - 1} * window.dilation / window.stride;
}

// Of one row of outputs.
double LeastFloats(const ConvolutionWindow& y, const ConvolutionWindow& x) {
  return static_cast<double>(x.output + Reach(x)) * x.stride * y.stride * static_cast<double>(1 + Reach(y));
}

class ConvolutionDepthwise final : public Kernel {
 public:
  ConvolutionDepthwise(const ConvolutionProblem& problem, uint32_t threads)
      : problem_(problem),
        epilogue_(problem.activation),
        load_(FindLoad(problem.type, Class::kF32)),
        store_(FindStore(Class::kF32, problem.type)) {
    const ConvolutionShape& p = problem_.shape;
    const ConvolutionWindow &y = p.windows[kY], &x = p.windows[kX];
    pitch_ = x.output + Reach(x);
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
    worker_.sums = own_.Add("sums", (band_ * pitch_ + kDepthwiseSlack) * sizeof(float), 64);
    worker_.row = own_.Add("a row", pitch_ * x.stride * sizeof(float), 64);
    worker_.weights = own_.Add("weights", p.Taps() * sizeof(float), 64);
    worker_bytes_ = SaturatingAlignUp(own_.bytes(), 64);
  }

  uint64_t temporary_bytes() const override { return workers_ * worker_bytes_; }

  Status Run(const KernelArguments& arguments) const override {
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      const Buffer memory = {arguments.temporary.data + worker * worker_bytes_, worker_bytes_};
      const uint64_t end = PartBegin(parts_, worker + 1, workers_);
      for (uint64_t part = PartBegin(parts_, worker, workers_); part < end; ++part) {
        RunBand(part / bands_, part % bands_ * band_, arguments, memory);
      }
    });
    return {};
  }

 private:
  uint64_t Width() const { return BitSize(problem_.type) / 8; }

  // Output rows from `first` on, of all output channels of a group.
  void RunBand(uint64_t matrix, uint64_t first, const KernelArguments& arguments,
               const Buffer& memory) const {
    const ConvolutionShape& p = problem_.shape;
    const uint64_t batch = matrix / p.outer[1], group = matrix % p.outer[1];
    const uint64_t rows = std::min(band_, p.windows[kY].output - first);
    LoadPlanes(arguments.inputs[0].data + p.input.Matrix(batch, group) * Width(), first, rows, memory);
    auto* const weights = worker_.weights.In<float>(memory);
    auto* const sums = worker_.sums.In<float>(memory);
    for (uint64_t channel = 0; channel < p.output_channels; ++channel) {
      LoadWeights(arguments.inputs[1].data, p.filter.Matrix(batch, group) + channel * p.filter.output_channel,
                  weights);
      float bias = 0;
      if (problem_.bias) {
        const uint64_t number = group * p.output_channels + channel;
        load_(arguments.inputs[2].data, {.offset = number * *problem_.bias}, &bias);
      }
      AddTaps(worker_.planes.In<float>(memory), offsets_.data(), weights,
              static_cast<uint32_t>(offsets_.size()), bias, sums, rows * pitch_);
      std::byte* const output =
          arguments.outputs[0].data + (p.output.Matrix(batch, group) + channel * p.output.channel) * Width();
      for (uint64_t row = 0; row < rows; ++row) {
        Put(sums + row * pitch_, (first + row) * p.output.spatial[kY], output);
      }
    }
  }

  void Put(float* sums, uint64_t at, std::byte* output) const {
    const uint64_t count = problem_.shape.windows[kX].output, stride = problem_.shape.output.spatial[kX];
    epilogue_.Apply(sums, count);
    if (problem_.type == DataType::kFloat32 && stride == 1) {
      std::memcpy(output + at * sizeof(float), sums, count * sizeof(float));
    } else {
      store_(sums, {.columns = count, .column_stride = stride, .offset = at}, output);
    }
  }

  void LoadWeights(const std::byte* filter, uint64_t at, float* to) const {
    const ConvolutionShape& p = problem_.shape;
    const uint64_t row = p.filter.spatial[kY], column = p.filter.spatial[kX];
    const uint32_t rows = p.windows[kY].taps, columns = p.windows[kX].taps;
    constexpr uint64_t kNegative = uint64_t{1} << 63;  // strides of a mirrored filter are
    if (((row | column) & kNegative) == 0) return load_(filter, {rows, columns, row, column, at}, to);
    for (uint64_t y = 0; y < rows; ++y) {
      for (uint64_t x = 0; x < columns; ++x) {
        load_(filter + static_cast<ptrdiff_t>((at + y * row + x * column) * Width()), {}, to++);
      }
    }
  }

  // The input rows that output rows [first, first + rows) reach.
  void LoadPlanes(const std::byte* input, uint64_t first, uint64_t rows, const Buffer& memory) const {
    const ConvolutionWindow &y = problem_.shape.windows[kY], &x = problem_.shape.windows[kX];
    for (uint64_t i = 0; i < (rows + Reach(y)) * y.stride; ++i) {
      float* const to =
          worker_.planes.In<float>(memory) + i % y.stride * x.stride * plane_ + i / y.stride * pitch_;
      const int64_t index = static_cast<int64_t>(first * y.stride + i) - y.start_padding;
      if (index < 0 || index >= y.input) {
        for (uint64_t phase = 0; phase < x.stride; ++phase) std::fill_n(to + phase * plane_, pitch_, 0.0f);
        continue;
      }
      const uint64_t offset = static_cast<uint64_t>(index) * problem_.shape.input.spatial[kY];
      float* const row = x.stride == 1 ? to : worker_.row.In<float>(memory);
      LoadRow(input + offset * Width(), row);
      if (x.stride > 1) Split(row, to);
    }
  }

  // All elements that outputs reach, with 0 where they are outside of the input.
  void LoadRow(const std::byte* from, float* to) const {
    const ConvolutionWindow& x = problem_.shape.windows[kX];
    const uint64_t stride = problem_.shape.input.spatial[kX], whole = pitch_ * x.stride;
    const uint64_t before = std::min<uint64_t>(x.start_padding, whole);
    const uint64_t count = std::min<uint64_t>(x.input, whole - before);
    std::fill_n(to, before, 0.0f);
    if (problem_.type == DataType::kFloat32 && stride == 1) {
      std::memcpy(to + before, from, count * sizeof(float));
    } else if (count != 0) {
      load_(from, {.columns = count, .column_stride = stride}, to + before);
    }
    std::fill(to + before + count, to + whole, 0.0f);
  }

  void Split(const float* row, float* to) const {
    const uint32_t stride = problem_.shape.windows[kX].stride;
    if (stride == 2) {
      float *const even = to, *const odd = to + plane_;
      for (uint64_t i = 0; i < pitch_; ++i) even[i] = row[2 * i], odd[i] = row[2 * i + 1];
      return;
    }
    for (uint64_t phase = 0; phase < stride; ++phase) {
      for (uint64_t i = 0; i < pitch_; ++i) to[phase * plane_ + i] = row[i * stride + phase];
    }
  }

  ConvolutionProblem problem_;
  Epilogue epilogue_;
  LoadBlock load_;
  StoreBlock store_;
  uint64_t pitch_;                 // from one row of outputs, or of a plane, to the next
  uint64_t plane_;                 // from one plane to the next
  uint64_t band_, bands_, parts_;  // rows of a band
  std::vector<uint64_t> offsets_;  // of each tap
  uint32_t workers_;
  uint64_t worker_bytes_;
  ScratchLayout own_;  // of one worker
  struct {
    ScratchLayout::Piece planes, sums, row, weights;
  } worker_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionDepthwise(const ConvolutionProblem& problem,
                                                         const LowerContext& context, std::string* why_not) {
  const ConvolutionShape& p = problem.shape;
  const ConvolutionWindow& depth = p.windows[0];
  if (p.input_channels != 1) {
    *why_not = StrCat("filters have ", p.input_channels, " input channels");
  } else if (p.backward) {
    *why_not = "it is backward";
  } else if (depth.input != 1 || depth.output != 1 || depth.taps != 1) {
    *why_not = "there are three spatial dimensions";
  } else if (depth.start_padding != 0 || p.windows[kY].reached < p.windows[kY].output ||
             p.windows[kX].reached < p.windows[kX].output || depth.reached == 0) {
    *why_not = "outputs have no taps";
  } else if (p.Taps() > 256) {
    *why_not = StrCat("filters have ", p.Taps(), " taps");
  } else if (p.output_channels >= kMatrixChannels && p.Taps() >= kMatrixTaps) {
    *why_not = StrCat(p.output_channels, " filters of ", p.Taps(), " taps are a matrix");
  } else if (LeastFloats(p.windows[kY], p.windows[kX]) > kMaxBandFloats) {
    *why_not = "its rows reach too far";
  } else {
    return std::make_unique<ConvolutionDepthwise>(problem, context.threads);
  }
  return nullptr;
}

}  // namespace anydml
