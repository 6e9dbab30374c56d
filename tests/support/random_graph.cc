#include "support/random_graph.h"

#include <algorithm>
#include <variant>

#include <anydml.h>
#include <gtest/gtest.h>

#include "client/c_desc.h"
#include "support/api_run.h"
#include "support/compare.h"
#include "support/graph_builder.h"

namespace anydml::testing {
namespace {

using Source = RandomGraph::Source;
using test::Bound;
using test::ComPtr;

// In binding order; null for absent ones.
std::vector<TensorDesc*> InputsOf(OperatorDesc* desc) {
  std::vector<TensorDesc*> tensors;
  for (size_t i = 0; i < desc->fields.size(); ++i) {
    if (desc->schema->fields[i].kind != FieldKind::kInput) continue;
    if (auto* array = std::get_if<std::vector<TensorDesc>>(&desc->fields[i])) {
      for (TensorDesc& tensor : *array) tensors.push_back(&tensor);
    } else {
      tensors.push_back(std::get_if<TensorDesc>(&desc->fields[i]));
    }
  }
  return tensors;
}

uint64_t BytesOfElements(const TensorDesc& tensor, uint64_t elements) {
  return elements * BitSize(tensor.type) / 8;
}

// The number of bytes from the beginning that a reader finds written, if that is all of them; otherwise 0.
uint64_t WrittenBytes(const TensorDesc& output) {
  const uint64_t count = ElementCount(output);
  return ElementSpan(output) == count ? BytesOfElements(output, count) : 0;
}

// Weights that are packed at initialisation are multiplied by other kernels, or in other pieces, than those
// that are not.
bool AddsConstantsInItsOwnOrder(OperatorType type) {
  return type == OperatorType::kRnn || type == OperatorType::kLstm || type == OperatorType::kGru ||
         type == OperatorType::kGemm || type == OperatorType::kConvolution;
}

bool IsExact(const char* family) {
  constexpr std::string_view kExact[] = {"element", "gather",  "generate", "move",
                                         "one_hot", "scatter", "top_k"};
  return std::find(std::begin(kExact), std::end(kExact), family) != std::end(kExact);
}

// The inexact element functions are the same for every layout.
std::vector<CaseFamily> FamiliesOf(GraphKinds kinds) {
  std::vector<CaseFamily> families;
  for (const CaseFamily& family : AllCaseFamilies()) {
    if (kinds == GraphKinds::kAll || IsExact(family.name)) families.push_back(family);
  }
  return families;
}

class Maker {
 public:
  Maker(uint64_t seed, GraphKinds kinds) : random_(seed), families_(FamiliesOf(kinds)) {
    // Half of all clients' operators are element-wise.
    const CaseFamily element = family::element::Cases();
    families_.insert(families_.end(), families_.size(), element);
  }

  RandomGraph Make() {
    const uint32_t nodes = Uniform(random_, 1, 10);
    for (uint32_t i = 0; i < nodes; ++i) AddNode();
    AddOutputs();
    return std::move(graph_);
  }

 private:
  Case DrawCase() {
    for (;;) {
      const CaseFamily& family = families_[random_() % families_.size()];
      Case drawn = MakeCase(family, family.operators[random_() % family.operators.size()], random_() >> 16);
      // Its outputs are read before they are written, so not every graph may have it.
      const bool reads_outputs =
          drawn.desc.schema->type == static_cast<uint32_t>(OperatorType::kMultiheadAttention1) &&
          drawn.desc.tensor("PastSequenceLengthsTensor") != nullptr;
      if (!reads_outputs) return drawn;
    }
  }

  // Of several problems, takes the one that reads the most of its inputs from earlier nodes.
  void AddNode() {
    Case best = DrawCase();
    size_t most = CountFeeds(best.desc);
    for (int i = 0; i < 6 && !graph_.nodes.empty(); ++i) {
      Case other = DrawCase();
      const size_t feeds = CountFeeds(other.desc);
      if (feeds > most) best = std::move(other), most = feeds;
    }
    RandomGraph::Node node{std::move(best.desc), {}};
    const auto tensors = InputsOf(&node.desc);
    const auto type = static_cast<OperatorType>(node.desc.schema->type);
    const bool may_be_constant = !AddsConstantsInItsOwnOrder(type);
    for (size_t i = 0; i < tensors.size(); ++i) {
      node.inputs.push_back(tensors[i] == nullptr ? Source{}
                                                  : Feed(tensors[i], best.inputs[i], may_be_constant));
    }
    graph_.nodes.push_back(std::move(node));
  }

