#include "ops/convolution/cpu/padded.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ops/common/parallel.h"
#include "ops/product/operands.h"
#include "ops/product/panel_copies.h"
#include "ops/product/panel_rows.h"

namespace anydml {
namespace {

constexpr uint32_t kSliceAxis = kMaxSpatial - 3, kRowAxis = kMaxSpatial - 2, kColumnAxis = kMaxSpatial - 1;
constexpr double kMostFloats = 0x1p24;                    // larger copies are not worth the memory
constexpr uint64_t kFloatsPerThread = uint64_t{1} << 16;  // with fewer, a thread costs more than it saves
constexpr uint64_t kStepsOfWindows = 512;

// Of rows or slices: what the windows of all outputs cover.
double Extent(const ConvolutionWindow& w) {
  return (w.output - 1.0) * w.stride + (w.taps - 1.0) * w.dilation + 1;
}
// The elements of a row in one phase.
double Pitch(const ConvolutionWindow& w) { return w.output + (w.taps - 1.0) * w.dilation / w.stride + 1; }

template <uint32_t kCount>
void CopySteps(const float* from, const uint64_t* offsets, uint64_t steps, uint32_t, uint32_t width,
               float* to) {
  for (uint64_t s = 0; s < steps; ++s) {
    std::memcpy(to + s * width, from + offsets[s], kCount * sizeof(float));
  }
}

void CopySomeSteps(const float* from, const uint64_t* offsets, uint64_t steps, uint32_t count, uint32_t width,
                   float* to) {
  constexpr uint32_t kSome = 4;
  for (uint64_t s = 0; s < steps; ++s) {
    const float* const source = from + offsets[s];
    float* const target = to + s * width;
    if (count < kSome) {
      for (uint32_t i = 0; i < count; ++i) target[i] = source[i];
      continue;
    }
    for (uint32_t i = 0; i + kSome <= count; i += kSome) {
      std::memcpy(target + i, source + i, kSome * sizeof(float));
    }
    std::memcpy(target + count - kSome, source + count - kSome, kSome * sizeof(float));
  }
}

// Copies of a constant size are a few instructions: these are the widths of whole panels.
auto FindCopy(uint64_t count) {
  if (const auto copy = FindPanelCopies().steps; copy != nullptr) return copy;
  return count == 6    ? CopySteps<6>
         : count == 8  ? CopySteps<8>
         : count == 12 ? CopySteps<12>
         : count == 16 ? CopySteps<16>
         : count == 48 ? CopySteps<48>
                       : CopySomeSteps;
}

}  // namespace

std::optional<PaddedInput> PaddedInput::Create(const ConvolutionShape& shape, DataType type, uint32_t threads,
                                               ScratchLayout* scratch) {
  if (shape.Taps() == 1 || shape.backward) return std::nullopt;  // a copy would not help
  double strides = 1;
  for (const ConvolutionWindow& w : shape.windows) strides *= w.stride;
  // Most elements are read once and need no conversion.
  if (type == DataType::kFloat32 && static_cast<double>(shape.Taps()) < 2 * strides) return std::nullopt;
  double floats = static_cast<double>(shape.Matrices()) * static_cast<double>(shape.input_channels);
  for (const ConvolutionWindow& w : shape.windows) {
    if (w.reached < w.output) return std::nullopt;  // some outputs have no taps
    floats *= &w == &shape.windows[kColumnAxis] ? Pitch(w) * w.stride : Extent(w);
  }
  if (floats > kMostFloats) return std::nullopt;
  PaddedInput input(shape, type);
  const ConvolutionWindow &z = shape.windows[kSliceAxis], &y = shape.windows[kRowAxis],
                          &x = shape.windows[kColumnAxis];
  input.pitch_ = x.output + uint64_t{x.taps - 1} * x.dilation / x.stride;
  input.row_ = input.pitch_ * x.stride;
  input.height_ = static_cast<uint64_t>(Extent(y));
  input.depth_ = static_cast<uint64_t>(Extent(z));
  input.slice_ = input.height_ * input.row_;
  input.plane_ = input.depth_ * input.slice_;
  for (uint64_t tz = 0; tz < z.taps; ++tz) {
    for (uint64_t ty = 0; ty < y.taps; ++ty) {
      for (uint64_t tx = 0; tx < x.taps; ++tx) {
        const uint64_t at = tx * x.dilation;
        input.offsets_.push_back(tz * z.dilation * input.slice_ + ty * y.dilation * input.row_ +
                                 at % x.stride * input.pitch_ + at / x.stride);
      }
    }
  }
  const uint64_t planes = shape.Matrices() * shape.input_channels, all = planes * input.plane_;
  input.workers_ =
      static_cast<uint32_t>(std::min(planes, std::clamp<uint64_t>(all / kFloatsPerThread, 1, threads)));
  input.planes_ = scratch->Add("the input with its padding", all * sizeof(float), 64);
  input.rows_ = scratch->Add("a row", input.workers_ * input.row_ * sizeof(float), 64);
  return input;
}

void PaddedInput::Load(const std::byte* input, const KernelArguments& arguments) const {
  const uint64_t channels = shape_.input_channels, all = shape_.Matrices() * channels;
  SharedParts shared(all, workers_);
  ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
    float* const row = rows_.In<float>(arguments.temporary) + worker * row_;
    for (uint64_t number; shared.Take(worker, &number);) {
      const uint64_t matrix = number / channels;
      const uint64_t at = shape_.input.Matrix(matrix / shape_.outer[1], matrix % shape_.outer[1]) +
                          number % channels * shape_.input.channel;
      LoadPlane(input + at * (BitSize(type_) / 8), row,
                planes_.In<float>(arguments.temporary) + number * plane_);
    }
  });
}

