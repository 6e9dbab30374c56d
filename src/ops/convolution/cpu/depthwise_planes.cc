// Filters of one channel, on packed planes that fit into L1: a worker takes several at a time. Sums equal
// those of cpu.depthwise to the bit.
#include <algorithm>
#include <cstring>
#include <vector>

#include "kernel/scratch_layout.h"
#include "ops/common/parallel.h"
#include "ops/convolution/cpu/depthwise_plane_loops.h"
#include "ops/numbers/convert_rows.h"
#include "ops/numbers/epilogue.h"
#include "ops/numbers/load_store.h"
#include "ops/product/depthwise.h"
#include "ops/product/outside_taps.h"

namespace anydml {
namespace {

constexpr uint32_t kRows = kMaxSpatial - 2, kColumns = kMaxSpatial - 1;
constexpr double kMostPaddedFloats = 4096, kMostInputs = 8192;  // of a plane: it must stay in L1
constexpr uint64_t kNumbersOfPart = 4096;                       // of inputs or outputs, approximately
constexpr uint64_t kPartsPerWorker = 4;                         // minimum, if there are enough planes
constexpr uint64_t kPlaneProductsPerThread = uint64_t{1}
                                             << 17;  // with fewer, a thread costs more than it saves
constexpr uint64_t kCopyBegin = 16;  // elements before a copy, of which kMostPlaneReach are read

// The reach of a dimension's taps, in outputs.
uint64_t ReachOf(const ConvolutionWindow& window) {
  return uint64_t{window.taps - 1} * window.dilation / window.stride;
}

uint64_t PaddedRows(const ConvolutionWindow& y) {
  return (uint64_t{y.output} + kPlaneTileRows - 1) / kPlaneTileRows * kPlaneTileRows + ReachOf(y);
}
uint64_t PaddedColumns(const ConvolutionWindow& x) { return x.output + ReachOf(x); }

double PaddedFloats(const ConvolutionWindow& y, const ConvolutionWindow& x) {
  return static_cast<double>(PaddedRows(y)) * y.stride * static_cast<double>(PaddedColumns(x)) * x.stride;
}

DepthwiseLine LineOf(const ConvolutionWindow& window) {
  const uint64_t all = (window.output + ReachOf(window)) * window.stride;
  const uint64_t before = std::min<uint64_t>(window.start_padding, all);
  return {window.stride, static_cast<uint32_t>(before),
          static_cast<uint32_t>(std::min<uint64_t>(window.input, all - before)), window.output};
}

// DepthwisePlanes::same
uint32_t SameTaps(const ConvolutionWindow& y, const ConvolutionWindow& x) {
  const auto is_same = [&](const ConvolutionWindow& w) {
    return w.taps == y.taps && w.stride == 1 && w.dilation == 1 && w.start_padding == w.taps / 2 &&
           w.output == w.input;
  };
  return (y.taps == 3 || y.taps == 5) && is_same(y) && is_same(x) ? y.taps : 0;
}

bool IsPacked(const ConvolutionTensor& tensor, uint64_t rows, uint64_t columns) {
  return tensor.spatial[kColumns] == 1 && tensor.spatial[kRows] == columns &&
         tensor.outer[1] == rows * columns;
}

class ConvolutionDepthwisePlanes final : public Kernel {
 public:
  ConvolutionDepthwisePlanes(const ConvolutionProblem& problem, uint32_t threads)
      : problem_(problem),
        epilogue_(problem.activation),
        outside_(problem.shape),
        load_(FindLoad(problem.type, Class::kF32)) {
    const ConvolutionShape& p = problem_.shape;
    const ConvolutionWindow &y = p.windows[kRows], &x = p.windows[kColumns];
    halves_ = problem.type == DataType::kFloat16;
    channels_ = p.outer[1];
    positions_ = p.Positions();
    input_plane_ = uint64_t{y.input} * x.input;
    const uint64_t pitch = PaddedColumns(x), phase = PaddedRows(y) * pitch + kPlaneSlack;
    for (uint64_t ty = 0; ty < y.taps; ++ty) {
      for (uint64_t tx = 0; tx < x.taps; ++tx) {
        const uint64_t at_y = ty * y.dilation, at_x = tx * x.dilation;
        offsets_.push_back((at_y % y.stride * x.stride + at_x % x.stride) * phase + at_y / y.stride * pitch +
                           at_x / x.stride);
      }
    }
    planes_ = {.y = LineOf(y),
               .x = LineOf(x),
               .same = SameTaps(y, x),
               .input_plane = input_plane_,
               .input_row = x.input,
               .pitch = pitch,
               .phase = phase,
               .offsets = offsets_.data(),
               .taps = static_cast<uint32_t>(offsets_.size())};
    if (!halves_ && !epilogue_.empty() && epilogue_.limits()) {
      planes_.clips = true;
      planes_.low = epilogue_.limits()->low;
      planes_.high = epilogue_.limits()->high;
    }
    const auto useful = static_cast<uint32_t>(
        std::clamp<uint64_t>(p.Elements() * p.Taps() / kPlaneProductsPerThread, 1, threads));
    const uint64_t share = p.outer[0] * channels_ / (useful == 1 ? 1 : useful * kPartsPerWorker);
    some_ = std::clamp<uint64_t>(std::min(kNumbersOfPart / std::max(positions_, input_plane_), share), 1,
                                 channels_);
    parts_of_image_ = (channels_ + some_ - 1) / some_;
    workers_ = static_cast<uint32_t>(std::min<uint64_t>(p.outer[0] * parts_of_image_, useful));
    overrun_ = DepthwiseOverrun(x.output);
    filter_is_packed_ = IsPacked(p.filter, y.taps, x.taps);
    const uint64_t floats = uint64_t{y.stride} * x.stride * phase + kPlaneSlack;
    worker_.padded = own_.Add("a padded plane", floats * sizeof(float), 64);
    const uint64_t copied =
        IsConverted() ? some_ : std::min(some_, (kMostPlaneReach + kPlaneSlack) / input_plane_ + 2);
    worker_.input =
        own_.Add("copied planes", (kCopyBegin + copied * input_plane_ + kPlaneSlack) * sizeof(float), 64);
    worker_.sums = own_.Add("sums", (some_ * positions_ + kPlaneSlack) * sizeof(float), 64);
    worker_.weights = own_.Add("weights", some_ * p.Taps() * sizeof(float), 64);
    worker_.starts = own_.Add("bias", some_ * sizeof(float), 64);
    worker_bytes_ = SaturatingAlignUp(own_.bytes(), 64);
  }

