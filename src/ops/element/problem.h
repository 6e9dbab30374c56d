// The problem of an element kernel: a program, and the tensors to whose elements it is applied.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "ops/element/program.h"
#include "ops/implementation_list.h"
#include "schema/tensor_desc.h"

namespace anydml {

// Twice the dimensions of a tensor: blocks of quantisation parameters split each of them in two.
inline constexpr uint32_t kMaxElementLoops = 2 * kMaxDimensions;

struct ElementOperand {
  DataType type = DataType::kUnknown;                // how an element is read; kUnknown: the tensor is absent
  std::array<uint64_t, kMaxElementLoops> strides{};  // in elements
};

struct ElementProblem {
  static constexpr std::string_view kFamily = "element";

  uint32_t rank = 0;
  std::array<uint64_t, kMaxElementLoops> sizes{};  // of the loops, outermost first
  std::vector<ElementOperand> inputs;              // in binding order
  std::vector<ElementOperand> outputs;
  ElementProgram program;

  uint64_t Elements() const {
    uint64_t count = 1;
    for (uint32_t d = 0; d < rank; ++d) count *= sizes[d];
    return count;
  }
  // Bits as in DeviceTraits::data_types.
  uint32_t data_types() const {
    uint32_t types = 0;
    for (const auto* const operands : {&inputs, &outputs}) {
      for (const ElementOperand& operand : *operands) {
        if (operand.type != DataType::kUnknown) types |= 1u << static_cast<uint32_t>(operand.type);
      }
    }
    return types;
  }
};

Exactness ElementBound(const ElementProblem& problem);

// Whether the program only copies elements of input 0 to output 0, bit for bit.
bool IsMove(const ElementProblem& problem);

// The implementations' factories; implementations.cc lists them.
std::unique_ptr<const Kernel> CreateElementCopy(const ElementProblem& problem, const LowerContext& context,
                                                std::string* why_not);
std::unique_ptr<const Kernel> CreateElementDirect(const ElementProblem& problem, const LowerContext& context,
                                                  std::string* why_not);
std::unique_ptr<const Kernel> CreateElementTiles(const ElementProblem& problem, const LowerContext& context,
                                                 std::string* why_not);
std::unique_ptr<const Kernel> CreateElementReference(const ElementProblem& problem,
                                                     const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateElementCopyCuda(const ElementProblem& problem,
                                                    const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateElementFlatCuda(const ElementProblem& problem,
                                                    const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateElementAcrossCuda(const ElementProblem& problem,
                                                      const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateElementCompiledCuda(const ElementProblem& problem,
                                                        const LowerContext& context, std::string* why_not);
std::string BetterNotElementCompiledCuda(const ElementProblem& problem, const LowerContext& context);
std::unique_ptr<const Kernel> CreateElementProgramCuda(const ElementProblem& problem,
                                                       const LowerContext& context, std::string* why_not);

}  // namespace anydml
