#include "ops/convolution/cpu/pixels.h"

#include <algorithm>
#include <type_traits>

#include "ops/common/parallel.h"
#include "ops/common/transpose_block.h"
#include "ops/convolution/cpu/pixel_tile.h"
#include "ops/numbers/convert_rows.h"
#include "ops/numbers/load_store.h"

namespace anydml {
namespace {

constexpr uint64_t kSomePositions = 64;  // of planes, at a time
constexpr uint64_t kFewPlanes = 8;       // with fewer, transposing gains little

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

// Calls turn(first, count) for contiguous pixels; place(pixel) is a pixel's place.
template <typename Place, typename Turn>
void ForNeighbours(uint32_t count, Place&& place, Turn&& turn) {
  for (uint32_t first = 0, end; first < count; first = end) {
    for (end = first + 1; end < count && place(end) == place(first) + (end - first);) ++end;
    turn(first, end - first);
  }
}

// to[r * to_stride + c] = from[c * from_stride + r]
template <typename T>
void Turn(const T* from, uint64_t from_stride, uint64_t rows, uint64_t columns, T* to, uint64_t to_stride,
          TransposeTo where) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>;
  TransposeBlock(reinterpret_cast<const Bits*>(from), static_cast<int64_t>(from_stride), rows, columns,
                 reinterpret_cast<Bits*>(to), static_cast<int64_t>(to_stride), where);
}

// Contiguous elements as FLOAT32: in place, or in `memory`.
const float* AsFloats(const float* from, uint64_t, float*) { return from; }
const float* AsFloats(const uint16_t* from, uint64_t count, float* memory) {
  HalvesToFloats(from, memory, count);
  return memory;
}

// `some` positions of planes; for FLOAT16 at most kSomePositions.
void TurnToFloats(const float* from, uint64_t stride, uint64_t some, uint64_t channels, float* to) {
  Turn(from, stride, some, channels, to, channels, TransposeTo::kTile);
}

void TurnToFloats(const uint16_t* from, uint64_t stride, uint64_t some, uint64_t channels, float* to) {
  constexpr uint64_t kSomeChannels = 64;
  uint16_t turned[kSomePositions * kSomeChannels];
  for (uint64_t c = 0; c < channels; c += kSomeChannels) {
    const uint64_t count = std::min(kSomeChannels, channels - c);
    Turn(from + c * stride, stride, some, count, turned, count, TransposeTo::kTile);
    for (uint64_t x = 0; x < some; ++x) HalvesToFloats(turned + x * count, to + x * channels + c, count);
  }
}

}  // namespace

InputPixels::InputPixels(const ConvolutionShape& shape, DataType type, const ConvolutionTensor& added)
    : shape_(shape), type_(type), input_(shape.input), added_(added) {
  copies_ = type != DataType::kFloat32 || (shape.input_channels > 1 && shape.input.channel != 1);
  has_planes_ = shape.outer[1] == 1 && shape.input_channels >= kFewPlanes && shape.input.channel != 1;
  sees_one_ = true;
  uint64_t next = 1;
  for (uint32_t d = kMaxSpatial; d-- > 0; next *= shape.windows[d].input) {
    const ConvolutionWindow& w = shape.windows[d];
    has_planes_ = has_planes_ && (w.input == 1 || shape.input.spatial[d] == next);
    sees_one_ = sees_one_ && w.taps == 1 && w.stride == 1 && w.start_padding == 0 && w.output == w.input &&
                w.reached == w.output;
  }
  if (copies_) {
    uint64_t stride = shape.input_channels;
    input_ = {.channel = 1};
    for (uint32_t d = kMaxSpatial; d-- > 0; stride *= shape.windows[d].input) input_.spatial[d] = stride;
    input_.outer = {stride * shape.outer[1], stride};
  }
  // One group, no slices.
  const auto same = [](uint64_t size, uint64_t stride, uint64_t other) {
    return size == 1 || stride == other;
  };
  const ConvolutionTensor& from = shape.input;
  const auto& w = shape.windows;
  in_order_ = from.offset == 0 && shape.outer[1] == 1 && w[0].input == 1 && w[0].output == 1 &&
              w[0].taps == 1 && same(shape.input_channels, from.channel, 1) &&
              same(w[2].input, from.spatial[2], input_.spatial[2]) &&
              same(w[1].input, from.spatial[1], input_.spatial[1]) &&
              same(shape.outer[0], from.outer[0], input_.outer[0]);
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
      int64_t{x.input} - 1 - int64_t{x.taps - 1} * x.dilation + x.start_padding;  // the last position where a
                                                                                  // window may begin
  const int64_t end = last < 0 ? 0 : std::min<int64_t>(last / x.stride + 1, std::min(x.reached, x.output));
  const int64_t begin = (int64_t{x.start_padding} + x.stride - 1) / x.stride;
  inner_end_ = static_cast<uint32_t>(end);
  inner_begin_ = static_cast<uint32_t>(std::min(begin, end));
}

