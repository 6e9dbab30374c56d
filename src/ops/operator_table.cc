#include "ops/operator_table.h"

#include "kernel/module.h"
#include "ops/convolution/problem.h"
#include "ops/dynamic_quantize/problem.h"
#include "ops/element/problem.h"
#include "ops/gemm/problem.h"
#include "ops/integer_product/problem.h"
#include "ops/scatter/problem.h"
#include "ops/top_k/problem.h"

namespace anydml {

const OperatorTable& OwnOperatorTable() {
  static const OperatorTable table = {
      .convolution = ConvolutionImplementations(),
      .dynamic_quantize = DynamicQuantizeImplementations(),
      .element = ElementImplementations(),
      .gemm = GemmImplementations(),
      .integer_product = IntegerProductImplementations(),
      .scatter = ScatterImplementations(),
      .top_k = TopKImplementations(),
  };
  return table;
}

const OperatorTable& OperatorTableOf(std::string_view backend) {
  const Module* const module = FindModule(backend);
  return module != nullptr ? module->operators() : OwnOperatorTable();
}

}  // namespace anydml