// `row` is scratch.
void PaddedInput::LoadPlane(const std::byte* from, float* row, float* to) const {
  const ConvolutionWindow &z = shape_.windows[kSliceAxis], &y = shape_.windows[kRowAxis];
  for (uint64_t i = 0; i < depth_; ++i) {
    for (uint64_t j = 0; j < height_; ++j, to += row_) {
      // Positions before the input wrap to large unsigned numbers.
      const uint64_t slice = i - z.start_padding, line = j - y.start_padding;
      if (slice >= z.input || line >= y.input) {
        std::fill_n(to, row_, 0.0f);
        continue;
      }
      const uint64_t at = slice * shape_.input.spatial[kSliceAxis] + line * shape_.input.spatial[kRowAxis];
      LoadRow(from + at * (BitSize(type_) / 8), row, to);
    }
  }
}

void PaddedInput::LoadRow(const std::byte* from, float* row, float* to) const {
  const ConvolutionWindow& x = shape_.windows[kColumnAxis];
  const uint64_t before = std::min<uint64_t>(x.start_padding, row_);
  const uint64_t count = std::min<uint64_t>(x.input, row_ - before),
                 stride = shape_.input.spatial[kColumnAxis];
  float* const numbers = x.stride == 1 ? to : row;
  std::fill_n(numbers, before, 0.0f);
  if (type_ == DataType::kFloat32 && stride == 1) {
    CopyShortRow(reinterpret_cast<const float*>(from), count, numbers + before);
  } else {
    LoadNumbers(from, type_, stride, count, numbers + before);
  }
  std::fill(numbers + before + count, numbers + row_, 0.0f);
  if (x.stride == 1) return;
  if (x.stride == 2) {  // by vectors
    float *const even = to, *const odd = to + pitch_;
    for (uint64_t i = 0; i < pitch_; ++i) even[i] = row[2 * i], odd[i] = row[2 * i + 1];
    return;
  }
  for (uint64_t phase = 0; phase < x.stride; ++phase) {
    for (uint64_t i = 0; i < pitch_; ++i) to[phase * pitch_ + i] = row[i * x.stride + phase];
  }
}

void PaddedInput::Panels::Pack(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
                               float* to) const {
  const PaddedInput& in = input_;
  const ConvolutionWindow &z = in.shape_.windows[kSliceAxis], &y = in.shape_.windows[kRowAxis],
                          &x = in.shape_.windows[kColumnAxis];
  const uint64_t taps = in.offsets_.size();
  ClearLastPanel(count, steps, width, to);
  std::array<uint64_t, kStepsOfWindows> offsets;
  for (uint64_t done = 0; done < steps; done += kStepsOfWindows) {
    const uint64_t some = std::min(kStepsOfWindows, steps - done);
    for (uint64_t s = 0; s < some; ++s) {
      const uint64_t number = step + done + s;
      offsets[s] = number / taps * in.plane_ + in.offsets_[number % taps];
    }
    for (uint64_t e = 0; e < count; e += width) {
      const uint64_t end = std::min<uint64_t>(e + width, count);
      float* const panel = to + e * steps + done * width;
      for (uint64_t at = e; at < end;) {  // outputs of one row at a time
        const uint64_t position = first + at, line = position / x.output;
        const uint64_t run = std::min(end - at, x.output - position % x.output);
        const uint64_t begin = line / y.output * z.stride * in.slice_ + line % y.output * y.stride * in.row_ +
                               position % x.output;
        FindCopy(run)(matrix_ + begin, offsets.data(), some, static_cast<uint32_t>(run), width,
                      panel + (at - e));
        at += run;
      }
    }
  }
}

}  // namespace anydml