uint64_t InputPixels::CopyFloats() const { return input_.outer[0] * shape_.outer[0]; }

void InputPixels::Copy(const std::byte* input, Executor* executor, uint32_t workers, float* to) const {
  const ConvolutionShape& p = shape_;
  if (type_ == DataType::kFloat32) {
    CopyPlanes(reinterpret_cast<const float*>(input), executor, workers, to);
    return;
  }
  if (p.input_channels > 1 && p.input.channel != 1 && p.input.spatial[2] == 1) {
    CopyPlanes(reinterpret_cast<const uint16_t*>(input), executor, workers, to);
    return;
  }
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
      if ((channels == 1 || p.input.channel == 1) && column == channels) {
        HalvesToFloats(reinterpret_cast<const uint16_t*>(input) + at, row, columns * channels);
      } else {
        load(input, {columns, channels, column, p.input.channel, at}, row);
      }
    }
  });
}

void InputPixels::CopyPositions(const std::byte* input, uint64_t first, uint64_t count, float* to) const {
  const uint64_t channels = shape_.input_channels, stride = shape_.input.channel;
  const uint64_t positions = input_.outer[0] / channels;
  for (uint64_t done = 0; done < count;) {  // one image at a time
    const uint64_t at = (first + done) % positions;
    uint64_t some = std::min(count - done, positions - at);
    const uint64_t from = shape_.input.Matrix((first + done) / positions, 0) + at;
    if (type_ == DataType::kFloat16) {
      some = std::min(some, kSomePositions);
      TurnToFloats(reinterpret_cast<const uint16_t*>(input) + from, stride, some, channels,
                   to + done * channels);
    } else {
      TurnToFloats(reinterpret_cast<const float*>(input) + from, stride, some, channels,
                   to + done * channels);
    }
    done += some;
  }
}

RowsAhead InputPixels::Positions(const std::byte* input, uint64_t first, uint64_t count) const {
  const uint64_t positions = input_.outer[0] / shape_.input_channels, image = first / positions;
  if (image >= shape_.outer[0]) return {};
  const uint64_t width = BitSize(type_) / 8, at = first % positions;
  return {reinterpret_cast<uintptr_t>(input) + (shape_.input.Matrix(image, 0) + at) * width,
          std::min(count, positions - at) * width, shape_.input.channel * width, shape_.input_channels};
}

