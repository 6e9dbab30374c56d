// CompileGraph: arbitrary nodes and edges must give a well-defined result, and valid graphs must give the
// results of their separate operators.
#include "fuzz.h"

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <DirectML.h>
#include <anydml.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "client/scoped_variable.h"
#include "support/graph_builder.h"
#include "support/random_attention.h"
#include "support/random_graph.h"

namespace anydml::fuzz {
namespace {

using test::ComPtr;
using test::GraphBuilder;
using test::Tensor;

constexpr DML_TENSOR_DATA_TYPE kFloat = DML_TENSOR_DATA_TYPE_FLOAT32;

test::DmlHarness& Harness() {
  static auto* const harness = new test::DmlHarness;
  return *harness;
}

// Devices read the list of disabled passes when they are created.
test::DmlHarness& HarnessWithout(const std::string& passes) {
  static std::map<std::string, std::unique_ptr<test::DmlHarness>> harnesses;
  std::unique_ptr<test::DmlHarness>& harness = harnesses[passes];
  if (harness == nullptr) {
    const client::ScopedVariable without("ANYDML_GRAPH_WITHOUT", passes);
    harness = std::make_unique<test::DmlHarness>(Harness().d3d(), DML_CREATE_DEVICE_FLAG_NONE);
  }
  return *harness;
}

// A few operators with different numbers of inputs and outputs, optional tensors, flags and sizes.
ComPtr<IDMLOperator> MakeOperator(uint32_t kind) {
  test::DmlHarness& h = Harness();
  const Tensor four(kFloat, {1, 1, 2, 2}), owned(kFloat, {1, 1, 2, 2}, DML_TENSOR_FLAG_OWNED_BY_DML);
  const Tensor two(kFloat, {1, 1, 2, 1}), places(DML_TENSOR_DATA_TYPE_UINT32, {1, 1, 2, 1});
  switch (kind) {
    case 0: {
      const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC desc = {four.desc(), four.desc(), nullptr};
      return h.CreateOperator(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &desc);
    }
    case 1: {
      const DML_ELEMENT_WISE_ADD_OPERATOR_DESC desc = {four.desc(), four.desc(), four.desc()};
      return h.CreateOperator(DML_OPERATOR_ELEMENT_WISE_ADD, &desc);
    }
    case 2: {
      const DML_ELEMENT_WISE_ADD_OPERATOR_DESC desc = {four.desc(), owned.desc(), four.desc()};
      return h.CreateOperator(DML_OPERATOR_ELEMENT_WISE_ADD, &desc);
    }
    case 3: {
      const DML_TOP_K1_OPERATOR_DESC desc = {four.desc(), two.desc(), places.desc(),
                                             3,           1,          DML_AXIS_DIRECTION_DECREASING};
      return h.CreateOperator(DML_OPERATOR_TOP_K1, &desc);
    }
    case 4: {
      const DML_GEMM_OPERATOR_DESC desc = {four.desc(),
                                           four.desc(),
                                           nullptr,
                                           four.desc(),
                                           DML_MATRIX_TRANSFORM_NONE,
                                           DML_MATRIX_TRANSFORM_NONE,
                                           1,
                                           1,
                                           nullptr};
      return h.CreateOperator(DML_OPERATOR_GEMM, &desc);
    }
    default:
      return nullptr;
  }
}

// Usually an existing one.
UINT Index(ByteSource& source, size_t count) {
  if (source.OneIn(32)) return source.Word();
  return source.Between(0, static_cast<uint32_t>(std::max<size_t>(count, 1)) - 1);
}

const char* Name(ByteSource& source) {
  constexpr const char* kNames[] = {nullptr, "", "a", "\xff\n%s"};
  return source.Any(kNames);
}

void Hostile(ByteSource source) {
  static const std::array<ComPtr<IDMLOperator>, 6> operators = [] {
    std::array<ComPtr<IDMLOperator>, 6> made;
    for (uint32_t i = 0; i < made.size(); ++i) made[i] = MakeOperator(i);
    return made;
  }();
  static const float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  GraphBuilder graph;
  const uint32_t nodes = source.Between(0, 6);
  for (uint32_t i = 0; i < nodes; ++i) {
    if (source.OneIn(4)) {
      graph.Constant(source.OneIn(16) ? nullptr : data, source.OneIn(4) ? source.Between(0, 32) : 16,
                     Name(source));
    } else {
      graph.Operator(operators[source.Between(0, source.OneIn(16) ? 5 : 4)].Get(), Name(source));
    }
  }
  const uint32_t edges = source.Between(0, 16);
  for (uint32_t i = 0; i < edges; ++i) {
    const UINT a = Index(source, nodes), b = Index(source, nodes);
    switch (source.Between(0, 3)) {
      case 0:
        graph.Input(Index(source, 3), a, Index(source, 2), Name(source));
        break;
      case 1:
        graph.Output(a, Index(source, source.OneIn(8) ? 2 : 1), Index(source, 3), Name(source));
        break;
      default:
        graph.Edge(a, Index(source, source.OneIn(8) ? 2 : 1), b, Index(source, 2), Name(source));
        break;
    }
  }
  graph.inputs = source.OneIn(8) ? source.Word() : 3;
  graph.outputs = source.OneIn(8) ? source.Word() : 3;
  for (auto* list : {&graph.in, &graph.out, &graph.between}) {
    if (list->empty() || !source.OneIn(16)) continue;
    if (source.OneIn(2)) (*list)[0].Desc = nullptr;
    (*list)[0].Type = static_cast<DML_GRAPH_EDGE_TYPE>(source.Between(0, 3));
  }
  const uint64_t alive = AnyDmlGetLiveObjectCount();
  {
    ComPtr<IDMLCompiledOperator> compiled;
    AnyDmlClearLastError();
    const HRESULT result = graph.TryCompile(Harness().dml(), &compiled);
    if (SUCCEEDED(result)) {
      Require(compiled->GetBindingProperties().RequiredDescriptorCount > 0, "a graph without descriptors");
    } else {
      Require(result == E_INVALIDARG, StrCat("CompileGraph returned ", static_cast<uint32_t>(result)));
      Require(*AnyDmlGetLastErrorMessage() != '\0', "CompileGraph failed without a sentence");
      Require(compiled == nullptr, "CompileGraph failed and left an object");
    }
  }
  Require(AnyDmlGetLiveObjectCount() == alive, "objects left behind");
}

// Uses all operators, without the passes that change layouts or make constants, because these change the
// order of additions.
void Valid(ByteSource source) {
  ::testing::GTEST_FLAG(break_on_failure) = true;  // of the helpers' checks
  constexpr const char* kWithout[] = {"",         "all",        "fold", "views",
                                      "products", "activation", "fuse", "layouts"};
  const uint64_t seed = source.LongWord();
  const char* const one = source.Any(kWithout);
  testing::RandomGraph graph;
  std::vector<std::string> without;
  switch (source.Byte() % 4) {
    case 1:
      graph = testing::MakeRandomGraph(seed, testing::GraphKinds::kAll);
      without = {"fold,views,products,attention,layouts", "all"};
      break;
    case 2:
      graph = testing::MakeRandomAttention(seed);
      without = {"", source.OneIn(2) ? "attention" : one};
      break;
    default:
      graph = testing::MakeRandomGraph(seed, testing::GraphKinds::kExact);
      without = {"", one};
      break;
  }
  const auto want = testing::RunOneByOne(Harness(), graph);
  for (const std::string& passes : without) {
    const std::string difference =
        testing::Difference(graph, testing::RunCompiled(HarnessWithout(passes), graph), want);
    Require(difference.empty(), StrCat("not what the operators give one by one (passes that are left out: \"",
                                       passes, "\"): ", difference, "\n", graph.ToString()));
  }
}

}  // namespace
}  // namespace anydml::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  anydml::fuzz::ByteSource source(data, size);
  if (source.OneIn(4)) {
    anydml::fuzz::Valid(source);
  } else {
    anydml::fuzz::Hostile(source);
  }
  return 0;
}
