#include "ops/attention/cuda/float_tiles.cuh"

#include <algorithm>

#include "ops/attention/cuda/join.h"

namespace anydml {
namespace {

using namespace float_tiles;

class AttentionFloatTiles final : public AttentionOperands {
 public:
  explicit AttentionFloatTiles(const AttentionProblem& problem)
      : AttentionOperands(problem, {.matrices = false}) {
    Parameters& p = common_;
    p.query = problem.query;
    p.output = problem.output;
    p.queries = static_cast<uint32_t>(problem.queries);
    p.keys = static_cast<uint32_t>(problem.keys);
    p.heads = static_cast<uint32_t>(problem.heads);
    p.group = static_cast<uint32_t>(problem.group);
    p.query_blocks = (p.queries + kQueries - 1) / kQueries;
    p.columns = static_cast<uint32_t>(problem.key.columns);
    p.value_columns = static_cast<uint32_t>(problem.value.columns);
    p.scale = problem.scale;
  }

  Status Run(const KernelArguments& arguments) const override {
    RunJoins(arguments);
    Parameters p = common_;
    p.query_data = reinterpret_cast<const float*>(arguments.inputs[p.query.binding].data);
    SetRows(problem(), problem().key, arguments, &p.key, &p.key_data);
    SetRows(problem(), problem().value, arguments, &p.value, &p.value_data);
    p.output_data = reinterpret_cast<float*>(arguments.outputs[0].data);
    KernelChain(arguments.stream, /*all_wait=*/true)
        .Launch(AttendFloats, problem().batch * problem().heads * p.query_blocks, kThreads, p,
                sizeof(Shared));
    return {};
  }

 private:
  void Join(const AttentionJoin& join, const AttentionJoinMemory& memory,
            const KernelArguments& arguments) const override {
    JoinOnDevice(join, memory, is_half(), arguments.stream);
  }

  Parameters common_{};  // but for addresses, and where keys and values are
};

// Where there is more to do, the products of the steps use the device better.
std::string WhyNotFloats(const AttentionProblem& problem, const DeviceProperties& device) {
  constexpr uint64_t kUnit = 4;  // 16 bytes, as bindings are aligned
  constexpr uint64_t kMostKeys = 512, kBlocksOfMultiprocessor = 4;
  const AttentionView& key = RowsOf(problem, problem.key);
  const AttentionView& value = RowsOf(problem, problem.value);
  if (problem.type != DataType::kFloat32) return "the type is not FLOAT32";
  if (problem.query_bias.exists || problem.position_bias.exists || problem.mask.view.exists ||
      problem.lengths.exists) {
    return "there is a bias, a mask, or lengths";
  }
  if (std::max(problem.key.columns, problem.value.columns) > kColumns) {
    return StrCat("heads have more than ", kColumns, " columns");
  }
  if (!key.exists || !value.exists) return "past and new keys are in different tensors";
  if (!HasUnits(problem.query, problem.key.columns, kUnit) || !HasUnits(key, problem.key.columns, kUnit) ||
      !HasUnits(value, problem.value.columns, kUnit) ||
      !HasUnits(problem.output, problem.value.columns, kUnit)) {
    return "rows are not made of units of 16 bytes";
  }
  const uint64_t most = kBlocksOfMultiprocessor * device.multiprocessors;
  if (problem.keys > kMostKeys || problem.batch * problem.heads > most ||
      problem.batch * problem.heads * ((problem.queries + kQueries - 1) / kQueries) > most) {
    return StrCat("there are more than ", kMostKeys, " keys or ", most, " blocks of ", kQueries, " queries");
  }
  if (sizeof(Shared) > device.shared_bytes_per_block) {
    return StrCat("a block has less than ", sizeof(Shared), " bytes of shared memory");
  }
  return "";
}

}  // namespace

std::unique_ptr<const Kernel> CreateAttentionFloatTilesCuda(const AttentionProblem& problem,
                                                            const LowerContext& context,
                                                            std::string* why_not) {
  *why_not = WhyNotFloats(problem, *context.device);
  if (!why_not->empty()) return nullptr;
  return std::make_unique<AttentionFloatTiles>(problem);
}

}  // namespace anydml
