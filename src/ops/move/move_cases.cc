#include <cstdlib>

#include "support/cases.h"

namespace anydml::testing {
namespace {

using Type = OperatorType;
using Sizes = std::vector<uint32_t>;

constexpr Type kOperators[] = {Type::kSlice,
                               Type::kSlice1,
                               Type::kSliceGrad,
                               Type::kSplit,
                               Type::kJoin,
                               Type::kTile,
                               Type::kPadding,
                               Type::kPadding1,
                               Type::kDepthToSpace,
                               Type::kDepthToSpace1,
                               Type::kSpaceToDepth,
                               Type::kSpaceToDepth1,
                               Type::kReverseSubsequences,
                               Type::kValueScale2d};
constexpr DataType kTypes[] = {DataType::kFloat64, DataType::kFloat32, DataType::kFloat16, DataType::kInt64,
                               DataType::kInt32,   DataType::kInt16,   DataType::kInt8,    DataType::kUInt64,
                               DataType::kUInt32,  DataType::kUInt16,  DataType::kUInt8};
// For outputs that are larger than their inputs.
constexpr uint64_t kMostElements = 1 << 14;

class MoveCaseMaker {
 public:
  MoveCaseMaker(Type type, CaseMaker& make)
      : type_(type), make_(make), source_(make.source()), data_type_(source_.Any(kTypes)) {}

  Case Make() {
    switch (type_) {
      case Type::kSlice:
        return MakeSlice();
      case Type::kSlice1:
      case Type::kSliceGrad:
        return MakeWindow();
      case Type::kSplit:
      case Type::kJoin:
        return MakePieces();
      case Type::kTile:
        return MakeTile();
      case Type::kPadding:
      case Type::kPadding1:
        return MakePadding();
      case Type::kReverseSubsequences:
        return MakeReverse();
      case Type::kValueScale2d:
        return MakeValueScale();
      default:
        return MakeDepthSpace();
    }
  }

 private:
  const char* name() const { return FindOperator(type_)->name; }
  uint32_t Between(uint32_t low, uint32_t high) { return source_.Between(low, high); }
  TensorDesc Input(const Sizes& sizes) { return make_.Input(data_type_, sizes); }
  TensorDesc Output(const Sizes& sizes) { return make_.Output(data_type_, sizes); }
  static uint32_t Count(const Sizes& sizes) { return static_cast<uint32_t>(sizes.size()); }

  Case Finish(OperatorDesc desc) {
    Case problem;
    for (const TensorDesc* tensor : desc.inputs()) problem.inputs.push_back(make_.Content(*tensor));
    problem.desc = std::move(desc);
    return problem;
  }

  Case MakeSlice() {
    const Sizes sizes = make_.Sizes(kMaxDimensions);
    Sizes offsets, counts, strides;
    for (const uint32_t size : sizes) {
      offsets.push_back(source_.OneIn(2) ? 0 : Between(0, size - 1));
      strides.push_back(source_.OneIn(3) ? Between(1, 5) : 1);
      const uint32_t most = 1 + (size - 1 - offsets.back()) / strides.back();
      counts.push_back(source_.OneIn(3) ? Between(1, most) : most);
    }
    return Finish(MakeDesc(name(), {{"InputTensor", Input(sizes)},
                                    {"OutputTensor", Output(counts)},
                                    {"DimensionCount", Count(sizes)},
                                    {"Offsets", offsets},
                                    {"Sizes", counts},
                                    {"Strides", strides}}));
  }

