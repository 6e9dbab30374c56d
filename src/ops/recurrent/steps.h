// Shared by all backends: first the products of all inputs with their weights; then, step by step, those of
// the state, and the gates, which each backend implements. Everything is FLOAT32.
#pragma once

#include <vector>

#include "kernel/composite.h"
#include "ops/gemm/problem.h"
#include "ops/recurrent/problem.h"

namespace anydml {

// The part of a step that its gates compute: all of it, or the part before or after the product with the
// reset state.
enum class GatePhase : uint8_t { kWhole, kReset, kAfterReset };

// Packed FLOAT32, except for the last four; null if there is no such tensor.
struct GateBuffers {
  // {direction, time, batch, gate and unit}: inputs times their weights; null if RunStep adds inputs.
  const float* from_inputs;
  // {direction, batch, gate and unit}: the state times its weights; null if RunStep keeps the sums itself.
  float* from_state;
  float* from_reset;  // {direction, batch, unit}: for the last gate, of the reset state
  float* hidden;      // {direction, batch, unit}
  float* cell;
  float* reset;
  const float* bias;      // {direction, 2 * gate and unit}
  const float* peephole;  // {direction, gate and unit}
  const uint32_t* lengths;
  std::byte* sequence;
  std::byte* single;
  std::byte* cell_single;
};

// All inputs times their weights, as FLOAT32: {direction, time, batch, gate and unit}.
GemmProblem InputProduct(const RecurrentProblem& problem);
// The bytes that this needs; saturates.
uint64_t InputProductBytes(const RecurrentProblem& problem);

class RecurrentSteps : public CompositeKernel {
 public:
  // To be called once, before anything else.
  Status Create(const LowerContext& context);
  Status Run(const KernelArguments& arguments) const override;
  Status Initialize(const KernelArguments& arguments) const override;
  bool packs_input(uint32_t input) const override;
  std::string made_of() const override;

 protected:
  explicit RecurrentSteps(const RecurrentProblem& problem) : problem_(problem) {}

  const RecurrentProblem& problem() const { return problem_; }
  // The number of gates in GateBuffers::from_state.
  uint32_t state_gates() const { return problem_.resets_first() ? 2 : problem_.gates(); }

  // A kernel for a product of states that packs its weights, elements of the problem's type, at
  // initialisation; null to use one from the list. Input 1 are the weights of states, 2 those of inputs.
  virtual std::unique_ptr<const Kernel> CreatePacking(const GemmProblem&) { return nullptr; }
  // Whether RunStep works without GateBuffers::from_inputs. Called after CreatePacking.
  virtual bool adds_inputs() const { return false; }
  // Whether it works without GateBuffers::from_state. Called after CreatePacking.
  virtual bool keeps_sums() const { return false; }
  virtual void Clear(const Buffer& buffer, const KernelArguments& arguments) const = 0;
  // Computes a step's state from sums and the previous state. Sequences that have ended keep theirs, and
  // their outputs become zero.
  virtual void RunGates(GatePhase phase, uint64_t step, const GateBuffers& buffers,
                        const KernelArguments& arguments) const = 0;
  // A step without a reset state: its product, whose arguments are `of_product`, and its gates.
  virtual Status RunStep(const Kernel& product, const KernelArguments& of_product, uint64_t step,
                         const GateBuffers& buffers, const KernelArguments& arguments) const;

 private:
  using Piece = ScratchLayout::Piece;

  // A tensor (or a part of it) that is copied into scratch, packed and as FLOAT32.
  struct Copy {
    uint32_t part;
    uint32_t input;
    uint64_t offset;  // in bytes
    Piece target;
  };

  // The product of states with the weights of some gates.
  struct Product {
    uint32_t part = 0;
    uint64_t offset = 0;                    // of its weights, in bytes
    bool is_packed_once = false;            // the part packs it at initialisation
    std::unique_ptr<const Kernel> packing;  // replaces the part: packs in every run
    Piece weights;    // packed, or copied as FLOAT32; empty: read in place, or packed once
    Piece temporary;  // of `packing`
  };

  Status AddCopy(const LowerContext& context, const char* name, uint32_t input, const TensorDesc& tensor,
                 uint64_t offset, Piece* target);
  Status AddProduct(const LowerContext& context, const GemmProblem& problem, uint32_t* part);
  Status AddStateProduct(const LowerContext& context, uint64_t first_column, uint64_t columns,
                         Product* product);
  Status RunCopies(const KernelArguments& arguments) const;
  // Calls `pack` for both products of states, with arguments whose input 1 has the weights.
  template <typename Pack>
  Status ForWeights(const KernelArguments& arguments, Pack&& pack) const;
  // Calls `run` with the product's kernel and its arguments.
  template <typename Body>
  Status ForStateProduct(const Product& product, const Buffer& state, const Buffer& output,
                         const KernelArguments& arguments, Body&& run) const;
  GateBuffers BuffersOf(const KernelArguments& arguments) const;

  RecurrentProblem problem_;
  std::vector<Copy> copies_;
  uint32_t input_product_ = 0;
  Product state_product_, reset_product_;
  Piece from_inputs_, from_state_, from_reset_, hidden_, cell_, reset_, bias_, peephole_;
};

template <typename Steps>
std::unique_ptr<const Kernel> CreateRecurrentSteps(const RecurrentProblem& problem,
                                                   const LowerContext& context, std::string* why_not) {
  auto kernel = std::make_unique<Steps>(problem, context);
  const Status status = kernel->Create(context);
  if (status.ok()) return kernel;
  *why_not = status.message();
  return nullptr;
}

}  // namespace anydml
