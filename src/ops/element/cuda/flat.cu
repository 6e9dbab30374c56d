#include <array>

#include "ops/element/cuda/flat.cuh"
#include "ops/element/ordered_loops.h"

namespace anydml {
namespace {

using element_cuda::Flat;
using element_cuda::FlatLaunch;

// A program in the form that the kernels take: a function of sources, the first of which vary.
struct FlatProgram {
  struct Value {
    int input = -1;  // -1: a constant
    Class type = Class::kF32;
    uint64_t bits = 0;
  };
  std::array<Value, kMaxRegisters> values;  // initial values of registers
  std::vector<const Instruction*> functions;
  const Instruction* store = nullptr;

  // False if the program is not a single expression.
  bool Read(const ElementProgram& program) {
    if (program.registers > kMaxRegisters) return false;
    for (const Instruction& i : program.instructions) {
      if (store != nullptr) return false;
      if (i.function == ElementFunction::kLoad) {
        values[i.target] = {i.sources[0], i.type, 0};
      } else if (i.function == ElementFunction::kConstant) {
        values[i.target] = {-1, i.type, i.parameters[0]};
      } else if (i.function == ElementFunction::kStore) {
        store = &i;
      } else {
        functions.push_back(&i);
      }
    }
    return store != nullptr && !functions.empty() && store->sources[0] == functions.back()->target;
  }
};

class ElementFlatCuda final : public Kernel {
 public:
  explicit ElementFlatCuda(const ElementProblem& problem) : problem_(problem) {}

  // False, with a reason, if there is no kernel.
  bool Find(std::string* why_not) {
    const auto loops = OrderedLoops<OrderedLoop>(problem_);
    *why_not = "the tensors do not lie in the same order without gaps";
    const size_t output = problem_.inputs.size();
    if (loops.empty() || loops.size() > 2 || loops.back().strides[output] != 1) return false;
    flat_.elements = loops.back().size;
    strides_ = loops.back().strides;
    row_strides_.assign(strides_.size(), 0);
    if (loops.size() == 2) {
      const uint64_t length = loops[1].size;
      *why_not = StrCat("rows have ", length, " elements, which is no multiple of ",
                        element_cuda::kRowMultiple, ", or gaps between them");
      if (length % element_cuda::kRowMultiple != 0 || loops[0].strides[output] != length) return false;
      flat_.elements *= loops[0].size;
      flat_.row_length = FastDivisor(static_cast<uint32_t>(length));
      row_strides_ = loops[0].strides;
    }
    *why_not = "there is no kernel for the program";
    FlatProgram program;
    if (!program.Read(problem_.program)) return false;
    const bool found = program.functions.size() == 1 ? FindFunction(program) : FindDequantize(program);
    return found && (loops.size() == 1 || varying_ == 2);
  }

  Status Run(const KernelArguments& arguments) const override {
    Flat flat = flat_;
    uint64_t addresses = 0;
    for (uint32_t i = 0; i < varying_; ++i) {
      flat.inputs[i].data = arguments.inputs[inputs_[i]].data;
      addresses |= reinterpret_cast<uintptr_t>(flat.inputs[i].data);
    }
    for (uint32_t i = 0; i < uniform_inputs_.size(); ++i) {
      if (uniform_inputs_[i] >= 0) flat.uniform[i].data = arguments.inputs[uniform_inputs_[i]].data;
    }
    flat.output = arguments.outputs[0].data;
    addresses |= reinterpret_cast<uintptr_t>(flat.output);
    flat.aligned = addresses % 16 == 0;
    launch_(flat, arguments.stream);
    return {};
  }

 private:
  using Value = FlatProgram::Value;

  // Contiguous rows that begin where vectors do, or one element for each row.
  bool IsVarying(const Value& value) const {
    if (value.input < 0) return false;
    const uint64_t stride = strides_[value.input], row_stride = row_strides_[value.input];
    if (stride == 1) return row_stride % element_cuda::kRowMultiple == 0;
    return stride == 0 && row_stride != 0;
  }
  bool IsUniform(const Value& value) const {
    return value.input < 0 || (strides_[value.input] == 0 && row_strides_[value.input] == 0);
  }
  void AddVarying(const Value& value) {
    flat_.inputs[varying_].row_stride = row_strides_[value.input];
    flat_.inputs[varying_].one_per_row = strides_[value.input] == 0;
    inputs_[varying_++] = static_cast<uint32_t>(value.input);
  }
  DataType TypeOf(const Value& value) const {
    return value.input < 0 ? DataType::kUnknown : problem_.inputs[value.input].type;
  }
  DataType output_type() const { return problem_.outputs[0].type; }

