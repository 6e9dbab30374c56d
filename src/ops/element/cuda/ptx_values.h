// The numbers of a compiled program: a 32-bit register for each of a thread's elements. Numbers that are
// known to be halves are also kept as halves, two per register, if the GPU can compute with both at once.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "ops/element/cuda/machine.cuh"
#include "ops/element/cuda/ptx_writer.h"

namespace anydml::element_cuda {

inline constexpr uint32_t kPtxElements = kRegisterBytes / sizeof(uint32_t);  // per thread

// The registers that contain a thread's elements.
struct PtxElements {
  struct Place {
    std::string word;
    uint32_t shift = 0;
    bool operator==(const Place&) const = default;
  };
  std::array<Place, kPtxElements> places;
};

class PtxValues {
 public:
  explicit PtxValues(PtxWriter* writer) : w_(*writer) {}

  // These create values and return their indices.
  int Constant(uint32_t bits);
  int Input(const PtxElements& elements, Form form);
  int Converted(int source, const Instruction& instruction);
  int RoundedToHalf(int source);
  // A function of each element, or of one if all are the same.
  int OfNumbers(const std::string& function, std::span<const int> sources, std::array<uint32_t, 2> parameters,
                bool uniform);
  // Two elements at a time; -1 if that is impossible. `rounded`: the result may be rounded to FLOAT16.
  int OfHalves(const Instruction& instruction, std::span<const int> sources, bool rounded);

  bool AreHalves(std::span<const int> values) const;

  // The value as elements of a type, packed into words.
  std::vector<std::string> Elements(int value, Class from, DataType type);

 private:
  struct Value {
    bool is_half = false;
    Form form = Form::kWords;
    uint32_t bits = 0;                                   // of a constant
    PtxElements elements = {};                           // of an input
    std::array<std::string, kPtxElements> numbers = {};  // empty: not yet needed
    std::array<std::string, kPtxElements / 2> halves = {};
  };

  int Add(Value value);
  const std::string& Number(int value, uint32_t e);
  const std::string& Halves(int value, uint32_t pair);
  std::string ToInteger(const std::string& number, DataType type);

  PtxWriter& w_;
  std::deque<Value> values_;
};

}  // namespace anydml::element_cuda
