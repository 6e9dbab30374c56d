#include "ops/attention/fields.h"

#include <algorithm>
#include <vector>

#include "ops/common/checks.h"

namespace anydml {
namespace {

using In = AttentionInput;
using Out = AttentionOutput;
using MaskType = MultiheadAttentionMaskType;

std::string_view NameOf(const AttentionFields& fields, In which) {
  return fields.desc->schema->fields[static_cast<uint32_t>(which)].name;  // inputs come first
}

template <typename... Args>
Status Refuse(const AttentionFields& fields, const Args&... args) {
  return InvalidArgument(fields.desc->schema->name, ": ", args...);
}

template <typename Desc>
AttentionFields FieldsOfTyped(const OperatorDesc& desc) {
  const auto typed = Desc::From(desc);
  AttentionFields fields = {.desc = &desc};
  fields.inputs = {typed.query,
                   typed.key,
                   typed.value,
                   typed.stacked_query_key,
                   typed.stacked_key_value,
                   typed.stacked_query_key_value,
                   typed.bias,
                   typed.mask,
                   typed.relative_position_bias,
                   typed.past_key,
                   typed.past_value};
  fields.outputs = {&typed.output, typed.output_present_key, typed.output_present_value};
  fields.mask_type = typed.mask_type;
  fields.scale = typed.scale;
  fields.mask_filter_value = typed.mask_filter_value;
  if constexpr (requires { typed.head_count; }) {
    fields.heads = fields.key_heads = typed.head_count;
    fields.heads_field = fields.key_heads_field = "HeadCount";
  } else {
    fields.inputs[static_cast<uint32_t>(In::kPastLengths)] = typed.past_sequence_lengths;
    fields.heads = typed.query_head_count;
    fields.key_heads = typed.key_value_head_count;
    fields.heads_field = "QueryHeadCount";
    fields.key_heads_field = "KeyValueHeadCount";
  }
  return fields;
}

std::string ToString(const std::vector<uint64_t>& sizes) {
  std::string text;
  for (const uint64_t size : sizes) text += StrCat(text.empty() ? "" : ",", size);
  return StrCat("{", text, "}");
}

// The last dimensions are `wanted`; on either side, dimensions before them are 1.
Status CheckTail(const AttentionFields& fields, std::string_view name, const TensorDesc& tensor,
                 const std::vector<uint64_t>& wanted, std::string_view because) {
  bool fits = true;
  for (size_t i = 0; i < std::max<size_t>(wanted.size(), tensor.rank); ++i) {
    const uint64_t want = i < wanted.size() ? wanted[wanted.size() - 1 - i] : 1;
    const uint64_t given = i < tensor.rank ? tensor.sizes[tensor.rank - 1 - i] : 1;
    fits = fits && given == want;
  }
  if (fits) return {};
  return Refuse(fields, name, ".Sizes is ", SizesToString(tensor), " but must be ", ToString(wanted),
                tensor.rank > wanted.size() ? " behind 1s: " : ": ", because);
}

// For tensors that are read before they are checked: makes sure that the dimensions exist.
Status RequireRank(const AttentionFields& fields, std::string_view name, const TensorDesc& tensor,
                   uint32_t least) {
  if (tensor.rank >= least) return {};
  return Refuse(fields, name, ".DimensionCount is ", tensor.rank, " but must be at least ", least);
}

// The size of dimension `from_end`, counted from the last.
uint64_t FromEnd(const TensorDesc& tensor, uint32_t from_end) {
  return tensor.sizes[tensor.rank - 1 - from_end];
}

struct Candidate {
  In input;
  uint32_t stacked, place;
};
constexpr Candidate kQuerySources[] = {
    {In::kQuery, 0, 0}, {In::kStackedQueryKey, 2, 0}, {In::kStackedQueryKeyValue, 3, 0}};
constexpr Candidate kKeySources[] = {{In::kKey, 0, 0},
                                     {In::kStackedQueryKey, 2, 1},
                                     {In::kStackedKeyValue, 2, 0},
                                     {In::kStackedQueryKeyValue, 3, 1}};
constexpr Candidate kValueSources[] = {
    {In::kValue, 0, 0}, {In::kStackedKeyValue, 2, 1}, {In::kStackedQueryKeyValue, 3, 2}};

// At most one of the candidates may be present; exactly one if `required`.
Status FindSource(const AttentionFields& fields, std::span<const Candidate> candidates, const char* what,
                  bool required, AttentionSource* source) {
  std::string names, given;
  uint32_t count = 0;
  for (const Candidate& candidate : candidates) {
    const std::string_view name = NameOf(fields, candidate.input);
    names += StrCat(names.empty() ? "" : ", ", name);
    const TensorDesc* const tensor = fields.input(candidate.input);
    if (tensor == nullptr) continue;
    given += StrCat(given.empty() ? "" : ", ", name);
    ++count;
    *source = {tensor, candidate.input, candidate.stacked, candidate.place};
  }
  if (count == 1 || (count == 0 && !required)) return {};
  if (count > 1) {
    return Refuse(fields, "the ", what, " is in ", count, " tensors (", given, ") but must be in exactly 1");
  }
  return Refuse(fields, "the ", what, " is in 0 tensors but must be in exactly 1 of ", names);
}

Status FindSources(const AttentionFields& fields, AttentionSizes* sizes) {
  const bool has_past = fields.input(In::kPastKey) != nullptr;
  if (has_past != (fields.input(In::kPastValue) != nullptr)) {
    return Refuse(fields, NameOf(fields, has_past ? In::kPastKey : In::kPastValue), " is given but ",
                  NameOf(fields, has_past ? In::kPastValue : In::kPastKey),
                  " is null; both or neither must be given");
  }
  ANYDML_RETURN_IF_ERROR(FindSource(fields, kQuerySources, "query", true, &sizes->query));
  ANYDML_RETURN_IF_ERROR(FindSource(fields, kKeySources, "key", !has_past, &sizes->key));
  // If the past holds all keys, there are no new values either.
  const bool has_key = sizes->key.tensor != nullptr;
  ANYDML_RETURN_IF_ERROR(FindSource(fields, kValueSources, "value", has_key, &sizes->value));
  if (has_key || sizes->value.tensor == nullptr) return {};
  return Refuse(fields, "the value is in ", NameOf(fields, sizes->value.input),
                " but the key is in no tensor; only without both the past ones are all");
}

Status CheckHeads(const AttentionFields& fields) {
  if (fields.heads == 0) return Refuse(fields, fields.heads_field, " is 0 but must be at least 1");
  if (fields.key_heads == 0) return Refuse(fields, fields.key_heads_field, " is 0 but must be at least 1");
  if (fields.heads % fields.key_heads == 0) return {};
  return Refuse(fields, fields.heads_field, " is ", fields.heads, " but ", fields.key_heads_field, " is ",
                fields.key_heads, "; it must divide ", fields.heads_field);
}

// Sets the head size of a tensor that has `heads` heads side by side.
Status DivideHeads(const AttentionFields& fields, const AttentionSource& source, uint32_t heads,
                   std::string_view heads_field, uint64_t* size) {
  const TensorDesc& tensor = *source.tensor;
  const uint64_t all = FromEnd(tensor, 0);
  *size = all / heads;
  if (all % heads == 0) return {};
  return Refuse(fields, NameOf(fields, source.input), ".Sizes[", tensor.rank - 1, "] is ", all, " but ",
                heads_field, " is ", heads, "; it must divide the size");
}

Status ReadQuery(const AttentionFields& fields, AttentionSizes* sizes) {
  const AttentionSource& source = sizes->query;
  const TensorDesc& tensor = *source.tensor;
  const std::string_view name = NameOf(fields, source.input);
  ANYDML_RETURN_IF_ERROR(RequireRank(fields, name, tensor, source.stacked != 0 ? 5 : 3));
  if (source.stacked != 0) {
    sizes->batch = tensor.sizes[0];
    sizes->queries = tensor.sizes[1];
    sizes->size = tensor.sizes[4];
    return CheckTail(fields, name, tensor,
                     {sizes->batch, sizes->queries, fields.heads, source.stacked, sizes->size},
                     "batches, sequence, heads, stack, head size");
  }
  sizes->batch = FromEnd(tensor, 2);
  sizes->queries = FromEnd(tensor, 1);
  ANYDML_RETURN_IF_ERROR(DivideHeads(fields, source, fields.heads, fields.heads_field, &sizes->size));
  return CheckTail(fields, name, tensor, {sizes->batch, sizes->queries, FromEnd(tensor, 0)},
                   "batches, sequence, heads side by side");
}

// New keys, or values; their size is known (keys) or inferred.
Status ReadFresh(const AttentionFields& fields, const AttentionSource& source, bool is_key,
                 AttentionSizes* sizes) {
  const TensorDesc& tensor = *source.tensor;
  const std::string_view name = NameOf(fields, source.input);
  ANYDML_RETURN_IF_ERROR(RequireRank(fields, name, tensor, source.stacked != 0 ? 5 : 3));
  if (is_key) sizes->fresh = source.stacked != 0 ? tensor.sizes[1] : FromEnd(tensor, 1);
  if (source.stacked != 0) {
    if (!is_key) sizes->value_size = sizes->size;
    return CheckTail(fields, name, tensor,
                     {sizes->batch, sizes->fresh, fields.key_heads, source.stacked, sizes->size},
                     "batches, sequence, heads of keys and values, stack, head size of the query");
  }
  if (is_key) {
    return CheckTail(fields, name, tensor, {sizes->batch, sizes->fresh, fields.key_heads * sizes->size},
                     StrCat("batches, sequence, ", fields.key_heads, " heads (", fields.key_heads_field,
                            ") of the query's head size, ", sizes->size));
  }
  ANYDML_RETURN_IF_ERROR(
      DivideHeads(fields, source, fields.key_heads, fields.key_heads_field, &sizes->value_size));
  return CheckTail(fields, name, tensor, {sizes->batch, sizes->fresh, fields.key_heads * sizes->value_size},
                   "batches, the keys' sequence, heads side by side");
}

Status ReadPast(const AttentionFields& fields, AttentionSizes* sizes) {
  const TensorDesc* const key = fields.input(In::kPastKey);
  if (key == nullptr) return {};
  const TensorDesc& value = *fields.input(In::kPastValue);
  const std::string_view key_name = NameOf(fields, In::kPastKey), value_name = NameOf(fields, In::kPastValue);
  ANYDML_RETURN_IF_ERROR(RequireRank(fields, key_name, *key, 4));
  ANYDML_RETURN_IF_ERROR(RequireRank(fields, value_name, value, 4));
  sizes->past = FromEnd(*key, 1);
  if (sizes->value.tensor == nullptr) sizes->value_size = FromEnd(value, 0);
  ANYDML_RETURN_IF_ERROR(CheckTail(fields, key_name, *key,
                                   {sizes->batch, fields.key_heads, sizes->past, sizes->size},
                                   "batches, heads of keys, sequence, head size"));
  return CheckTail(fields, value_name, value,
                   {sizes->batch, fields.key_heads, sizes->past, sizes->value_size},
                   "batches, heads of values, the past keys' sequence, head size of values");
}

// The past is in the present outputs, which have room for it.
Status ReadLengths(const AttentionFields& fields, AttentionSizes* sizes) {
  const TensorDesc* const lengths = fields.input(In::kPastLengths);
  if (lengths == nullptr) return {};
  const std::string_view name = NameOf(fields, In::kPastLengths);
  if (fields.input(In::kPastKey) != nullptr) {
    return Refuse(fields, name,
                  " is given together with PastKeyTensor and PastValueTensor; with lengths the "
                  "past is what the present outputs have already");
  }
  if (fields.output(Out::kPresentKey) == nullptr || fields.output(Out::kPresentValue) == nullptr) {
    return Refuse(
        fields, name, " is given but ",
        fields.output(Out::kPresentKey) == nullptr ? "OutputPresentKeyTensor" : "OutputPresentValueTensor",
        " is null; with lengths the past is what the present outputs have already");
  }
  uint32_t longer = 0;
  for (uint32_t d = 0; d < lengths->rank; ++d) longer += lengths->sizes[d] != 1 ? 1 : 0;
  if (ElementCount(*lengths) != sizes->batch || longer > 1) {
    return Refuse(fields, name, ".Sizes is ", SizesToString(*lengths), " but must be {", sizes->batch,
                  "} (or that among 1s): one length for each batch");
  }
  if (sizes->fresh != sizes->queries) {
    return Refuse(fields, "there are ", sizes->fresh, " new keys but ", sizes->queries, " queries; with ",
                  name, " each query has the key of its own position");
  }
  const TensorDesc& present = *fields.output(Out::kPresentKey);
  ANYDML_RETURN_IF_ERROR(RequireRank(fields, "OutputPresentKeyTensor", present, 4));
  sizes->keys = FromEnd(present, 1);
  if (sizes->keys >= sizes->fresh) return {};
  return Refuse(fields, "OutputPresentKeyTensor.Sizes[", present.rank - 2, "] is ", sizes->keys,
                " but must be at least ", sizes->fresh, ": it takes as many new rows");
}

const char* NameOf(MaskType type) {
  switch (type) {
    case MaskType::kNone:
      return "NONE";
    case MaskType::kKeySequenceLength:
      return "KEY_SEQUENCE_LENGTH";
    case MaskType::kKeySequenceEndStart:
      return "KEY_SEQUENCE_END_START";
    case MaskType::kKeyQuerySequenceLengthStartEnd:
      return "KEY_QUERY_SEQUENCE_LENGTH_START_END";
    case MaskType::kBoolean:
      return "BOOLEAN";
  }
  return "";
}

Status CheckMask(const AttentionFields& fields, const AttentionSizes& sizes) {
  const TensorDesc* const mask = fields.input(In::kMask);
  if ((mask != nullptr) != (fields.mask_type != MaskType::kNone)) {
    return Refuse(fields, "MaskType is ", NameOf(fields.mask_type), " but MaskTensor is ",
                  mask != nullptr ? "given" : "null");
  }
  const std::string_view name = NameOf(fields, In::kMask);
  switch (fields.mask_type) {
    case MaskType::kNone:
      return {};
    case MaskType::kKeySequenceLength:
      return CheckTail(fields, name, *mask, {1, sizes.batch}, "the keys of each batch");
    case MaskType::kKeySequenceEndStart:
      return CheckTail(fields, name, *mask, {2, sizes.batch}, "ends and starts of each batch");
    case MaskType::kKeyQuerySequenceLengthStartEnd:
      return CheckTail(
          fields, name, *mask, {3 * sizes.batch + 2},
          "for each batch the keys and where queries and keys start, and where the last ones end");
    case MaskType::kBoolean:
      return CheckTail(fields, name, *mask, {sizes.batch, fields.heads, sizes.queries, sizes.keys},
                       "batches, heads, queries, all keys (a stride of 0 repeats)");
  }
  return {};
}

Status CheckBiases(const AttentionFields& fields, const AttentionSizes& sizes) {
  if (const TensorDesc* const bias = fields.input(In::kBias)) {
    const uint64_t query = fields.heads * sizes.size, key = fields.key_heads * sizes.size,
                   value = fields.key_heads * sizes.value_size;
    ANYDML_RETURN_IF_ERROR(
        CheckTail(fields, NameOf(fields, In::kBias), *bias, {query + key + value},
                  StrCat("of the query ", query, ", of the key ", key, ", of the value ", value)));
  }
  if (const TensorDesc* const bias = fields.input(In::kPositionBias)) {
    return CheckTail(fields, NameOf(fields, In::kPositionBias), *bias,
                     {sizes.batch, fields.heads, sizes.queries, sizes.keys},
                     "batches, heads, queries, all keys (a stride of 0 repeats)");
  }
  return {};
}

}  // namespace

AttentionFields FieldsOf(const OperatorDesc& desc) {
  return desc.schema->type == static_cast<uint32_t>(OperatorType::kMultiheadAttention)
             ? FieldsOfTyped<MultiheadAttentionDesc>(desc)
             : FieldsOfTyped<MultiheadAttention1Desc>(desc);
}

Status ReadAttentionSizes(const AttentionFields& fields, AttentionSizes* sizes) {
  ANYDML_RETURN_IF_ERROR(CheckHeads(fields));
  ANYDML_RETURN_IF_ERROR(FindSources(fields, sizes));
  ANYDML_RETURN_IF_ERROR(ReadQuery(fields, sizes));
  if (sizes->key.tensor != nullptr) {
    ANYDML_RETURN_IF_ERROR(ReadFresh(fields, sizes->key, true, sizes));
    ANYDML_RETURN_IF_ERROR(ReadFresh(fields, sizes->value, false, sizes));
  }
  ANYDML_RETURN_IF_ERROR(ReadPast(fields, sizes));
  sizes->keys = sizes->past + sizes->fresh;
  ANYDML_RETURN_IF_ERROR(ReadLengths(fields, sizes));
  ANYDML_RETURN_IF_ERROR(CheckMask(fields, *sizes));
  return CheckBiases(fields, *sizes);
}

Status CheckAttentionOutputs(const AttentionFields& fields, const AttentionSizes& sizes) {
  ANYDML_RETURN_IF_ERROR(CheckTail(fields, "OutputTensor", *fields.output(Out::kOutput),
                                   {sizes.batch, sizes.queries, fields.heads * sizes.value_size},
                                   "batches, queries, heads of the values' head size side by side"));
  if (const TensorDesc* const present = fields.output(Out::kPresentKey)) {
    ANYDML_RETURN_IF_ERROR(CheckTail(fields, "OutputPresentKeyTensor", *present,
                                     {sizes.batch, fields.key_heads, sizes.keys, sizes.size},
                                     "batches, heads of keys, all keys, head size"));
  }
  if (const TensorDesc* const present = fields.output(Out::kPresentValue)) {
    return CheckTail(fields, "OutputPresentValueTensor", *present,
                     {sizes.batch, fields.key_heads, sizes.keys, sizes.value_size},
                     "batches, heads of values, all keys, head size of values");
  }
  return {};
}

}  // namespace anydml