  uint64_t temporary_bytes() const override { return workers_ * worker_bytes_; }

  Status Run(const KernelArguments& arguments) const override {
    SharedParts shared(problem_.shape.outer[0] * parts_of_image_, workers_);
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      const Buffer memory = {arguments.temporary.data + worker * worker_bytes_, worker_bytes_};
      std::memset(worker_.padded.In(memory).data, 0, worker_.padded.bytes);
      for (uint64_t part; shared.Take(worker, &part);) {
        RunPart(part / parts_of_image_, part % parts_of_image_ * some_, arguments, memory);
      }
    });
    return {};
  }

 private:
  uint64_t Width() const { return halves_ ? sizeof(uint16_t) : sizeof(float); }

  void RunPart(uint64_t image, uint64_t first, const KernelArguments& arguments, const Buffer& memory) const {
    const ConvolutionShape& p = problem_.shape;
    const uint64_t count = std::min(some_, channels_ - first);
    const float* const weights = LoadWeights(arguments.inputs[1].data, image, first, count, memory);
    float* const starts = worker_.starts.In<float>(memory);
    if (problem_.bias) {
      load_(arguments.inputs[2].data,
            {.columns = count, .column_stride = *problem_.bias, .offset = first * *problem_.bias}, starts);
    } else {
      std::fill_n(starts, count, 0.0f);
    }
    const std::byte* const input = arguments.inputs[0].data + p.input.Matrix(image, first) * Width();
    std::byte* const output = arguments.outputs[0].data + p.output.Matrix(image, first) * Width();
    const bool is_finite = !outside_.any() || AreFinite(weights, count * p.Taps());
    DepthwisePlanes planes = planes_;
    planes.padded = worker_.padded.In<float>(memory);
    for (uint64_t i = 0, end; i < count; i = end) {
      const bool copied = IsCopied(first + i), elsewhere = IsElsewhere(count - i);
      for (end = i + 1; end < count; ++end) {
        if (IsCopied(first + end) != copied || IsElsewhere(count - end) != elsewhere) break;
      }
      planes.planes = static_cast<uint32_t>(end - i);
      FindPlanes(input + i * input_plane_ * Width(), copied, memory, &planes);
      planes.weights = weights + i * p.Taps();
      planes.starts = starts + i;
      std::byte* const to = output + i * positions_ * Width();
      planes.sums = elsewhere ? worker_.sums.In<float>(memory) : reinterpret_cast<float*>(to);
      AddDepthwisePlanes(planes);
      if (!is_finite) AddInside(planes, image, first + i, arguments);
      const uint64_t numbers = planes.planes * positions_;
      if (halves_ || (!planes_.clips && !epilogue_.empty())) {
        epilogue_.Finish(planes.sums, numbers, -0.0f, problem_.type, to);
      } else if (elsewhere) {
        std::memcpy(to, planes.sums, numbers * sizeof(float));
      }
    }
  }

