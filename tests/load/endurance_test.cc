// A great many dispatches, long lists, one binding table without end: all counted exactly.
#include "dml/dml_test.h"
#include "load/process_state.h"
#include "support/graph_builder.h"

namespace anydml::test {
namespace {

// Adds 1 to a number, in place.
struct Increment {
  explicit Increment(DML_TENSOR_DATA_TYPE type) : number(type, {1}) {}

  Tensor number;
  DML_SCALE_BIAS one = {1, 1};
  DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC desc = {number.desc(), number.desc(), &one};
};

// An operator with its buffers.
struct Dispatchable {
  ComPtr<IDMLCompiledOperator> op;
  std::vector<ComPtr<ID3D12Resource>> buffers;
  ComPtr<ID3D12Resource> temporary;
  Bindings inputs, outputs, extra;

  void BindTo(IDMLBindingTable* table) const {
    table->BindInputs(inputs.count(), inputs.data());
    table->BindOutputs(outputs.count(), outputs.data());
    if (temporary) table->BindTemporaryResource(extra.data());
  }
};

class EnduranceTest : public DmlTest {
 protected:
  Dispatchable Prepare(DML_OPERATOR_TYPE type, const void* desc, std::vector<ComPtr<ID3D12Resource>> buffers,
                       const std::vector<int>& inputs, const std::vector<int>& outputs) {
    Dispatchable result;
    result.op = h().Compile(type, desc);
    h().Initialize(result.op.Get());
    result.buffers = std::move(buffers);
    result.temporary = h().CreateTemporary(result.op.Get());
    const auto bounds = [&](const std::vector<int>& which) {
      std::vector<Bound> bound;
      for (const int i : which) bound.push_back({result.buffers[i].Get()});
      return Bindings(bound);
    };
    result.inputs = bounds(inputs);
    result.outputs = bounds(outputs);
    result.extra = Bindings({{result.temporary.Get()}});
    return result;
  }
  Dispatchable PrepareCounter(const Increment& increment) {
    return Prepare(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &increment.desc, {h().Upload<int64_t>({0})}, {0}, {0});
  }

  void Record(const Dispatchable& bound, IDMLBindingTable* table, int times) {
    for (int i = 0; i < times; ++i) {
      h().recorder()->RecordDispatch(h().list(), bound.op.Get(), table);
      h().UavBarrier();
    }
  }
  // Executes the closed list `times` more after CloseAndExecute.
  void ExecuteAgain(int times) {
    ID3D12CommandList* const list = h().list();
    for (int i = 0; i < times; ++i) h().queue()->ExecuteCommandLists(1, &list);
  }
  void WaitForAll() {
    ComPtr<ID3D12Fence> fence;
    Check(h().d3d()->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)), "CreateFence");
    Check(h().queue()->Signal(fence.Get(), 1), "Signal");
    Check(fence->SetEventOnCompletion(1, nullptr), "SetEventOnCompletion");
  }
};

TEST_F(EnduranceTest, AMillionDispatches) {
  const Increment increment(DML_TENSOR_DATA_TYPE_INT32);
  const Dispatchable counter = PrepareCounter(increment);
  const auto table = h().CreateTable(counter.op.Get());
  counter.BindTo(table.Get());
  Record(counter, table.Get(), 1000);
  h().CloseAndExecute();
  ExecuteAgain(99);
  WaitForAll();
  const uint64_t early = MeasureProcess().heap;
  ExecuteAgain(900);
  WaitForAll();
  const uint64_t late = MeasureProcess().heap;
  EXPECT_LT(late, early + (64 << 10));  // not even a byte for each execution
  h().Reopen();
  EXPECT_EQ(h().Download<int32_t>(counter.buffers[0].Get(), 1)[0], 1000000);
}

TEST_F(EnduranceTest, TenThousandSubmissions) {
  const Increment increment(DML_TENSOR_DATA_TYPE_INT64);
  const Dispatchable counter = PrepareCounter(increment);
  const auto table = h().CreateTable(counter.op.Get());
  counter.BindTo(table.Get());
  Record(counter, table.Get(), 1);
  h().CloseAndExecute();
  ComPtr<ID3D12Fence> fence;
  Check(h().d3d()->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)), "CreateFence");
  for (uint64_t i = 1; i < 10000; ++i) {
    ExecuteAgain(1);
    Check(h().queue()->Signal(fence.Get(), i), "Signal");
    if (i % 100 == 0) Check(fence->SetEventOnCompletion(i - i % 7, nullptr), "SetEventOnCompletion");
  }
  WaitForAll();
  h().Reopen();
  EXPECT_EQ(h().Download<int64_t>(counter.buffers[0].Get(), 1)[0], 10000);
}

TEST_F(EnduranceTest, AListOfAHundredThousandDispatches) {
  const Increment increment(DML_TENSOR_DATA_TYPE_UINT32);
  const Dispatchable counter = PrepareCounter(increment);
  const auto table = h().CreateTable(counter.op.Get());
  counter.BindTo(table.Get());
  for (const uint32_t round : {1u, 2u}) {
    Record(counter, table.Get(), 100000);
    h().ExecuteAndWait();
    EXPECT_EQ(h().Download<uint32_t>(counter.buffers[0].Get(), 1)[0], round * 100000);
  }
}

