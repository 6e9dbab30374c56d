#include "ops/recurrent/steps.h"

#include <utility>

#include "ops/implementation_list.h"

namespace anydml {
namespace {

constexpr uint32_t kInput = 0, kWeight = 1, kRecurrence = 2, kBias = 3, kHiddenInit = 4;

// The stride of a dimension of size 1 is never used: it counts as 0, or as contiguous.
uint64_t OuterStride(const TensorDesc& tensor, uint32_t d) {
  return tensor.sizes[d] == 1 ? 0 : tensor.strides[d];
}
uint64_t InnerStride(const TensorDesc& tensor, uint32_t d) {
  return tensor.sizes[d] == 1 ? 1 : tensor.strides[d];
}

// The bytes of `count` times `each` numbers; saturates.
uint64_t BytesOf(uint64_t count, uint64_t each) {
  uint64_t numbers, bytes;
  if (__builtin_mul_overflow(count, each, &numbers)) return ~uint64_t{0};
  return __builtin_mul_overflow(numbers, sizeof(float), &bytes) ? ~uint64_t{0} : bytes;
}

// {1, direction, gate and unit, k} as the transposed right side of a product.
GemmMatrix RightSide(const TensorDesc& tensor) {
  return {{OuterStride(tensor, 1), 0}, InnerStride(tensor, 3), InnerStride(tensor, 2)};
}

ElementProblem CopyProblem(const TensorDesc& tensor) {
  const TensorDesc packed = PackedTensor(DataType::kFloat32, tensor.sizes.data(), tensor.rank);
  ElementProblem problem;
  problem.rank = tensor.rank;
  ElementOperand from = {tensor.type, {}}, to = {DataType::kFloat32, {}};
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    problem.sizes[d] = tensor.sizes[d];
    from.strides[d] = OuterStride(tensor, d);
    to.strides[d] = OuterStride(packed, d);
  }
  problem.inputs = {from};
  problem.outputs = {to};
  problem.program.Store(0, problem.program.Load(0, Class::kF32), Class::kF32);
  return problem;
}

}  // namespace

// Merges steps and batch into one dimension if their strides allow it.
GemmProblem InputProduct(const RecurrentProblem& p) {
  const uint64_t step = OuterStride(p.input, 1), element = OuterStride(p.input, 2);
  const bool merges = p.steps == 1 || p.batch == 1 || step == p.batch * element;
  GemmProblem product;
  product.type = p.type;
  product.n = p.gates() * p.units;
  product.k = p.inputs;
  product.b = RightSide(p.weight);
  product.b_is_owned = p.weight.owned_by_dml;
  const uint64_t of_direction = BytesOf(p.steps * p.batch, product.n) / sizeof(float);
  if (merges) {
    product.batch = {p.directions, 1};
    product.m = p.steps * p.batch;
    product.a = {{0, 0}, p.batch == 1 ? step : element, InnerStride(p.input, 3)};
    product.output = {{of_direction, 0}, product.n, 1};
  } else {
    product.batch = {p.directions, p.steps};
    product.m = p.batch;
    product.a = {{0, step}, element, InnerStride(p.input, 3)};
    product.output = {{of_direction, p.batch * product.n}, product.n, 1};
  }
  return product;
}

uint64_t InputProductBytes(const RecurrentProblem& p) {
  return BytesOf(p.directions * p.steps * p.batch, p.gates() * p.units);
}

Status RecurrentSteps::AddCopy(const LowerContext& context, const char* name, uint32_t input,
                               const TensorDesc& tensor, uint64_t offset, Piece* target) {
  LoweredOperator lowered;
  ANYDML_RETURN_IF_ERROR(ChooseKernel(CopyProblem(tensor), context, &lowered));
  *target = AddScratch(name, ElementCount(tensor) * sizeof(float));
  const uint32_t part = AddPart(lowered.implementation, std::move(lowered.kernel));
  copies_.push_back({part, input, offset * (BitSize(tensor.type) / 8), *target});
  return {};
}

Status RecurrentSteps::AddProduct(const LowerContext& context, const GemmProblem& problem, uint32_t* part) {
  LoweredOperator lowered;
  ANYDML_RETURN_IF_ERROR(ChooseKernel(problem, context, &lowered));
  *part = AddPart(lowered.implementation, std::move(lowered.kernel));
  return {};
}

