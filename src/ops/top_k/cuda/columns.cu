// cuda.columns: a thread per sequence, with neighbouring sequences in neighbouring lanes; for axes along
// which elements are not contiguous, and for few places.
//
// A thread keeps the best elements so far in registers, sorted. Elements better than the worst of them wait
// in a short queue in shared memory until one queue of the warp is full: all lanes then sort and merge theirs
// together, which costs little per element since it happens rarely. Several warps share long sequences if
// there are few.
#include <algorithm>
#include <bit>

#include "ops/device/cuda/launch.h"
#include "ops/top_k/cuda/network.cuh"
#include "ops/top_k/cuda/sequences.cuh"

namespace anydml {
namespace {

// The number of elements that are loaded at a time, while as many earlier ones are processed.
template <int kBytes, int kPlaces>
constexpr int kLoads = kBytes == 8 ? 8 : kPlaces;
template <int kBytes, int kPlaces>
constexpr int kQueue = 2 * kLoads<kBytes, kPlaces>;  // words
template <int kBytes, int kPlaces>
constexpr uint32_t kMaxThreads = 32768 / (kQueue<kBytes, kPlaces> * sizeof(WordFor<kBytes>));

// The best of a thread's elements. Places beyond K hold words above all others.
template <int kBytes, int kPlaces>
class BestOfColumn {
 public:
  using Word = WordFor<kBytes>;
  using Key = UnsignedOf<kBytes>;

  // `queue`: shared memory for kQueue words per thread of the block.
  __device__ BestOfColumn(uint32_t k, Word* queue) : queue_(queue + threadIdx.x), tail_(queue_) {
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) best_[i] = i < kPlaces - k ? ~Word{0} : Word{0};
  }

  __device__ void Offer(Key key, uint32_t index) {
    // Among equal keys the earlier one stays. Word 0 marks a free place.
    if (key > worst_key_ || !full_) {
      *tail_ = MakeWord<kBytes>(key, index);
      tail_ += blockDim.x;
    }
  }

  // Merges the queues if more than `most` words wait in one of the warp's.
  __device__ void FlushBeyond(int most) {
    if (!__any_sync(~0u, tail_ > queue_ + blockDim.x * most)) return;
    const Word* from = queue_;
#pragma unroll 1
    for (int merged = 0; merged < kQueue<kBytes, kPlaces>; merged += kPlaces) {
      Word more[kPlaces];
#pragma unroll
      for (int i = 0; i < kPlaces; ++i, from += blockDim.x) more[i] = from < tail_ ? *from : Word{0};
      SortDescending(more);
      KeepBest(best_, more);
    }
    tail_ = queue_;
    worst_key_ = static_cast<Key>(best_[kPlaces - 1] >> 32);
    full_ = best_[kPlaces - 1] != 0;
  }

  // Merges the results of the block's warps, which share the sequences, into the first warp.
  __device__ void JoinWarps() {
    for (uint32_t warps = blockDim.x / 32; warps > 1; warps /= 2) {
      const uint32_t warp = threadIdx.x / 32;
      __syncthreads();
      if (warp >= warps / 2 && warp < warps) {
#pragma unroll
        for (int i = 0; i < kPlaces; ++i) queue_[blockDim.x * i] = best_[i];
      }
      __syncthreads();
      if (warp >= warps / 2) continue;
      Word more[kPlaces];
      // Both hold words above all others in the places beyond K: the other's are dropped.
#pragma unroll
      for (int i = 0; i < kPlaces; ++i) {
        const Word word = queue_[blockDim.x * i + warps / 2 * 32];
        more[i] = word == ~Word{0} ? Word{0} : word;
      }
      SortDescending(more);
      KeepBest(best_, more);
    }
  }

  template <typename Store>
  __device__ void ForEachPlace(uint32_t k, Store&& store) const {
#pragma unroll
    for (int i = 0; i < kPlaces; ++i) {
      const uint32_t place = i - (kPlaces - k);
      if (place < k) store(place, best_[i]);
    }
  }

