// The fields that both operators share, under the same names, and the checks that they fit together.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "ops/attention/problem.h"
#include "schema/descriptions.generated.h"

namespace anydml {

struct AttentionFields {
  const OperatorDesc* desc = nullptr;
  std::array<const TensorDesc*, 12> inputs{};  // by AttentionInput; null: absent
  std::array<const TensorDesc*, 3> outputs{};  // by AttentionOutput
  uint32_t heads = 1;
  uint32_t key_heads = 1;
  std::string_view heads_field{}, key_heads_field{};
  MultiheadAttentionMaskType mask_type{};
  float scale = 1;
  float mask_filter_value = 0;

  const TensorDesc* input(AttentionInput which) const { return inputs[static_cast<uint32_t>(which)]; }
  const TensorDesc* output(AttentionOutput which) const { return outputs[static_cast<uint32_t>(which)]; }
};

AttentionFields FieldsOf(const OperatorDesc& desc);

// The tensor that contains the queries, keys or values.
struct AttentionSource {
  const TensorDesc* tensor = nullptr;  // null: absent
  AttentionInput input{};
  uint32_t stacked = 0;  // the number of parts stacked in the tensor; 0: not stacked
  uint32_t place = 0;    // index of this part
};

struct AttentionSizes {
  AttentionSource query, key, value;
  uint64_t batch = 1, queries = 1, past = 0, fresh = 0, keys = 1, size = 1, value_size = 1;
};

// Fails with a message if the inputs do not fit together. With lengths, the number of keys is that of
// OutputPresentKeyTensor, which is then checked, too.
Status ReadAttentionSizes(const AttentionFields& fields, AttentionSizes* sizes);

// The same for the other outputs.
Status CheckAttentionOutputs(const AttentionFields& fields, const AttentionSizes& sizes);

}  // namespace anydml
