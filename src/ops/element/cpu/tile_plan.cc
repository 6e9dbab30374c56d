#include "ops/element/cpu/tile_plan.h"

#include <algorithm>

#include "ops/common/nest_parts.h"
#include "ops/common/stream_copy.h"
#include "ops/element/ordered_loops.h"

namespace anydml {
namespace {

constexpr uint64_t kRowGranule = 32;
constexpr uint64_t kShortestAcross = 4;  // less is read well enough as it is

// Of tiles across an input: neighbours of it, at most; elements of a row, in which the other tensors are gone
// through; rows of a block of tiles; and whether these go down a block, along the input, or along the rows.
struct AcrossShape {
  uint64_t bytes;
  uint64_t longest_row;
  uint64_t block_rows;
  bool down;
};

// `inputs` of which `along` are gone through by rows.
AcrossShape ShapeAcross(uint64_t element_bits, size_t inputs, size_t along) {
#if defined(__x86_64__)
  // Where that input is all that is read, its columns are followed for long, so that machines foresee them:
  // relu of 4096 x 4096 numbers takes 18 ms on a Xeon of Cascade Lake with columns of 1 KiB and 28 with those
  // of 256 bytes, a cast 14 and 31; one of Sapphire Rapids takes a twentieth longer. Others are gone through
  // along their rows, in pieces that are long enough to be foreseen, too, which is worth more: an addition of
  // FLOAT16 takes 8 ms on a Xeon with rows of 1 KiB, 11 with those of 512 bytes and 17 with those of 256;
  // and 5.5 where the input's columns are 256 bytes, too, instead of 128, which is what it takes if nothing
  // lies across.
  (void)along;
  if (element_bits == 32)
    return inputs == 1 ? AcrossShape{1024, 64, 1024, true} : AcrossShape{1024, 128, 1024, false};
  if (element_bits == 16)
    return inputs == 1 ? AcrossShape{1024, 64, 1024, true} : AcrossShape{256, 512, 128, false};
  return {128, 512, 512, false};
#else
  (void)inputs;
  // What is turned should find room in a first cache of 64 KiB beside what it is added to, columns and rows
  // should be several lines, and rows no more lines a power of two apart than a second-level cache has room
  // for. 4096 x 4096 numbers of FLOAT32 on a Neoverse V1, where columns are asked for (see TransposeBlock):
  // relu takes 6.9 ms with 256 x 512 bytes, 7.5 with 512 x 512 and 12.6 with 512 x 1024; sums, of which the
  // other number is read by rows, 10.5, 13 and 20. Of FLOAT16, 256 x 256 bytes are better, but comparisons
  // then write bytes in rows that are too short.
  if (element_bits == 16 && along > 0) return {128, 256, 512, false};
  return {256, 128, 512, false};
#endif
}

uint64_t ChunksOf(const TileLoop& loop) { return (loop.size + loop.chunk - 1) / loop.chunk; }

// The place of tile `number` of a grid that is gone through in blocks of tiles, of which each row and each
// column may lie in a page of its own.
struct GridPlace {
  uint64_t row;
  uint64_t column;
};
GridPlace PlaceInBlocks(uint64_t number, const TileLoop& rows, const TileLoop& columns,
                        const TilePlan& plan) {
#if defined(__x86_64__)
  constexpr uint64_t kBlockColumns = 1024;
#else
  constexpr uint64_t kBlockColumns = 512;  // with as many rows of two tensors, what 1280 entries can tell
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

// How much larger tiles of narrow elements may be: what is turned stays as narrow as it is.
uint64_t TimesLarger(const ElementProblem& problem, uint64_t bits) {
#if defined(__x86_64__)
  return bits == 16 && problem.program.registers <= 2 ? 2 : 1;
#else
  (void)problem, (void)bits;
  return 1;
#endif
}

// Bits of the elements of the inputs that lie along `along` rather than along `last`.
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
    // Where there is little room, rows of two granules.
    const uint64_t length = std::min(shape.bytes * 8 / bits, elements_across / (2 * kRowGranule));
    beside.chunk = std::min(beside.size, length);
    const uint64_t room = elements_across / beside.chunk / kRowGranule * kRowGranule;
    loops.back().chunk = std::min({loops.back().size, shape.longest_row, room});
  } else {
    // What is not computed with needs no registers, but a call per tile.
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
    // Tiles of the first output, along which loops are ordered, lie one behind the other, unless strides
    // interleave: those that all begin at whole bytes share none.
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

// What a function that is called element by element may take, as bits that are moved; a conversion with
// 64 bits; and a function whose numbers decide how long it takes, where they are none of the worst.
constexpr uint64_t kBitsOfCalls = 1024, kBitsOfWide = 2048, kBitsOfNumbers = 4096;

// What is computed takes longer than what is moved.
uint64_t BitsPerElement(const ElementProblem& problem) {
  uint64_t bits = 32 * problem.program.ulps();
  for (const ElementOperand& operand : problem.inputs) bits += BitSize(operand.type);
  for (const ElementOperand& operand : problem.outputs) bits += BitSize(operand.type);
  return bits;
}

bool IsCalled(const Instruction& i) {
  return i.function > ElementFunction::kConvert && (InfoOf(i.function).vector_classes & Bit(i.type)) == 0;
}

// Of those that are called, the ones that always take long: quotients and powers of integers.
bool TakesLong(const Instruction& i) {
  return IsCalled(i) &&
         (i.function == ElementFunction::kDivide || i.function == ElementFunction::kModulusTruncate ||
          i.function == ElementFunction::kModulusFloor || i.function == ElementFunction::kPowerWrap ||
          i.function == ElementFunction::kPowerRounded);
}

// Of instructions that convert elements of 4 bits, or numbers of 64 bits, or to integers of 64 bits: nothing
// does so with vectors.
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

// Sines of large numbers, remainders of large quotients and powers take ten times as long as others.
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
  // Little is done in less time than another processor needs to get it from this one's caches, which takes
  // longer where those are far from each other.
#if defined(__x86_64__)
  constexpr uint64_t kLeastToShare = 512 << 10;
#else
  constexpr uint64_t kLeastToShare = 384 << 10;
#endif
  if (bytes < kLeastToShare) return 1;
  // What stays in the caches is cut into no more parts than there are threads: each finds its own there
  // again.
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