// Some positions at a time of lines, which may be whole planes. FLOAT16 positions are contiguous.
template <typename T>
void InputPixels::CopyPlanes(const T* input, Executor* executor, uint32_t workers, float* to) const {
  const ConvolutionShape& p = shape_;
  const uint64_t channels = p.input_channels, column = p.input.spatial[2];
  uint64_t slices = p.windows[0].input, lines = p.windows[1].input, columns = p.windows[2].input;
  if (lines == 1 || p.input.spatial[1] == columns * column) columns *= lines, lines = 1;
  if (lines == 1 && (slices == 1 || p.input.spatial[0] == columns * column)) columns *= slices, slices = 1;
  const uint64_t somes = (columns + kSomePositions - 1) / kSomePositions,
                 all = p.Matrices() * slices * lines * somes;
  ParallelFor(executor, workers, [&](uint32_t worker) {
    const uint64_t end = PartBegin(all, worker + 1, workers);
    for (uint64_t number = PartBegin(all, worker, workers); number < end; ++number) {
      const uint64_t line = number / somes, first = number % somes * kSomePositions;
      const uint64_t slice = line / lines % slices, matrix = line / lines / slices;
      const T* const from = input + p.input.Matrix(matrix / p.outer[1], matrix % p.outer[1]) +
                            slice * p.input.spatial[0] + line % lines * p.input.spatial[1] + first * column;
      float* const target = to + (line * columns + first) * channels;
      const uint64_t some = std::min(kSomePositions, columns - first);
      if (column == 1 && channels >= kFewPlanes) {
        TurnToFloats(from, p.input.channel, some, channels, target);
        continue;
      }
      float memory[3][kSomePositions];
      if (column == 1 && channels == 3) {
        const float* planes[3];
        for (uint64_t c = 0; c < 3; ++c) planes[c] = AsFloats(from + c * p.input.channel, some, memory[c]);
        ConvolutionPixelTiles().interleave(planes, some, target);
        continue;
      }
      for (uint64_t c = 0; c < channels; ++c) {
        const float* const line = AsFloats(from + c * p.input.channel, some, memory[0]);
        for (uint64_t x = 0; x < some; ++x) target[x * channels + c] = line[x * column];
      }
    }
  });
}

void InputPixels::Find(uint64_t first, uint64_t count, uint64_t group, OutputPixels* pixels) const {
  const ConvolutionShape& p = shape_;
  const auto& w = p.windows;
  pixels->count = static_cast<uint32_t>(count);
  pixels->classes[0] = {.inside = {AllTaps(w[0]), AllTaps(w[1]), AllTaps(w[2])}};
  pixels->class_count = 1;
  struct Run {
    uint16_t number;  // the class of a row's inner pixels
    uint32_t first, count;
  };
  Run runs[kMaxBlockPixels];
  uint32_t run_count = 0;
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
    const auto start = [&](const ConvolutionTensor& tensor) {
      return tensor.Matrix(batch, group) + z * tensor.spatial[0] + y * tensor.spatial[1] +
             x * tensor.spatial[2];
    };
    const uint64_t slices = TapsInside(w[0], z), lines = TapsInside(w[1], y);
    const bool whole = slices == AllTaps(w[0]) && lines == AllTaps(w[1]);
    const auto row_end = static_cast<uint32_t>(std::min<uint64_t>(w[2].output, x + (count - done)));
    const uint32_t begin = inner_begin_, end = std::min(inner_end_, row_end);
    const uint64_t input_step = w[2].stride * input_.spatial[2];
    OutputPixels::Pixel pixel = {
        input_.Matrix(batch, group) + first_tap(0, z) + first_tap(1, y) + first_tap(2, x), start(p.output),
        start(added_)};
    // The class of a row's pixels that have all columns. Only set if there are any, so that there are no more
    // classes than pixels, and the first.
    uint16_t middle = 0;
    if (!whole && std::max(x, begin) < end) middle = pixels->ClassOf({slices, lines, AllTaps(w[2])});
    for (uint32_t at = x, next; at < row_end; at = next) {
      const bool inner = at >= begin && at < end;
      next = inner ? end : at + 1;
      const uint16_t number = inner ? middle : pixels->ClassOf({slices, lines, TapsInside(w[2], at)});
      runs[run_count++] = {number, static_cast<uint32_t>(done + (at - x)), next - at};
    }
    for (; x < row_end; ++done, ++x) {
      pixels->at[done] = pixel;
      pixel.input += input_step;
      pixel.output += p.output.spatial[2];
      pixel.added += added_.spatial[2];
    }
  }
  uint32_t ends[kMaxBlockPixels + 2];
  std::fill_n(ends, pixels->class_count + 1, 0);
  for (uint32_t r = 0; r < run_count; ++r) ends[runs[r].number + 1] += runs[r].count;
  for (uint32_t c = 0; c < pixels->class_count; ++c) {
    pixels->classes[c].begin = pixels->classes[c].end = ends[c];
    ends[c + 1] += ends[c];
  }
  for (uint32_t r = 0; r < run_count; ++r) {
    const Run& run = runs[r];
    uint16_t* const order = pixels->order + pixels->classes[run.number].end;
    for (uint32_t i = 0; i < run.count; ++i) order[i] = static_cast<uint16_t>(run.first + i);
    pixels->classes[run.number].end += run.count;
  }
}

