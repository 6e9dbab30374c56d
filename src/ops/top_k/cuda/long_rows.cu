// cuda.long_rows: rows that are too long for shared memory. Each is read once, by one block or, if rows are
// few, by several.
#include <algorithm>

#include "ops/device/cuda/launch.h"
#include "ops/top_k/cuda/long_row.cuh"
#include "ops/top_k/cuda/sample.cuh"

namespace anydml {
namespace {

struct LongRowsPlan {
  uint64_t first_row;
  uint64_t rows;
  uint32_t shares;      // blocks per row
  uint32_t first_each;  // how many elements of each share reach the bound from the first stages
  uint32_t each;        // how many reach the bound from everything
};

template <int kBytes>
__device__ RowMeeting<kBytes> MeetingOf(const LongRowsPlan& plan, uint32_t row, uint32_t share,
                                        std::byte* temporary) {
  const uint64_t bytes = RowMeeting<kBytes>::Bytes(plan.shares, plan.shares * LongRow<kBytes>::kCapacity);
  return RowMeeting<kBytes>(temporary + row * bytes, share, plan.shares);
}

// A block per row. With `temporary`, only the rows for which the previous kernel has set the failed flag
// there.
template <int kBytes>
__global__ void __launch_bounds__(LongRow<kBytes>::kThreads, 2)
    LongRows(const __grid_constant__ TopKSequences all, const __grid_constant__ LongRowsPlan plan,
             std::byte* temporary) {
  __shared__ typename LongRow<kBytes>::Shared shared;
  extern __shared__ __align__(128) unsigned char dynamic[];
  const bool is_second = temporary != nullptr;
  if (is_second && !MeetingOf<kBytes>(plan, blockIdx.x, 0, temporary).failed()) return;
  LongRow<kBytes>(&shared, dynamic, all, plan.first_row + blockIdx.x)
      .RunAlone(is_second ? all.k : plan.first_each);
}

template <int kBytes>
__global__ void __launch_bounds__(LongRow<kBytes>::kThreads, 2)
    SharedLongRows(const __grid_constant__ TopKSequences all, const __grid_constant__ LongRowsPlan plan,
                   std::byte* temporary) {
  __shared__ typename LongRow<kBytes>::Shared shared;
  extern __shared__ __align__(128) unsigned char dynamic[];
  const uint32_t row = blockIdx.x / plan.shares;
  LongRow<kBytes>(&shared, dynamic, all, plan.first_row + row)
      .RunTogether(plan.first_each, plan.each,
                   MeetingOf<kBytes>(plan, row, blockIdx.x % plan.shares, temporary));
}

// As many rows as fill the device evenly have a block each; the remaining rows are shared by several blocks.
template <int kBytes>
class TopKLongRows final : public Kernel {
 public:
  TopKLongRows(const TopKSequences& sequences, uint32_t blocks) : sequences_(sequences) {
    const uint64_t left = sequences.count % blocks;
    const uint64_t vectors = (uint64_t{sequences.n} * kBytes - 1) / 16 + 1;
    const uint64_t most = (vectors - 1) / LongRow<kBytes>::kFirstVectors + 1;
    const uint64_t shares = left == 0 ? 1 : std::min<uint64_t>(blocks / left, most);
    const uint64_t shared = shares == 1 ? 0 : left;
    alone_ = PlanOf(0, sequences.count - shared, 1);
    shared_ = PlanOf(sequences.count - shared, shared, shares);
  }

  uint64_t temporary_bytes() const override {
    return shared_.rows *
           RowMeeting<kBytes>::Bytes(shared_.shares, shared_.shares * LongRow<kBytes>::kCapacity);
  }

