#include <algorithm>

#include "ops/gemm/gemm_cases.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

constexpr OperatorType kOperators[] = {OperatorType::kMultiheadAttention, OperatorType::kMultiheadAttention1};

// Inputs in binding order, as in the schema.
enum Position : uint32_t {
  kQuery,
  kKey,
  kValue,
  kStackedQueryKey,
  kStackedKeyValue,
  kStackedQueryKeyValue,
  kBias,
  kMask,
  kPositionBias,
  kPastKey,
  kPastValue,
  kPastLengths,
};

enum class Sources : uint32_t { kApart, kQueryKey, kKeyValue, kQueryKeyValue, kPastOnly };

class AttentionCase {
 public:
  AttentionCase(OperatorType type, CaseMaker& make) : make_(make), source_(make.source()) {
    grouped_ = type == OperatorType::kMultiheadAttention1;
    Choose();
    case_.desc = MakeDesc(FindOperator(type)->name, {});
    case_.inputs.resize(grouped_ ? 12 : 11);
  }

  Case Make() {
    AddQueryKeyValue();
    AddPast();
    if (!long_ && !source_.OneIn(3)) {
      AddBiases();
      AddMask();
    }
    AddOutputs();
    AddAttributes();
    return std::move(case_);
  }

 private:
  using Sizes = std::vector<uint32_t>;

  void Choose() {
    type_ = source_.OneIn(2) ? DataType::kFloat16 : DataType::kFloat32;
    sources_ = static_cast<Sources>(source_.Between(0, 4));
    has_lengths_ = grouped_ && sources_ != Sources::kPastOnly && source_.OneIn(3);
    has_past_ = sources_ == Sources::kPastOnly || (!has_lengths_ && source_.OneIn(2));
    const bool stacks_query = sources_ == Sources::kQueryKey || sources_ == Sources::kQueryKeyValue;
    const bool stacks_value = sources_ == Sources::kKeyValue || sources_ == Sources::kQueryKeyValue;
    batch_ = source_.Between(1, 3);
    key_heads_ = source_.Between(1, 3);
    heads_ = key_heads_ * (grouped_ && !stacks_query ? source_.Between(1, 3) : 1);
    queries_ = source_.OneIn(3) ? 1 : source_.Between(1, source_.OneIn(8) ? 40 : 7);
    fresh_ = sources_ == Sources::kPastOnly ? 0
             : stacks_query || has_lengths_ ? queries_
                                            : source_.Between(1, source_.OneIn(8) ? 70 : 9);
    past_ = has_past_ ? source_.Between(1, 9) : 0;
    keys_ = has_lengths_ ? queries_ + source_.Between(0, 9) : past_ + fresh_;
    size_ = source_.OneIn(3) ? 16U << source_.Between(0, 2) : source_.Between(1, 20);
    value_size_ = stacks_value || source_.OneIn(2) ? size_ : source_.Between(1, 20);
    if (source_.OneIn(24)) BeLong();
  }

  // Enough keys that weights may be FLOAT16, without anything that cuDNN does not take.
  void BeLong() {
    long_ = true;
    type_ = DataType::kFloat16;
    sources_ = Sources::kApart;
    has_lengths_ = has_past_ = false;
    batch_ = source_.Between(1, 2);
    key_heads_ = 1;
    heads_ = grouped_ ? 2 : 1;
    queries_ = source_.Between(2, 9);
    past_ = 0;
    fresh_ = keys_ = 2048 + source_.Between(0, 70);
    size_ = 8 * source_.Between(1, 8);
    value_size_ = source_.OneIn(2) ? size_ : 8 * source_.Between(1, 8);
  }

  // With leading 1s, up to five dimensions.
  Sizes Led(Sizes sizes) {
    const uint32_t ones = source_.OneIn(3) ? source_.Between(0, 5 - static_cast<uint32_t>(sizes.size())) : 0;
    sizes.insert(sizes.begin(), ones, 1);
    return sizes;
  }

  // Packed, or with gaps of whole units between rows: cuDNN takes nothing else.
  TensorDesc InUnits(const Sizes& sizes) {
    TensorDesc tensor = Packed(type_, sizes);
    const uint32_t gap = 8 * source_.Between(0, 2), last = tensor.rank - 1;
    uint32_t stride = tensor.sizes[last] + gap;
    for (uint32_t d = last; d-- > 0; stride *= tensor.sizes[d]) tensor.strides[d] = stride;
    tensor.total_bytes = MinimumTotalBytes(tensor);
    return tensor;
  }
  TensorDesc Output(const Sizes& sizes) { return long_ ? InUnits(sizes) : make_.Output(type_, sizes); }

  TensorDesc Add(Position position, DataType type, const Sizes& sizes) {
    const TensorDesc tensor = long_ ? InUnits(sizes) : make_.Input(type, sizes);
    case_.desc.fields[position] = tensor;
    if (type != DataType::kInt32) case_.inputs[position] = NumbersThatAddUp(tensor, make_);
    return tensor;
  }

  // Integers in [least, least + count).
  void AddIntegers(Position position, const Sizes& sizes, int32_t least, uint32_t count) {
    const TensorDesc tensor = Add(position, DataType::kInt32, sizes);
    Bytes bytes(tensor.total_bytes);
    for (size_t at = 0; at + sizeof(int32_t) <= bytes.size(); at += sizeof(int32_t)) {
      const int32_t number = least + static_cast<int32_t>(make_.random()() % count);
      std::memcpy(bytes.data() + at, &number, sizeof(number));
    }
    case_.inputs[position] = std::move(bytes);
  }