 private:
  Word best_[kPlaces];
  Word* queue_;
  Word* tail_;
  Key worst_key_ = 0;
  bool full_ = false;
};

template <int kBytes, int kPlaces>
__global__ void __launch_bounds__(kMaxThreads<kBytes, kPlaces>)
    Columns(const __grid_constant__ TopKSequences all) {
  constexpr int kBatch = kLoads<kBytes, kPlaces>;
  extern __shared__ __align__(16) unsigned char dynamic[];
  const uint32_t warps = blockDim.x / 32;
  const uint32_t part = (all.n - 1) / warps + 1;
  const uint32_t begin = min(threadIdx.x / 32 * part, all.n);
  const uint32_t end = min(begin + part, all.n);
  for (uint64_t first = uint64_t{blockIdx.x} * 32; first < all.count; first += uint64_t{gridDim.x} * 32) {
    const uint64_t number = first + threadIdx.x % 32;
    // Lanes without a sequence read the last one.
    const CudaSequence<kBytes> sequence(all, min(number, all.count - 1));
    BestOfColumn<kBytes, kPlaces> best(all.k, reinterpret_cast<WordFor<kBytes>*>(dynamic));
    using Elements = UnsignedOf<kBytes>[kBatch];
    const auto load = [&](uint32_t i, Elements& elements) {
      const UnsignedOf<kBytes>* from = sequence.AddressOf(i);
#pragma unroll
      for (int l = 0; l < kBatch; ++l, from += all.axis[kInput]) elements[l] = __ldg(from);
    };
    Elements elements, next;
    uint32_t i = begin;
    if (end - i >= kBatch) load(i, next);
#pragma unroll 1
    while (end - i >= kBatch) {
#pragma unroll
      for (int l = 0; l < kBatch; ++l) elements[l] = next[l];
      if (end - i >= 2 * kBatch) load(i + kBatch, next);
#pragma unroll
      for (int l = 0; l < kBatch; ++l) best.Offer(ElementToKey<kBytes>(all.order, elements[l]), i + l);
      best.FlushBeyond(kQueue<kBytes, kPlaces> - kBatch);
      i += kBatch;
    }
    for (; i < end; ++i) best.Offer(sequence.KeyAt(i), i);  // fewer than kBatch, and as many places are free
    best.FlushBeyond(0);
    best.JoinWarps();
    if (threadIdx.x < 32 && number < all.count) {
      best.ForEachPlace(all.k, [&](uint32_t place, WordFor<kBytes> word) { sequence.Store(place, word); });
    }
    __syncthreads();
  }
}

template <int kBytes, int kPlaces>
class TopKColumns final : public Kernel {
 public:
  TopKColumns(const TopKSequences& sequences, uint32_t warps) : sequences_(sequences), warps_(warps) {}

  Status Run(const KernelArguments& arguments) const override {
    const uint32_t threads = 32 * warps_;
    const auto blocks =
        static_cast<uint32_t>(std::min<uint64_t>((sequences_.count - 1) / 32 + 1, 0x7FFFFFFF));
    const uint32_t queue_bytes = threads * kQueue<kBytes, kPlaces> * sizeof(WordFor<kBytes>);
    Columns<kBytes, kPlaces><<<blocks, threads, queue_bytes, static_cast<cudaStream_t>(arguments.stream)>>>(
        Bind(sequences_, arguments));
    return {};
  }

 private:
  TopKSequences sequences_;
  uint32_t warps_;
};

template <int kBytes>
std::unique_ptr<const Kernel> Create(const TopKProblem& problem, const LowerContext& context,
                                     std::string* why_not) {
  const TopKSequences sequences = TopKSequencesOf(problem);
  constexpr uint32_t kMaxPlaces = 16;
  if (sequences.axis[kInput] == 1 && sequences.n > 1) {
    *why_not = "the elements of a sequence are neighbours";
    return nullptr;
  }
  if (sequences.k > kMaxPlaces) {
    *why_not = StrCat("K is ", sequences.k, "; a thread has registers for ", kMaxPlaces);
    return nullptr;
  }
  const uint64_t wanted = context.device->multiprocessors * 16 * 32 / sequences.count + 1;
  const uint64_t worth = sequences.n / 128 + 1;
  const auto create = [&]<int kPlaces>() -> std::unique_ptr<const Kernel> {
    const auto warps = std::min<uint64_t>({wanted, worth, kMaxThreads<kBytes, kPlaces> / 32});
    return std::make_unique<TopKColumns<kBytes, kPlaces>>(sequences,
                                                          std::bit_floor(static_cast<uint32_t>(warps)));
  };
  if (sequences.k <= 8) return create.template operator()<8>();
  return create.template operator()<kMaxPlaces>();
}

}  // namespace

std::unique_ptr<const Kernel> CreateTopKCudaColumns(const TopKProblem& problem, const LowerContext& context,
                                                    std::string* why_not) {
  return DispatchBySize(problem.input.type,
                        [&]<int kBytes>() { return Create<kBytes>(problem, context, why_not); });
}

}  // namespace anydml
