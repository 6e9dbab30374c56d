#include "graph/run/row_blocks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "kernel/scratch_layout.h"
#include "ops/common/parallel.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

// of the elements, or of the reader
constexpr size_t kMostOperands = 32;

class RowBlocksKernel final : public Kernel {
 public:
  RowBlocksKernel(RowBlocks blocks, uint32_t threads) : blocks_(std::move(blocks)) {
    const uint64_t cuts = (blocks_.sizes.back() + blocks_.count - 1) / blocks_.count;
    items_ = cuts;
    for (size_t k = 0; k + 1 < blocks_.sizes.size(); ++k) items_ *= blocks_.sizes[k];
    workers_ = static_cast<uint32_t>(std::min<uint64_t>(threads, items_));
  }

  Status Create(const LowerContext& context) {
    LowerContext part = context.ForPart();
    part.threads = 1;  // the parallelism is over blocks
    ANYDML_RETURN_IF_ERROR(Lower(blocks_.whole, part, &whole_));
    if (blocks_.Rest() != 0) ANYDML_RETURN_IF_ERROR(Lower(blocks_.rest, part, &rest_));
    result_ = layout_.Add("result", blocks_.block_bytes, 64);
    scratch_ = layout_.Add("scratch", std::max(ScratchOf(whole_), ScratchOf(rest_)), 64);
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    std::atomic<bool> failed = false;
    SharedParts shared(items_, workers_);
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      for (uint64_t item; shared.Take(worker, &item);) {
        if (!RunBlock(item, worker, arguments).ok()) failed = true;
      }
    });
    return failed ? Status(Code::kFail, "a block could not be computed") : Status();
  }
  uint64_t temporary_bytes() const override { return workers_ * WorkerBytes(); }
  std::string made_of() const override { return made_of_; }

 private:
  struct Kernels {
    std::unique_ptr<const Kernel> elements, reader;
  };

  Status Lower(const RowBlocks::Work& work, const LowerContext& part, Kernels* out) {
    LoweredOperator elements, reader;
    ANYDML_RETURN_IF_ERROR(ChooseKernel(work.elements, part, &elements));
    ANYDML_RETURN_IF_ERROR(LowerOperator(*blocks_.reader, work.desc, part, &reader));
    if (made_of_.empty()) made_of_ = StrCat(elements.implementation, ", ", reader.implementation);
    *out = {std::move(elements.kernel), std::move(reader.kernel)};
    if (out->reader->persistent_bytes() != 0 || out->elements->persistent_bytes() != 0) {
      return Status(Code::kUnsupported, "blocks share no persistent memory");
    }
    return {};
  }
  static uint64_t ScratchOf(const Kernels& kernels) {
    if (kernels.elements == nullptr) return 0;
    return std::max(kernels.elements->temporary_bytes(), kernels.reader->temporary_bytes());
  }
  uint64_t WorkerBytes() const { return SaturatingAlignUp(layout_.bytes(), 256); }

  Status RunBlock(uint64_t item, uint32_t worker, const KernelArguments& arguments) const {
    std::array<uint64_t, kMaxElementLoops> at{};  // the block's first iteration in each loop
    const uint64_t cuts = (blocks_.sizes.back() + blocks_.count - 1) / blocks_.count;
    at[blocks_.sizes.size() - 1] = item % cuts * blocks_.count;
    uint64_t number = item / cuts;
    for (size_t k = blocks_.sizes.size() - 1; k-- > 0; number /= blocks_.sizes[k]) {
      at[k] = number % blocks_.sizes[k];
    }
    const auto move = [&](const Buffer& buffer, const std::vector<uint64_t>& steps) {
      uint64_t skipped = 0;
      for (size_t k = 0; k < steps.size(); ++k) skipped += at[k] * steps[k];
      return buffer.data == nullptr ? buffer : Buffer{buffer.data + skipped, buffer.size - skipped};
    };
    const bool is_rest = blocks_.sizes.back() - at[blocks_.sizes.size() - 1] < blocks_.count;
    const Kernels& kernels = is_rest ? rest_ : whole_;
    const RowBlocks::Work& work = is_rest ? blocks_.rest : blocks_.whole;

    const uint64_t first = worker * WorkerBytes();
    const Buffer own = {arguments.temporary.data + first, arguments.temporary.size - first};
    const Buffer result = result_.In(own);
    std::array<Buffer, kMostOperands> inputs;
    const size_t loaded = work.elements.inputs.size();
    for (size_t i = 0; i < loaded; ++i) inputs[i] = move(arguments.inputs[i], blocks_.input_steps[i]);
    KernelArguments part;
    part.temporary = scratch_.In(own);
    part.inputs = {inputs.data(), loaded};
    part.outputs = {&result, 1};
    ANYDML_RETURN_IF_ERROR(kernels.elements->Run(part));

    const size_t read = arguments.inputs.size() - loaded + 1;
    for (size_t i = 0, from = loaded; i < read; ++i) {
      if (i == blocks_.computed) {
        inputs[i] = result;
        continue;
      }
      inputs[i] = move(arguments.inputs[from], blocks_.input_steps[from]);
      ++from;
    }
    std::array<Buffer, kMostOperands> outputs;
    for (size_t i = 0; i < arguments.outputs.size(); ++i) {
      outputs[i] = move(arguments.outputs[i], blocks_.output_steps[i]);
    }
    part.inputs = {inputs.data(), read};
    part.outputs = {outputs.data(), arguments.outputs.size()};
    return kernels.reader->Run(part);
  }

  const RowBlocks blocks_;
  uint64_t items_ = 0;
  uint32_t workers_ = 1;
  Kernels whole_, rest_;
  ScratchLayout layout_;  // per worker
  ScratchLayout::Piece result_, scratch_;
  std::string made_of_;
};

}  // namespace

Status LowerRowBlocks(const RowBlocks& blocks, const LowerContext& context, LoweredOperator* out) {
  if (blocks.input_steps.size() + 1 > kMostOperands || blocks.output_steps.size() > kMostOperands) {
    return Status(Code::kUnsupported, StrCat("there are more than ", kMostOperands, " tensors"));
  }
  auto kernel = std::make_unique<RowBlocksKernel>(blocks, context.threads);
  ANYDML_RETURN_IF_ERROR(kernel->Create(context));
  out->implementation = "cpu.row_blocks";
  out->kernel = std::move(kernel);
  return {};
}

}  // namespace anydml