  // Makes one of the values infinite, possibly one that not all queries see.
  void AddInfinity(const TensorDesc& values) {
    constexpr uint16_t kHalf = 0x7C00;
    constexpr uint32_t kSingle = 0x7F800000;
    Bytes& bytes = case_.inputs[kValue];
    if (type_ == DataType::kFloat16) {
      std::memcpy(&bytes[make_.random()() % (values.total_bytes / 2) * 2], &kHalf, sizeof(kHalf));
    } else {
      std::memcpy(&bytes[make_.random()() % (values.total_bytes / 4) * 4], &kSingle, sizeof(kSingle));
    }
  }

  void AddQueryKeyValue() {
    const bool only_query = sources_ == Sources::kPastOnly;
    if (sources_ == Sources::kApart || sources_ == Sources::kKeyValue || only_query) {
      Add(kQuery, type_, Led({batch_, queries_, heads_ * size_}));
    }
    if (sources_ == Sources::kApart) Add(kKey, type_, Led({batch_, fresh_, key_heads_ * size_}));
    if (sources_ == Sources::kApart || sources_ == Sources::kQueryKey) {
      const TensorDesc values = Add(kValue, type_, Led({batch_, fresh_, key_heads_ * value_size_}));
      if (!long_ && source_.OneIn(8)) AddInfinity(values);
    }
    if (sources_ == Sources::kQueryKey) {
      Add(kStackedQueryKey, type_, {batch_, queries_, heads_, 2, size_});
    }
    if (sources_ == Sources::kKeyValue) {
      Add(kStackedKeyValue, type_, {batch_, fresh_, key_heads_, 2, size_});
    }
    if (sources_ == Sources::kQueryKeyValue) {
      Add(kStackedQueryKeyValue, type_, {batch_, queries_, heads_, 3, size_});
    }
  }

  void AddPast() {
    if (has_past_) {
      Add(kPastKey, type_, Led({batch_, key_heads_, past_, size_}));
      Add(kPastValue, type_, Led({batch_, key_heads_, past_, value_size_}));
    }
    if (!has_lengths_) return;
    // Invalid lengths are included.
    AddIntegers(kPastLengths, source_.OneIn(2) ? Sizes{batch_, 1} : Led({batch_}), -1, keys_ - fresh_ + 3);
  }

  void AddBiases() {
    if (source_.OneIn(2)) {
      Add(kBias, type_, Led({heads_ * size_ + key_heads_ * size_ + key_heads_ * value_size_}));
    }
    if (source_.OneIn(3)) Add(kPositionBias, type_, Led({batch_, heads_, queries_, keys_}));
  }

  void AddMask() {
    mask_type_ = source_.Between(0, 4);
    if (mask_type_ == 1) AddIntegers(kMask, Led({1, batch_}), -1, keys_ + 3);
    if (mask_type_ == 2) AddIntegers(kMask, Led({2, batch_}), -1, keys_ + 3);
    if (mask_type_ == 3) AddIntegers(kMask, Led({3 * batch_ + 2}), 0, std::max(queries_, keys_) + 2);
    if (mask_type_ == 4) AddIntegers(kMask, Led({batch_, heads_, queries_, keys_}), 0, 2);
  }

  void AddOutputs() {
    SetField(&case_.desc, "OutputTensor", Output(Led({batch_, queries_, heads_ * value_size_})));
    if (has_lengths_ || source_.OneIn(2)) {
      SetField(&case_.desc, "OutputPresentKeyTensor", Output(Led({batch_, key_heads_, keys_, size_})));
    }
    if (has_lengths_ || source_.OneIn(2)) {
      SetField(&case_.desc, "OutputPresentValueTensor",
               Output(Led({batch_, key_heads_, keys_, value_size_})));
    }
  }

  void AddAttributes() {
    constexpr float kScales[] = {1, 0.125f, 0.3f, -0.5f, 0};
    constexpr float kFilters[] = {-10000, -10000, -2, 0.5f};
    SetField(&case_.desc, "Scale", long_ ? 0.125f : source_.Any(kScales));
    SetField(&case_.desc, "MaskFilterValue", source_.Any(kFilters));
    SetField(&case_.desc, "MaskType", mask_type_);
    SetField(&case_.desc, grouped_ ? "QueryHeadCount" : "HeadCount", heads_);
    if (grouped_) SetField(&case_.desc, "KeyValueHeadCount", key_heads_);
  }

  CaseMaker& make_;
  ByteSource& source_;
  Case case_;
  bool grouped_;
  DataType type_ = DataType::kFloat32;
  Sources sources_ = Sources::kApart;
  bool has_lengths_ = false, has_past_ = false, long_ = false;
  uint32_t batch_ = 1, heads_ = 1, key_heads_ = 1, queries_ = 1, fresh_ = 0, past_ = 0, keys_ = 1, size_ = 1,
           value_size_ = 1, mask_type_ = 0;
};

Case MakeAttention(OperatorType type, CaseMaker& make) { return AttentionCase(type, make).Make(); }

}  // namespace

CaseFamily family::attention::Cases() { return {"attention", kOperators, MakeAttention}; }

}  // namespace anydml::testing
