// MULTIHEAD_ATTENTION and MULTIHEAD_ATTENTION1 against results computed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>

#include "ops/attention/attention_builder.h"
#include "support/device_run.h"

namespace anydml::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

void ExpectNear(const Numbers& got, const Numbers& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << "element " << i;
}

// Queries of 0 give all keys the same weight.
Attention Average(const Numbers& values) {
  const auto keys = static_cast<uint32_t>(values.size());
  Attention attention(1);
  attention.Give("QueryTensor", {1, 1, 1}, Numbers{0})
      .Shape("KeyTensor", {1, keys, 1})
      .Give("ValueTensor", {1, keys, 1}, values)
      .Out("OutputTensor", {1, 1, 1});
  return attention;
}

TEST(Attention, WeightsAreTheSoftmaxOfScaledProducts) {
  const float ln2 = std::log(2.0f), ln5 = std::log(5.0f);
  Attention attention(1);
  // Products are twice the logarithms of 1, 2 and 5.
  attention.Give("QueryTensor", {1, 1, 2}, Numbers{2, 1})
      .Give("KeyTensor", {1, 3, 2}, Numbers{0, 0, ln2, 0, 0, 2 * ln5})
      .Give("ValueTensor", {1, 3, 2}, Numbers{8, 0, 16, 0, 0, 8})
      .Out("OutputTensor", {1, 1, 2})
      .Set("Scale", 0.5f);
  ExpectNear(attention.Run(), {1 + 4, 5});
}

TEST(Attention, HeadsLieSideBySide) {
  Attention attention(2);
  const float ln3 = std::log(3.0f);
  // Head 0 has logits 0 and ln 3, head 1 ln 3 and 0; values have two columns per head.
  attention.Give("QueryTensor", {1, 1, 2}, Numbers{1, 1})
      .Give("KeyTensor", {1, 2, 2}, Numbers{0, ln3, ln3, 0})
      .Give("ValueTensor", {1, 2, 4}, Numbers{4, 8, 4, 8, 0, 4, 0, 4})
      .Out("OutputTensor", {1, 1, 4});
  ExpectNear(attention.Run(), {1, 5, 3, 7});
}

TEST(Attention, StackedTensorsHaveThePartsInTheOrderOfTheirNames) {
  const float ln3 = std::log(3.0f);
  // One head of one column; two queries, 1 and 0; keys 0 and ln 3; values 4 and 8.
  const Numbers want = {7, 6};
  Attention all(1);
  all.Give("StackedQueryKeyValueTensor", {1, 2, 1, 3, 1}, Numbers{1, 0, 4, 0, ln3, 8})
      .Out("OutputTensor", {1, 2, 1});
  ExpectNear(all.Run(), want);
  Attention query_key(1);
  query_key.Give("StackedQueryKeyTensor", {1, 2, 1, 2, 1}, Numbers{1, 0, 0, ln3})
      .Give("ValueTensor", {1, 2, 1}, Numbers{4, 8})
      .Out("OutputTensor", {1, 2, 1});
  ExpectNear(query_key.Run(), want);
  Attention key_value(1);
  key_value.Give("QueryTensor", {1, 2, 1}, Numbers{1, 0})
      .Give("StackedKeyValueTensor", {1, 2, 1, 2, 1}, Numbers{0, 4, ln3, 8})
      .Out("OutputTensor", {1, 2, 1});
  ExpectNear(key_value.Run(), want);
}

TEST(Attention, ThePastComesFirst) {
  Attention attention = Average({5, 6});
  attention.Give("PastKeyTensor", {1, 1, 1, 1}, Numbers{7})
      .Give("PastValueTensor", {1, 1, 1, 1}, Numbers{1})
      .Give("KeyTensor", {1, 2, 1}, Numbers{8, 9})
      .Out("OutputPresentKeyTensor", {1, 1, 3, 1})
      .Out("OutputPresentValueTensor", {1, 1, 3, 1});
  ExpectNear(attention.Run(0), {4});
  EXPECT_EQ(attention.Run(1), (Numbers{7, 8, 9}));
  EXPECT_EQ(attention.Run(2), (Numbers{1, 5, 6}));
}

