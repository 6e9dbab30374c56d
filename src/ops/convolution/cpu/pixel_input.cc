#include "ops/convolution/cpu/pixel_input.h"

#include <cstring>

#include "ops/numbers/convert_rows.h"

namespace anydml {

PixelInput::PixelInput(const ConvolutionProblem& problem, const InputPixels& pixels, const PixelParts& parts,
                       ScratchLayout* scratch)
    : pixels_(pixels), channels_(problem.shape.input_channels), block_pixels_(parts.pixels) {
  constexpr uint64_t kMostConverted = uint64_t{1} << 19;  // FLOAT32 numbers per worker
  constexpr uint64_t kMostTurned = uint64_t{1} << 17;     // these stay in L2
  const ConvolutionWindow& slices = problem.shape.windows[0];
  const uint64_t seen = pixels.MostSeen(block_pixels_);
  converts_ = problem.type == DataType::kFloat16 && pixels.is_in_order() && seen <= kMostConverted;
  // Only if each block of pixels is taken once; otherwise several workers would do the same.
  turns_ = pixels.has_planes() && seen <= kMostTurned && slices.input == 1 && slices.output == 1 &&
           slices.taps == 1 && (pixels.sees_one() || parts.channel_parts == 1);
  copies_all_ = pixels.copies() && !turns_ && !converts_;
  if (copies_all_) copy_ = scratch->Add("input", pixels.CopyFloats() * sizeof(float), 64);
}

uint64_t PixelInput::OwnFloats() const {
  return converts_ || turns_ ? (pixels_.MostSeen(block_pixels_) + 15) / 16 * 16 : 0;
}

void PixelInput::Copy(const KernelArguments& arguments, uint32_t workers) const {
  if (!copies_all_) return;
  pixels_.Copy(arguments.inputs[0].data, arguments.executor, workers, copy_.In<float>(arguments.temporary));
}

// If possible, FLOAT16 is converted, and planes are transposed to pixels, just before the worker reads them:
// a copy of the whole input would go through more distant memory. What the previous pixels also used is kept.
uintptr_t PixelInput::For(const OutputPixels& pixels, const KernelArguments& arguments, float* own,
                          InputPixels::Range* held) const {
  const std::byte* const given = arguments.inputs[0].data;
  if (copies_all_) return reinterpret_cast<uintptr_t>(copy_.In<const float>(arguments.temporary));
  if (!converts_ && !turns_) return reinterpret_cast<uintptr_t>(given);
  const InputPixels::Range seen = pixels_.Seen(pixels);
  if (seen.begin < held->begin || seen.end > held->end) {
    uint64_t done = seen.begin;
    if (seen.begin >= held->begin && seen.begin < held->end) {
      done = held->end;
      std::memmove(own, own + (seen.begin - held->begin), (done - seen.begin) * sizeof(float));
    }
    float* const to = own + (done - seen.begin);
    if (turns_) {
      pixels_.CopyPositions(given, done / channels_, (seen.end - done) / channels_, to);
    } else {
      HalvesToFloats(reinterpret_cast<const uint16_t*>(given) + done, to, seen.end - done);
    }
    *held = seen;
  }
  return reinterpret_cast<uintptr_t>(own) - held->begin * sizeof(float);
}

}  // namespace anydml
