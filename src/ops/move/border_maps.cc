#include "ops/move/border_maps.h"

#include <algorithm>
#include <array>

namespace anydml {
namespace {

// The non-negative remainder of i by n.
int64_t Modulo(int64_t i, int64_t n) { return ((i % n) + n) % n; }

// Elements [to, to + size) of a padded dimension, repeated `periods` times at distances of `period`; they are
// copies of the dimension's elements from `from` on.
struct Piece {
  uint64_t size;
  int64_t from;
  int64_t from_step;  // 1, 0, -1
  int64_t to;
  int64_t to_step;  // 1, -1
  uint64_t periods = 1;
  int64_t period = 0;
};

// What the elements outside repeat, from the border outward: one or two segments of the dimension,
// alternating.
struct Segments {
  uint64_t count;
  uint64_t size;
  int64_t from[2];
  int64_t step[2];
};

Segments SegmentsOf(PaddingMode mode, int64_t size, bool at_end) {
  const int64_t last = size - 1, near = at_end ? last : 0, inward = at_end ? -1 : 1;
  const auto length = static_cast<uint64_t>(size);
  switch (mode) {
    case PaddingMode::kReflection:
      // From the border's neighbour to the other end, and from that end's neighbour back.
      if (size > 1) return {2, length - 1, {near + inward, last - near - inward}, {inward, -inward}};
      return {1, 1, {0}, {0}};
    case PaddingMode::kSymmetric:
      return {2, length, {near, last - near}, {inward, -inward}};
    case PaddingMode::kWrap:
      return {1, length, {last - near}, {-inward}};
    default:
      return {1, ~uint64_t{0}, {near}, {0}};
  }
}

void AppendPieces(PaddingMode mode, uint32_t size, uint32_t start, uint32_t padding, bool at_end,
                  std::vector<Piece>* pieces) {
  const Segments segments = SegmentsOf(mode, size, at_end);
  const int64_t outward = at_end ? 1 : -1;
  const int64_t first = at_end ? int64_t{start} + size : int64_t{start} - 1;
  const uint64_t period = segments.count * segments.size;
  for (uint64_t s = 0; s < segments.count; ++s) {
    const uint64_t begin = s * segments.size;
    if (begin >= padding) break;
    const uint64_t whole = (padding - begin) / period + ((padding - begin) % period >= segments.size ? 1 : 0);
    const uint64_t rest_begin = begin + whole * period;
    const auto append = [&](uint64_t at, uint64_t length, uint64_t periods) {
      pieces->push_back({length, segments.from[s], segments.step[s],
                         first + outward * static_cast<int64_t>(at), outward, periods,
                         outward * static_cast<int64_t>(period)});
    };
    if (whole > 0) append(begin, segments.size, whole);
    if (rest_begin < padding) append(rest_begin, padding - rest_begin, 1);
  }
}

// Appends a piece of dimension d with these strides.
void AppendPiece(const Piece& piece, int64_t from_stride, int64_t to_stride, AffineMap* map) {
  map->from += piece.from * from_stride;
  map->to += piece.to * to_stride;
  map->Append(piece.periods, 0, piece.period * to_stride);
  map->Append(piece.size, piece.from_step * from_stride, piece.to_step * to_stride);
}

// Up to this many copies read the input directly: every combination of the dimensions' pieces. Other
// dimensions are padded one by one, from the output as it is by then.
constexpr size_t kMaxCombinations = 64;

class BorderBuilder {
 public:
  BorderBuilder(const TensorDesc& input, const TensorDesc& output, PaddingMode mode,
                std::span<const uint32_t> start, std::span<const uint32_t> end)
      : input_(input), output_(output), start_(start) {
    for (uint32_t d = 0; d < input.rank; ++d) {
      const uint32_t size = input.sizes[d];
      pieces_[d].push_back({size, 0, 1, start[d], 1});
      AppendPieces(mode, size, start[d], start[d], /*at_end=*/false, &pieces_[d]);
      AppendPieces(mode, size, start[d], end[d], /*at_end=*/true, &pieces_[d]);
    }
  }

  std::vector<Copies> Build() const {
    uint32_t direct = input_.rank;  // dimensions from this one on are padded in the first stage
    size_t combinations = 1;
    while (direct > 0 && combinations * pieces_[direct - 1].size() <= kMaxCombinations) {
      combinations *= pieces_[--direct].size();
    }
    std::vector<Copies> stages(1);
    AppendCombinations(0, direct, {}, &stages[0]);
    for (uint32_t d = direct; d-- > 0;) {
      if (pieces_[d].size() > 1) stages.push_back(PadDimension(d));
    }
    return stages;
  }

 private:
  void AppendCombinations(uint32_t d, uint32_t direct, const AffineMap& map, Copies* copies) const {
    if (d == input_.rank) {
      copies->push_back({.map = map});
      return;
    }
    for (const Piece& piece : pieces_[d]) {
      AffineMap next = map;
      AppendPiece(piece, StrideOf(input_, d), StrideOf(output_, d), &next);
      AppendCombinations(d + 1, direct, next, copies);
      if (d < direct) break;  // only the input itself, which comes first
    }
  }

  // Copies from the output's part between this dimension's paddings; those of inner dimensions are already
  // written.
  Copies PadDimension(uint32_t across) const {
    Copies copies;
    for (size_t p = 1; p < pieces_[across].size(); ++p) {
      MoveCopy copy = {.source = MoveCopy::kOutput};
      for (uint32_t d = 0; d < output_.rank; ++d) {
        const int64_t stride = StrideOf(output_, d);
        if (d <= across) copy.map.from += start_[d] * stride;
        if (d < across) copy.map.to += start_[d] * stride;
        if (d == across) {
          AppendPiece(pieces_[across][p], stride, stride, &copy.map);
        } else {
          copy.map.Append(d < across ? input_.sizes[d] : output_.sizes[d], stride, stride);
        }
      }
      copies.push_back(copy);
    }
    return copies;
  }

  const TensorDesc& input_;
  const TensorDesc& output_;
  const std::span<const uint32_t> start_;
  std::array<std::vector<Piece>, kMaxDimensions> pieces_;  // the first is the input itself
};

}  // namespace

int64_t PaddedCoordinate(PaddingMode mode, int64_t i, int64_t size) {
  switch (mode) {
    case PaddingMode::kReflection: {
      if (size == 1) return 0;
      const int64_t m = Modulo(i, 2 * (size - 1));
      return m < size ? m : 2 * (size - 1) - m;
    }
    case PaddingMode::kSymmetric: {
      const int64_t m = Modulo(i, 2 * size);
      return m < size ? m : 2 * size - 1 - m;
    }
    case PaddingMode::kWrap:
      return Modulo(i, size);
    default:
      return std::clamp<int64_t>(i, 0, size - 1);
  }
}

std::vector<Copies> BorderStages(const TensorDesc& input, const TensorDesc& output, PaddingMode mode,
                                 std::span<const uint32_t> start, std::span<const uint32_t> end) {
  return BorderBuilder(input, output, mode, start, end).Build();
}

}  // namespace anydml
