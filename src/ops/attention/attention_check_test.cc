// Invalid attention descriptions and their error messages.
#include <gtest/gtest.h>

#include "ops/attention/attention_builder.h"

namespace anydml::testing {
namespace {

Attention Good() {
  Attention attention(2);
  attention.Shape("QueryTensor", {3, 4, 6})
      .Shape("KeyTensor", {3, 5, 6})
      .Shape("ValueTensor", {3, 5, 8})
      .Out("OutputTensor", {3, 4, 8});
  return attention;
}

TEST(AttentionCheck, Sources) {
  EXPECT_EQ(Good().Refusal(), "");
  EXPECT_EQ(
      Good().Shape("StackedQueryKeyTensor", {3, 4, 2, 2, 3}).Refusal(),
      "MULTIHEAD_ATTENTION: the query is in 2 tensors (QueryTensor, StackedQueryKeyTensor) but must be in "
      "exactly 1");
  EXPECT_EQ(Good().Set("QueryTensor", {}).Refusal(),
            "MULTIHEAD_ATTENTION: the query is in 0 tensors but must be in exactly 1 of QueryTensor, "
            "StackedQueryKeyTensor, StackedQueryKeyValueTensor");
  EXPECT_EQ(Good().Set("ValueTensor", {}).Refusal(),
            "MULTIHEAD_ATTENTION: the value is in 0 tensors but must be in exactly 1 of ValueTensor, "
            "StackedKeyValueTensor, StackedQueryKeyValueTensor");
  EXPECT_EQ(
      Good().Shape("PastKeyTensor", {3, 2, 1, 3}).Refusal(),
      "MULTIHEAD_ATTENTION: PastKeyTensor is given but PastValueTensor is null; both or neither must be "
      "given");
  EXPECT_EQ(
      Good()
          .Set("KeyTensor", {})
          .Shape("PastKeyTensor", {3, 2, 1, 3})
          .Shape("PastValueTensor", {3, 2, 1, 4})
          .Refusal(),
      "MULTIHEAD_ATTENTION: the value is in ValueTensor but the key is in no tensor; only without both the "
      "past ones are all");
}

TEST(AttentionCheck, Heads) {
  EXPECT_EQ(Good().Set("HeadCount", 0u).Refusal(),
            "MULTIHEAD_ATTENTION: HeadCount is 0 but must be at least 1");
  EXPECT_EQ(Good().Set("HeadCount", 4u).Refusal(),
            "MULTIHEAD_ATTENTION: QueryTensor.Sizes[2] is 6 but HeadCount is 4; it must divide the size");
  EXPECT_EQ(Attention(4, 3).Refusal(),
            "MULTIHEAD_ATTENTION1: QueryHeadCount is 4 but KeyValueHeadCount is 3; it must divide "
            "QueryHeadCount");
  EXPECT_EQ(Good().Shape("KeyTensor", {3, 5, 8}).Refusal(),
            "MULTIHEAD_ATTENTION: KeyTensor.Sizes is {3,5,8} but must be {3,5,6}: batches, sequence, 2 heads "
            "(HeadCount) of the query's head size, 3");
}

TEST(AttentionCheck, Shapes) {
  EXPECT_EQ(
      Good().Shape("ValueTensor", {3, 4, 8}).Refusal(),
      "MULTIHEAD_ATTENTION: ValueTensor.Sizes is {3,4,8} but must be {3,5,8}: batches, the keys' sequence, "
      "heads side by side");
  EXPECT_EQ(
      Good().Shape("BiasTensor", {19}).Refusal(),
      "MULTIHEAD_ATTENTION: BiasTensor.Sizes is {19} but must be {20}: of the query 6, of the key 6, of the "
      "value 8");
  EXPECT_EQ(
      Good().Shape("RelativePositionBiasTensor", {1, 2, 4, 5}).Refusal(),
      "MULTIHEAD_ATTENTION: RelativePositionBiasTensor.Sizes is {1,2,4,5} but must be {3,2,4,5}: batches, "
      "heads, queries, all keys (a stride of 0 repeats)");
  EXPECT_EQ(
      Good().Out("OutputTensor", {3, 4, 6}).Refusal(),
      "MULTIHEAD_ATTENTION: OutputTensor.Sizes is {3,4,6} but must be {3,4,8}: batches, queries, heads of "
      "the values' head size side by side");
  EXPECT_EQ(
      Good().Out("OutputPresentKeyTensor", {1, 3, 2, 6, 3}).Refusal(),
      "MULTIHEAD_ATTENTION: OutputPresentKeyTensor.Sizes is {1,3,2,6,3} but must be {3,2,5,3} behind 1s: "
      "batches, heads of keys, all keys, head size");
}

TEST(AttentionCheck, Masks) {
  EXPECT_EQ(Good().Set("MaskType", uint32_t{kBoolean}).Refusal(),
            "MULTIHEAD_ATTENTION: MaskType is BOOLEAN but MaskTensor is null");
  EXPECT_EQ(Good().Mask(kNone, {1}, {1}).Refusal(),
            "MULTIHEAD_ATTENTION: MaskType is NONE but MaskTensor is given");
  EXPECT_EQ(Good().Mask(kLength, {1, 2}, {1, 1}).Refusal(),
            "MULTIHEAD_ATTENTION: MaskTensor.Sizes is {1,2} but must be {1,3}: the keys of each batch");
  EXPECT_EQ(
      Good().Mask(kEndStart, {1, 3}, {1, 1, 1}).Refusal(),
      "MULTIHEAD_ATTENTION: MaskTensor.Sizes is {1,3} but must be {2,3}: ends and starts of each batch");
  EXPECT_EQ(
      Good().Mask(kLengthStartEnd, {3}, {1, 1, 1}).Refusal(),
      "MULTIHEAD_ATTENTION: MaskTensor.Sizes is {3} but must be {11}: for each batch the keys and where "
      "queries and keys start, and where the last ones end");
  EXPECT_EQ(
      Good().Mask(kBoolean, {1, 1, 1, 5}, {1, 1, 1, 1, 1}).Refusal(),
      "MULTIHEAD_ATTENTION: MaskTensor.Sizes is {1,1,1,5} but must be {3,2,4,5}: batches, heads, queries, "
      "all keys (a stride of 0 repeats)");
}

TEST(AttentionCheck, Lengths) {
  const auto good = [] {
    Attention attention(4, 2);
    attention.Shape("QueryTensor", {3, 2, 8})
        .Shape("KeyTensor", {3, 2, 4})
        .Shape("ValueTensor", {3, 2, 4})
        .Give("PastSequenceLengthsTensor", {3}, Integers{0, 1, 2})
        .Out("OutputTensor", {3, 2, 8})
        .Out("OutputPresentKeyTensor", {3, 2, 6, 2})
        .Out("OutputPresentValueTensor", {3, 2, 6, 2});
    return attention;
  };
  EXPECT_EQ(good().Refusal(), "");
  EXPECT_EQ(
      good().Set("OutputPresentValueTensor", {}).Refusal(),
      "MULTIHEAD_ATTENTION1: PastSequenceLengthsTensor is given but OutputPresentValueTensor is null; with "
      "lengths the past is what the present outputs have already");
  EXPECT_EQ(good().Shape("PastKeyTensor", {3, 2, 4, 2}).Shape("PastValueTensor", {3, 2, 4, 2}).Refusal(),
            "MULTIHEAD_ATTENTION1: PastSequenceLengthsTensor is given together with PastKeyTensor and "
            "PastValueTensor; with lengths the past is what the present outputs have already");
  EXPECT_EQ(
      good().Give("PastSequenceLengthsTensor", {2}, Integers{0, 1}).Refusal(),
      "MULTIHEAD_ATTENTION1: PastSequenceLengthsTensor.Sizes is {2} but must be {3} (or that among 1s): one "
      "length for each batch");
  EXPECT_EQ(
      good().Shape("KeyTensor", {3, 1, 4}).Shape("ValueTensor", {3, 1, 4}).Refusal(),
      "MULTIHEAD_ATTENTION1: there are 1 new keys but 2 queries; with PastSequenceLengthsTensor each query "
      "has the key of its own position");
  EXPECT_EQ(
      good().Out("OutputPresentKeyTensor", {3, 2, 1, 2}).Refusal(),
      "MULTIHEAD_ATTENTION1: OutputPresentKeyTensor.Sizes[2] is 1 but must be at least 2: it takes as many "
      "new rows");
}

TEST(AttentionInfer, OutputsThatAreAskedFor) {
  OperatorDesc desc = Good().Set("OutputTensor", {}).Set("OutputPresentKeyTensor", TensorDesc{}).desc();
  ASSERT_TRUE(ImplementationOf(desc).infer(&desc).ok());
  EXPECT_EQ(SizesToString(*desc.tensor("OutputTensor")), "{3,4,8}");
  EXPECT_EQ(SizesToString(*desc.tensor("OutputPresentKeyTensor")), "{3,2,5,3}");
  EXPECT_EQ(desc.tensor("OutputPresentValueTensor"), nullptr);
}

}  // namespace
}  // namespace anydml::testing