// One compiled graph of several kernels with memory between them. Each run adds one to eight equal numbers: a
// missing or extra run, or one that reads another's memory, changes the result.
TEST_F(EnduranceTest, AHundredThousandRunsOfAGraph) {
  constexpr int kPerList = 1000, kLists = 100;
  const Tensor eight(DML_TENSOR_DATA_TYPE_INT32, {1, 8}), one(DML_TENSOR_DATA_TYPE_INT32, {1, 1});
  const DML_SCALE_BIAS plus_one = {1, 1};
  const UINT axis = 1, repeats[] = {1, 8};
  const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC add = {eight.desc(), eight.desc(), &plus_one};
  const DML_REDUCE_OPERATOR_DESC max = {DML_REDUCE_FUNCTION_MAX, eight.desc(), one.desc(), 1, &axis};
  const DML_TILE_OPERATOR_DESC tile = {one.desc(), eight.desc(), 2, repeats};
  GraphBuilder builder;
  builder.Operator(h().CreateOperator(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &add));
  builder.Operator(h().CreateOperator(DML_OPERATOR_REDUCE, &max));
  builder.Operator(h().CreateOperator(DML_OPERATOR_TILE, &tile));
  builder.Input(0, 0, 0).Edge(0, 0, 1, 0).Edge(1, 0, 2, 0).Output(2, 0, 0);
  const auto graph = builder.Compile(h().dml());
  h().Initialize(graph.Get());

  // Copies back and forth between two buffers.
  const ComPtr<ID3D12Resource> numbers[] = {h().Upload(std::vector<int32_t>(8)), h().CreateBuffer(32)};
  const auto temporary = h().CreateTemporary(graph.Get());
  const Bindings bindings[] = {Bindings({{numbers[0].Get()}}), Bindings({{numbers[1].Get()}})};
  const Bindings extra({{temporary.Get()}});
  const ComPtr<IDMLBindingTable> tables[] = {h().CreateTable(graph.Get()), h().CreateTable(graph.Get())};
  for (const int i : {0, 1}) {
    tables[i]->BindInputs(1, bindings[i].data());
    tables[i]->BindOutputs(1, bindings[1 - i].data());
    if (temporary) tables[i]->BindTemporaryResource(extra.data());
  }
  for (int i = 0; i < kPerList; ++i) {
    h().recorder()->RecordDispatch(h().list(), graph.Get(), tables[i % 2].Get());
    h().UavBarrier();
  }
  h().CloseAndExecute();
  ExecuteAgain(kLists / 10 - 1);
  WaitForAll();
  const ProcessState early = MeasureProcess();
  ExecuteAgain(kLists - kLists / 10);
  WaitForAll();
  const ProcessState late = MeasureProcess();
  EXPECT_LT(late.heap, early.heap + (64 << 10));  // not even a byte for each execution
  EXPECT_EQ(late.objects, early.objects);
  h().Reopen();
  EXPECT_EQ(h().Download<int32_t>(numbers[0].Get(), 8), std::vector<int32_t>(8, kLists * kPerList));
}

// One table, reset a hundred thousand times, for operators that need different descriptors.
TEST_F(EnduranceTest, ATableForEver) {
  constexpr int kResets = 100000, kPerList = 1000;
  const Increment ints(DML_TENSOR_DATA_TYPE_INT32), floats(DML_TENSOR_DATA_TYPE_FLOAT32);
  const TopK top_k({1, 8}, 1, 3);
  const ScatterNd scatter = ScatterNd::Page();
  std::vector<Dispatchable> all;
  all.push_back(PrepareCounter(ints));
  all.push_back(Prepare(DML_OPERATOR_TOP_K1, &top_k.desc,
                        {h().Upload(kPageInput), h().CreateBuffer(12), h().CreateBuffer(12)}, {0}, {1, 2}));
  all.push_back(PrepareCounter(floats));
  all.push_back(Prepare(
      DML_OPERATOR_SCATTER_ND, &scatter.desc,
      {h().Upload(kPageInput), h().Upload(kPageIndices), h().Upload(kPageUpdates), h().CreateBuffer(32)},
      {0, 1, 2}, {3}));
  UINT most = 0;
  for (const Dispatchable& each : all) {
    most = std::max(most, each.op->GetBindingProperties().RequiredDescriptorCount);
  }
  DML_BINDING_TABLE_DESC desc = h().NextTableDesc(all[3].op.Get());
  desc.SizeInDescriptors = most;
  ComPtr<IDMLBindingTable> table;
  Check(h().dml()->CreateBindingTable(&desc, IID_PPV_ARGS(&table)), "CreateBindingTable");
  for (int i = 0; i < kResets; ++i) {
    const Dispatchable& bound = all[i % all.size()];
    if (i % 97 == 0) {
      ASSERT_EQ(table->Reset(nullptr), S_OK);
    }
    desc.Dispatchable = bound.op.Get();
    ASSERT_EQ(table->Reset(&desc), S_OK) << LastError();
    bound.BindTo(table.Get());
    Record(bound, table.Get(), 1);
    if (i % kPerList == kPerList - 1) h().ExecuteAndWait();
  }
  ASSERT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  EXPECT_EQ(h().Download<int32_t>(all[0].buffers[0].Get(), 1)[0], kResets / 4);
  EXPECT_EQ(h().Download<float>(all[2].buffers[0].Get(), 1)[0], kResets / 4);
  EXPECT_EQ(h().Download<float>(all[1].buffers[1].Get(), 3), (std::vector<float>{8, 7, 6}));
  EXPECT_EQ(h().Download<uint32_t>(all[1].buffers[2].Get(), 3), (std::vector<uint32_t>{7, 6, 5}));
  EXPECT_EQ(h().Download<float>(all[3].buffers[3].Get(), 8), kPageOutput);
}

}  // namespace
}  // namespace anydml::test