TEST(Attention, ThePastMayBeAll) {
  Attention attention(1);
  attention.Give("QueryTensor", {1, 1, 1}, Numbers{0})
      .Give("PastKeyTensor", {1, 1, 2, 1}, Numbers{1, 2})
      .Give("PastValueTensor", {1, 1, 2, 1}, Numbers{3, 5})
      .Give("BiasTensor", {3}, Numbers{0, 100, 100})
      .Out("OutputTensor", {1, 1, 1})
      .Out("OutputPresentValueTensor", {1, 1, 2, 1});
  ExpectNear(attention.Run(0), {4});
  EXPECT_EQ(attention.Run(2), (Numbers{3, 5}));
}

TEST(Attention, BiasesAreAddedToWhatIsNew) {
  const float ln3 = std::log(3.0f);
  Attention attention(1);
  // Biased queries are 1, biased keys 0 and ln 3 (after a past key of 0), biased values 4 and 8.
  attention.Give("QueryTensor", {1, 1, 1}, Numbers{-1})
      .Give("KeyTensor", {1, 2, 1}, Numbers{-1, ln3 - 1})
      .Give("ValueTensor", {1, 2, 1}, Numbers{1, 5})
      .Give("PastKeyTensor", {1, 1, 1, 1}, Numbers{0})
      .Give("PastValueTensor", {1, 1, 1, 1}, Numbers{2})
      .Give("BiasTensor", {3}, Numbers{2, 1, 3})
      .Out("OutputTensor", {1, 1, 1})
      .Out("OutputPresentValueTensor", {1, 1, 3, 1});
  ExpectNear(attention.Run(0), {(2 + 4 + 3 * 8) / 5.0f});
  EXPECT_EQ(attention.Run(2), (Numbers{2, 4, 8}));
}

TEST(Attention, PositionBiasesAreAddedToLogits) {
  Attention attention = Average({4, 8});
  attention.Give("RelativePositionBiasTensor", {1, 1, 1, 2}, Numbers{0, std::log(3.0f)});
  ExpectNear(attention.Run(), {7});
}

TEST(Attention, Masks) {
  const Numbers values = {1, 3, 5, 11};
  ExpectNear(Average(values).Run(), {5});
  ExpectNear(Average(values).Mask(kLength, {1, 1}, {3}).Run(), {3});
  ExpectNear(Average(values).Mask(kEndStart, {2, 1}, {3, 1}).Run(), {4});
  ExpectNear(Average(values).Mask(kLengthStartEnd, {5}, {2, 0, 1, 0, 2}).Run(), {2});
  ExpectNear(Average(values).Mask(kBoolean, {1, 1, 1, 4}, {1, 0, 0, 1}).Run(), {6});
  // A fully masked row gives the same result as without a mask.
  ExpectNear(Average(values).Mask(kLength, {1, 1}, {0}).Run(), {5});
  ExpectNear(
      Average(values).Mask(kBoolean, {1, 1, 1, 4}, {0, 0, 0, 0}).Set("MaskFilterValue", -INFINITY).Run(),
      {5});
}

TEST(Attention, TheMasksValueIsAdded) {
  // Half the weight.
  Attention attention = Average({1, 4});
  attention.Mask(kLength, {1, 1}, {1}).Set("MaskFilterValue", std::log(0.5f));
  ExpectNear(attention.Run(), {2});
}

TEST(Attention, MasksOfBatches) {
  Attention attention(1);
  attention.Shape("QueryTensor", {2, 1, 1})
      .Shape("KeyTensor", {2, 3, 1})
      .Give("ValueTensor", {2, 3, 1}, Numbers{1, 3, 8, 2, 4, 9})
      .Out("OutputTensor", {2, 1, 1})
      .Mask(kEndStart, {2, 2}, {2, 3, 0, 2});
  ExpectNear(attention.Run(), {2, 9});
  attention.Mask(kLength, {1, 2}, {1, 3});
  ExpectNear(attention.Run(), {1, 5});
}