  Case MakeWindow() {
    const Sizes wide = make_.Sizes(kMaxDimensions);
    Sizes offsets, windows, compact;
    std::vector<int32_t> strides;
    for (const uint32_t size : wide) {
      offsets.push_back(source_.OneIn(2) ? 0 : Between(0, size - 1));
      windows.push_back(source_.OneIn(2) ? size - offsets.back() : Between(1, size - offsets.back()));
      const auto stride = static_cast<int32_t>(source_.OneIn(3) ? Between(1, 5) : 1);
      strides.push_back(source_.OneIn(3) ? -stride : stride);
      const uint32_t most = 1 + (windows.back() - 1) / static_cast<uint32_t>(stride);
      compact.push_back(source_.OneIn(4) ? Between(1, most) : most);
    }
    const bool is_gradient = type_ == Type::kSliceGrad;
    return Finish(MakeDesc(
        name(),
        {{is_gradient ? "InputGradientTensor" : "InputTensor", Input(is_gradient ? compact : wide)},
         {is_gradient ? "OutputGradientTensor" : "OutputTensor", Output(is_gradient ? wide : compact)},
         {"DimensionCount", Count(wide)},
         {"InputWindowOffsets", offsets},
         {"InputWindowSizes", windows},
         {"InputWindowStrides", strides}}));
  }

  Case MakePieces() {
    Sizes sizes = make_.Sizes(kMaxDimensions);
    const uint32_t axis = Between(0, Count(sizes) - 1);
    const uint32_t count = source_.OneIn(8) ? Between(1, 300) : Between(1, 6);
    const bool equal = source_.OneIn(2);
    const bool splits = type_ == Type::kSplit;
    const uint32_t share = std::max(1u, sizes[axis] / count);
    std::vector<TensorDesc> pieces;
    uint32_t whole = 0;
    for (uint32_t i = 0; i < count; ++i) {
      sizes[axis] = equal ? share : Between(1, 2 * share);
      whole += sizes[axis];
      pieces.push_back(splits ? Output(sizes) : Input(sizes));
    }
    sizes[axis] = whole;
    if (splits) {
      return Finish(MakeDesc(name(), {{"InputTensor", Input(sizes)},
                                      {"OutputCount", count},
                                      {"OutputTensors", pieces},
                                      {"Axis", axis}}));
    }
    return Finish(MakeDesc(
        name(),
        {{"InputCount", count}, {"InputTensors", pieces}, {"OutputTensor", Output(sizes)}, {"Axis", axis}}));
  }

  // How much longer dimension d of a tensor of `sizes` may become.
  static uint32_t MostOf(const Sizes& sizes, size_t d) {
    uint64_t count = 1;
    for (const uint32_t size : sizes) count *= size;
    return static_cast<uint32_t>(std::max<uint64_t>(kMostElements / count, 1) * sizes[d]);
  }

  Case MakeTile() {
    const Sizes sizes = make_.Sizes(kMaxDimensions);
    Sizes repeats, result = sizes;
    for (size_t d = 0; d < sizes.size(); ++d) {
      repeats.push_back(source_.OneIn(2) ? 1 : Between(1, std::min(MostOf(result, d) / sizes[d], 5u)));
      result[d] *= repeats[d];
    }
    return Finish(MakeDesc(name(), {{"InputTensor", Input(sizes)},
                                    {"OutputTensor", Output(result)},
                                    {"RepeatsCount", Count(sizes)},
                                    {"Repeats", repeats}}));
  }

  // Usually a few elements, sometimes several times the dimension.
  uint32_t Padding(uint32_t size, uint32_t most) {
    if (source_.OneIn(3)) return 0;
    return std::min(most - size, source_.OneIn(4) ? Between(0, 5 * size) : Between(0, 3));
  }

