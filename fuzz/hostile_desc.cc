#include "hostile_desc.h"

#include <algorithm>

namespace anydml::fuzz {
namespace {

using testing::DescBuilder;
using testing::FieldSpec;
using testing::TensorSpec;

// Longer arrays count as absurd for the library; tests/schema tests the limits themselves.
constexpr uint32_t kMaxWords = 8;
constexpr uint32_t kMaxTensors = 1u << 16;

std::vector<uint32_t> OddWords(ByteSource& source, size_t count) {
  std::vector<uint32_t> words(count);
  for (uint32_t& word : words) word = OddWord(source);
  return words;
}

std::vector<uint32_t> SmallSizes(ByteSource& source) {
  std::vector<uint32_t> sizes(source.Between(1, kMaxDimensions));
  for (uint32_t& size : sizes) size = source.Between(1, 9);
  return sizes;
}

// A valid layout: dimensions in another order, and gaps.
void Restride(ByteSource& source, TensorSpec* tensor) {
  if (!tensor->sizes) return;
  std::vector<uint32_t> strides(tensor->sizes->size());
  uint32_t stride = source.Between(1, 3);
  for (size_t left = strides.size(), d = source.Byte(); left > 0; --left, d += 3) {
    d %= strides.size();
    while (strides[d] != 0) d = (d + 1) % strides.size();
    strides[d] = stride;
    stride = stride * std::max(1u, (*tensor->sizes)[d]) + source.Between(0, 2);
    if (stride == 0) stride = 1;
  }
  if (source.OneIn(4) && !strides.empty()) strides[source.Byte() % strides.size()] = 0;
  tensor->strides = strides;
}

void SpoilTensor(ByteSource& source, TensorSpec* tensor) {
  switch (source.Between(0, 9)) {
    case 0:
      tensor->data_type = OddWord(source);
      break;
    case 1:
      tensor->tensor_type = OddWord(source);
      break;
    case 2:
      tensor->flags = OddWord(source);
      break;
    case 3:
      tensor->null_desc = true;
      break;
    case 4:
      tensor->dimension_count = OddWord(source);
      break;
    case 5:
      tensor->sizes = OddWords(source, tensor->dimension_count % (kMaxDimensions + 1));
      break;
    case 6:
      tensor->strides = OddWords(source, tensor->dimension_count % (kMaxDimensions + 1));
      break;
    case 7:
      tensor->total_bytes = uint64_t{OddWord(source)} << source.Between(0, 32);
      break;
    case 8:
      tensor->alignment = OddWord(source);
      break;
    default:
      (source.OneIn(2) ? tensor->sizes : tensor->strides).reset();
      break;
  }
}

// A change that obeys the rules of types or sizes, for all tensors that must agree.
void RefineTensors(ByteSource& source, size_t field, DescBuilder* builder) {
  FieldSpec& spec = builder->field(field);
  if (spec.tensors.empty()) return;
  switch (source.Between(0, 3)) {
    case 0:
      builder->SetDataType(field, source.Between(1, kDataTypeCount - 1));
      break;
    case 1:
      builder->SetSizes(field, SmallSizes(source));
      break;
    case 2:
      Restride(source, &spec.tensors[0]);
      spec.tensors[0].total_bytes = MinimumTotalBytes(spec.tensors[0].ToTensorDesc());
      break;
    default:
      spec.tensors[0].flags = 1;  // OWNED_BY_DML
      break;
  }
}

void SpoilField(ByteSource& source, size_t index, FeatureLevel level, int depth, DescBuilder* builder);

DescBuilder Spoiled(ByteSource& source, const OperatorSchema& schema, FeatureLevel level, int depth) {
  DescBuilder builder =
      depth > 0 && !source.OneIn(4) ? DescBuilder::Fused(schema, level) : DescBuilder(schema, level);
  const auto fields = static_cast<uint32_t>(schema.fields.size());
  // Valid changes come first, because they need a valid description.
  for (uint32_t i = source.Between(0, 4); i > 0; --i) {
    RefineTensors(source, source.Between(0, fields - 1), &builder);
  }
  for (uint32_t i = source.Between(0, 4); i > 0; --i) {
    SpoilField(source, source.Between(0, fields - 1), level, depth, &builder);
  }
  return builder;
}

const OperatorSchema& AnyOperator(ByteSource& source) {
  return AllOperators()[source.Byte() % AllOperators().size()];
}

void SpoilField(ByteSource& source, size_t index, FeatureLevel level, int depth, DescBuilder* builder) {
  FieldSpec& field = builder->field(index);
  if (source.OneIn(5)) {
    field.null = !field.null;
    // Creates a description that was absent.
    if (!field.null && builder->schema().fields[index].type == FieldType::kOperatorDesc &&
        field.fused.empty() && depth < 3) {
      field.fused.push_back(Spoiled(source, AnyOperator(source), level, depth + 1));
    }
    field.null |= builder->schema().fields[index].type == FieldType::kOperatorDesc && field.fused.empty();
  } else if (!field.tensors.empty()) {
    SpoilTensor(source, &field.tensors[source.Byte() % field.tensors.size()]);
  } else if (!field.fused.empty()) {
    if (depth < 3) field.fused[0] = Spoiled(source, AnyOperator(source), level, depth + 1);
  } else if (!field.words.empty()) {
    field.words[source.Byte() % field.words.size()] = OddWord(source);
  }
}

void FitTensor(TensorSpec* tensor) {
  const uint32_t rank = std::min(tensor->dimension_count, kMaxDimensions);
  if (tensor->sizes) tensor->sizes->resize(rank, 2);
  if (tensor->strides) tensor->strides->resize(rank, 1);
}

// Makes arrays as long as their counts, unless the counts are absurd.
void FitArrays(DescBuilder* builder) {
  const OperatorSchema& schema = builder->schema();
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    FieldSpec& field = builder->field(i);
    for (TensorSpec& tensor : field.tensors) FitTensor(&tensor);
    for (DescBuilder& fused : field.fused) FitArrays(&fused);
    if (schema.fields[i].count_field < 0) continue;
    uint32_t& count = builder->field(static_cast<size_t>(schema.fields[i].count_field)).words[0];
    const bool tensors = schema.fields[i].type == FieldType::kTensorArray;
    if (tensors && count > 64 && count <= kMaxTensors) count = 64;  // enough to make it slow
    if (count > (tensors ? kMaxTensors : kMaxWords)) continue;
    if (!field.tensors.empty()) field.tensors.resize(count, TensorSpec(field.tensors[0]));
    if (!field.fused.empty()) field.fused.resize(count, DescBuilder(field.fused[0]));
    if (!field.words.empty()) field.words.resize(count, field.words[0]);
  }
}

}  // namespace

uint32_t OddWord(ByteSource& source) {
  constexpr uint32_t kEdges[] = {0,
                                 1,
                                 2,
                                 3,
                                 4,
                                 7,
                                 8,
                                 9,
                                 0x8000,
                                 0xFFFF,
                                 0x10000,
                                 0x10001,
                                 0x7FFFFFFF,
                                 0x80000000,
                                 0xFFFFFFFE,
                                 0xFFFFFFFF,
                                 0x3F800000 /* 1.0f */,
                                 0x7FC00000 /* NaN */};
  const uint32_t kind = source.Between(0, 3);
  if (kind == 3) return source.Word();
  return kind == 2 ? source.Byte() : source.Any(kEdges);
}

DescBuilder HostileDesc(ByteSource& source, FeatureLevel level) {
  const OperatorSchema& schema = AnyOperator(source);
  DescBuilder builder = Spoiled(source, schema, std::max(level, schema.level), 0);
  FitArrays(&builder);
  if (source.OneIn(4)) builder.set_misaligned(true);
  return builder;
}

}  // namespace anydml::fuzz