// The product of {direction, batch, unit} with the weights of gates and units [first_column, first_column +
// columns).
Status RecurrentSteps::AddStateProduct(const LowerContext& context, uint64_t first_column, uint64_t columns,
                                       Product* product) {
  const RecurrentProblem& p = problem_;
  const uint64_t offset = first_column * p.recurrence.strides[2];
  TensorDesc weights = p.recurrence;
  weights.sizes[2] = static_cast<uint32_t>(columns);
  GemmProblem problem;
  problem.batch = {p.directions, 1};
  problem.m = p.batch;
  problem.n = columns;
  problem.k = p.units;
  problem.a = {{p.batch * p.units, 0}, p.units, 1};
  problem.b = RightSide(weights);
  problem.output = {{p.batch * columns, 0}, columns, 1};
  product->offset = offset * (BitSize(p.type) / 8);
  problem.b_is_owned = p.recurrence.owned_by_dml;
  if (p.steps > 1 || problem.b_is_owned) product->packing = CreatePacking(problem);
  if (product->packing != nullptr && problem.b_is_owned) {
    product->is_packed_once = true;
    product->part = AddPart("packed recurrence", std::move(product->packing));
    return {};
  }
  if (product->packing != nullptr) {
    product->weights = AddScratch("packed recurrence", product->packing->persistent_bytes());
    product->temporary = AddScratch("packed state", product->packing->temporary_bytes());
    return {};
  }
  problem.b_is_owned = false;
  // Product kernels require FLOAT32 on both sides, and matrices aligned as bindings are.
  if (p.type != DataType::kFloat32 || offset != 0) {
    ANYDML_RETURN_IF_ERROR(AddCopy(context, "recurrence", kRecurrence, weights, offset, &product->weights));
    problem.b = {{columns * p.units, 0}, 1, p.units};
  }
  return AddProduct(context, problem, &product->part);
}

Status RecurrentSteps::Create(const LowerContext& context) {
  const RecurrentProblem& p = problem_;
  const LowerContext part = context.ForPart();
  const uint64_t state_bytes = BytesOf(p.directions * p.batch, p.units);
  if (p.hidden_init) {
    ANYDML_RETURN_IF_ERROR(AddCopy(part, "hidden state", kHiddenInit, *p.hidden_init, 0, &hidden_));
  } else {
    hidden_ = AddScratch("hidden state", state_bytes);
  }
  if (p.cell_init) {
    ANYDML_RETURN_IF_ERROR(AddCopy(part, "cell state", RecurrentProblem::kCellInit, *p.cell_init, 0, &cell_));
  } else if (p.kind == CellKind::kLstm) {
    cell_ = AddScratch("cell state", state_bytes);
  }
  if (p.bias) ANYDML_RETURN_IF_ERROR(AddCopy(part, "bias", kBias, *p.bias, 0, &bias_));
  if (p.peephole) {
    ANYDML_RETURN_IF_ERROR(
        AddCopy(part, "peephole", RecurrentProblem::kPeephole, *p.peephole, 0, &peephole_));
  }
  const uint64_t columns = state_gates() * p.units;
  ANYDML_RETURN_IF_ERROR(AddStateProduct(part, 0, columns, &state_product_));
  if (!keeps_sums()) from_state_ = AddScratch("of the state", BytesOf(p.directions * p.batch, columns));
  if (!adds_inputs()) {
    from_inputs_ = AddScratch("of inputs", InputProductBytes(p));
    ANYDML_RETURN_IF_ERROR(AddProduct(part, InputProduct(p), &input_product_));
  }
  if (!p.resets_first()) return {};
  reset_ = AddScratch("reset state", state_bytes);
  from_reset_ = AddScratch("of the reset state", state_bytes);
  return AddStateProduct(part, columns, p.units, &reset_product_);
}

std::string RecurrentSteps::made_of() const {
  std::string parts = CompositeKernel::made_of();
  if (state_product_.packing == nullptr) return parts;
  return StrCat(parts, parts.empty() ? "" : ", ", "packed recurrence");
}

GateBuffers RecurrentSteps::BuffersOf(const KernelArguments& arguments) const {
  const RecurrentProblem& p = problem_;
  const auto numbers = [&](const Piece& piece) {
    return piece.bytes == 0 ? nullptr : piece.In<float>(arguments.temporary);
  };
  const std::byte* const lengths = p.lengths ? arguments.inputs[p.lengths_binding()].data : nullptr;
  return {numbers(from_inputs_),
          numbers(from_state_),
          numbers(from_reset_),
          numbers(hidden_),
          numbers(cell_),
          numbers(reset_),
          numbers(bias_),
          numbers(peephole_),
          reinterpret_cast<const uint32_t*>(lengths),
          p.sequence ? arguments.outputs[0].data : nullptr,
          p.single ? arguments.outputs[1].data : nullptr,
          p.cell_single ? arguments.outputs[2].data : nullptr};
}

Status RecurrentSteps::RunCopies(const KernelArguments& arguments) const {
  for (const Copy& copy : copies_) {
    const Buffer& whole = arguments.inputs[copy.input];
    const Buffer from = {whole.data + copy.offset, whole.size - copy.offset};
    const Buffer to = copy.target.In(arguments.temporary);
    KernelArguments part = arguments;
    part.inputs = {&from, 1};
    part.outputs = {&to, 1};
    ANYDML_RETURN_IF_ERROR(RunPart(copy.part, part));
  }
  if (!problem_.hidden_init) Clear(hidden_.In(arguments.temporary), arguments);
  if (cell_.bytes != 0 && !problem_.cell_init) Clear(cell_.In(arguments.temporary), arguments);
  return {};
}