TEST(Attention, HeadsOfAGroupShareKeysAndValues) {
  for (const uint32_t queries : {1u, 2u}) {
    Attention attention(4, 2);
    Numbers want;
    for (uint32_t q = 0; q < queries; ++q) want.insert(want.end(), {2, 2, 7, 7});
    attention.Shape("QueryTensor", {1, queries, 4})
        .Shape("KeyTensor", {1, 2, 2})
        .Give("ValueTensor", {1, 2, 2}, Numbers{1, 6, 3, 8})
        .Out("OutputTensor", {1, queries, 4});
    ExpectNear(attention.Run(), want);
  }
}

Numbers Eighths(size_t count, size_t step) {
  Numbers numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(i * step % 17) / 8 - 1;
  return numbers;
}

// More than one block of queries, more keys than one step takes, and partial blocks of keys.
TEST(Attention, LongSequences) {
  constexpr uint32_t kHeads = 4, kKeyHeads = 2, kSize = 32;
  for (const auto& [queries, keys] : {std::pair(150u, 331u), std::pair(1u, 1500u), std::pair(3u, 701u)}) {
    Attention attention(kHeads, kKeyHeads);
    attention.Set("Scale", 0.125f)
        .Give("QueryTensor", {1, queries, kHeads * kSize}, Eighths(queries * kHeads * kSize, 5))
        .Give("KeyTensor", {1, keys, kKeyHeads * kSize}, Eighths(keys * kKeyHeads * kSize, 3))
        .Give("ValueTensor", {1, keys, kKeyHeads * kSize}, Eighths(keys * kKeyHeads * kSize, 7))
        .Out("OutputTensor", {1, queries, kHeads * kSize});
    attention.ExpectAgreement();
  }
}

// So many heads that each GPU block has its own queries, with more than one tile of keys.
TEST(Attention, ManyHeadsOfFloats) {
  constexpr uint32_t kHeads = 140, kQueries = 9, kKeys = 137;
  for (const auto& [size, value_size] : {std::pair(64u, 40u), std::pair(104u, 128u)}) {
    Attention attention(kHeads, 1);
    attention.Set("Scale", 0.125f)
        .Give("QueryTensor", {1, kQueries, kHeads * size}, Eighths(kQueries * kHeads * size, 5))
        .Give("KeyTensor", {1, kKeys, size}, Eighths(kKeys * size, 3))
        .Give("ValueTensor", {1, kKeys, value_size}, Eighths(kKeys * value_size, 7))
        .Out("OutputTensor", {1, kQueries, kHeads * value_size});
    attention.ExpectAgreement();
  }
}

// More than one tile of queries and of keys; rows that fill a tile's columns and rows that do not; many
// heads, and few heads whose keys are divided among a GPU block's warps, in one or several rounds.
TEST(Attention, LongSequencesOfHalves) {
  struct Sizes {
    uint32_t heads, queries, keys;
  };
  for (const auto& [heads, queries, keys] :
       {Sizes{2, 150, 137}, Sizes{2, 37, 331}, Sizes{3, 20, 100}, Sizes{280, 9, 137}}) {
    for (const auto& [size, value_size] : {std::pair(64u, 40u), std::pair(104u, 128u)}) {
      Attention attention(heads, 1);
      attention.OfHalves()
          .Set("Scale", 0.125f)
          .Give("QueryTensor", {1, queries, heads * size}, Eighths(queries * heads * size, 5))
          .Give("KeyTensor", {1, keys, size}, Eighths(keys * size, 3))
          .Give("ValueTensor", {1, keys, value_size}, Eighths(keys * value_size, 7))
          .Out("OutputTensor", {1, queries, heads * value_size});
      attention.ExpectAgreement();
    }
  }
}

