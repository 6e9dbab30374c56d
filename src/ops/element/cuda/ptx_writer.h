// Writes lines of PTX and names registers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "ops/element/cuda/ptx_functions.h"

namespace anydml::element_cuda {

class PtxWriter {
 public:
  explicit PtxWriter(const PtxFunctions& functions) : functions_(functions) {}

  const PtxFunctions& functions() const { return functions_; }

  // New registers of 32 and of 64 bits, and a new predicate.
  std::string Word() { return Numbered("%v", words_++); }
  std::string Long() { return Numbered("%a", longs_++); }
  std::string Predicate() { return Numbered("%c", predicates_++); }

  // A line of code, concatenated from texts and numbers.
  template <typename... Parts>
  void Line(const Parts&... parts) {
    (Append(parts), ...);
    code_ += ";\n";
  }
  void Label(std::string_view label) { code_.append(label).append(":\n"); }

  // A new register with a constant or a function's result.
  std::string Constant(uint32_t bits) {
    std::string target = Word();
    Line("mov.b32 ", target, ", ", bits);
    return target;
  }
  std::string Call(const std::string& name, std::span<const std::string> sources) {
    std::string target = Word();
    functions_.AppendInLine(name, target, sources, &code_);
    return target;
  }
  std::string Call(const std::string& name, std::initializer_list<std::string> sources) {
    return Call(name, std::span(sources.begin(), sources.size()));
  }

  // The text of a module whose kernel has kThreads threads and this code.
  std::string Module(std::string_view name, std::string_view parameters) const;

 private:
  static std::string Numbered(const char* prefix, uint32_t number) { return prefix + std::to_string(number); }
  void Append(std::string_view text) { code_ += text; }
  void Append(uint64_t number) { code_ += std::to_string(number); }

  const PtxFunctions& functions_;
  std::string code_;
  uint32_t words_ = 0, longs_ = 0, predicates_ = 0;
};

}  // namespace anydml::element_cuda
