#include "ops/convolution/cpu/pixel_input.h"

#include "ops/element/cpu/rows.h"

namespace anydml {

PixelInput::PixelInput(const ConvolutionProblem& problem, const InputPixels& pixels, uint64_t block_pixels,
                       ScratchLayout* scratch)
    : pixels_(pixels), channels_(problem.shape.input_channels), block_pixels_(block_pixels) {
  constexpr uint64_t kMostConverted = uint64_t{1} << 19;  // FLOAT32, by each worker
  converts_ = problem.type == DataType::kFloat16 && pixels.is_in_order() &&
              pixels.MostSeen(block_pixels) <= kMostConverted;
  copies_all_ = pixels.copies() && !pixels.copies_blocks() && !converts_;
  if (copies_all_) copy_ = scratch->Add("input", pixels.CopyFloats() * sizeof(float), 64);
}

uint64_t PixelInput::OwnFloats() const {
  if (converts_) return (pixels_.MostSeen(block_pixels_) + 15) / 16 * 16;
  return pixels_.copies_blocks() ? block_pixels_ * channels_ : 0;
}

void PixelInput::Copy(const KernelArguments& arguments, uint32_t workers) const {
  if (!copies_all_) return;
  pixels_.Copy(arguments.inputs[0].data, arguments.executor, workers, copy_.In<float>(arguments.temporary));
}

// FLOAT16 becomes FLOAT32, and planes become pixels, where the worker soon reads them, if that is possible: a
// copy of the whole input would be written to and read from more distant memory.
uintptr_t PixelInput::For(const OutputPixels& pixels, uint64_t first, const KernelArguments& arguments,
                          float* own, uint64_t* held) const {
  const std::byte* const given = arguments.inputs[0].data;
  if (copies_all_) return reinterpret_cast<uintptr_t>(copy_.In<const float>(arguments.temporary));
  uint64_t begin = 0;  // of what is in the worker's memory
  if (converts_) {
    const InputPixels::Range seen = pixels_.Seen(pixels);
    begin = seen.begin;
    const auto* const halves = reinterpret_cast<const uint16_t*>(given) + begin;
    if (*held != first) HalvesToFloats(halves, own, seen.end - begin);
  } else if (pixels_.copies_blocks()) {
    begin = first * channels_;
    const auto* const planes = reinterpret_cast<const float*>(given);
    if (*held != first) pixels_.CopyBlock(planes, first, pixels.count, own);
  } else {
    return reinterpret_cast<uintptr_t>(given);
  }
  *held = first;
  return reinterpret_cast<uintptr_t>(own) - begin * sizeof(float);
}

}  // namespace anydml