// As many keys as cuDNN requires, with key heads shared by several query heads; rows contain all heads.
TEST(Attention, ManyKeysOfHalves) {
  constexpr uint32_t kHeads = 2, kQueries = 17;
  for (const auto& [keys, size, value_size] : {std::tuple(2048u, 128u, 128u), std::tuple(2115u, 64u, 40u)}) {
    Attention attention(kHeads, 1);
    attention.OfHalves()
        .Set("Scale", 0.125f)
        .Give("QueryTensor", {2, kQueries, kHeads * size}, Eighths(2 * kQueries * kHeads * size, 5))
        .Give("KeyTensor", {2, keys, size}, Eighths(2 * keys * size, 3))
        .Give("ValueTensor", {2, keys, value_size}, Eighths(2 * keys * value_size, 7))
        .Out("OutputTensor", {2, kQueries, kHeads * value_size});
    attention.ExpectAgreement();
  }
}

TEST(Attention, LongSequencesOfHalvesBehindAPast) {
  constexpr uint32_t kHeads = 2, kPast = 80;
  for (const auto& [queries, size] : {std::pair(130u, 16u), std::pair(3u, 64u)}) {
    Attention attention(kHeads, 1);
    attention.OfHalves()
        .Set("Scale", 0.25f)
        .Give("QueryTensor", {2, queries, kHeads * size}, Eighths(2 * queries * kHeads * size, 5))
        .Give("KeyTensor", {2, queries, size}, Eighths(2 * queries * size, 3))
        .Give("ValueTensor", {2, queries, size}, Eighths(2 * queries * size, 7))
        .Out("OutputTensor", {2, queries, kHeads * size})
        .Out("OutputPresentKeyTensor", {2, 1, kPast + queries, size})
        .Out("OutputPresentValueTensor", {2, 1, kPast + queries, size});
    Attention(attention).Give("PastSequenceLengthsTensor", {2}, Integers{0, 71}).ExpectAgreement();
    attention.Give("PastKeyTensor", {2, 1, kPast, size}, Eighths(2 * kPast * size, 11))
        .Give("PastValueTensor", {2, 1, kPast, size}, Eighths(2 * kPast * size, 13))
        .ExpectAgreement();
  }
}

// Outputs that have content before the run: what every implementation must leave unchanged.
void ExpectOutputs(const Attention& attention, const std::vector<Bytes>& before,
                   const std::vector<Numbers>& want) {
  const OperatorDesc& desc = attention.desc();
  for (const char* const name : RunnableImplementations(desc)) {
    const std::string_view backend = std::string_view(name).substr(0, std::string_view(name).find('.'));
    Backend* const gpu = FindGpu(backend);
    LoweredOperator lowered;
    const Status status = LowerOperator(
        ImplementationOf(desc), desc,
        {.implementation = name, .device = gpu != nullptr ? &gpu->traits() : &kHostDevice}, &lowered);
    if (status.code() == Code::kUnsupported) continue;
    ASSERT_TRUE(status.ok()) << status.message();
    std::vector<std::unique_ptr<GuardedBuffer>> memory;
    std::vector<Buffer> blocks;
    const auto allocate = [&](const Bytes& content) {
      memory.push_back(std::make_unique<GuardedBuffer>(content, false));
      blocks.push_back(memory.back()->with_guards());
      return memory.back()->buffer();
    };
    std::vector<Buffer> inputs, outputs;
    for (const Bytes& content : attention.inputs()) {
      inputs.push_back(content.empty() ? Buffer{} : allocate(content));
    }
    for (const Bytes& content : before) outputs.push_back(allocate(content));
    const size_t first = memory.size() - before.size();
    KernelArguments arguments = {.inputs = inputs, .outputs = outputs};
    arguments.temporary = allocate(Bytes((lowered.kernel->temporary_bytes() + 15) / 16 * 16));
    const Status ran = gpu != nullptr ? RunOnDevice(*gpu, *lowered.kernel, false, blocks, arguments)
                                      : lowered.kernel->Run(arguments);
    EXPECT_TRUE(ran.ok()) << ran.message();
    for (size_t i = 0; i < want.size(); ++i) {
      const Numbers got = Gathered<float>(*desc.outputs()[i], memory[first + i]->content());
      ASSERT_EQ(got.size(), want[i].size());
      for (size_t k = 0; k < got.size(); ++k) {
        EXPECT_TRUE(std::isnan(want[i][k])   ? std::isnan(got[k])
                    : std::isinf(want[i][k]) ? got[k] == want[i][k]
                                             : std::abs(got[k] - want[i][k]) < 1e-5)
            << name << ", output " << i << ", element " << k << ": " << got[k] << " for " << want[i][k];
      }
    }
  }
}

