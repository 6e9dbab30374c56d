// Uses everything that is thread-safe from many threads at once; intended for ThreadSanitizer.
#include <atomic>
#include <thread>

#include "dml/dml_test.h"

namespace anydml::test {
namespace {

constexpr int kThreads = 4;

class ThreadsTest : public DmlTest {
 protected:
  template <typename Body>
  void OnAllThreads(Body body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(body, i);
    for (std::thread& thread : threads) thread.join();
  }
};

// Threads share both devices; each has its own queue, list and table.
TEST_F(ThreadsTest, CreateCompileDispatch) {
  auto* d3d = h().d3d();
  std::atomic<int> right{0};
  OnAllThreads([&](int index) {
    try {
      DmlHarness mine(d3d, DML_CREATE_DEVICE_FLAG_NONE);
      for (int round = 0; round < 8; ++round) {
        const TopK op({1, 1, 3, 4}, 3, 2);
        const float top = static_cast<float>(100 + index + round);
        const auto results = mine.Run(DML_OPERATOR_TOP_K1, &op.desc,
                                      {ToBytes<float>({0, 1, 10, top, 3, 2, 9, 8, 4, 5, 6, 7})}, {24, 24});
        if (FromBytes<float>(results[0], 1)[0] == top) ++right;
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  });
  EXPECT_EQ(right, kThreads * 8);
}

TEST_F(ThreadsTest, OneDeviceAndOneOperatorForAll) {
  const TopK desc({1, 1, 3, 4}, 3, 2);
  auto op = h().CreateOperator(DML_OPERATOR_TOP_K1, &desc.desc);
  auto* device = h().dml();
  OnAllThreads([&](int) {
    for (int round = 0; round < 50; ++round) {
      ComPtr<IDMLCompiledOperator> compiled;
      EXPECT_EQ(device->CompileOperator(op.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)), S_OK);
      IDMLCompiledOperator* target = compiled.Get();
      ComPtr<IDMLOperatorInitializer> initializer;
      EXPECT_EQ(device->CreateOperatorInitializer(1, &target, IID_PPV_ARGS(&initializer)), S_OK);
      EXPECT_EQ(device->CreateOperator(nullptr, __uuidof(IDMLOperator), nullptr), E_INVALIDARG);
      EXPECT_NE(LastError(), "");
      EXPECT_EQ(compiled->SetName(L"shared"), S_OK);
      EXPECT_EQ(op->SetName(L"shared"), S_OK);
      IDMLPageable* pageable = compiled.Get();
      EXPECT_EQ(device->Evict(1, &pageable), S_OK);
      EXPECT_EQ(device->MakeResident(1, &pageable), S_OK);
    }
  });
}

// One recorder and one compiled operator, recorded into several lists at once.
TEST_F(ThreadsTest, SharedRecorderAndCompiledOperator) {
  const TopK desc({1, 1, 3, 4}, 3, 2);
  auto compiled = h().Compile(DML_OPERATOR_TOP_K1, &desc.desc);
  h().Initialize(compiled.Get());
  auto input = h().Upload<float>({0, 1, 10, 11, 3, 2, 9, 8, 4, 5, 6, 7});
  auto* device = h().dml();
  auto* recorder = h().recorder();
  std::atomic<int> right{0};
  OnAllThreads([&](int) {
    try {
      DmlHarness mine(h().d3d(), DML_CREATE_DEVICE_FLAG_NONE);
      for (int round = 0; round < 8; ++round) {
        auto values = mine.CreateBuffer(24);
        auto indices = mine.CreateBuffer(24);
        auto temporary = mine.CreateTemporary(compiled.Get());
        const DML_BINDING_TABLE_DESC table_desc = mine.NextTableDesc(compiled.Get());
        ComPtr<IDMLBindingTable> table;
        Check(device->CreateBindingTable(&table_desc, IID_PPV_ARGS(&table)), "CreateBindingTable");
        const Bindings in({{input.Get()}}), out({{values.Get()}, {indices.Get()}}),
            extra({{temporary.Get()}});
        table->BindInputs(in.count(), in.data());
        table->BindOutputs(out.count(), out.data());
        table->BindTemporaryResource(extra.data());
        recorder->RecordDispatch(mine.list(), compiled.Get(), table.Get());
        mine.ExecuteAndWait();
        if (mine.Download<float>(values.Get(), 6) == std::vector<float>{11, 10, 9, 8, 7, 6}) ++right;
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  });
  EXPECT_EQ(device->GetDeviceRemovedReason(), S_OK) << LastError();
  EXPECT_EQ(right, kThreads * 8);
}

// Kernels that use the adapter's threads, on several queues at once: the pool helps one of them at a time,
// and all get the same results.
TEST_F(ThreadsTest, LargeOperatorsOnSeveralQueues) {
  constexpr uint32_t kElements = 200000, kPlaces = 700, kUpdates = 100000;
  std::vector<float> data(kElements);
  std::vector<uint32_t> targets(kUpdates);
  for (uint32_t i = 0; i < kElements; ++i) data[i] = static_cast<float>(i * 2654435761u >> 12);
  for (uint32_t i = 0; i < kUpdates; ++i) targets[i] = i * 2246822519u % kElements;
  const std::vector<float> updates(data.rbegin(), data.rbegin() + kUpdates);
  const TopK top_k({1, 1, 1, kElements}, 3, kPlaces);
  const TopK rows({1, 1, kElements / 100, 100}, 3, 10);
  const ScatterNd scatter({1, kElements}, {kUpdates, 1}, {1, kUpdates}, 1, 2);
  const auto run = [&](DmlHarness& on) {
    auto results = on.Run(DML_OPERATOR_TOP_K1, &top_k.desc, {ToBytes(data)}, {4 * kPlaces, 4 * kPlaces});
    for (auto& bytes :
         on.Run(DML_OPERATOR_TOP_K1, &rows.desc, {ToBytes(data)}, {4 * kElements / 10, 4 * kElements / 10})) {
      results.push_back(std::move(bytes));
    }
    results.push_back(on.Run(DML_OPERATOR_SCATTER_ND, &scatter.desc,
                             {ToBytes(data), ToBytes(targets), ToBytes(updates)}, {4 * kElements})[0]);
    return results;
  };
  std::vector<std::vector<uint8_t>> expected;
  {
    const ScopedEnv env("ANYDML_IMPLEMENTATION", "cpu.reference");
    DmlHarness cpu(CpuDevice().Get(), DML_CREATE_DEVICE_FLAG_NONE);
    expected = run(cpu);
  }
  auto* d3d = h().d3d();
  OnAllThreads([&](int) {
    try {
      DmlHarness mine(d3d, DML_CREATE_DEVICE_FLAG_NONE);
      for (int round = 0; round < 3; ++round) EXPECT_EQ(run(mine), expected);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  });
}

TEST_F(ThreadsTest, RemovalWhileOthersWork) {
  auto* device = h().dml();
  const TopK desc({1, 1, 3, 4}, 3, 2);
  const DML_OPERATOR_DESC operator_desc = {DML_OPERATOR_TOP_K1, &desc.desc};
  OnAllThreads([&](int index) {
    for (int round = 0; round < 50; ++round) {
      if (index == 0 && round == 25) h().recorder()->RecordDispatch(nullptr, nullptr, nullptr);
      ComPtr<IDMLOperator> op;
      const HRESULT result = device->CreateOperator(&operator_desc, IID_PPV_ARGS(&op));
      EXPECT_TRUE(result == S_OK || result == DXGI_ERROR_DEVICE_REMOVED);
    }
  });
  ExpectRemoved(device, E_INVALIDARG, "commandList is null");
}

// One thread releases a bound buffer while another records a dispatch on it, or executes one with volatile
// descriptors. This is an error: the dispatch is refused or comes first, and freed memory is not used.
TEST_F(ThreadsTest, BoundBufferIsReleasedMeanwhile) {
  for (int round = 0; round < 40; ++round) {
    const bool executed = round % 2 != 0;
    MakeHarness(DML_CREATE_DEVICE_FLAG_NONE);
    const Identity op({1, 1, 1, 4});
    auto compiled = h().Compile(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &op.desc,
                                executed ? DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE : DML_EXECUTION_FLAG_NONE);
    h().Initialize(compiled.Get());
    auto input = h().Upload(std::vector<float>{1, 2, 3, 4}), output = h().CreateBuffer(16);
    auto table = h().CreateTable(compiled.Get());
    const Bindings inputs({{input.Get()}}), outputs({{output.Get()}});
    table->BindInputs(inputs.count(), inputs.data());
    table->BindOutputs(outputs.count(), outputs.data());
    const auto record = [&] { h().recorder()->RecordDispatch(h().list(), compiled.Get(), table.Get()); };
    if (executed) record();
    std::atomic<int> ready{0};
    const auto meet = [&ready] {
      for (++ready; ready < 2;) std::this_thread::yield();
    };
    std::thread other([&] {
      meet();
      input.Reset();
    });
    meet();
    if (!executed) record();
    try {
      h().CloseAndExecute();
      h().Wait();
    } catch (const std::exception&) {  // the device was removed
    }
    other.join();
    if (h().dml()->GetDeviceRemovedReason() == S_OK) {
      h().Reopen();
      EXPECT_EQ(h().Download<float>(output.Get(), 4), (std::vector<float>{1, 2, 3, 4}));
    } else {
      EXPECT_NE(LastError(), "");
    }
  }
}

// Two initializations race on two queues: exactly one succeeds, the device is removed.
TEST_F(ThreadsTest, InitialisationRace) {
  const TopK desc({1, 1, 3, 4}, 3, 2);
  auto compiled = h().Compile(DML_OPERATOR_TOP_K1, &desc.desc);
  IDMLCompiledOperator* target = compiled.Get();
  std::vector<std::unique_ptr<DmlHarness>> queues;
  std::vector<ComPtr<IDMLOperatorInitializer>> initializers(2);
  for (auto& initializer : initializers) {
    queues.push_back(std::make_unique<DmlHarness>(h().d3d(), DML_CREATE_DEVICE_FLAG_NONE));
    Check(h().dml()->CreateOperatorInitializer(1, &target, IID_PPV_ARGS(&initializer)), "initializer");
    const DML_BINDING_TABLE_DESC table_desc = queues.back()->NextTableDesc(initializer.Get());
    ComPtr<IDMLBindingTable> table;
    Check(h().dml()->CreateBindingTable(&table_desc, IID_PPV_ARGS(&table)), "CreateBindingTable");
    h().recorder()->RecordDispatch(queues.back()->list(), initializer.Get(), table.Get());
  }
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK);
  for (auto& queue : queues) queue->CloseAndExecute();
  for (auto& queue : queues) queue->Wait();
  ExpectRemoved(h().dml(), DXGI_ERROR_INVALID_CALL, "initialised twice");
}

}  // namespace
}  // namespace anydml::test
