#include "ops/operator_table.h"

#include "kernel/module.h"
#include "ops/dynamic_quantize/problem.h"
#include "ops/element/problem.h"
#include "ops/reduce/problem.h"
#include "ops/scatter/problem.h"
#include "ops/softmax/problem.h"
#include "ops/top_k/problem.h"

namespace anydml {

const OperatorTable& OwnOperatorTable() {
  static const OperatorTable table = {
      .dynamic_quantize = DynamicQuantizeImplementations(),
      .element = ElementImplementations(),
      .reduce = ReduceImplementations(),
      .scatter = ScatterImplementations(),
      .softmax = SoftmaxImplementations(),
      .top_k = TopKImplementations(),
  };
  return table;
}

const OperatorTable& OperatorTableOf(std::string_view backend) {
  const Module* const module = FindModule(backend);
  return module != nullptr ? module->operators() : OwnOperatorTable();
}

}  // namespace anydml