// Unused rows hold NaN: they must be neither read nor written.
TEST(Attention, WithLengthsThePastIsInThePresentOutputs) {
  Attention attention(2, 1);
  attention.Shape("QueryTensor", {2, 2, 2})
      .Give("KeyTensor", {2, 2, 1}, Numbers{1, 2, 3, 4})
      .Give("ValueTensor", {2, 2, 1}, Numbers{5, 7, 2, 4})
      .Give("PastSequenceLengthsTensor", {2}, Integers{2, 0})
      .Out("OutputTensor", {2, 2, 2})
      .Out("OutputPresentKeyTensor", {2, 1, 5, 1})
      .Out("OutputPresentValueTensor", {2, 1, 5, 1});
  const TensorDesc present = Packed(DataType::kFloat32, {2, 1, 5, 1});
  const Numbers keys = {8, 9, kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan};
  const Numbers values = {1, 3, kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan};
  ExpectOutputs(attention,
                {Bytes(attention.desc().outputs()[0]->total_bytes), Scattered(present, keys),
                 Scattered(present, values)},
                // Causal: a query sees the keys up to its own position.
                {{3, 3, 4, 4, 2, 2, 3, 3},
                 {8, 9, 1, 2, kNan, 3, 4, kNan, kNan, kNan},
                 {1, 3, 5, 7, kNan, 2, 4, kNan, kNan, kNan}});
}

// Values of later keys are not read: 0 times infinity would be NaN.
TEST(Attention, InfinitiesBehindAQueryAreNotSeen) {
  constexpr uint32_t kPast = 2, kRoom = 5;
  for (const uint32_t queries : {2u, 9u, 300u}) {
    const uint32_t rows = kPast + queries + kRoom, infinite = queries / 2;
    Numbers values(queries, 1), past(rows, 1), want;
    values[infinite] = INFINITY;
    for (uint32_t q = 0; q < queries; ++q) want.insert(want.end(), 2, q < infinite ? 1.0f : INFINITY);
    Attention attention(2, 1);
    attention.Shape("QueryTensor", {1, queries, 2})
        .Shape("KeyTensor", {1, queries, 1})
        .Give("ValueTensor", {1, queries, 1}, values)
        .Give("PastSequenceLengthsTensor", {1}, Integers{kPast})
        .Out("OutputTensor", {1, queries, 2})
        .Out("OutputPresentKeyTensor", {1, 1, rows, 1})
        .Out("OutputPresentValueTensor", {1, 1, rows, 1});
    const TensorDesc present = Packed(DataType::kFloat32, {1, 1, rows, 1});
    ExpectOutputs(attention,
                  {Bytes(attention.desc().outputs()[0]->total_bytes), Bytes(present.total_bytes),
                   Scattered(present, past)},
                  {want});
  }
}

TEST(Attention, LengthsThatCannotBeAreTheNearestThatCan) {
  Attention attention(1, 1);
  attention.Shape("QueryTensor", {2, 1, 1})
      .Shape("KeyTensor", {2, 1, 1})
      .Give("ValueTensor", {2, 1, 1}, Numbers{6, 8})
      .Give("PastSequenceLengthsTensor", {2, 1}, Integers{-5, 100})
      .Out("OutputTensor", {2, 1, 1})
      .Out("OutputPresentKeyTensor", {2, 1, 3, 1})
      .Out("OutputPresentValueTensor", {2, 1, 3, 1});
  const TensorDesc present = Packed(DataType::kFloat32, {2, 1, 3, 1});
  ExpectOutputs(
      attention,
      {Bytes(8), Bytes(present.total_bytes), Scattered(present, Numbers{kNan, kNan, kNan, 1, 3, kNan})},
      {{6, 4}, Numbers(6), {6, kNan, kNan, 1, 3, 8}});
}

}  // namespace
}  // namespace anydml::testing
