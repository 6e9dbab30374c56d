// The functions of compiled_functions.cu as text, for inlining into compiled programs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace anydml::element_cuda {

// nvcc's PTX of compiled_functions.cu, in a file that the build generates.
std::string_view CompiledFunctionsPtx();

class PtxFunctions {
 public:
  // Skips functions that call others or return in several places.
  explicit PtxFunctions(std::string_view ptx);

  // The directives at the beginning of a module.
  const std::string& header() const { return header_; }

  bool Has(const std::string& name) const { return bodies_.contains(name); }

  // Appends a block that computes the function of registers `sources` into register `target`; all have 32
  // bits. Missing sources are not read.
  void AppendInLine(const std::string& name, std::string_view target, std::span<const std::string> sources,
                    std::string* text) const;

 private:
  // Pieces of text, each followed by the number of a source; kTarget: the target; kNone: nothing.
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
