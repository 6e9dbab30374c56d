// The passes over a graph before it is lowered. Every pass preserves the results: of element-wise operators
// to the byte, of others within the accuracy that they promise.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace anydml {

struct GraphPass {
  const char* name;  // for ANYDML_GRAPH_WITHOUT: "fold", "fuse", ...
  Status (*run)(const LowerContext& context, Graph* graph);
};

// In the order in which they run.
std::span<const GraphPass> GraphPasses();

// Runs all passes except those in `without` (separated by commas; "all": runs none).
Status RunPasses(const LowerContext& context, std::string_view without, Graph* graph);

// The writers and readers of a value, as node indices. Not updated when the graph changes.
struct GraphUse {
  std::vector<uint32_t> writers;  // none: an input or a constant; several: each writes a part
  std::vector<uint32_t> readers;  // ascending; a node that reads it twice is listed once
};
std::vector<GraphUse> FindUses(const Graph& graph);

// "fold": computes what is known when the graph is compiled, and removes pairs of CASTs that change nothing.
Status FoldConstants(const LowerContext& context, Graph* graph);
// "views": reshapes, transposes, broadcasts, slices, splits and joins without copies.
Status FoldViews(const LowerContext& context, Graph* graph);
// "products": joins products of the same matrix with several weights into one.
Status JoinProducts(const LowerContext& context, Graph* graph);
// "attention": products with a softmax between them become one attention.
Status FuseAttention(const LowerContext& context, Graph* graph);
// "activation": merges nodes that follow a product, a convolution or a normalisation into it.
Status FuseActivations(const LowerContext& context, Graph* graph);
// "tails": operations after a convolution are applied where it stores its results.
Status FuseTails(const LowerContext& context, Graph* graph);
// The same, for tails that `gains` approves.
using GainsByTailFunction = std::function<bool(const OperatorDesc& desc, const ConvolutionTailDesc& tail)>;
void TakeTails(const GainsByTailFunction& gains, Graph* graph);
// "fuse": joins chains and trees of element-wise operators into one element program.
Status FuseElements(const LowerContext& context, Graph* graph);
// "prologue": element-wise work before a reduction is done block by block with it, on a CPU.
Status FusePrologues(const LowerContext& context, Graph* graph);
// "layouts": channels-last tensors between convolutions where kernels are faster with them.
Status ChooseLayouts(const LowerContext& context, Graph* graph);

// Whether an element program can do what the operator does.
bool IsElementWise(const OperatorDesc& desc);

// Removes nodes without outputs, which passes leave behind.
void RemoveEmptyNodes(Graph* graph);

}  // namespace anydml
