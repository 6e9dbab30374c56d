#include "ops/convolution/cpu/pixel_weights.h"

#include "ops/convolution/cpu/channels_last_choice.h"
#include "ops/numbers/convert_rows.h"

namespace anydml {

PixelWeights::PixelWeights(const ConvolutionProblem& problem, const PixelFilter& filter,
                           const PixelSteps& steps, ScratchLayout* scratch)
    : filter_(filter),
      steps_(steps),
      owned_(problem.filter_is_owned),
      turns_(TurnsPieces(problem)),
      halves_(problem.type == DataType::kFloat16) {
  constexpr uint64_t kManyBytes = uint64_t{1} << 19;
  is_near_ = filter.bytes() <= kManyBytes;
  if (!turns_) packed_ = (owned_ ? &persistent_ : scratch)->Add("filters", filter.bytes(), 64);
}

uint64_t PixelWeights::OwnFloats(uint64_t width) const {
  return halves_ || turns_ ? steps_.MostSteps() * width : 0;
}

void PixelWeights::Initialize(const KernelArguments& arguments, uint32_t threads) const {
  filter_.Pack(arguments.inputs[1].data, arguments.executor, threads,
               packed_.In<std::byte>(arguments.persistent));
}

void PixelWeights::Pack(const KernelArguments& arguments, uint32_t threads) const {
  if (owned_ || turns_) return;
  filter_.Pack(arguments.inputs[1].data, arguments.executor, threads,
               packed_.In<std::byte>(arguments.temporary));
}

const std::byte* PixelWeights::PackedOf(const KernelArguments& arguments, const Place& place) const {
  const Buffer& memory = owned_ ? arguments.persistent : arguments.temporary;
  const uint64_t at = filter_.OffsetOf(place.group, place.block) + place.piece.first * WidthOf(place);
  return packed_.In<const std::byte>(memory) + at * (halves_ ? sizeof(uint16_t) : sizeof(float));
}

const float* PixelWeights::Of(const KernelArguments& arguments, const Place& place, float* own) const {
  const PixelSteps::Piece& piece = place.piece;
  if (turns_) {
    filter_.PackChannels(arguments.inputs[1].data, place.group, place.block, piece.channel, piece.channels,
                         own);
    return own;
  }
  const std::byte* const packed = PackedOf(arguments, place);
  if (!halves_) return reinterpret_cast<const float*>(packed);
  HalvesToFloats(reinterpret_cast<const uint16_t*>(packed), own, piece.steps * WidthOf(place));
  return own;
}

PixelWeights::Next PixelWeights::Behind(const KernelArguments& arguments, const Place& place) const {
  const PixelSteps::Piece& piece = place.piece;
  const bool is_last = &piece == &steps_.pieces().back();
  Next next;
  if (is_near_ || (is_last && place.number + 1 == filter_.blocks())) return next;
  if (turns_) {
    const PixelSteps::Piece& other = is_last ? steps_.pieces().front() : *(&piece + 1);
    const PixelFilter::Block block = is_last ? filter_.BlockOf(place.number + 1) : place.block;
    next.rows = filter_.RowsOf(arguments.inputs[1].data, place.group, block, other.channel, other.channels);
    return next;
  }
  next.bytes = piece.steps * WidthOf(place) * (halves_ ? sizeof(uint16_t) : sizeof(float));
  next.first = reinterpret_cast<uintptr_t>(PackedOf(arguments, place)) + next.bytes;
  return next;
}

}  // namespace anydml
