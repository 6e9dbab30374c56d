#include "ops/element/element_cases.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <variant>

#include "ops/element/check.h"
#include "ops/element/operators.h"
#include "schema/validate.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

using Type = OperatorType;

// Builds a case; sizes and tensor types are chosen first.
class ElementCaseMaker {
 public:
  ElementCaseMaker(OperatorType type, CaseMaker& make)
      : schema_(*FindOperator(type)), sizes_(make.Sizes(kMaxDimensions)), make_(make) {}

  // Whether the drawn types make a valid description.
  bool Try(Case* out) {
    desc_ = {};
    desc_.schema = &schema_;
    desc_.fields.resize(schema_.fields.size());
    DrawTypes();
    for (size_t i = 0; i < schema_.fields.size(); ++i) desc_.fields[i] = Draw(i);
    if (!ValidateOperatorDesc(desc_, kLatestFeatureLevel).ok()) return false;
    if (!CheckElementOperator(desc_, kLatestFeatureLevel).ok()) return false;
    out->desc = desc_;
    out->inputs.clear();
    for (const TensorDesc* tensor : desc_.inputs()) {
      out->inputs.push_back(tensor == nullptr ? Bytes{} : ElementContent(*tensor, make_));
    }
    const TensorDesc& input = *desc_.inputs()[0];
    out->in_place = schema_.in_place && SameLayout(input, *desc_.outputs()[0]) &&
                    input.total_bytes == desc_.outputs()[0]->total_bytes && make_.source().OneIn(2);
    return true;
  }

 private:
  ByteSource& source() { return make_.source(); }

  // Draws one type for all tensors that the schema ties together.
  void DrawTypes() {
    const LevelSupport& support = SupportAt(schema_, kLatestFeatureLevel);
    types_.assign(schema_.fields.size(), DataType::kUnknown);
    for (size_t i = 0; i < schema_.fields.size(); ++i) {
      const TensorSupport* row = FindTensorSupport(support, static_cast<int>(i));
      if (row == nullptr || types_[i] != DataType::kUnknown) continue;
      types_[i] = AnyType(row->types);
      for (const Relation& relation : schema_.relations) {
        if (relation.kind != RelationKind::kSameDataType) continue;
        const auto& fields = relation.fields;
        if (std::find(fields.begin(), fields.end(), i) == fields.end()) continue;
        for (const uint8_t other : fields) types_[other] = types_[i];
      }
    }
  }

  DataType AnyType(uint32_t allowed) {
    uint32_t skip = source().Between(0, static_cast<uint32_t>(std::popcount(allowed)) - 1);
    while (skip-- > 0) allowed &= allowed - 1;
    return static_cast<DataType>(std::countr_zero(allowed));
  }

  FieldValue Draw(size_t i) {
    const FieldSchema& field = schema_.fields[i];
    if (field.optional && field.type != FieldType::kEnum && source().OneIn(2)) return {};
    switch (field.type) {
      case FieldType::kTensor:
        return DrawTensor(i);
      case FieldType::kTensorArray:
        return DrawQuantization();
      case FieldType::kFloat: {
        // Bounds are often infinite; infinite parameters of activations are not tested.
        const bool is_bound = std::string_view(field.name) == "Min" || std::string_view(field.name) == "Max";
        return is_bound && source().OneIn(4) ? DrawInfinity() : DrawFloat();
      }
      case FieldType::kUInt:
        return quantization_type_;  // QuantizationTensorCount
      case FieldType::kEnum:
        return DrawEnum(field);
      case FieldType::kScaleBias:
        return DrawScaleBias();
      case FieldType::kScalarUnion:
        return DrawScalar();
      case FieldType::kOperatorDesc:
        return DrawActivation();
      default:
        return {};
    }
  }

  bool IsParameter(const FieldSchema& field) const {
    const std::string_view name = field.name;
    if (schema_.type == static_cast<uint32_t>(Type::kAdamOptimizer)) return name == "TrainingStepTensor";
    return schema_.type == static_cast<uint32_t>(Type::kElementWiseQuantizedLinearAdd) &&
           (name.find("Scale") != name.npos || name.find("Zero") != name.npos);
  }