  // Sets source `i` after the varying ones.
  bool SetUniform(uint32_t i, const Value& value) {
    const DataType type = TypeOf(value);
    const bool readable = type == DataType::kUnknown || type == DataType::kFloat32 ||
                          type == DataType::kFloat16 || type == DataType::kInt8 || type == DataType::kUInt8;
    if (!IsUniform(value) || !readable) return false;
    uniform_inputs_[i] = value.input;
    flat_.uniform[i].type = type;
    const auto whole = static_cast<float>(static_cast<int32_t>(value.bits));
    flat_.uniform[i].bits =
        static_cast<uint32_t>(value.type == Class::kF32 ? value.bits : ParameterOf(whole));
    return true;
  }

  bool FindFunction(const FlatProgram& program) {
    const Instruction& f = *program.functions[0];
    if (f.type != Class::kF32) return false;
    const uint32_t sources = InfoOf(f.function).sources;
    const DataType from = TypeOf(program.values[f.sources[0]]);
    for (uint32_t s = 0; s < sources; ++s) {
      const Value& value = program.values[f.sources[s]];
      if (value.type != Class::kF32) return false;
      if (s == varying_ && s < 2 && IsVarying(value)) {
        if (TypeOf(value) != from) return false;
        AddVarying(value);
      } else if (s == 0 || varying_ == 2 || !SetUniform(s - 1, value)) {
        return false;
      }
    }
    flat_.instruction = f;
    launch_ = element_cuda::FindFlatArithmetic(f.function, varying_, from, output_type());
    if (launch_ == nullptr) {
      launch_ = element_cuda::FindFlatTranscendental(f.function, varying_, from, output_type());
    }
    return launch_ != nullptr;
  }

  // Matches: x, minus an optional zero point, as FLOAT32, times a scale.
  bool FindDequantize(const FlatProgram& program) {
    const auto& f = program.functions;
    const bool subtracts = f.size() == 3;
    if (!subtracts && f.size() != 2) return false;
    const Instruction& convert = *f[subtracts ? 1 : 0];
    const Instruction& multiply = *f.back();
    const uint8_t at = multiply.target;
    if (convert.function != ElementFunction::kConvert || convert.type != Class::kI32 ||
        convert.to != Class::kF32 || convert.sources[0] != at || convert.target != at ||
        multiply.function != ElementFunction::kMultiply || multiply.sources[0] != at ||
        multiply.sources[1] == at) {
      return false;
    }
    Value zero_point = {-1, Class::kI32, 0};
    if (subtracts) {
      const Instruction& subtract = *f[0];
      if (subtract.function != ElementFunction::kSubtract || subtract.type != Class::kI32 ||
          subtract.target != at || subtract.sources[0] != at || subtract.sources[1] == at) {
        return false;
      }
      zero_point = program.values[subtract.sources[1]];
      if (zero_point.type != Class::kI32) return false;
    }
    const Value& x = program.values[at];
    const Value& scale = program.values[multiply.sources[1]];
    if (x.type != Class::kI32 || scale.type != Class::kF32 || !IsVarying(x)) return false;
    if (!SetUniform(0, scale) || !SetUniform(1, zero_point)) return false;
    AddVarying(x);
    launch_ = element_cuda::FindFlatDequantize(TypeOf(x), output_type());
    return launch_ != nullptr;
  }

  const ElementProblem problem_;
  std::vector<uint64_t> strides_;      // per operand, within a row
  std::vector<uint64_t> row_strides_;  // 0 if there are no rows
  Flat flat_;
  uint32_t varying_ = 0;
  std::array<uint32_t, 2> inputs_{};
  std::array<int, element_cuda::kMaxFlatSources - 1> uniform_inputs_{-1, -1};
  FlatLaunch* launch_ = nullptr;
};

}  // namespace

std::unique_ptr<const Kernel> CreateElementFlatCuda(const ElementProblem& problem, const LowerContext&,
                                                    std::string* why_not) {
  auto kernel = std::make_unique<ElementFlatCuda>(problem);
  if (!kernel->Find(why_not)) return nullptr;
  return kernel;
}

}  // namespace anydml
