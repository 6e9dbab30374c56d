// Samples of sequences, to bound the K best before everything has been read.
#pragma once

#include <cooperative_groups.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/top_k/cuda/sequences.cuh"

namespace anydml {

inline constexpr int kSampleThreads = 1024;

// One element of every n/samples, at varying offsets, so that periodic data are sampled, too.
inline __device__ uint32_t SampleIndex(uint32_t i, uint32_t n, uint32_t log2_samples) {
  const auto begin = static_cast<uint32_t>(uint64_t{n} * i >> log2_samples);
  const auto end = static_cast<uint32_t>(uint64_t{n} * (i + 1) >> log2_samples);
  const uint32_t random = (i * 0x9E3779B9u ^ (i * 0x85EBCA6Bu >> 15)) * 0xC2B2AE35u;
  return begin + __umulhi(random, end - begin);
}

// Puts the sample's words into the shared memory of the first block of this cluster, for which the function
// returns true. A cluster and not a block, because scattered reads are limited by the number that a
// multiprocessor can have in flight.
template <int kBytes>
__device__ bool GatherSample(const CudaSequence<kBytes>& sequence, uint32_t log2_samples,
                             WordFor<kBytes>* sample) {
  const auto cluster = cooperative_groups::this_cluster();
  WordFor<kBytes>* gathered = cluster.map_shared_rank(sample, 0);
  cluster.sync();  // the first block's memory is accessible
#pragma unroll 8
  for (uint32_t i = cluster.thread_rank(); i < 1u << log2_samples; i += cluster.num_threads()) {
    const uint32_t at = SampleIndex(i, sequence.n(), log2_samples);
    gathered[i] = MakeWord<kBytes>(sequence.KeyAt(at), at);
  }
  cluster.sync();
  return cluster.block_rank() == 0;
}

// How many blocks a cluster should have.
inline uint32_t SampleCluster(uint64_t sequences, uint32_t samples, uint32_t multiprocessors) {
  const uint64_t free = 2 * multiprocessors / sequences;
  return std::bit_floor(static_cast<uint32_t>(
      std::clamp<uint64_t>(free, 1, std::clamp<uint32_t>(samples / kSampleThreads, 1, 8))));
}

// The lowest rank in the sample that fewer than k of n elements reach with a probability of 10^-9: the number
// of samples above k of n elements has a Poisson distribution.
inline uint32_t RankOfBound(uint32_t k, uint32_t n, uint32_t samples) {
  const double mean = static_cast<double>(k) * samples / n;
  if (mean > 100) {  // close to a normal distribution, of which six deviations are enough
    return static_cast<uint32_t>(std::min<double>(mean + 6 * std::sqrt(mean) + 8, std::min(k, samples)));
  }
  double term = std::exp(-mean);
  double at_least = 1 - term;  // P(X >= rank)
  uint32_t rank = 1;
  while (at_least > 1e-9 && rank < samples) {
    term *= mean / rank;
    at_least -= term;
    ++rank;
  }
  return std::min({rank, k, samples});  // k of the sample are k elements
}

}  // namespace anydml