  TensorDesc DrawTensor(size_t i) {
    const FieldSchema& field = schema_.fields[i];
    const TensorSupport* row =
        FindTensorSupport(SupportAt(schema_, kLatestFeatureLevel), static_cast<int>(i));
    while (sizes_.size() < row->min_dimensions) sizes_.insert(sizes_.begin(), 1);
    const std::vector<uint32_t> ones(sizes_.size(), 1);
    if (field.kind == FieldKind::kInput) {
      return make_.Input(types_[i], IsParameter(field) ? ones : sizes_);
    }
    // In half of the cases, an output that may replace the first input.
    const TensorDesc* input = desc_.inputs()[0];
    OverlapBudget budget;
    if (schema_.in_place && input->type == types_[i] && source().OneIn(2) &&
        FindOverlap(*input, &budget) == Overlap::kNone) {
      return *input;
    }
    return make_.Output(types_[i], sizes_);
  }

  // Scales and zero points of blocks.
  std::vector<TensorDesc> DrawQuantization() {
    std::vector<uint32_t> sizes = sizes_;
    for (uint32_t& size : sizes) {
      const uint32_t divisor = source().Between(1, 4);
      size = source().OneIn(3) ? 1 : size % divisor == 0 ? size / divisor : size;
    }
    const bool quantizes = schema_.type == static_cast<uint32_t>(Type::kQuantize);
    const auto at = [&](const char* name) { return types_[static_cast<size_t>(FindField(schema_, name))]; };
    const DataType scale = quantizes ? at("InputTensor") : at("OutputTensor");
    std::vector<TensorDesc> tensors = {make_.Input(scale, sizes)};
    if (quantization_type_ == 2) {
      for (uint32_t d = 0; d < sizes_.size(); ++d) {
        const uint32_t choice = source().Between(0, 6), twice = 2 * sizes[d];
        if (choice == 0) sizes[d] = 1;
        if (choice == 1) sizes[d] = sizes_[d];
        if (choice == 2 && sizes_[d] % twice == 0) sizes[d] = twice;
      }
      tensors.push_back(make_.Input(quantizes ? at("OutputTensor") : at("InputTensor"), sizes));
    }
    return tensors;
  }

  float DrawFloat() {
    constexpr float kFloats[] = {0, 1, -1, 0.5f, 2, -3, 0.01f, 1.6732f, 1 / 6.0f, 100, 0.999f, 1e-8f};
    return source().Any(kFloats);
  }

  float DrawInfinity() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return source().OneIn(2) ? kInfinity : -kInfinity;
  }

  uint32_t DrawEnum(const FieldSchema& field) {
    if (std::string_view(field.name) == "MinMaxDataType") return static_cast<uint32_t>(types_[0]);
    if (std::string_view(field.name) == "QuantizationType") {
      return quantization_type_ = source().Between(1, 2);
    }
    return source().Any(field.enumeration->members).value;
  }

  ScaleBias DrawScaleBias() {
    if (source().OneIn(8)) {  // any bits
      const auto any = [&] { return std::bit_cast<float>(source().Word()); };
      return {any(), any()};
    }
    if (source().OneIn(3)) return {static_cast<float>(source().Between(0, 6)) - 3, 2};
    return {DrawFloat(), DrawFloat()};
  }

  // An element of the first tensor's type.
  Scalar DrawScalar() {
    const TensorDesc one = Packed(types_[0], {1});
    const Bytes bytes = ElementContent(one, make_);
    Scalar scalar{};
    std::copy_n(bytes.begin(), BitSize(types_[0]) / 8, scalar.bytes.begin());
    return scalar;
  }

  FieldValue DrawActivation() {
    std::vector<uint32_t> allowed;
    for (const FusionRule& rule : AllFusionRules()) {
      if (rule.host == 0 || rule.host == schema_.type) allowed.push_back(rule.activation);
    }
    auto fused = std::make_shared<OperatorDesc>();
    fused->schema = FindOperator(source().Any(allowed));
    for (const FieldSchema& field : fused->schema->fields) {
      fused->fields.push_back(field.type == FieldType::kFloat ? FieldValue(DrawFloat()) : FieldValue());
    }
    return std::shared_ptr<const OperatorDesc>(std::move(fused));
  }

  const OperatorSchema& schema_;
  std::vector<uint32_t> sizes_;
  CaseMaker& make_;
  OperatorDesc desc_;
  std::vector<DataType> types_;
  uint32_t quantization_type_ = 1;
};

