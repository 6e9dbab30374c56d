// The plugin in onnxruntime: its results for models, against those of onnxruntime's own CPU provider.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "onnx/file/write_model.h"
#include "ort/plugin_fixture_for_tests.h"

namespace anydml::ort {
namespace {

using onnx::ElementType;
using onnx::Floats;
using onnx::Ints;
using onnx::Tensor;

class OrtPlugin : public PluginTest {};

ModelMaker Layer() {
  return ModelMaker(17)
      .Input("x", ElementType::kFloat, {-1, 2})
      .Weight("w", Floats({2, 2}, {1, -1, 2, 0.5}))
      .Weight("b", Floats({2}, {1, 1}))
      .Node("MatMul", {"x", "w"}, {"y"})
      .Node("Add", {"y", "b"}, {"s"})
      .Node("Tanh", {"s"}, {"z"})
      .Output("z");
}

TEST_P(OrtPlugin, HasADeviceForEveryAdapter) {
  std::map<std::string, const OrtEpDevice*> devices;
  ASSERT_EQ(runtime_->Devices(&devices).message(), "");
  EXPECT_TRUE(devices.contains("cpu host"));
  EXPECT_TRUE(devices.contains(device_));
}

TEST_P(OrtPlugin, RunsAWholeModelForAnySizes) {
  Load(Layer(), kAllOfIt);
  Compare({{"x", Floats({1, 2}, {1, 1})}});
  Compare({{"x", Floats({3, 2}, {1, 1, 0, -1, 0.25, 7})}});
  Compare({{"x", Floats({1, 2}, {0, 0})}});
  Compare({{"x", Floats({0, 2}, {})}});
}

TEST_P(OrtPlugin, LeavesNodesInTheMiddleToOthers) {
  const ModelMaker maker = ModelMaker(17)
                               .Input("x", ElementType::kFloat, {-1})
                               .Node("Relu", {"x"}, {"a"})
                               .Node("NonZero", {"a"}, {"at"})
                               .Node("Transpose", {"at"}, {"rows"})
                               .Node("GatherND", {"a", "rows"}, {"g"})
                               .Node("Exp", {"g"}, {"y"})
                               .Node("Sigmoid", {"a"}, {"z"})
                               .Output("y")
                               .Output("z")
                               .Output("at", ElementType::kInt64);
  Load(maker);
  Compare({{"x", Floats({4}, {-1, 2, 0, 3})}});
  Compare({{"x", Floats({2}, {-1, -2})}});
  EXPECT_NE(WhyNotLoaded(maker, {}, kAllOfIt), "");
}

TEST_P(OrtPlugin, SizesAreComputedInTheGroup) {
  Load(ModelMaker(17)
           .Input("x", ElementType::kFloat, {-1, -1, 2})
           .Weight("zero", Ints({1}, {0}))
           .Weight("rest", Ints({1}, {-1}))
           .Node("Shape", {"x"}, {"shape"})
           .Node("Gather", {"shape", "zero"}, {"batch"}, onnx::IntAttribute("axis", 0))
           .Node("Concat", {"batch", "rest"}, {"wanted"}, onnx::IntAttribute("axis", 0))
           .Node("Reshape", {"x", "wanted"}, {"y"})
           .Node("Softmax", {"y"}, {"z"})
           .Output("z"),
       kAllOfIt);
  Compare({{"x", Floats({1, 2, 2}, {1, 2, 3, 4})}});
  Compare({{"x", Floats({2, 1, 2}, {1, 2, 3, 4})}});
}

TEST_P(OrtPlugin, ComputesInBranches) {
  const auto branch = [](const std::string& type, const std::string& name) {
    onnx::GraphProto graph = ModelMaker(17)
                                 .Node(type, {"h", "w"}, {name})
                                 .Node("Exp", {name}, {name + "2"})
                                 .Output(name + "2")
                                 .model.graph;
    graph.name = name;
    return graph;
  };
  LoadFile(ModelMaker(17)
               .Input("x", ElementType::kFloat, {2})
               .Input("c", ElementType::kBool, {})
               .Weight("w", Floats({2}, {0.5, 2}))
               .Node("Neg", {"x"}, {"h"})
               .Node("If", {"c"}, {"y"}, onnx::GraphAttribute("then_branch", branch("Add", "t")),
                     onnx::GraphAttribute("else_branch", branch("Mul", "e")))
               .Node("Relu", {"y"}, {"z"})
               .Output("z"));
  for (const int64_t condition : {0, 1}) {
    Compare({{"x", Floats({2}, {1, 2})}, {"c", onnx::Typed(ElementType::kBool, {}, {condition})}});
  }
}

TEST_P(OrtPlugin, ComputesInLoops) {
  onnx::GraphProto body = ModelMaker(17)
                              .Input("i", ElementType::kInt64, {})
                              .Input("go", ElementType::kBool, {})
                              .Input("state", ElementType::kFloat, {2})
                              .Node("Mul", {"state", "w"}, {"scaled"})
                              .Node("Add", {"scaled", "h"}, {"sum"})
                              .Node("Tanh", {"sum"}, {"next"})
                              .Node("Identity", {"go"}, {"on"})
                              .Output("on", ElementType::kBool)
                              .Output("next")
                              .model.graph;
  body.name = "body";
  LoadFile(ModelMaker(17)
               .Input("x", ElementType::kFloat, {2})
               .Input("n", ElementType::kInt64, {})
               .Weight("w", Floats({2}, {0.5, 2}))
               .Node("Neg", {"x"}, {"h"})
               .Node("Loop", {"n", "", "x"}, {"y"}, onnx::GraphAttribute("body", body))
               .Node("Exp", {"y"}, {"z"})
               .Output("z"));
  for (const int64_t count : {0, 1, 5}) Compare({{"x", Floats({2}, {1, -2})}, {"n", Ints({}, {count})}});
}

// onnxruntime computes it: it inlines the function, including the nodes of its body.
TEST_P(OrtPlugin, LeavesBodiesOfFunctionsToOthers) {
  onnx::GraphProto body = ModelMaker(17)
                              .Input("item", ElementType::kFloat, {2})
                              .Node("Mul", {"item", "w"}, {"scaled"})
                              .Node("Tanh", {"scaled"}, {"out"})
                              .Output("out")
                              .model.graph;
  body.name = "body";
  Load(ModelMaker(17)
           .Input("x", ElementType::kFloat, {2})
           .Weight("w", Floats({2}, {0.5, 2}))
           .Weight("zero", Ints({}, {0}))
           .Node("Neg", {"x"}, {"h"})
           .Node("SequenceConstruct", {"x", "h"}, {"items"})
           .Node("SequenceMap", {"items"}, {"mapped"}, onnx::GraphAttribute("body", body))
           .Node("SequenceAt", {"mapped", "zero"}, {"y"})
           .Node("Exp", {"y"}, {"z"})
           .Output("z"));
  Compare({{"x", Floats({2}, {1, -2})}});
}

// onnxruntime names the outer values of a body for one level; for deeper levels the model file does.
TEST_P(OrtPlugin, LeavesWhatIsDeepInBodiesOfFunctionsToOthers) {
  const auto branch = [](const std::string& type) {
    onnx::GraphProto graph = ModelMaker(17)
                                 .Node(type, {"item", "w"}, {type + "1"})
                                 .Node("Tanh", {type + "1"}, {type})
                                 .Output(type)
                                 .model.graph;
    graph.name = type;
    return graph;
  };
  onnx::GraphProto body = ModelMaker(17)
                              .Input("item", ElementType::kFloat, {2})
                              .Node("If", {"c"}, {"out"}, onnx::GraphAttribute("then_branch", branch("Add")),
                                    onnx::GraphAttribute("else_branch", branch("Mul")))
                              .Output("out")
                              .model.graph;
  body.name = "body";
  const ModelMaker maker = ModelMaker(17)
                               .Input("x", ElementType::kFloat, {2})
                               .Input("c", ElementType::kBool, {})
                               .Weight("w", Floats({2}, {0.5, 2}))
                               .Weight("zero", Ints({}, {0}))
                               .Node("Neg", {"x"}, {"h"})
                               .Node("SequenceConstruct", {"x", "h"}, {"items"})
                               .Node("SequenceMap", {"items"}, {"mapped"}, onnx::GraphAttribute("body", body))
                               .Node("SequenceAt", {"mapped", "zero"}, {"y"})
                               .Node("Exp", {"y"}, {"z"})
                               .Output("z");
  for (const bool in_file : {true, false}) {
    in_file ? LoadFile(maker) : Load(maker);
    for (const int64_t condition : {0, 1})
      Compare({{"x", Floats({2}, {1, -2})}, {"c", onnx::Typed(ElementType::kBool, {}, {condition})}});
  }
}

TEST_P(OrtPlugin, TakesEveryTypeAndScalars) {
  Load(ModelMaker(17)
           .Input("h", ElementType::kFloat16, {2, 2})
           .Input("i", ElementType::kInt64, {2})
           .Input("s", ElementType::kFloat, {})
           .Weight("scale", Floats({}, {0.5}))
           .Weight("point", onnx::Typed(ElementType::kUInt8, {}, {128}))
           .Node("Cast", {"h"}, {"f"}, onnx::IntAttribute("to", 1))
           .Node("Mul", {"f", "s"}, {"m"})
           .Node("QuantizeLinear", {"m", "scale", "point"}, {"q"})
           .Node("Greater", {"m", "scale"}, {"g"})
           .Node("ArgMax", {"m"}, {"at"}, onnx::IntAttribute("axis", 1), onnx::IntAttribute("keepdims", 0))
           .Node("Add", {"at", "i"}, {"n"})
           .Node("ReduceSum", {"m"}, {"total"}, onnx::IntAttribute("keepdims", 0))
           .Output("q", ElementType::kUInt8)
           .Output("g", ElementType::kBool)
           .Output("n", ElementType::kInt64)
           .Output("total"),
       kAllOfIt);
  Compare({{"h", onnx::FromDoubles(ElementType::kFloat16, {2, 2}, std::vector<double>{1, 2, -3, 0.25})},
           {"i", Ints({2}, {10, -20})},
           {"s", Floats({}, {2})}});
}

TEST_P(OrtPlugin, SeveralThreadsAndSessionsRunAtTheSameTime) {
  Load(Layer(), kAllOfIt);
  std::unique_ptr<RuntimeSession> other;
  ASSERT_EQ(runtime_->Load(Layer().model, device_, {}, {}, &other).message(), "");
  const auto run = [](const RuntimeSession& session, double value, std::string* failure) {
    for (int i = 0; i < 30 && failure->empty(); ++i) {
      Results results;
      const std::vector<double> row{value, static_cast<double>(i % 3)};
      std::vector<double> input;
      for (int k = 0; k <= i % 4; ++k) input.insert(input.end(), row.begin(), row.end());
      const Status status = session.Run({{"x", Floats({i % 4 + 1, 2}, input)}}, &results);
      if (!status.ok()) *failure = status.message();
      const double expected = std::tanh(row[0] + 2 * row[1] + 1);
      if (status.ok() &&
          std::abs(ToDoubles(results[0]).back() - std::tanh(-row[0] + 0.5 * row[1] + 1)) > 1e-5)
        *failure = "another thread's numbers";
      if (status.ok() && std::abs(ToDoubles(results[0])[0] - expected) > 1e-5)
        *failure = "another thread's numbers";
    }
  };
  std::string failures[3];
  std::thread first(run, std::cref(*session_), 0.25, &failures[0]);
  std::thread second(run, std::cref(*session_), -1.5, &failures[1]);
  std::thread third(run, std::cref(*other), 0.75, &failures[2]);
  first.join();
  second.join();
  third.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST_P(OrtPlugin, TensorsStayOnTheDevice) {
  std::map<std::string, const OrtEpDevice*> devices;
  ASSERT_EQ(runtime_->Devices(&devices).message(), "");
  const ModelMaker maker = ModelMaker(17)
                               .Input("x", ElementType::kFloat, {-1})
                               .Weight("w", Floats({1}, {2}))
                               .Node("Mul", {"x", "w"}, {"m"})
                               .Node("Tanh", {"m"}, {"y"})
                               .Output("y");
  ASSERT_EQ(WhyNotLoaded(maker, {}, kAllOfIt), "");
  Tensor result;
  const Status status =
      session_->RunOnDevice(runtime_->env(), devices[device_], "x", Floats({3}, {0.5, 0, -1}), 3, &result);
  if (status.code() == Code::kUnsupported) GTEST_SKIP() << status.message();
  ASSERT_EQ(status.message(), "");
  const std::vector<double> numbers = ToDoubles(result);
  ASSERT_EQ(numbers.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const double x = i == 0 ? 0.5 : i == 1 ? 0 : -1;
    EXPECT_NEAR(numbers[i], std::tanh(2 * std::tanh(2 * std::tanh(2 * x))), 1e-5);
  }
}

TEST_P(OrtPlugin, FailuresAreSentences) {
  EXPECT_NE(WhyNotLoaded(Layer(), {{"adaptor", "cpu"}}).find("AnyDML: there is no option \"adaptor\""),
            std::string::npos);
  EXPECT_NE(WhyNotLoaded(Layer(), {{"adapter", "tpu"}}).find("tpu"), std::string::npos);
  EXPECT_NE(WhyNotLoaded(Layer(), {{"feature_level", "7.5"}}).find("7.5"), std::string::npos);
  Load(ModelMaker(17)
           .Input("x", ElementType::kFloat, {-1})
           .Input("y", ElementType::kFloat, {-1})
           .Node("Add", {"x", "y"}, {"z"})
           .Output("z"),
       kAllOfIt);
  Results results;
  const std::string sentence =
      session_->Run({{"x", Floats({2}, {1, 2})}, {"y", Floats({3}, {1, 2, 3})}}, &results).message();
  EXPECT_NE(sentence.find("Add-17"), std::string::npos) << sentence;
  Compare({{"x", Floats({2}, {1, 2})}, {"y", Floats({2}, {3, 4})}});  // and the next run succeeds
}

TEST_P(OrtPlugin, OptionsChooseAdapterAndFeatureLevel) {
  ASSERT_EQ(WhyNotLoaded(Layer(), {{"adapter", adapter_}, {"feature_level", "5.0"}}, kAllOfIt), "");
  Results results;
  EXPECT_EQ(session_->Run({{"x", Floats({1, 2}, {1, 1})}}, &results).message(), "");
  // GELU came with feature level 5.1: below it, onnxruntime computes it.
  const ModelMaker gelu =
      ModelMaker(20).Input("x", ElementType::kFloat, {2}).Node("Gelu", {"x"}, {"y"}).Output("y");
  EXPECT_EQ(WhyNotLoaded(gelu, {}, kAllOfIt), "");
  EXPECT_NE(WhyNotLoaded(gelu, {{"feature_level", "5.0"}}, kAllOfIt), "");
  EXPECT_EQ(WhyNotLoaded(gelu, {{"feature_level", "5.0"}}), "");
}

TEST_P(OrtPlugin, HalfPrecisionIsAnOption) {
  EXPECT_NE(WhyNotLoaded(Layer(), {{"half_precision", "yes"}}).find("half_precision is \"yes\""),
            std::string::npos);
  Results results;
  for (const char* const value : {"0", "1"}) {
    ASSERT_EQ(WhyNotLoaded(Layer(), {{"half_precision", value}}, kAllOfIt), "");
    ASSERT_EQ(session_->Run({{"x", Floats({1, 2}, {1, 1})}}, &results).message(), "");
    EXPECT_NEAR(ToDoubles(results[0])[0], std::tanh(4.0), 1e-5);
  }
}

// A node whose inputs have unknown rank is claimed if DirectML supports its type at some rank.
TEST_P(OrtPlugin, RanksThatAreNotKnown) {
  const auto tanh = [](ElementType type) {
    ModelMaker maker = ModelMaker(17).Input("x", type, {}).Node("Tanh", {"x"}, {"y"}).Output("y", type);
    maker.model.graph.inputs[0].has_shape = false;
    return maker;
  };
  Load(tanh(ElementType::kFloat), kAllOfIt);
  Compare({{"x", Floats({2, 3}, {1, 2, 3, -1, -2, -3})}});
  Compare({{"x", Floats({}, {0.5})}});
  EXPECT_NE(WhyNotLoaded(tanh(ElementType::kDouble), {}, kAllOfIt), "");
  Load(tanh(ElementType::kDouble));
  const double numbers[] = {0.5, -1};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(numbers));
  Compare({{"x", onnx::MakeTensor(ElementType::kDouble, {2}, {bytes.begin(), bytes.end()})}});
}

// Protocol buffer fields: an embedded message, and a number.
std::string Message(char field, const std::string& bytes) {
  return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string Number(char field, char value) { return {static_cast<char>(field << 3), value}; }

TEST_P(OrtPlugin, WeightsBesideTheModelAreMapped) {
  const auto entry = [](const std::string& key, const std::string& value) {
    return Message(13, Message(1, key) + Message(2, value));
  };
  // A TensorProto of 2 floats. Appended to a model, it merges with that model's graph.
  const std::string tensor = Number(1, 2) + Number(2, 1) + Message(8, "w") +
                             entry("location", "weights.bin") + entry("offset", "64") + entry("length", "8") +
                             Number(14, 1);
  const std::string model = onnx::WriteModel(ModelMaker(17)
                                                 .Input("x", ElementType::kFloat, {2})
                                                 .Node("Mul", {"x", "w"}, {"m"})
                                                 .Node("Exp", {"m"}, {"y"})
                                                 .Output("y")
                                                 .model) +
                            Message(7, Message(5, tensor));
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("ort_plugin_test." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const Tensor weights = Floats({2}, {0.5, -3});
  std::ofstream(folder / "model.onnx", std::ios::binary) << model;
  std::ofstream(folder / "weights.bin", std::ios::binary)
      << std::string(64, 'x')
      << std::string(reinterpret_cast<const char*>(weights.data.data()), weights.data.size());
  const std::string path = (folder / "model.onnx").string();
  EXPECT_EQ(runtime_->LoadFile(path, {"y"}, device_, {}, kAllOfIt, &session_).message(), "");
  std::stringstream mappings;
  mappings << std::ifstream("/proc/self/maps").rdbuf();
  EXPECT_NE(mappings.str().find((folder / "weights.bin").string()), std::string::npos);
  EXPECT_EQ(runtime_->LoadFile(path, {"y"}, "", {}, {}, &expected_).message(), "");
  if (session_ && expected_) Compare({{"x", Floats({2}, {1, 2})}});
  std::filesystem::remove_all(folder);
}

TEST_P(OrtPlugin, IsRegisteredAgain) {
  EXPECT_EQ(runtime_->Unregister("plugin").message(), "");
  ASSERT_EQ(runtime_->Register("plugin", ANYDML_ORT_PLUGIN).message(), "");
  EXPECT_NE(runtime_->Register("plugin", ANYDML_ORT_PLUGIN).message(), "");
  Load(Layer(), kAllOfIt);
  Compare({{"x", Floats({1, 2}, {1, 1})}});
}

INSTANTIATE_TEST_SUITE_P(, OrtPlugin, testing::Values("host", "device"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace anydml::ort
