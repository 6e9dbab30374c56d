// FLOAT16 attention without biases and masks, by cuDNN if it is installed.
#include <memory>

#include "ops/attention/cuda/cudnn_attention.h"
#include "ops/attention/cuda/join.h"

namespace anydml {
namespace {

constexpr uint32_t kAllowHalfPrecision = 1;  // DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION
constexpr uint64_t kUnit = 8;                // elements per 16 bytes, the alignment of bindings
constexpr uint64_t kWorkspaceAlignment = 256;
// cuDNN rounds weights to FLOAT16: errors are up to 2^-11 of the sum of the magnitudes. From this many keys
// on, the family's bound (4 * keys * 2^-24) allows that.
constexpr uint64_t kLeastKeys = 2048;

class AttentionCudnn final : public AttentionOperands {
 public:
  AttentionCudnn(const AttentionProblem& problem, std::shared_ptr<const cudnn::Graph> graph)
      : AttentionOperands(problem, {.matrices = false}), graph_(std::move(graph)) {
    if (graph_->workspace_bytes() == 0) return;
    workspace_ = AddScratch("workspace", graph_->workspace_bytes() + kWorkspaceAlignment);
  }

  std::string made_of() const override { return graph_->name(); }

  Status Run(const KernelArguments& arguments) const override {
    RunJoins(arguments);
    void* workspace = nullptr;
    if (workspace_.bytes != 0) {
      size_t room = workspace_.bytes;
      workspace = workspace_.In(arguments.temporary).data;
      std::align(kWorkspaceAlignment, graph_->workspace_bytes(), workspace, room);
    }
    const AttentionProblem& p = problem();
    const void* const addresses[] = {Address(arguments.inputs, p.query), Address(p.key, arguments),
                                     Address(p.value, arguments), &p.scale,
                                     Address(arguments.outputs, p.output)};
    const std::string error = graph_->Run(arguments.stream, addresses, workspace);
    if (error.empty()) return {};
    return Status(Code::kDriverInternal, StrCat("MULTIHEAD_ATTENTION: cuDNN could not run it: ", error));
  }

 private:
  void Join(const AttentionJoin& join, const AttentionJoinMemory& memory,
            const KernelArguments& arguments) const override {
    JoinOnDevice(join, memory, is_half(), arguments.stream);
  }

  static const std::byte* Address(std::span<const Buffer> buffers, const AttentionView& view) {
    return buffers[view.binding].data + view.offset * sizeof(uint16_t);
  }
  const std::byte* Address(const AttentionRows& rows, const KernelArguments& arguments) const {
    return Address(AreInPresent(problem(), rows) ? arguments.outputs : arguments.inputs,
                   RowsOf(problem(), rows));
  }

  std::shared_ptr<const cudnn::Graph> graph_;
  ScratchLayout::Piece workspace_;
};

bool HasUnits(const AttentionView& view, uint64_t columns) {
  return view.column == 1 && (columns | view.offset | view.batch | view.head | view.row) % kUnit == 0;
}
// Whether no two elements share a place.
bool HasOwnElements(const AttentionView& view, uint64_t batch, uint64_t heads, uint64_t rows) {
  return (batch == 1 || view.batch != 0) && (heads == 1 || view.head != 0) && (rows == 1 || view.row != 0);
}

std::string WhyNotCudnn(const AttentionProblem& p, const LowerContext& context) {
  if (p.type != DataType::kFloat16) return "the type is not FLOAT16";
  if (p.query_bias.exists || p.position_bias.exists || p.mask.view.exists) return "there is a bias or a mask";
  if (p.lengths.exists) return "there are lengths of the past";
  if (!(p.scale >= kLeastAttentionScale)) return "the scale is not positive";
  if (p.keys < kLeastKeys && (context.execution_flags & kAllowHalfPrecision) == 0) {
    return StrCat("it rounds weights to FLOAT16, which is for ", kLeastKeys,
                  " keys and more, or where half precision is allowed");
  }
  const AttentionView& key = RowsOf(p, p.key);
  const AttentionView& value = RowsOf(p, p.value);
  if (!key.exists || !value.exists) return "past and new keys are in different tensors";
  if (!HasUnits(p.query, p.key.columns) || !HasUnits(key, p.key.columns) ||
      !HasUnits(value, p.value.columns) || !HasUnits(p.output, p.value.columns)) {
    return "rows are not made of units of 16 bytes";
  }
  if (!HasOwnElements(p.query, p.batch, p.heads, p.queries) ||
      !HasOwnElements(key, p.batch, p.KeyHeads(), p.keys) ||
      !HasOwnElements(value, p.batch, p.KeyHeads(), p.keys)) {
    return "elements of a tensor share a place";
  }
  return "";
}

}  // namespace

std::unique_ptr<const Kernel> CreateAttentionCudnn(const AttentionProblem& problem,
                                                   const LowerContext& context, std::string* why_not) {
  *why_not = WhyNotCudnn(problem, context);
  if (!why_not->empty()) return nullptr;
  auto graph = CreateCudnnAttention(problem, RowsOf(problem, problem.key), RowsOf(problem, problem.value),
                                    context.device->ordinal, why_not);
  if (graph == nullptr) return nullptr;
  return std::make_unique<AttentionCudnn>(problem, std::move(graph));
}

}  // namespace anydml