template <typename Pack>
Status RecurrentSteps::ForWeights(const KernelArguments& arguments, Pack&& pack) const {
  const Buffer& recurrence = arguments.inputs[kRecurrence];
  if (recurrence.data == nullptr) return {};  // packed already, or not yet available
  for (const Product* const product : {&state_product_, &reset_product_}) {
    const Buffer inputs[] = {{},
                             {recurrence.data + product->offset, recurrence.size - product->offset},
                             arguments.inputs[kWeight]};
    KernelArguments own = arguments;
    own.inputs = inputs;
    ANYDML_RETURN_IF_ERROR(pack(*product, own));
  }
  return {};
}

bool RecurrentSteps::packs_input(uint32_t input) const {
  if (input == kWeight && !adds_inputs()) return PartPacksInput(input_product_, 1);
  return (input == kWeight || input == kRecurrence) && state_product_.is_packed_once;
}

Status RecurrentSteps::Initialize(const KernelArguments& arguments) const {
  const Buffer inputs[] = {{}, arguments.inputs[kWeight], {}};
  KernelArguments product = arguments;
  product.inputs = inputs;
  if (!adds_inputs()) ANYDML_RETURN_IF_ERROR(InitializePart(input_product_, product));
  return ForWeights(arguments, [&](const Product& of_state, const KernelArguments& own) -> Status {
    return of_state.is_packed_once ? InitializePart(of_state.part, own) : Status();
  });
}

template <typename Body>
Status RecurrentSteps::ForStateProduct(const Product& product, const Buffer& state, const Buffer& output,
                                       const KernelArguments& arguments, Body&& run) const {
  const Buffer weights =
      product.weights.bytes != 0 ? product.weights.In(arguments.temporary) : arguments.inputs[kRecurrence];
  const Buffer inputs[] = {state, weights, {}};
  KernelArguments own = arguments;
  own.inputs = inputs;
  own.outputs = {&output, 1};
  if (product.packing == nullptr) return run(KernelOf(product.part), ArgumentsToRun(product.part, own));
  own.temporary = product.temporary.In(arguments.temporary);
  own.persistent = weights;
  return run(*product.packing, own);
}

Status RecurrentSteps::RunStep(const Kernel& product, const KernelArguments& of_product, uint64_t step,
                               const GateBuffers& buffers, const KernelArguments& arguments) const {
  ANYDML_RETURN_IF_ERROR(product.Run(of_product));
  RunGates(GatePhase::kWhole, step, buffers, arguments);
  return {};
}

Status RecurrentSteps::Run(const KernelArguments& arguments) const {
  const GateBuffers buffers = BuffersOf(arguments);
  const Buffer& memory = arguments.temporary;
  const Buffer inputs[] = {arguments.inputs[kInput], arguments.inputs[kWeight], {}};
  const Buffer from_inputs = from_inputs_.In(memory);
  KernelArguments product = arguments;
  product.inputs = inputs;
  product.outputs = {&from_inputs, 1};
  if (!adds_inputs()) ANYDML_RETURN_IF_ERROR(RunPart(input_product_, product));
  ANYDML_RETURN_IF_ERROR(RunCopies(arguments));
  ANYDML_RETURN_IF_ERROR(
      ForWeights(arguments, [&](const Product& of_state, const KernelArguments& own) -> Status {
        if (of_state.packing == nullptr) return {};
        KernelArguments packing = own;
        packing.persistent = of_state.weights.In(memory);
        return of_state.packing->Initialize(packing);
      }));
  for (uint64_t step = 0; step < problem_.steps; ++step) {
    const Buffer hidden = hidden_.In(memory), from_state = from_state_.In(memory);
    if (!problem_.resets_first()) {
      const auto run_step = [&](const Kernel& kernel, const KernelArguments& own) {
        return RunStep(kernel, own, step, buffers, arguments);
      };
      ANYDML_RETURN_IF_ERROR(ForStateProduct(state_product_, hidden, from_state, arguments, run_step));
      continue;
    }
    const auto run = [](const Kernel& kernel, const KernelArguments& own) { return kernel.Run(own); };
    ANYDML_RETURN_IF_ERROR(ForStateProduct(state_product_, hidden, from_state, arguments, run));
    RunGates(GatePhase::kReset, step, buffers, arguments);
    ANYDML_RETURN_IF_ERROR(
        ForStateProduct(reset_product_, reset_.In(memory), from_reset_.In(memory), arguments, run));
    RunGates(GatePhase::kAfterReset, step, buffers, arguments);
  }
  return {};
}

}  // namespace anydml
