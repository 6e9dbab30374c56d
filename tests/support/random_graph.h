// Generates random valid graphs of operators of all families, and runs them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/cases.h"
#include "support/dml_harness.h"

namespace anydml::testing {

struct RandomGraph {
  struct Source {
    enum class Kind { kAbsent, kInput, kNode, kConstant };
    Kind kind = Kind::kAbsent;
    uint32_t index = 0;  // of the graph input, the node or the constant
    uint32_t output = 0;
  };
  struct Node {
    OperatorDesc desc;
    std::vector<Source> inputs;
  };
  struct Output {
    uint32_t node;
    uint32_t output;
  };
  std::vector<Node> nodes;  // in an order in which they can run
  std::vector<Bytes> inputs;
  std::vector<bool> owned;  // inputs with OWNED_BY_DML
  std::vector<Bytes> constants;
  std::vector<Output> outputs;
  // Passes fuse several operators into one, whose results are close to those one by one (numbers up to 1; one
  // by one, FLOAT16 logits up to 8 and weights are rounded). Other graphs give the same bytes.
  bool attention = false;

  std::string ToString() const;
};

// Which operators: all, or those whose results are the same bytes for every layout (no sums).
enum class GraphKinds { kAll, kExact };

// The same for the same seed.
RandomGraph MakeRandomGraph(uint64_t seed, GraphKinds kinds);

// The results of running the operators one by one, a tensor's bytes per graph output; gaps are kGap.
std::vector<Bytes> RunOneByOne(test::DmlHarness& harness, const RandomGraph& graph);
// The results of the compiled graph.
std::vector<Bytes> RunCompiled(test::DmlHarness& harness, const RandomGraph& graph);
// Describes the first difference; empty if there is none.
std::string Difference(const RandomGraph& graph, const std::vector<Bytes>& got,
                       const std::vector<Bytes>& want);

}  // namespace anydml::testing
