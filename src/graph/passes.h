// What is done to a graph before it is lowered. Every pass keeps what the graph computes: element-wise
// results to the byte, others within what their operators promise.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace anydml {

struct GraphPass {
  const char* name;  // what ANYDML_GRAPH_WITHOUT takes: "fold", "fuse", ...
  Status (*run)(const LowerContext& context, Graph* graph);
};

// In the order in which they run.
std::span<const GraphPass> GraphPasses();

// Runs all passes but those that `without` names (separated by commas; "all": none runs).
Status RunPasses(const LowerContext& context, std::string_view without, Graph* graph);

// Who writes and who reads a value, as indices of nodes. Not kept up to date when the graph changes.
struct GraphUse {
  std::vector<uint32_t> writers;  // none: an input or a constant; several: each writes a part
  std::vector<uint32_t> readers;  // in order; a node that reads it twice is there once
};
std::vector<GraphUse> FindUses(const Graph& graph);

// "fold": what is known when the graph is compiled is computed then; pairs of CASTs that change nothing go.
Status FoldConstants(const LowerContext& context, Graph* graph);
// "views": reshapes, transposes, broadcasts, slices, splits and joins without copies.
Status FoldViews(const LowerContext& context, Graph* graph);
// "products": products of the same matrix with weights become one.
Status JoinProducts(const LowerContext& context, Graph* graph);
// "attention": products with a softmax between them are attention.
Status FuseAttention(const LowerContext& context, Graph* graph);
// "activation": what follows a product, a convolution or a normalisation becomes part of it.
Status FuseActivations(const LowerContext& context, Graph* graph);
// "tails": what follows a convolution is done where it stores its results.
Status FuseTails(const LowerContext& context, Graph* graph);
// The same for tails that `gains` agrees to.
using GainsByTailFunction = std::function<bool(const OperatorDesc& desc, const ConvolutionTailDesc& tail)>;
void TakeTails(const GainsByTailFunction& gains, Graph* graph);
// "fuse": chains and trees of element-wise operators become one element program.
Status FuseElements(const LowerContext& context, Graph* graph);
// "prologue": element-wise work before a reduction is done block by block with it, on a CPU.
Status FusePrologues(const LowerContext& context, Graph* graph);
// "layouts": tensors between convolutions have their channels as neighbours where kernels like that.
Status ChooseLayouts(const LowerContext& context, Graph* graph);

// Whether an element program does what the operator does.
bool IsElementWise(const OperatorDesc& desc);

// Removes the nodes without outputs: a pass leaves those behind that it made superfluous.
void RemoveEmptyNodes(Graph* graph);

}  // namespace anydml
