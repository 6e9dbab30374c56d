#include "ops/element/cpu/tile_plan.h"

#include <algorithm>

#include "ops/common/nest_parts.h"
#include "ops/common/stream_copy.h"
#include "ops/element/ordered_loops.h"

namespace anydml {
namespace {

constexpr uint64_t kRowGranule = 32;
constexpr uint64_t kShortestAcross = 4;  // fewer are read well enough without it

// The shape of tiles for a transposed input: its contiguous bytes per tile, at most; the elements of a row,
// along which the other tensors are contiguous; the rows of a block of tiles; and whether tiles are visited
// down a block, along the input, or along the rows.
struct AcrossShape {
  uint64_t bytes;
  uint64_t longest_row;
  uint64_t block_rows;
  bool down;
};

// `along`: how many of `inputs` are contiguous along the rows.
AcrossShape ShapeAcross(uint64_t element_bits, size_t inputs, size_t along) {
#if defined(__x86_64__)
  // If the transposed input is the only one, long columns let hardware prefetch it: relu of 4096 x 4096
  // numbers takes 18 ms on a Cascade Lake Xeon with columns of 1 KiB and 28 with 256 bytes, a cast 14 and 31;
  // Sapphire Rapids is a twentieth slower. With other inputs, rows long enough for their hardware prefetch
  // are worth more: an addition of FLOAT16 takes 8 ms on a Xeon with rows of 1 KiB, 11 with 512 bytes and 17
  // with 256; and 5.5 if the input's columns are 256 bytes instead of 128, the same as without a transposed
  // input.
  (void)along;
  if (element_bits == 32)
    return inputs == 1 ? AcrossShape{1024, 64, 1024, true} : AcrossShape{1024, 128, 1024, false};
  if (element_bits == 16)
    return inputs == 1 ? AcrossShape{1024, 64, 1024, true} : AcrossShape{256, 512, 128, false};
  return {128, 512, 512, false};
#else
  (void)inputs;
  // Transposed data should fit into a 64 KiB L1 beside what it is combined with, columns and rows should be
  // several cache lines, and a tile should have no more rows a power of two apart than L2 can hold without
  // conflicts. 4096 x 4096 FLOAT32 numbers on a Neoverse V1, with prefetched columns (see TransposeBlock):
  // relu takes 6.9 ms with 256 x 512 bytes, 7.5 with 512 x 512 and 12.6 with 512 x 1024; sums, whose other
  // input is read by rows, 10.5, 13 and 20. For FLOAT16, 256 x 256 bytes are better, but comparisons then
  // write bytes in rows that are too short.
  if (element_bits == 16 && along > 0) return {128, 256, 512, false};
  return {256, 128, 512, false};
#endif
}

uint64_t ChunksOf(const TileLoop& loop) { return (loop.size + loop.chunk - 1) / loop.chunk; }

// The place of tile `number` in a grid that is visited in blocks of tiles, since each row and each column may
// be in a page of its own.
struct GridPlace {
  uint64_t row;
  uint64_t column;
};
GridPlace PlaceInBlocks(uint64_t number, const TileLoop& rows, const TileLoop& columns,
                        const TilePlan& plan) {
#if defined(__x86_64__)
  constexpr uint64_t kBlockColumns = 1024;
#else
  constexpr uint64_t kBlockColumns = 512;  // with as many rows of two tensors, this is what a TLB of 1280
                                           // entries covers
#endif
  const uint64_t most_rows = std::max<uint64_t>(1, plan.block_rows / rows.chunk);
  const uint64_t most_columns = std::max<uint64_t>(1, kBlockColumns / columns.chunk);
  const uint64_t first_row = number / (most_rows * ChunksOf(columns)) * most_rows;
  number -= first_row * ChunksOf(columns);
  const uint64_t height = std::min(most_rows, ChunksOf(rows) - first_row);
  const uint64_t first_column = number / (height * most_columns) * most_columns;
  number -= first_column * height;
  const uint64_t width = std::min(most_columns, ChunksOf(columns) - first_column);
  if (plan.down) return {first_row + number % height, first_column + number / height};
  return {first_row + number / width, first_column + number % width};
}

// How much larger tiles of narrow elements may be, since transposed data stays narrow.
uint64_t TimesLarger(const ElementProblem& problem, uint64_t bits) {
#if defined(__x86_64__)
  return bits == 16 && problem.program.registers <= 2 ? 2 : 1;
#else
  (void)problem, (void)bits;
  return 1;
#endif
}

// The width of the inputs that are contiguous along `along` rather than along `last`.
uint64_t BitsAcross(const ElementProblem& problem, const TileLoop& along, const TileLoop& last) {
  uint64_t bits = 8;
  for (size_t i = 0; i < problem.inputs.size(); ++i) {
    const uint64_t stride = along.strides[i];
    if (stride > 0 && stride < last.strides[i])
      bits = std::max<uint64_t>(bits, BitSize(problem.inputs[i].type));
  }
  return bits;
}

}  // namespace

TilePlan::TilePlan(const ElementProblem& problem, uint64_t elements, uint64_t elements_across)
    : loops(OrderedLoops<TileLoop>(problem)) {
  if (loops.empty()) return;
  const size_t beside_at = FindAcross(loops, problem.inputs.size(), kShortestAcross);
  across = beside_at + 1 < loops.size();
  if (across) {
    MoveBesideLast(&loops, beside_at);
    TileLoop& beside = loops[loops.size() - 2];
    const uint64_t bits = BitsAcross(problem, beside, loops.back());
    const auto goes_along = [&](uint64_t stride) { return stride == 1; };
    const auto& strides = loops.back().strides;
    const auto along = std::count_if(strides.begin(), strides.begin() + problem.inputs.size(), goes_along);
    const AcrossShape shape = ShapeAcross(bits, problem.inputs.size(), static_cast<size_t>(along));
    elements_across *= TimesLarger(problem, bits);
    block_rows = shape.block_rows;
    down = shape.down;
    // With little room, rows have two granules.
    const uint64_t length = std::min(shape.bytes * 8 / bits, elements_across / (2 * kRowGranule));
    beside.chunk = std::min(beside.size, length);
    const uint64_t room = elements_across / beside.chunk / kRowGranule * kRowGranule;
    loops.back().chunk = std::min({loops.back().size, shape.longest_row, room});
  } else {
    // Moves need no registers, but each tile costs a call.
    constexpr uint64_t kTilesOfMoves = 4;
    uint64_t rest = problem.program.instructions.size() == 2 ? kTilesOfMoves * elements : elements;
    for (size_t d = loops.size(); d-- > 0 && rest > 1;) {
      loops[d].chunk = std::min(loops[d].size, rest);
      rest /= loops[d].chunk;
    }
  }
  for (const TileLoop& loop : loops) tiles *= ChunksOf(loop);
}

bool TilePlan::SharesBytes(const ElementProblem& problem) const {
  for (size_t o = 0; o < problem.outputs.size(); ++o) {
    if (BitSize(problem.outputs[o].type) >= 8) continue;
    if (o > 0 || across) return true;
    // Tiles of the first output, which gives the order of loops, are contiguous unless strides interleave: if
    // all begin at whole bytes, none share a byte.
    uint64_t span = 1;  // of the loops inside
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
      const uint64_t stride = loop->strides[problem.inputs.size()];
      if (loop->chunk < loop->size && (stride < span || loop->chunk * stride % 2 != 0)) return true;
      span += (loop->size - 1) * stride;
    }
  }
  return false;
}