  Status Run(const KernelArguments& arguments) const override {
    const auto stream = static_cast<cudaStream_t>(arguments.stream);
    const TopKSequences all = Bind(sequences_, arguments);
    constexpr uint32_t kThreads = LongRow<kBytes>::kThreads;
    constexpr uint32_t kBytesOfBlock = LongRow<kBytes>::kDynamicBytes;
    const auto rows = [](const LongRowsPlan& plan) { return static_cast<uint32_t>(plan.rows); };
    if (alone_.rows != 0) {
      LongRows<kBytes><<<rows(alone_), kThreads, kBytesOfBlock, stream>>>(all, alone_, nullptr);
    }
    if (shared_.rows == 0) return {};
    LaunchTogether(SharedLongRows<kBytes>, rows(shared_) * shared_.shares, kThreads, kBytesOfBlock, stream,
                   all, shared_, arguments.temporary.data);
    if (shared_.first_each >= shared_.each) return {};  // the first bound could not fail
    LongRows<kBytes>
        <<<rows(shared_), kThreads, kBytesOfBlock, stream>>>(all, shared_, arguments.temporary.data);
    return {};
  }

 private:
  LongRowsPlan PlanOf(uint64_t first_row, uint64_t rows, uint64_t shares) const {
    constexpr uint64_t kFirstElements =
        uint64_t{LongRow<kBytes>::kFirstVectors} * KeyVector<kBytes>::kElements;
    const auto seen = static_cast<uint32_t>(std::min<uint64_t>(sequences_.n, shares * kFirstElements));
    // The K-th best of the elements so far is always a bound, and a good one if not too many elements reach
    // it.
    const bool is_good =
        uint64_t{sequences_.k} * sequences_.n / seen <= shares * LongRow<kBytes>::kCapacity / 2;
    const uint32_t rank = is_good ? sequences_.k : RankOfBound(sequences_.k, sequences_.n, seen);
    const auto of_each = [&](uint32_t elements) {
      return static_cast<uint32_t>((elements - 1) / shares + 1);
    };
    return {first_row, rows, static_cast<uint32_t>(shares), of_each(rank), of_each(sequences_.k)};
  }

  TopKSequences sequences_;
  LongRowsPlan alone_;
  LongRowsPlan shared_;
};

template <int kBytes>
std::unique_ptr<const Kernel> Create(const TopKProblem& problem, const LowerContext& context,
                                     std::string* why_not) {
  const TopKSequences sequences = TopKSequencesOf(problem);
  constexpr uint32_t kDynamicBytes = LongRow<kBytes>::kDynamicBytes;
  constexpr uint32_t kThreads = LongRow<kBytes>::kThreads;
  if (sequences.axis[kInput] != 1) {
    *why_not = "the elements of a sequence are not neighbours";
  } else if (sequences.k > LongRow<kBytes>::kMaxK) {
    *why_not = StrCat("K is ", sequences.k, "; a block collects for ", LongRow<kBytes>::kMaxK);
  } else if (uint64_t{sequences.n} * kBytes < LongRow<kBytes>::Stages::kRingBytes ||
             sequences.n > LongRow<kBytes>::kMaxN || sequences.count >= 1u << 31) {
    *why_not = StrCat(sequences.count, " rows of ", sequences.n, " elements of ", kBytes,
                      " bytes; they should be long, but neither they nor their number near 2^31");
  } else if (AllowSharedMemory(*context.device, LongRows<kBytes>, kDynamicBytes, why_not) &&
             AllowSharedMemory(*context.device, SharedLongRows<kBytes>, kDynamicBytes, why_not)) {
    const uint32_t blocks =
        BlocksAtOnce(*context.device, SharedLongRows<kBytes>, kThreads, kDynamicBytes, why_not);
    if (blocks != 0) return std::make_unique<TopKLongRows<kBytes>>(sequences, blocks);
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<const Kernel> CreateTopKCudaLongRows(const TopKProblem& problem, const LowerContext& context,
                                                     std::string* why_not) {
  return DispatchBySize(problem.input.type,
                        [&]<int kBytes>() { return Create<kBytes>(problem, context, why_not); });
}

}  // namespace anydml
