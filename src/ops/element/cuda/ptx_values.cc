#include "ops/element/cuda/ptx_values.h"

#include <bit>

#include "base/half.h"
#include "ops/device/cuda/convert.cuh"

namespace anydml::element_cuda {
namespace {

constexpr uint32_t kPairs = kPtxElements / 2;

uint32_t HalfBits(uint32_t float_bits) { return ToHalf(std::bit_cast<float>(float_bits)).bits; }
bool IsHalf(uint32_t float_bits) {
  return std::bit_cast<uint32_t>(ToFloat(Half{static_cast<uint16_t>(HalfBits(float_bits))})) == float_bits;
}
uint32_t Twice(uint32_t half_bits) { return half_bits | half_bits << 16; }

// The function that converts an element to a number.
const char* FetchName(Form form) {
  switch (form) {
    case Form::kHalfToFloat:
      return "FetchHalfToFloat";
    case Form::kInt8:
      return "FetchInt8";
    case Form::kUInt8:
      return "FetchUInt8";
    case Form::kInt16:
      return "FetchInt16";
    case Form::kUInt16:
      return "FetchUInt16";
    case Form::kInt8ToFloat:
      return "FetchInt8ToFloat";
    case Form::kUInt8ToFloat:
      return "FetchUInt8ToFloat";
    case Form::kInt16ToFloat:
      return "FetchInt16ToFloat";
    case Form::kUInt16ToFloat:
      return "FetchUInt16ToFloat";
    case Form::kInt32ToFloat:
      return "FetchInt32ToFloat";
    case Form::kUInt32ToFloat:
      return "FetchUInt32ToFloat";
    default:
      return nullptr;
  }
}

}  // namespace

int PtxValues::Add(Value value) {
  values_.push_back(std::move(value));
  return static_cast<int>(values_.size()) - 1;
}

int PtxValues::Constant(uint32_t bits) {
  return Add({.is_half = IsHalf(bits), .form = Form::kConstant, .bits = bits});
}

int PtxValues::Input(const PtxElements& elements, Form form) {
  return Add({.is_half = form == Form::kHalfToFloat, .form = form, .elements = elements});
}

const std::string& PtxValues::Number(int id, uint32_t e) {
  Value& value = values_[static_cast<size_t>(id)];
  std::string& number = value.numbers[e];
  if (!number.empty()) return number;
  if (value.form == Form::kConstant) {
    value.numbers.fill(w_.Constant(value.bits));
    return number;
  }
  const auto& places = value.elements.places;
  if (places[e].word.empty()) {  // not an input
    number = w_.Call("FetchHalfToFloat", {value.halves[e / 2], w_.Constant(e % 2 * 16)});
    return number;
  }
  for (uint32_t before = 0; before < e; ++before) {
    if (places[before] == places[e] && !value.numbers[before].empty()) {
      return number = value.numbers[before];
    }
  }
  const char* const fetch = FetchName(value.form);
  number = fetch == nullptr ? places[e].word : w_.Call(fetch, {places[e].word, w_.Constant(places[e].shift)});
  return number;
}

const std::string& PtxValues::Halves(int id, uint32_t pair) {
  Value& value = values_[static_cast<size_t>(id)];
  std::string& halves = value.halves[pair];
  if (!halves.empty()) return halves;
  if (value.form == Form::kConstant) {
    value.halves.fill(w_.Constant(Twice(HalfBits(value.bits))));
    return halves;
  }
  const auto& low = value.elements.places[2 * pair];
  const auto& high = value.elements.places[2 * pair + 1];
  if (low.word == high.word && high.shift == 16) {
    halves = low.word;
  } else if (pair > 0 && low == value.elements.places[0] && high == low) {
    halves = Halves(id, 0);
  } else {
    halves = w_.Call("Pack16", {low.word, high.word});  // both at bit 0
  }
  return halves;
}

bool PtxValues::AreHalves(std::span<const int> values) const {
  for (const int value : values) {
    if (!values_[static_cast<size_t>(value)].is_half) return false;
  }
  return true;
}

std::string PtxValues::ToInteger(const std::string& number, DataType type) {
  if (type == DataType::kUInt32) return w_.Call("FloatToUInt32", {number});
  const Range range = RangeOf(type);
  return w_.Call("FloatToInteger", {number, w_.Constant(static_cast<uint32_t>(range.low)),
                                    w_.Constant(static_cast<uint32_t>(range.high))});
}

int PtxValues::Converted(int source, const Instruction& instruction) {
  const bool from_float = instruction.type == Class::kF32, to_float = instruction.to == Class::kF32;
  if (from_float == to_float) return source;
  Value result;
  for (uint32_t e = 0; e < kPtxElements; ++e) {
    const std::string& number = Number(source, e);
    if (from_float) {
      result.numbers[e] = ToInteger(number, static_cast<DataType>(instruction.parameters[0]));
    } else {
      const bool is_signed = instruction.type == Class::kI32;
      result.numbers[e] =
          w_.Call(is_signed ? "FetchInt32ToFloat" : "FetchUInt32ToFloat", {number, w_.Constant(0)});
    }
  }
  return Add(std::move(result));
}

int PtxValues::RoundedToHalf(int source) {
  if (AreHalves({&source, 1})) return source;
  Value result = {.is_half = true};
  for (uint32_t pair = 0; pair < kPairs; ++pair) {
    const std::string low = Number(source, 2 * pair);
    result.halves[pair] = w_.Call("HalvesOfFloats", {low, Number(source, 2 * pair + 1)});
  }
  return Add(std::move(result));
}

int PtxValues::OfNumbers(const std::string& function, std::span<const int> sources,
                         std::array<uint32_t, 2> parameters, bool uniform) {
  const std::string first = w_.Constant(parameters[0]), second = w_.Constant(parameters[1]);
  Value result;
  for (uint32_t e = 0; e < kPtxElements; ++e) {
    if (uniform && e > 0) {
      result.numbers[e] = result.numbers[0];
      continue;
    }
    std::array<std::string, 5> arguments = {first, first, first, first, second};
    for (size_t s = 0; s < sources.size(); ++s) arguments[s] = Number(sources[s], e);
    result.numbers[e] = w_.Call(function, arguments);
  }
  return Add(std::move(result));
}

int PtxValues::OfHalves(const Instruction& instruction, std::span<const int> sources, bool rounded) {
  using F = ElementFunction;
  const auto parameter = [&](int i) { return static_cast<uint32_t>(instruction.parameters[i]); };
  const bool whole_bounds = IsHalf(parameter(0)) && IsHalf(parameter(1));
  std::string function, low, high;
  switch (instruction.function) {
    case F::kAdd:
    case F::kSubtract:
    case F::kMultiply:
      if (!rounded) return -1;
      function = std::string("Halves") + InfoOf(instruction.function).name;
      break;
    case F::kMaximum:
    case F::kMinimum:
    case F::kAbs:
      function = std::string("Halves") + InfoOf(instruction.function).name;
      break;
    case F::kRelu:
      low = w_.Constant(0);
      break;
    case F::kClip:
      if (!rounded && !whole_bounds) return -1;
      low = w_.Constant(Twice(HalfBits(parameter(0))));
      high = w_.Constant(Twice(HalfBits(parameter(1))));
      break;
    default:
      return -1;
  }
  Value result = {.is_half = true};
  for (uint32_t pair = 0; pair < kPairs; ++pair) {
    std::vector<std::string> arguments;
    for (const int source : sources) arguments.push_back(Halves(source, pair));
    std::string halves = arguments[0];
    if (!function.empty()) halves = w_.Call(function, arguments);
    if (!high.empty()) halves = w_.Call("HalvesMinimum", {halves, high});
    if (!low.empty()) halves = w_.Call("HalvesMaximum", {halves, low});
    result.halves[pair] = halves;
  }
  return Add(std::move(result));
}

std::vector<std::string> PtxValues::Elements(int id, Class from, DataType type) {
  std::vector<std::string> words;
  if (type == DataType::kFloat16) {
    const bool is_half = AreHalves({&id, 1});
    for (uint32_t pair = 0; pair < kPairs; ++pair) {
      if (is_half) {
        words.push_back(w_.Call("HalvesWithOneNan", {Halves(id, pair)}));
      } else {
        const std::string low = Number(id, 2 * pair);
        words.push_back(w_.Call("FloatsToHalves", {low, Number(id, 2 * pair + 1)}));
      }
    }
    return words;
  }
  std::array<std::string, kPtxElements> numbers;
  for (uint32_t e = 0; e < kPtxElements; ++e) {
    numbers[e] = Number(id, e);
    if (type == DataType::kFloat32) {
      numbers[e] = w_.Call("WithOneNan", {numbers[e]});
    } else if (from == Class::kF32) {
      numbers[e] = ToInteger(numbers[e], type);
    }
  }
  const uint32_t per_word = 32 / BitSize(type);
  for (uint32_t e = 0; e < kPtxElements; e += per_word) {
    const std::span<const std::string> elements(numbers.data() + e, per_word);
    words.push_back(per_word == 1 ? numbers[e] : w_.Call(per_word == 2 ? "Pack16" : "Pack8", elements));
  }
  return words;
}

}  // namespace anydml::element_cuda