namespace {

// The cost, in bits moved, of a function that is called element by element; of a conversion with 64 bits; and
// of a function whose time depends on the numbers, for usual ones.
constexpr uint64_t kBitsOfCalls = 1024, kBitsOfWide = 2048, kBitsOfNumbers = 4096;

// Computing takes longer than moving.
uint64_t BitsPerElement(const ElementProblem& problem) {
  uint64_t bits = 32 * problem.program.ulps();
  for (const ElementOperand& operand : problem.inputs) bits += BitSize(operand.type);
  for (const ElementOperand& operand : problem.outputs) bits += BitSize(operand.type);
  return bits;
}

bool IsCalled(const Instruction& i) {
  return i.function > ElementFunction::kConvert && (InfoOf(i.function).vector_classes & Bit(i.type)) == 0;
}

// Called functions that always take long: quotients and powers of integers.
bool TakesLong(const Instruction& i) {
  return IsCalled(i) &&
         (i.function == ElementFunction::kDivide || i.function == ElementFunction::kModulusTruncate ||
          i.function == ElementFunction::kModulusFloor || i.function == ElementFunction::kPowerWrap ||
          i.function == ElementFunction::kPowerRounded);
}

// For instructions that convert 4-bit elements or 64-bit numbers, which no vector code does.
uint64_t BitsOfConversion(const ElementProblem& problem, const Instruction& i) {
  const auto takes_long = [&](Class to) {
    return IsFloat(i.type) && i.type != to && (IsWide(i.type) || IsWide(to));
  };
  switch (i.function) {
    case ElementFunction::kLoad:
      return BitSize(problem.inputs[i.sources[0]].type) < 8 ? kBitsOfCalls : 0;
    case ElementFunction::kStore: {
      const DataType type = problem.outputs[i.target].type;
      return BitSize(type) < 8 ? kBitsOfCalls : takes_long(ClassOf(type)) ? kBitsOfWide : 0;
    }
    case ElementFunction::kConvert:
      return takes_long(i.to) ? kBitsOfWide : 0;
    default:
      return 0;
  }
}

// Sines of large numbers, remainders of large quotients and powers take ten times as long as usual.
bool NumbersDecide(const Instruction& i) {
  switch (i.function) {
    case ElementFunction::kSin:
    case ElementFunction::kCos:
    case ElementFunction::kTan:
    case ElementFunction::kPowerWrap:
    case ElementFunction::kPowerRounded:
      return true;
    case ElementFunction::kModulusTruncate:
    case ElementFunction::kModulusFloor:
      return IsFloat(i.type);
    default:
      return false;
  }
}

}  // namespace

