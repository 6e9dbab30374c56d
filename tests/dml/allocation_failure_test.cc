// Memory runs out: every allocation of a complete run, from the device's creation to the read-back, fails
// once. The same for runs of every family of operators, a graph and an ONNX model. The run must report
// E_OUTOFMEMORY and a message, or remove the device for that reason; nothing may leak, no exception may
// escape, and a device that was not removed must keep working.
#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <stdexcept>

#include "client/c_desc.h"
#include "dml/dml_test.h"
#include "onnx/run/session.h"
#include "support/api_run.h"
#include "support/cases.h"
#include "support/failing_allocations.h"
#include "support/onnx_models.h"
#include "support/random_graph.h"

namespace anydml::testing {

void PrintTo(const CaseFamily& family, std::ostream* out) { *out << family.name; }

}  // namespace anydml::testing

namespace anydml::test {
namespace {

using testing::Bytes;
using Results = std::vector<Bytes>;

constexpr int64_t kNever = int64_t{1} << 40;
constexpr int kPoints = 120;  // of a family's run

// How many allocations of a run fail: all; or, if there is little time or devices take long to be created,
// some that are evenly spread.
int64_t Points(int some) {
  const bool all = testing::BackendUnderTest() == "cpu" && testing::TestIterations(100) >= 100;
  return all ? INT64_MAX : testing::TestIterations(some);
}

// Which of `count` allocations fail: some of them, or all.
std::vector<int64_t> SomeOf(int64_t count, int64_t points) {
  std::vector<int64_t> which;
  const int64_t step = std::max<int64_t>(1, count / std::max<int64_t>(1, points));
  // An offset, so that not always the same allocations of every step fail.
  for (int64_t i = 0; i * step < count; ++i) which.push_back(i * step + i % step);
  return which;
}

class AllocationFailureTest : public ::testing::Test {
 protected:
  using Run = std::function<Results(DmlHarness&)>;
  using Start = std::function<std::unique_ptr<DmlHarness>()>;

  void SetUp() override {
    if (!AllocationsAreSeen()) {
      GTEST_SKIP()
          << "libanydml.so was linked with a static libstdc++: its allocations cannot be made to fail";
    }
  }
  void TearDown() override { EXPECT_EQ(AnyDmlGetLiveObjectCount(), 0u); }

  static std::unique_ptr<DmlHarness> NewHarness() { return std::make_unique<DmlHarness>(); }

  // Repeats a run and lets one of its allocations fail each time, on the harness that `start` returns, or, if
  // that is null, on one that is created while the failure is pending. Unless the device is removed, the run
  // is repeated on it.
  void FailAllocations(int64_t points, const Start& start, const Run& run) {
    Results expected;
    int64_t count = 0;
    for (int i = 0; i < 2; ++i) {  // objects that are made once per process exist after the first run
      std::unique_ptr<DmlHarness> harness = start();
      const AllocationFailure failure(kNever);
      if (!harness) harness = NewHarness();
      expected = run(*harness);
      count = failure.allocations();
    }
    EXPECT_GT(count, 50);  // otherwise they are not counted
    RecordProperty("allocations", static_cast<int>(count));
    int happened = 0;
    for (const int64_t which : SomeOf(count, points)) {
      SCOPED_TRACE(::testing::Message() << "allocation " << which << " of " << count << " fails");
      const int64_t live = LiveAllocations();
      happened += FailAllocation(which, start, run, expected);
      // The first failure of all must leave its message.
      if (happened > 1) {
        EXPECT_EQ(LiveAllocations(), live) << "something leaks";
      }
      if (HasFailure()) return;
    }
    EXPECT_GT(happened, 0);
  }

 private:
  // Returns whether the allocation was reached.
  static bool FailAllocation(int64_t which, const Start& start, const Run& run, const Results& expected) {
    std::unique_ptr<DmlHarness> harness = start();
    std::string error;
    bool happened = false;
    {
      const AllocationFailure failure(which);
      try {
        if (!harness) harness = NewHarness();
        EXPECT_EQ(run(*harness), expected);
      } catch (const std::runtime_error& thrown) {  // the harness's; no other exception may escape
        error = thrown.what();
      }
      happened = failure.happened();
    }
    if (!harness || !ExpectRemovedForMemory(*harness)) {
      EXPECT_TRUE(error.empty() || error.find("returned 0x8007000E: ") != std::string::npos) << error;
      // A half-recorded list is not continued.
      if (harness) {
        DmlHarness again(harness->d3d(), DML_CREATE_DEVICE_FLAG_NONE);
        EXPECT_EQ(run(again), expected);
      }
    }
    return happened;
  }

