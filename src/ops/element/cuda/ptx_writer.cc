#include "ops/element/cuda/ptx_writer.h"

#include <tuple>

#include "ops/element/cuda/machine.cuh"

namespace anydml::element_cuda {

std::string PtxWriter::Module(std::string_view name, std::string_view parameters) const {
  std::string text = functions_.header();
  text.append(".visible .entry ").append(name).append("(").append(parameters).append(")\n.maxntid ");
  text.append(std::to_string(kThreads)).append(", 1, 1\n{\n");
  for (const auto& [type, prefix, count] :
       {std::tuple(".b32", "%v", words_), std::tuple(".b64", "%a", longs_),
        std::tuple(".pred", "%c", predicates_)}) {
    text.append(".reg ").append(type).append(" ").append(prefix);
    text.append("<").append(std::to_string(count + 1)).append(">;\n");
  }
  return text.append(code_).append("}\n");
}

}  // namespace anydml::element_cuda