  std::vector<Source> FeedsFor(const TensorDesc& tensor) const {
    std::vector<Source> sources;
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto outputs = graph_.nodes[i].desc.outputs();
      for (uint32_t o = 0; o < outputs.size(); ++o) {
        // Only as many coordinates are written as there are.
        if (graph_.nodes[i].desc.schema->type == static_cast<uint32_t>(OperatorType::kNonzeroCoordinates))
          continue;
        if (outputs[o] == nullptr || WrittenBytes(*outputs[o]) < BytesOfElements(tensor, ElementSpan(tensor)))
          continue;
        // Reinterpreted bytes may be anything, also a NaN that a processor changes in passing.
        if (outputs[o]->type == tensor.type && tensor.total_bytes <= outputs[o]->total_bytes) {
          sources.push_back({Source::Kind::kNode, i, o});
        }
      }
    }
    return sources;
  }
  size_t CountFeeds(OperatorDesc& desc) const {
    size_t count = 0;
    for (const TensorDesc* tensor : InputsOf(&desc)) count += tensor != nullptr && !FeedsFor(*tensor).empty();
    return count;
  }

  Source Feed(TensorDesc* tensor, const Bytes& content, bool may_be_constant) {
    tensor->owned_by_dml = false;
    const auto feeds = FeedsFor(*tensor);
    if (!feeds.empty() && random_() % 8 != 0) {
      const Source source = feeds[random_() % feeds.size()];
      tensor->total_bytes = graph_.nodes[source.index].desc.outputs()[source.output]->total_bytes;
      return source;
    }
    if (may_be_constant && content.size() <= 64 && random_() % 4 == 0) {
      graph_.constants.push_back(content);
      return {Source::Kind::kConstant, static_cast<uint32_t>(graph_.constants.size() - 1), 0};
    }
    const bool owned = may_be_constant && random_() % 4 == 0;
    tensor->owned_by_dml = owned;
    graph_.inputs.push_back(content);
    graph_.owned.push_back(owned);
    return {Source::Kind::kInput, static_cast<uint32_t>(graph_.inputs.size() - 1), 0};
  }