  // Recomputes sums whose padding was multiplied by infinities or NaNs.
  void AddInside(const DepthwisePlanes& planes, uint64_t image, uint64_t first,
                 const KernelArguments& arguments) const {
    const ConvolutionShape& p = problem_.shape;
    for (uint64_t i = 0; i < planes.planes; ++i) {
      const float* const weights = planes.weights + i * planes.taps;
      if (AreFinite(weights, planes.taps)) continue;
      outside_.ForPositions(0, positions_, [&](uint64_t position) {
        const double sum = SumInside(p, problem_.type, arguments.inputs[0].data,
                                     p.input.Matrix(image, first + i), position, 0, planes.taps, weights);
        float* const to = planes.sums + i * positions_ + position;
        *to = static_cast<float>(sum + planes.starts[i]);
        if (planes.clips) epilogue_.Apply(to, 1);
      });
    }
  }

  // FLOAT16 is converted first, unless planes are padded anyway.
  bool IsConverted() const { return halves_ && planes_.same != 0; }

  // Loops read some numbers before and after a plane: the first and last planes of an image are therefore
  // copied, as are all that are converted.
  bool IsCopied(uint64_t channel) const {
    return IsConverted() || channel * input_plane_ < kMostPlaneReach ||
           (channels_ - channel - 1) * input_plane_ < kPlaneSlack;
  }

  void FindPlanes(const std::byte* from, bool copied, const Buffer& memory, DepthwisePlanes* planes) const {
    const uint64_t numbers = planes->planes * input_plane_;
    float* const copy = worker_.input.In<float>(memory) + kCopyBegin;
    if (IsConverted()) {
      HalvesToFloats(reinterpret_cast<const uint16_t*>(from), copy, numbers);
    } else if (copied) {
      std::memcpy(copy, from, numbers * Width());
    }
    const void* const first = copied ? static_cast<const void*>(copy) : from;
    if (halves_ && !IsConverted()) {
      planes->halves = static_cast<const uint16_t*>(first);
    } else {
      planes->input = static_cast<const float*>(first);
    }
  }

  // Loops write some numbers after a plane: the last planes of a part, and all FLOAT16 results, are therefore
  // computed elsewhere.
  bool IsElsewhere(uint64_t left) const { return halves_ || (left - 1) * positions_ < overrun_; }

  const float* LoadWeights(const std::byte* filter, uint64_t image, uint64_t first, uint64_t count,
                           const Buffer& memory) const {
    const ConvolutionShape& p = problem_.shape;
    const uint64_t taps = p.Taps(), at = p.filter.Matrix(image, first);
    if (filter_is_packed_ && !halves_) return reinterpret_cast<const float*>(filter) + at;
    auto* const weights = worker_.weights.In<float>(memory);
    if (filter_is_packed_) {
      load_(filter, {.columns = count * taps, .offset = at}, weights);
      return weights;
    }
    for (uint64_t i = 0; i < count; ++i) {
      LoadDepthwiseFilter(p, problem_.type, filter, at + i * p.filter.outer[1], weights + i * taps);
    }
    return weights;
  }

  ConvolutionProblem problem_;
  Epilogue epilogue_;
  OutsideTaps outside_;
  LoadBlock load_;
  bool halves_, filter_is_packed_;
  uint64_t channels_, positions_, input_plane_;  // positions of the output, and of the input
  uint64_t overrun_;                             // numbers that may be written after a plane
  uint64_t some_, parts_of_image_;               // planes per part
  std::vector<uint64_t> offsets_;                // per tap
  DepthwisePlanes planes_;                       // what all parts share
  uint32_t workers_;
  uint64_t worker_bytes_;
  ScratchLayout own_;  // per worker
  struct {
    ScratchLayout::Piece padded, input, sums, weights, starts;
  } worker_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionDepthwisePlanes(const ConvolutionProblem& problem,
                                                               const LowerContext& context,
                                                               std::string* why_not) {
  const ConvolutionShape& p = problem.shape;
  const ConvolutionWindow &y = p.windows[kRows], &x = p.windows[kColumns];
  if (!WhyNotDepthwise(p).empty()) {
    *why_not = WhyNotDepthwise(p);
  } else if (p.output_channels != 1) {
    *why_not = StrCat("a channel has ", p.output_channels, " filters");
  } else if (std::max(y.stride, x.stride) > kMostPlaneStride) {
    *why_not = StrCat("a stride is ", std::max(y.stride, x.stride), ", more than ", kMostPlaneStride);
  } else if (!IsPacked(p.input, y.input, x.input) || !IsPacked(p.output, y.output, x.output)) {
    *why_not = "planes are not packed";
  } else if (static_cast<double>(y.input) * x.input > kMostInputs ||
             (SameTaps(y, x) == 0 && PaddedFloats(y, x) > kMostPaddedFloats)) {
    *why_not = "its planes are too large";
  } else {
    return std::make_unique<ConvolutionDepthwisePlanes>(problem, context.threads);
  }
  return nullptr;
}

}  // namespace anydml
