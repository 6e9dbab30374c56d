// Every family's list of implementations: what a backend's module exports of the operators. A new
// family has a line here and one in operator_table.cc.
#pragma once

#include <span>
#include <string_view>

#include "ops/implementation_list.h"

namespace anydml {

struct DynamicQuantizeProblem;
struct ElementProblem;
struct ReduceProblem;
struct ScatterProblem;
struct SoftmaxProblem;
struct TopKProblem;

struct OperatorTable {
  std::span<const Implementation<DynamicQuantizeProblem>> dynamic_quantize;
  std::span<const Implementation<ElementProblem>> element;
  std::span<const Implementation<ReduceProblem>> reduce;
  std::span<const Implementation<ScatterProblem>> scatter;
  std::span<const Implementation<SoftmaxProblem>> softmax;
  std::span<const Implementation<TopKProblem>> top_k;
};

// The table of the library or module that calls this.
const OperatorTable& OwnOperatorTable();

// The table to lower from for a backend: its module's, or our own.
const OperatorTable& OperatorTableOf(std::string_view backend);

}  // namespace anydml