  Case MakePadding() {
    const Sizes sizes = make_.Sizes(kMaxDimensions);
    Sizes start, end, result = sizes;
    for (size_t d = 0; d < sizes.size(); ++d) {
      start.push_back(Padding(result[d], MostOf(result, d)));
      result[d] += start[d];
      end.push_back(Padding(result[d], MostOf(result, d)));
      result[d] += end[d];
    }
    const uint32_t mode = Between(0, 4);
    const TensorDesc input = Input(sizes), output = Output(result);
    if (type_ == Type::kPadding) {
      constexpr float kValues[] = {0, 1.5f, -3.25f, 300, 1e20f, -1e20f};
      return Finish(MakeDesc(name(), {{"InputTensor", input},
                                      {"OutputTensor", output},
                                      {"PaddingMode", mode},
                                      {"PaddingValue", source_.Any(kValues)},
                                      {"DimensionCount", Count(sizes)},
                                      {"StartPadding", start},
                                      {"EndPadding", end}}));
    }
    Scalar value = {};
    for (uint8_t& byte : value.bytes) byte = source_.Byte();
    return Finish(MakeDesc(name(), {{"InputTensor", input},
                                    {"OutputTensor", output},
                                    {"PaddingMode", mode},
                                    {"PaddingValueDataType", static_cast<uint32_t>(data_type_)},
                                    {"PaddingValue", value},
                                    {"DimensionCount", Count(sizes)},
                                    {"StartPadding", start},
                                    {"EndPadding", end}}));
  }

  Case MakeDepthSpace() {
    const uint32_t block = Between(1, 4), n = Between(1, 3), c = Between(1, 5);
    const uint32_t h = Between(1, 6), w = source_.OneIn(4) ? Between(1, 64) : Between(1, 8);
    const Sizes depth = {n, c * block * block, h, w}, space = {n, c, h * block, w * block};
    const bool to_space = type_ == Type::kDepthToSpace || type_ == Type::kDepthToSpace1;
    const TensorDesc input = Input(to_space ? depth : space), output = Output(to_space ? space : depth);
    if (type_ == Type::kDepthToSpace || type_ == Type::kSpaceToDepth) {
      return Finish(
          MakeDesc(name(), {{"InputTensor", input}, {"OutputTensor", output}, {"BlockSize", block}}));
    }
    return Finish(MakeDesc(
        name(),
        {{"InputTensor", input}, {"OutputTensor", output}, {"BlockSize", block}, {"Order", Between(0, 1)}}));
  }

  Case MakeReverse() {
    const Sizes sizes = make_.Sizes(kMaxDimensions);
    Sizes ones = sizes;
    const uint32_t axis = Between(0, Count(sizes) - 1);
    ones[axis] = 1;
    const TensorDesc lengths = make_.Input(source_.OneIn(2) ? DataType::kUInt64 : DataType::kUInt32, ones);
    Case problem = Finish(MakeDesc(name(), {{"InputTensor", Input(sizes)},
                                            {"SequenceLengthsTensor", lengths},
                                            {"OutputTensor", Output(sizes)},
                                            {"Axis", axis}}));
    problem.inputs[1] = make_.Indices(lengths, sizes[axis]);
    return problem;
  }

  Case MakeValueScale() {
    data_type_ = source_.OneIn(2) ? DataType::kFloat16 : DataType::kFloat32;
    const uint32_t channels = source_.OneIn(2) ? 1 : 3;
    const Sizes sizes = {Between(1, 3), channels, Between(1, 9), Between(1, 40)};
    constexpr float kNumbers[] = {0, 1, -1, 0.5f, 1 / 3.0f, -123.68f, 1e30f};
    std::vector<float> bias;
    for (uint32_t c = 0; c < channels; ++c) bias.push_back(source_.Any(kNumbers));
    return Finish(MakeDesc(name(), {{"InputTensor", Input(sizes)},
                                    {"OutputTensor", Output(sizes)},
                                    {"Scale", source_.Any(kNumbers)},
                                    {"ChannelCount", channels},
                                    {"Bias", bias}}));
  }

  const Type type_;
  CaseMaker& make_;
  ByteSource& source_;
  DataType data_type_;
};

Case MakeMove(Type type, CaseMaker& make) { return MoveCaseMaker(type, make).Make(); }

}  // namespace

CaseFamily family::move::Cases() { return {"move", kOperators, MakeMove}; }

}  // namespace anydml::testing
