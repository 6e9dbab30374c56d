#include "ops/convolution/cpu/pixels.h"

#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/element/cpu/blocks.h"
#include "ops/element/cpu/rows.h"

namespace anydml {
namespace {

uint64_t AllTaps(const ConvolutionWindow& window) {
  return window.taps == kMaxPixelTaps ? ~uint64_t{0} : (uint64_t{1} << window.taps) - 1;
}

uint64_t TapsInside(const ConvolutionWindow& window, uint32_t at) {
  const int64_t first = int64_t{at} * window.stride - window.start_padding;
  const int64_t last = first + int64_t{window.taps - 1} * window.dilation;
  if (at < window.reached && first >= 0 && last < window.input) return AllTaps(window);
  uint64_t inside = 0;
  for (uint32_t tap = 0; tap < window.taps; ++tap) {
    if (InputIndex(window, false, at, tap) >= 0) inside |= uint64_t{1} << tap;
  }
  return inside;
}

}  // namespace

InputPixels::InputPixels(const ConvolutionShape& shape, DataType type)
    : shape_(shape), type_(type), input_(shape.input) {
  copies_ = type != DataType::kFloat32 || (shape.input_channels > 1 && shape.input.channel != 1);
  if (copies_) {
    uint64_t stride = shape.input_channels;
    input_ = {.channel = 1};
    for (uint32_t d = kMaxSpatial; d-- > 0; stride *= shape.windows[d].input) input_.spatial[d] = stride;
    input_.outer = {stride * shape.outer[1], stride};
  }
  for (uint64_t tap = 0; tap < shape.Taps(); ++tap) {
    Tap entry = {};
    uint64_t rest = tap;
    for (uint32_t d = kMaxSpatial; d-- > 0; rest /= shape.windows[d].taps) {
      entry.at[d] = static_cast<uint8_t>(rest % shape.windows[d].taps);
      entry.offset += uint64_t{entry.at[d]} * shape.windows[d].dilation * input_.spatial[d];
    }
    taps_.push_back(entry);
  }
  const ConvolutionWindow& x = shape.windows[kMaxSpatial - 1];
  const int64_t last =
      int64_t{x.input} - 1 - int64_t{x.taps - 1} * x.dilation + x.start_padding;  // where a window may begin
  const int64_t end = last < 0 ? 0 : std::min<int64_t>(last / x.stride + 1, std::min(x.reached, x.output));
  const int64_t begin = (int64_t{x.start_padding} + x.stride - 1) / x.stride;
  inner_end_ = static_cast<uint32_t>(end);
  inner_begin_ = static_cast<uint32_t>(std::min(begin, end));
}

uint64_t InputPixels::CopyFloats() const { return input_.outer[0] * shape_.outer[0]; }

void InputPixels::Copy(const std::byte* input, Executor* executor, uint32_t workers, float* to) const {
  const ConvolutionShape& p = shape_;
  const uint64_t slices = p.windows[0].input, lines = p.windows[1].input, columns = p.windows[2].input;
  const uint64_t channels = p.input_channels, all = p.Matrices() * slices * lines;
  const LoadBlock load = FindLoad(type_, Class::kF32);
  const uint64_t column = p.input.spatial[2];
  SharedParts shared(all, workers);
  ParallelFor(executor, workers, [&](uint32_t worker) {
    for (uint64_t number; shared.Take(worker, &number);) {
      const uint64_t slice = number / lines % slices, matrix = number / lines / slices;
      const uint64_t at = p.input.Matrix(matrix / p.outer[1], matrix % p.outer[1]) +
                          slice * p.input.spatial[0] + number % lines * p.input.spatial[1];
      float* const row = to + number * columns * channels;
      if (type_ == DataType::kFloat32) {
        const float* const from = reinterpret_cast<const float*>(input) + at;
        for (uint64_t c = 0; c < channels; ++c) {
          for (uint64_t x = 0; x < columns; ++x)
            row[x * channels + c] = from[c * p.input.channel + x * column];
        }
      } else if ((channels == 1 || p.input.channel == 1) && column == channels) {
        HalvesToFloats(reinterpret_cast<const uint16_t*>(input) + at, row, columns * channels);
      } else {
        load(input, {columns, channels, column, p.input.channel, at}, row);
      }
    }
  });
}

void InputPixels::Find(uint64_t first, uint64_t count, uint64_t group, OutputPixels* pixels) const {
  const ConvolutionShape& p = shape_;
  pixels->count = static_cast<uint32_t>(count);
  pixels->inner_count = pixels->edge_count = 0;
  const auto& w = p.windows;
  const auto first_tap = [&](uint32_t d, uint32_t at) {
    return (uint64_t{at} * w[d].stride - w[d].start_padding) * input_.spatial[d];
  };
  uint64_t done = 0;
  while (done < count) {  // a row of the output at a time
    uint64_t rest = (first + done) / w[2].output;
    auto x = static_cast<uint32_t>((first + done) % w[2].output);
    const auto y = static_cast<uint32_t>(rest % w[1].output);
    rest /= w[1].output;
    const auto z = static_cast<uint32_t>(rest % w[0].output);
    const uint64_t batch = rest / w[0].output;
    const uint64_t input = input_.Matrix(batch, group) + first_tap(0, z) + first_tap(1, y);
    const uint64_t output = p.output.Matrix(batch, group) + z * p.output.spatial[0] + y * p.output.spatial[1];
    const uint64_t slices = TapsInside(w[0], z), lines = TapsInside(w[1], y);
    const bool whole = slices == AllTaps(w[0]) && lines == AllTaps(w[1]);
    const auto row_end = static_cast<uint32_t>(std::min<uint64_t>(w[2].output, x + (count - done)));
    const uint32_t begin = whole ? inner_begin_ : row_end,
                   end = whole ? std::min(inner_end_, row_end) : row_end;
    const uint64_t input_step = w[2].stride * input_.spatial[2];
    uint64_t from = input + first_tap(2, x), to = output + x * p.output.spatial[2];
    for (; x < row_end; ++done, ++x, from += input_step, to += p.output.spatial[2]) {
      OutputPixels::Pixel& pixel = pixels->at[done];
      pixel.input = from;
      pixel.output = to;
      if (x >= begin && x < end) {
        pixels->inner[pixels->inner_count++] = static_cast<uint16_t>(done);
      } else {
        pixel.inside[0] = slices;
        pixel.inside[1] = lines;
        pixel.inside[2] = TapsInside(w[2], x);
        pixels->edge[pixels->edge_count++] = static_cast<uint16_t>(done);
      }
    }
  }
}

uint32_t InputPixels::FindInside(const OutputPixels& pixels, uint64_t tap, uint16_t* list) const {
  const Tap& t = taps_[tap];
  uint32_t count = 0;
  for (uint32_t i = 0; i < pixels.edge_count; ++i) {
    const OutputPixels::Pixel& pixel = pixels.at[pixels.edge[i]];
    const uint64_t inside =
        (pixel.inside[0] >> t.at[0]) & (pixel.inside[1] >> t.at[1]) & (pixel.inside[2] >> t.at[2]) & 1;
    list[count] = pixels.edge[i];
    count += static_cast<uint32_t>(inside);
  }
  return count;
}

}  // namespace anydml
