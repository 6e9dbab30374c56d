// RANDOM_GENERATOR: Philox 4x32-10, which computes four words from a counter and a key.
#pragma once

#include <cstdint>
#include <span>

#include "ops/implementation_list.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

const Operator& RandomGeneratorOperator();

struct RandomProblem {
  static constexpr std::string_view kFamily = "random";

  TensorDesc output;
  uint32_t state_stride = 1;  // of InputStateTensor's words
  bool has_output_state = false;
  uint32_t output_state_stride = 1;  // of OutputStateTensor's
};

inline constexpr uint32_t kPhiloxRounds = 10;
inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53u, kPhiloxMultiplier1 = 0xCD9E8D57u;
inline constexpr uint32_t kPhiloxKeyStep0 = 0x9E3779B9u, kPhiloxKeyStep1 = 0xBB67AE85u;

// From InputStateTensor. Constexpr functions are compiled for devices, too.
struct PhiloxState {
  uint32_t counter[4];  // the lowest word first
  uint32_t key[2];
};

constexpr PhiloxState LoadPhiloxState(const uint32_t* words, uint32_t stride) {
  const uint64_t step = stride;
  return {{words[0], words[step], words[2 * step], words[3 * step]}, {words[4 * step], words[5 * step]}};
}

// Adds to the counter, modulo 2^128.
constexpr void Advance(PhiloxState* state, uint64_t blocks) {
  uint64_t carry = blocks;
  for (uint32_t& word : state->counter) {
    const uint64_t sum = uint64_t{word} + static_cast<uint32_t>(carry);
    word = static_cast<uint32_t>(sum);
    carry = (carry >> 32) + (sum >> 32);
  }
}

// One round, on words of one block or of as many as there are lanes.
constexpr void PhiloxRound(uint32_t* c0, uint32_t* c1, uint32_t* c2, uint32_t* c3, uint32_t key0,
                           uint32_t key1) {
  const uint64_t product0 = uint64_t{kPhiloxMultiplier0} * *c0;
  const uint64_t product1 = uint64_t{kPhiloxMultiplier1} * *c2;
  *c0 = static_cast<uint32_t>(product1 >> 32) ^ *c1 ^ key0;
  *c1 = static_cast<uint32_t>(product1);
  *c2 = static_cast<uint32_t>(product0 >> 32) ^ *c3 ^ key1;
  *c3 = static_cast<uint32_t>(product0);
}

CreateFunction<RandomProblem> CreateRandomCpu, CreateRandomCuda, CreateRandomReference;

}  // namespace anydml