uint64_t WorkBytes(const ElementProblem& problem) {
  const auto& instructions = problem.program.instructions;
  const auto count = [&](bool (*is)(const Instruction&)) {
    return static_cast<uint64_t>(std::count_if(instructions.begin(), instructions.end(), is));
  };
  uint64_t bits = BitsPerElement(problem) + 16 * instructions.size() + kBitsOfCalls * count(IsCalled) +
                  kBitsOfNumbers * count(NumbersDecide);
  for (const Instruction& i : instructions) bits += BitsOfConversion(problem, i);
  return problem.Elements() * bits / 8;
}

uint32_t PartsOf(const ElementProblem& problem, uint32_t threads) {
  const auto& instructions = problem.program.instructions;
  const auto long_ones =
      static_cast<uint64_t>(std::count_if(instructions.begin(), instructions.end(), TakesLong));
  const uint64_t bytes = problem.Elements() * (BitsPerElement(problem) + kBitsOfCalls * long_ones) / 8;
  // Sharing little work does not pay: another processor would need longer to get the data from this one's
  // caches, especially if those are far apart.
#if defined(__x86_64__)
  constexpr uint64_t kLeastToShare = 512 << 10;
#else
  constexpr uint64_t kLeastToShare = 384 << 10;
#endif
  if (bytes < kLeastToShare) return 1;
  // What stays in the caches is cut into at most as many parts as there are threads, so that each thread
  // finds its part in its cache again.
  constexpr uint64_t kCacheBytes = 1 << 20;
  const uint32_t parts = std::max(PartsForBytes(bytes, threads), std::min(threads, 2u));
  return bytes < kCacheBytes * threads ? std::min(parts, threads) : parts;
}

bool StreamsOutput(const ElementProblem& problem) {
  return StreamsResults(problem.Elements() * BitSize(problem.outputs[0].type) / 8);
}

Tile::Tile(const TilePlan& plan, uint64_t index) : plan(plan) {
  size_t outer = plan.loops.size();
  if (plan.across) {
    const TileLoop& rows = plan.loops[outer - 2];
    const TileLoop& columns = plan.loops[outer - 1];
    const uint64_t grid = ChunksOf(rows) * ChunksOf(columns);
    const GridPlace place = PlaceInBlocks(index % grid, rows, columns, plan);
    begins[outer - 2] = place.row * rows.chunk;
    begins[outer - 1] = place.column * columns.chunk;
    index /= grid;
    outer -= 2;
  }
  for (size_t d = outer; d-- > 0;) {
    const TileLoop& loop = plan.loops[d];
    begins[d] = index % ChunksOf(loop) * loop.chunk;
    index /= ChunksOf(loop);
  }
  for (size_t d = 0; d < plan.loops.size(); ++d) {
    const TileLoop& loop = plan.loops[d];
    const uint64_t extent = std::min(loop.chunk, loop.size - begins[d]);
    if (extent > 1) loops[rank++] = {extent, &loop};
    elements *= extent;
  }
}

uint64_t Tile::Offset(uint32_t operand) const {
  uint64_t offset = 0;
  for (size_t d = 0; d < plan.loops.size(); ++d) offset += begins[d] * plan.loops[d].strides[operand];
  return offset;
}

bool Tile::IsContiguous(uint32_t operand) const {
  uint64_t expected = 1;
  for (uint32_t d = rank; d-- > 0;) {
    if (loops[d].loop->strides[operand] != expected) return false;
    expected *= loops[d].extent;
  }
  return true;
}

}  // namespace anydml