  // Whether one of the devices was removed.
  static bool ExpectRemovedForMemory(DmlHarness& harness) {
    bool removed = false;
    for (const HRESULT reason :
         {harness.dml()->GetDeviceRemovedReason(), harness.d3d()->GetDeviceRemovedReason()}) {
      EXPECT_TRUE(reason == S_OK || reason == E_OUTOFMEMORY) << std::hex << reason;
      removed |= reason != S_OK;
    }
    return removed;
  }
};

// With an owned input there is something to initialize.
Results FindBest(DmlHarness& harness) {
  const TopK op({1, 8}, 1, 3, DML_AXIS_DIRECTION_DECREASING, DML_TENSOR_FLAG_OWNED_BY_DML);
  const std::vector<float> input = {3, 1, 2, 5, 4, 6, 0, 7};
  return harness.Run(DML_OPERATOR_TOP_K1, &op.desc, {ToBytes(input)}, {op.values.bytes(), op.indices.bytes()},
                     {true});
}

TEST_F(AllocationFailureTest, InAWholeRun) {
  FailAllocations(
      INT64_MAX, [] { return nullptr; }, FindBest);
}

TEST_F(AllocationFailureTest, OnADeviceThatGoesOn) { FailAllocations(INT64_MAX, NewHarness, FindBest); }

class AllocationFailureOf : public AllocationFailureTest,
                            public ::testing::WithParamInterface<testing::CaseFamily> {};

TEST_P(AllocationFailureOf, OneOperatorOfTheFamily) {
  const testing::CaseFamily& family = GetParam();
  const testing::Case problem = testing::MakeCase(family, family.operators.front(), testing::TestSeed());
  SCOPED_TRACE(testing::Describe(problem));
  const client::CDesc desc(problem.desc);
  std::vector<uint64_t> output_bytes;
  for (const TensorDesc* tensor : problem.desc.outputs()) {
    output_bytes.push_back(tensor == nullptr ? 0 : tensor->total_bytes);
  }
  FailAllocations(Points(kPoints), NewHarness, [&](DmlHarness& harness) {
    return harness.Run(desc.get().Type, desc.get().Desc, problem.inputs, output_bytes);
  });
}

INSTANTIATE_TEST_SUITE_P(Families, AllocationFailureOf,
                         ::testing::ValuesIn(testing::AllCaseFamilies().begin(),
                                             testing::AllCaseFamilies().end()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(AllocationFailureTest, OfAGraph) {
  testing::RandomGraph graph;
  for (uint64_t seed = testing::TestSeed(); graph.nodes.size() < 6; ++seed) {
    graph = testing::MakeRandomGraph(seed, testing::GraphKinds::kExact);
  }
  SCOPED_TRACE(graph.ToString());
  FailAllocations(Points(2 * kPoints), NewHarness,
                  [&](DmlHarness& harness) { return testing::RunCompiled(harness, graph); });
}

// The importer is linked into the program, so that the program's allocations in it fail, too. It reports them
// by an exception, which its callers catch at their interfaces.
class OnnxAllocationFailureTest : public AllocationFailureTest {
 protected:
  static onnx::Model MakeModel() {
    // Results whose sizes depend on data, so that the model has several parts, and work for the host.
    onnx::ModelMaker maker(17);
    maker.Input("x", onnx::ElementType::kFloat, {2, 3})
        .Weight("w", onnx::Floats({3, 2}, {1, 0, 0, 1, -1, 1}))
        .Node("MatMul", {"x", "w"}, {"product"})
        .Node("Relu", {"product"}, {"y"})
        .Node("Shape", {"y"}, {"shape"})
        .Node("Reshape", {"y", "shape"}, {"same"})
        .Node("NonZero", {"same"}, {"places"})
        .Output("places", onnx::ElementType::kInt64);
    return maker.model;
  }

  struct Sessions {
    std::unique_ptr<client::Session> device;
    std::unique_ptr<onnx::ModelSession> model;
  };

  // Everything from the device's creation to the result.
  static Status RunModel(const std::map<std::string, onnx::Tensor>& inputs, Sessions* sessions,
                         std::vector<double>* places) {
    if (sessions->device == nullptr) {
      client::SessionOptions options;
      options.adapter = "cpu";
      ANYDML_RETURN_IF_ERROR(client::Session::Create(options, &sessions->device));
    }
    if (sessions->model == nullptr) {
      ANYDML_RETURN_IF_ERROR(onnx::ModelSession::Create(std::make_unique<onnx::Model>(MakeModel()),
                                                        sessions->device.get(), &sessions->model));
    }
    std::vector<onnx::NamedResult> results;
    ANYDML_RETURN_IF_ERROR(sessions->model->Run(inputs, &results));
    *places = onnx::ToDoubles(results[0].tensor);
    return {};
  }
};

TEST_F(OnnxAllocationFailureTest, OfAModel) {
  const std::map<std::string, onnx::Tensor> inputs = {{"x", onnx::Floats({2, 3}, {1, 2, 0, -1, 5, 1})}};
  const std::vector<double> expected = {0, 0, 1, 0, 1, 1};
  int64_t count = 0;
  for (int i = 0; i < 2; ++i) {
    Sessions sessions;
    std::vector<double> places;
    const AllocationFailure failure(kNever, Whose::kProgram);
    ASSERT_EQ(RunModel(inputs, &sessions, &places).message(), "");
    ASSERT_EQ(places, expected);
    count = failure.allocations();
  }
  int happened = 0;
  const std::vector<int64_t> points = SomeOf(count, Points(4 * kPoints));
  for (const int64_t which : points) {
    SCOPED_TRACE(::testing::Message() << "allocation " << which << " of " << count << " fails");
    const int64_t live = LiveAllocations();
    {
      Sessions sessions;
      std::vector<double> places;
      std::string error;
      {
        const AllocationFailure failure(which, Whose::kProgram);
        try {
          error = RunModel(inputs, &sessions, &places).message();
        } catch (const std::bad_alloc&) {
          error = "out of memory";
        }
        happened += failure.happened();
      }
      if (error.empty()) {
        EXPECT_EQ(places, expected);
      }
      if (sessions.device == nullptr || !sessions.device->removed()) {
        EXPECT_TRUE(error.empty() || error.find("out of memory") != std::string::npos) << error;
        if (sessions.device != nullptr) sessions.device->Discard();
        EXPECT_EQ(RunModel(inputs, &sessions, &places).message(), "");
        EXPECT_EQ(places, expected);
      }
    }
    if (happened > 1) {
      EXPECT_EQ(LiveAllocations(), live) << "something leaks";
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(happened, std::ssize(points) / 2);
}

}  // namespace
}  // namespace anydml::test