void OutputPixels::LoadPlanes(DataType type, const std::byte* added, uint64_t stride, uint64_t channels,
                              uint64_t width, void* rows) const {
  const auto place = [&](uint32_t pixel) { return at[pixel].added; };
  const auto load = [&](const auto* from, auto* to) {
    ForNeighbours(count, place, [&](uint32_t first, uint32_t some) {
      Turn(from + place(first), stride, some, channels, to + first * width, width, TransposeTo::kTile);
    });
  };
  if (type == DataType::kFloat16) {
    load(reinterpret_cast<const uint16_t*>(added), static_cast<uint16_t*>(rows));
  } else {
    load(reinterpret_cast<const float*>(added), static_cast<float*>(rows));
  }
}

void OutputPixels::StorePlanes(DataType type, const void* rows, uint64_t width, uint64_t channels,
                               uint64_t stride, std::byte* output) const {
  const auto place = [&](uint32_t pixel) { return at[pixel].output; };
  const auto store = [&](const auto* from, auto* to) {
    ForNeighbours(count, place, [&](uint32_t first, uint32_t some) {
      Turn(from + first * width, width, channels, some, to + place(first), stride, TransposeTo::kTensor);
    });
  };
  if (type == DataType::kFloat16) {
    store(static_cast<const uint16_t*>(rows), reinterpret_cast<uint16_t*>(output));
  } else {
    store(static_cast<const float*>(rows), reinterpret_cast<float*>(output));
  }
}

InputPixels::Range InputPixels::Seen(const OutputPixels& pixels) const {
  Range range = {~uint64_t{0}, 0};
  for (uint32_t c = 0; c < pixels.class_count; ++c) {
    const OutputPixels::Class& same = pixels.classes[c];
    // Taps that are inside are in the order of their places.
    size_t first = 0, last = taps_.size();
    while (first < last && !IsInside(same, first)) ++first;
    if (first == last) continue;
    while (!IsInside(same, last - 1)) --last;
    for (uint32_t i = same.begin; i < same.end; ++i) {
      const uint64_t input = pixels.at[pixels.order[i]].input;
      range.begin = std::min(range.begin, input + taps_[first].offset);
      range.end = std::max(range.end, input + taps_[last - 1].offset + shape_.input_channels);
    }
  }
  return range.begin < range.end ? range : Range{0, 0};
}

uint64_t InputPixels::MostSeen(uint64_t count) const {
  const ConvolutionWindow &y = shape_.windows[1], &x = shape_.windows[2];
  const uint64_t all = CopyFloats();
  const auto is_same = [](const ConvolutionWindow& w) { return w.output == w.input && w.stride == 1; };
  if (shape_.Taps() == 1 && is_same(y) && is_same(x)) {  // each pixel sees one position
    return std::min(count * shape_.input_channels, all);
  }
  // The output's rows, and the input lines between the first ones that two of them see, within an image or
  // across images.
  const uint64_t rows = (count - 1) / x.output + 2;
  const uint64_t own_lines = uint64_t{y.output - 1} * y.stride;
  const uint64_t between = std::max<uint64_t>(y.stride, y.input > own_lines ? y.input - own_lines : 0);
  const double lines = static_cast<double>(rows - 1) * static_cast<double>(between) +
                       static_cast<double>(y.taps - 1) * y.dilation + 1;
  return static_cast<uint64_t>(
      std::min(lines * static_cast<double>(input_.spatial[1]), static_cast<double>(all)));
}

uint16_t OutputPixels::ClassOf(const std::array<uint64_t, kMaxSpatial>& inside) {
  // Neighbours are likely to have the latest class.
  for (uint32_t c = class_count; c-- > 0;) {
    if (classes[c].inside == inside) return static_cast<uint16_t>(c);
  }
  classes[class_count] = {.inside = inside};
  return static_cast<uint16_t>(class_count++);
}

}  // namespace anydml
