// The functions of compiled_functions.cu as text, to be put in line where a compiled program uses them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace anydml::element_cuda {

// What nvcc made of compiled_functions.cu; a file that the build writes has it.
std::string_view CompiledFunctionsPtx();

class PtxFunctions {
 public:
  // Functions that call others, or return in several places, are left out.
  explicit PtxFunctions(std::string_view ptx);

  // The directives that a module begins with.
  const std::string& header() const { return header_; }

  bool Has(const std::string& name) const { return bodies_.contains(name); }

  // Appends a block that puts the function of registers `sources` into register `target`; all of 32 bits.
  // Sources that the function has more than are given are not read.
  void AppendInLine(const std::string& name, std::string_view target, std::span<const std::string> sources,
                    std::string* text) const;

 private:
  // Text, and after each piece the number of the source that follows it; kTarget: the target; kNone: nothing.
  static constexpr int kTarget = -1, kNone = -2;
  struct Piece {
    std::string text;
    int next = kNone;
  };
  using Body = std::vector<Piece>;

  static Body Read(std::string_view name, std::string_view body);

  std::string header_;
  std::unordered_map<std::string, Body> bodies_;  // without the prefix
};

}  // namespace anydml::element_cuda