  void AddOutputs() {
    for (uint32_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto tensors = graph_.nodes[i].desc.outputs();
      bool read = false;
      for (const RandomGraph::Node& node : graph_.nodes) {
        for (const Source& source : node.inputs)
          read |= source.kind == Source::Kind::kNode && source.index == i;
      }
      bool useful = false;
      for (uint32_t o = 0; o < tensors.size(); ++o) {
        if (tensors[o] == nullptr || (read && random_() % 8 != 0) || (useful && random_() % 4 == 0)) continue;
        graph_.outputs.push_back({i, o});
        useful = true;
        if (random_() % 16 == 0) graph_.outputs.push_back({i, o});  // twice
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<CaseFamily> families_;
  RandomGraph graph_;
};

}  // namespace

RandomGraph MakeRandomGraph(uint64_t seed, GraphKinds kinds) { return Maker(seed, kinds).Make(); }

std::string RandomGraph::ToString() const {
  std::string text;
  for (size_t i = 0; i < nodes.size(); ++i) {
    text += StrCat(text.empty() ? "" : "\n", i, ": ", Describe(Case{nodes[i].desc, {}, false}), " from");
    for (const Source& source : nodes[i].inputs) {
      constexpr const char* kKinds[] = {" -", " input ", " node ", " constant "};
      text += kKinds[static_cast<int>(source.kind)];
      if (source.kind != Source::Kind::kAbsent) text += StrCat(source.index, ".", source.output);
    }
  }
  for (const Output& output : outputs) text += StrCat("\n-> ", output.node, ".", output.output);
  return text;
}

std::vector<Bytes> RunOneByOne(test::DmlHarness& harness, const RandomGraph& graph) {
  std::vector<std::vector<Bytes>> results;
  for (const RandomGraph::Node& node : graph.nodes) {
    std::vector<Bytes> inputs;
    const auto tensors = node.desc.inputs();
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Source& source = node.inputs[i];
      switch (source.kind) {
        case Source::Kind::kAbsent:
          inputs.emplace_back();
          break;
        case Source::Kind::kInput:
          inputs.push_back(graph.inputs[source.index]);
          break;
        case Source::Kind::kConstant:
          inputs.push_back(graph.constants[source.index]);
          break;
        case Source::Kind::kNode:
          inputs.push_back(results[source.index][source.output]);
          break;
      }
    }
    results.push_back(RunThroughApi(harness, {node.desc, std::move(inputs), false}).outputs);
  }
  std::vector<Bytes> outputs;
  for (const RandomGraph::Output& output : graph.outputs)
    outputs.push_back(results[output.node][output.output]);
  return outputs;
}

namespace {

// Outputs are bound to the bytes of every input that they may share; the result must equal that of separate
// outputs which contain such bytes before the run.
template <class Run>
void ExpectSameInPlace(test::DmlHarness& harness, IDMLCompiledOperator* compiled, const RandomGraph& graph,
                       const std::vector<uint64_t>& sizes, const std::vector<Bound>& given, const Run& run) {
  std::vector<ComPtr<ID3D12Resource>> buffers;
  const auto upload = [&](const Bytes& bytes) -> Bound {
    return {buffers.emplace_back(harness.Upload(bytes)).Get()};
  };
  std::vector<Bound> inputs = given, outputs, shared_inputs = given, shared_outputs;
  std::vector<bool> taken = graph.owned;
  for (UINT o = 0; o < sizes.size(); ++o) {
    const auto fits = [&](UINT i) {
      return !taken[i] && graph.inputs[i].size() == sizes[o] && AnyDmlMayRunInPlace(compiled, i, o) == 1;
    };
    UINT first = 0;
    while (first < inputs.size() && !fits(first)) ++first;
    const Bytes before = first < inputs.size() ? graph.inputs[first] : Bytes(sizes[o], kGap);
    outputs.push_back(upload(before));
    shared_outputs.push_back(upload(before));
    for (UINT i = first; i < inputs.size(); ++i) {
      if (!fits(i)) continue;
      taken[i] = true;
      inputs[i] = given[first];
      shared_inputs[i] = shared_outputs.back();
    }
  }
  if (taken == graph.owned) return;
  const std::vector<Bytes> want = run(inputs, outputs), got = run(shared_inputs, shared_outputs);
  for (size_t o = 0; o < sizes.size(); ++o) {
    EXPECT_TRUE(got[o] == want[o]) << "graph output " << o << " at the bytes of an input";
  }
}

}  // namespace

std::vector<Bytes> RunCompiled(test::DmlHarness& harness, const RandomGraph& graph) {
  test::GraphBuilder builder;
  for (const RandomGraph::Node& node : graph.nodes) {
    const client::CDesc desc(node.desc);
    builder.Operator(harness.CreateOperator(desc.get().Type, desc.get().Desc));
  }
  std::vector<UINT> constants;
  for (const Bytes& bytes : graph.constants)
    constants.push_back(builder.Constant(bytes.data(), bytes.size()));
  for (UINT i = 0; i < graph.nodes.size(); ++i) {
    for (UINT j = 0; j < graph.nodes[i].inputs.size(); ++j) {
      const Source& source = graph.nodes[i].inputs[j];
      if (source.kind == Source::Kind::kInput) builder.Input(source.index, i, j);
      if (source.kind == Source::Kind::kConstant) builder.Edge(constants[source.index], 0, i, j);
      if (source.kind == Source::Kind::kNode) builder.Edge(source.index, source.output, i, j);
    }
  }
  for (UINT i = 0; i < graph.outputs.size(); ++i) {
    builder.Output(graph.outputs[i].node, graph.outputs[i].output, i);
  }
  const auto compiled = builder.Compile(harness.dml());
  std::vector<ComPtr<ID3D12Resource>> buffers;
  std::vector<Bound> at_init(graph.inputs.size()), at_run(graph.inputs.size()), outputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    buffers.push_back(harness.Upload(graph.inputs[i]));
    (graph.owned[i] ? at_init : at_run)[i] = {buffers.back().Get()};
  }
  std::vector<uint64_t> sizes;
  for (const RandomGraph::Output& output : graph.outputs) {
    sizes.push_back(graph.nodes[output.node].desc.outputs()[output.output]->total_bytes);
    buffers.push_back(harness.Upload(Bytes(sizes.back(), kGap)));
    outputs.push_back({buffers.back().Get()});
  }
  const auto persistent = harness.CreatePersistent(compiled.Get());
  harness.Initialize(compiled.Get(), persistent.Get(), at_init);
  const auto run = [&](const std::vector<Bound>& from, const std::vector<Bound>& to) {
    harness.Dispatch(compiled.Get(), from, to, persistent.Get());
    harness.ReuseDescriptors();
    test::Check(harness.dml()->GetDeviceRemovedReason(), "GetDeviceRemovedReason");
    std::vector<Bytes> results;
    for (size_t i = 0; i < to.size(); ++i) results.push_back(harness.Download(to[i].buffer, sizes[i]));
    return results;
  };
  const std::vector<Bytes> results = run(at_run, outputs);
  ExpectSameInPlace(harness, compiled.Get(), graph, sizes, at_run, run);
  return results;
}

std::string Difference(const RandomGraph& graph, const std::vector<Bytes>& got,
                       const std::vector<Bytes>& want) {
  if (got.size() != want.size()) return StrCat(got.size(), " outputs instead of ", want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    const RandomGraph::Output& output = graph.outputs[i];
    const TensorDesc& tensor = *graph.nodes[output.node].desc.outputs()[output.output];
    Exactness exactness;
    if (graph.attention) exactness.absolute = tensor.type == DataType::kFloat16 ? 0x1p-7 : 0x1p-18;
    const std::string difference = Difference(tensor, got[i], want[i], exactness);
    if (!difference.empty()) return StrCat("graph output ", i, ": ", difference);
  }
  return "";
}

}  // namespace anydml::testing