// Numbers near which functions change their behaviour.
constexpr float kSpecials[] = {
    0.0f,    -0.0f,  1.0f,    -1.0f,   0.5f,    -0.5f,   1.5f,     2.5f,    -2.5f,         3.0f,       0.1f,
    -0.7f,   1e-3f,  8.5f,    -8.5f,   88.7f,   -104.f,  1e30f,    -1e30f,  1e-40f,        -1e-44f,    127.0f,
    -128.0f, 255.0f, 65504.f, 65520.f, 0x1p24f, 0x1p31f, -0x1p31f, 0x1p63f, 3.4028235e38f, 0.49999997f};

float DrawNumber(uint32_t kind, uint64_t bits) {
  switch (kind) {
    case 0: {
      const uint64_t at = bits % (std::size(kSpecials) + 3);
      if (at < std::size(kSpecials)) return kSpecials[at];
      constexpr uint32_t kOthers[] = {0x7F800000, 0xFF800000, 0xFFC12345};
      return std::bit_cast<float>(kOthers[at - std::size(kSpecials)]);
    }
    case 1:
      return static_cast<float>(static_cast<int32_t>(bits % 41) - 20);
    case 2:
      return static_cast<float>(static_cast<int64_t>(bits % 200001) - 100000) * 1e-4f;
    default:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
  }
}

Case MakeElementCase(OperatorType type, CaseMaker& make) {
  ElementCaseMaker maker(type, make);
  Case result;
  for (int i = 0; i < 200; ++i) {
    if (maker.Try(&result)) return result;
  }
  ADD_FAILURE() << FindOperator(type)->name << ": no valid description in 200 tries";
  return result;
}

}  // namespace

Bytes ElementContent(const TensorDesc& tensor, CaseMaker& make) {
  Bytes bytes(tensor.total_bytes);
  std::mt19937_64 random(make.source().Word());
  const uint32_t kind = make.source().Between(0, 3);
  const bool any_bits = kind == 3 || tensor.type == DataType::kFloat64;
  const size_t width = BitSize(tensor.type) / 8;
  if (width == 0) {
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    return bytes;
  }
  for (size_t at = 0; at + width <= bytes.size(); at += width) {
    const uint64_t bits = random();
    uint64_t element = bits;
    if (tensor.type == DataType::kFloat32) {
      element = std::bit_cast<uint32_t>(DrawNumber(kind, bits));
    } else if (tensor.type == DataType::kFloat16 && !any_bits) {
      element = ToHalf(DrawNumber(kind, bits)).bits;
    } else if (tensor.type == DataType::kFloat64 && kind != 3) {
      element = std::bit_cast<uint64_t>(double{DrawNumber(kind, bits)} * (kind == 2 ? 1 + 0x1p-40 : 1));
    } else if (kind == 0) {  // integers: the edges of the type
      constexpr uint64_t kEdges[] = {0, 1, ~uint64_t{0}, 2, uint64_t{1} << 63, ~(uint64_t{1} << 63), 7, 31};
      element = kEdges[bits % 8];
      if (width < 8 && bits % 8 >= 4 && bits % 8 <= 5) element >>= 64 - 8 * width;
    } else if (kind != 3) {
      element = bits % 23 - 11;
    }
    std::memcpy(bytes.data() + at, &element, width);
  }
  return bytes;
}

CaseFamily family::element::Cases() { return {"element", ElementOperatorTypes(), MakeElementCase}; }

}  // namespace anydml::testing
