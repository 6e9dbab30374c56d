// The memory from which tiles of pixels read: the input itself, a copy of all of it, or a copy of what a
// block of pixels uses.
#pragma once

#include <cstdint>

#include "kernel/scratch_layout.h"
#include "ops/convolution/cpu/pixel_parts.h"
#include "ops/convolution/cpu/pixels.h"

namespace anydml {

class PixelInput {
 public:
  // Keeps a reference to `pixels`.
  PixelInput(const ConvolutionProblem& problem, const InputPixels& pixels, const PixelParts& parts,
             ScratchLayout* scratch);

  bool converts() const { return converts_; }  // converts FLOAT16 block by block
  bool turns() const { return turns_; }        // transposes planes block by block
  uint64_t OwnFloats() const;                  // per worker
  // To be called first.
  void Copy(const KernelArguments& arguments, uint32_t workers) const;
  // The address from which pixels count. `held`: the part of the input in the worker's memory.
  uintptr_t For(const OutputPixels& pixels, const KernelArguments& arguments, float* own,
                InputPixels::Range* held) const;
  // Planes for the next pixels that are not held yet.
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
