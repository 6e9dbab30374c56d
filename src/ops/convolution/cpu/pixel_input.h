// Where tiles of pixels read their input: where it is, from a copy of all of it, or from one of what a block
// of pixels sees.
#pragma once

#include <cstdint>

#include "kernel/scratch_layout.h"
#include "ops/convolution/cpu/pixel_parts.h"
#include "ops/convolution/cpu/pixels.h"

namespace anydml {

class PixelInput {
 public:
  // `pixels` stays.
  PixelInput(const ConvolutionProblem& problem, const InputPixels& pixels, const PixelParts& parts,
             ScratchLayout* scratch);

  bool converts() const { return converts_; }  // FLOAT16, block by block
  bool turns() const { return turns_; }        // planes, block by block
  uint64_t OwnFloats() const;                  // of a worker
  // First of all.
  void Copy(const KernelArguments& arguments, uint32_t workers) const;
  // The address that pixels count from. `held`: what of the input is in the worker's memory.
  uintptr_t For(const OutputPixels& pixels, const KernelArguments& arguments, float* own,
                InputPixels::Range* held) const;
  // Planes that are not held and that the next pixels see.
  RowsAhead Next(const InputPixels::Range& held, const KernelArguments& arguments) const {
    return pixels_.Positions(arguments.inputs[0].data, held.end / channels_, block_pixels_);
  }

 private:
  const InputPixels& pixels_;
  uint64_t channels_, block_pixels_;
  bool converts_, turns_, copies_all_;
  ScratchLayout::Piece copy_;
};

}  // namespace anydml
