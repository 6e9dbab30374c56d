#include "ops/element/program.h"

#include <algorithm>

#include "base/status.h"

namespace anydml {
namespace {

constexpr const char* kClassNames[kClassCount] = {"f32", "i32", "u32", "f64", "i64", "u64"};

const char* Name(Class c) { return kClassNames[static_cast<uint32_t>(c)]; }

// Comparisons return the unsigned class of the same width; functions of bits have fixed result classes.
Class ResultClass(ElementFunction function, Class type) {
  switch (function) {
    case ElementFunction::kEqual:
    case ElementFunction::kGreater:
    case ElementFunction::kLess:
    case ElementFunction::kGreaterOrEqual:
    case ElementFunction::kLessOrEqual:
    case ElementFunction::kIsNan:
    case ElementFunction::kIsInfinity:
      return IsWide(type) ? Class::kU64 : Class::kU32;
    case ElementFunction::kFloatBits:
    case ElementFunction::kHalfBits:
      return Class::kU32;
    case ElementFunction::kHalfFromBits:
      return Class::kF32;
    default:
      return type;
  }
}

}  // namespace

const ElementFunctionInfo& InfoOf(ElementFunction function) {
  using namespace element_table;
  static constexpr ElementFunctionInfo kInfos[] = {{"Load", 0, 0, 0, 0, 0},
                                                   {"Store", 1, 0, 0, 0, 0},
                                                   {"Constant", 0, 1, 0, 0, 0},
                                                   {"Convert", 1, 1, 0, 0, 0},
#define ANYDML_INFO(name, sources, parameters, vector, scalar, ulps) \
  {#name, sources, parameters, vector, scalar, ulps},
                                                   ANYDML_ELEMENT_FUNCTIONS(ANYDML_INFO)
#undef ANYDML_INFO
  };
  return kInfos[static_cast<size_t>(function)];
}

uint8_t ElementProgram::Load(uint32_t input, Class type) {
  const uint8_t target = NewRegister();
  instructions.push_back(
      {ElementFunction::kLoad, type, type, target, {static_cast<uint8_t>(input), 0, 0}, {0, 0}});
  return target;
}

uint8_t ElementProgram::Constant(uint64_t bits, Class type) {
  const uint8_t target = NewRegister();
  instructions.push_back({ElementFunction::kConstant, type, type, target, {0, 0, 0}, {bits, 0}});
  return target;
}

void ElementProgram::Store(uint32_t output, uint8_t source, Class type) {
  instructions.push_back(
      {ElementFunction::kStore, type, type, static_cast<uint8_t>(output), {source, 0, 0}, {0, 0}});
}

uint8_t ElementProgram::Apply(ElementFunction function, Class type, std::initializer_list<uint8_t> sources,
                              uint64_t parameter0, uint64_t parameter1) {
  Instruction instruction = {function,         type,      ResultClass(function, type),
                             *sources.begin(), {0, 0, 0}, {parameter0, parameter1}};
  std::copy(sources.begin(), sources.end(), instruction.sources);
  instructions.push_back(instruction);
  return instruction.target;
}

uint8_t ElementProgram::Convert(uint8_t source, Class from, Class to, DataType range) {
  instructions.push_back(
      {ElementFunction::kConvert, from, to, source, {source, 0, 0}, {static_cast<uint64_t>(range), 0}});
  return source;
}

bool ElementProgram::wide() const {
  return std::any_of(instructions.begin(), instructions.end(),
                     [](const Instruction& i) { return IsWide(i.type) || IsWide(i.to); });
}

uint32_t ElementProgram::ulps() const {
  uint32_t sum = 0;
  for (const Instruction& i : instructions) sum += InfoOf(i.function).ulps;
  return sum;
}

std::string ElementProgram::ToString() const {
  std::string text;
  for (const Instruction& i : instructions) {
    const ElementFunctionInfo& info = InfoOf(i.function);
    if (!text.empty()) text += "; ";
    if (i.function == ElementFunction::kLoad) {
      text += StrCat("r", int{i.target}, " = ", Name(i.type), " of input ", int{i.sources[0]});
      continue;
    }
    if (i.function == ElementFunction::kStore) {
      text += StrCat("output ", int{i.target}, " = r", int{i.sources[0]});
      continue;
    }
    text += StrCat("r", int{i.target}, " = ", info.name, ".", Name(i.to), "(");
    for (int s = 0; s < info.sources; ++s) text += StrCat(s == 0 ? "r" : ", r", int{i.sources[s]});
    for (int p = 0; p < info.parameters; ++p) {
      text += p == 0 && info.sources == 0 ? "" : ", ";
      text += i.type == Class::kF32 ? StrCat(FloatParameter(i, p)) : StrCat(i.parameters[p]);
    }
    text += ")";
  }
  return text;
}

Class ClassOf(DataType type) {
  switch (type) {
    case DataType::kFloat32:
    case DataType::kFloat16:
      return Class::kF32;
    case DataType::kFloat64:
      return Class::kF64;
    case DataType::kInt64:
      return Class::kI64;
    case DataType::kUInt64:
      return Class::kU64;
    case DataType::kUInt32:
    case DataType::kUInt16:
    case DataType::kUInt8:
    case DataType::kUInt4:
      return Class::kU32;
    default:
      return Class::kI32;
  }
}

}  // namespace anydml
