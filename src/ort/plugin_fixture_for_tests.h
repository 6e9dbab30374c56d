// The plugin in onnxruntime, in one session, and the same model without it in another one.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <anydml.h>

#include "onnx/file/write_model.h"
#include "ort/runtime_for_tests.h"
#include "support/onnx_models.h"

namespace anydml::ort {

using onnx::ModelMaker;

inline const Options kAllOfIt = {{"session.disable_cpu_ep_fallback", "1"}};

// With tensors in the host's memory, and in the device's own.
class PluginTest : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() {
    if (runtime_ == nullptr) runtime_ = Runtime::Open(&why_not_).release();  // it stays
  }
  void SetUp() override {
    if (runtime_ == nullptr) GTEST_SKIP() << why_not_;
    const char* const backend = std::getenv("ANYDML_TEST_BACKEND");
    adapter_ = backend == nullptr || std::string(backend) == "cpu" ? "cpu" : "cuda:0";
    device_ = StrCat(adapter_, " ", GetParam());
    setenv("ANYDML_ORT_DEVICE_MEMORY", "1", 1);  // for the CPU, too
    ASSERT_EQ(runtime_->Register("plugin", ANYDML_ORT_PLUGIN).message(), "");
  }
  void TearDown() override {
    session_.reset();
    expected_.reset();
    if (runtime_ == nullptr) return;
    EXPECT_EQ(runtime_->Unregister("plugin").message(), "");
    EXPECT_EQ(AnyDmlGetLiveObjectCount(), 0u);
  }

  void Load(const ModelMaker& maker, const Options& config = {}) {
    ASSERT_EQ(runtime_->Load(maker.model, device_, {}, config, &session_).message(), "");
    ASSERT_EQ(runtime_->Load(maker.model, "", {}, {}, &expected_).message(), "");
  }
  // From a file: in a model in memory the bodies of nodes are left to onnxruntime.
  void LoadFile(const ModelMaker& maker) {
    const std::filesystem::path file =
        std::filesystem::temp_directory_path() / StrCat("ort_plugin_test.", getpid(), ".onnx");
    std::ofstream(file, std::ios::binary) << onnx::WriteModel(maker.model);
    std::vector<std::string> outputs;
    for (const onnx::ValueProto& output : maker.model.graph.outputs) outputs.push_back(output.name);
    ASSERT_EQ(runtime_->LoadFile(file.string(), outputs, device_, {}, {}, &session_).message(), "");
    ASSERT_EQ(runtime_->LoadFile(file.string(), outputs, "", {}, {}, &expected_).message(), "");
    std::filesystem::remove(file);
  }
  // Both sessions give the same.
  void Compare(const Inputs& inputs) {
    Results ours, theirs;
    ASSERT_EQ(session_->Run(inputs, &ours).message(), "");
    ASSERT_EQ(expected_->Run(inputs, &theirs).message(), "");
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(ours[i].type, theirs[i].type);
      EXPECT_EQ(ours[i].shape, theirs[i].shape);
      const std::vector<double> a = ToDoubles(ours[i]), b = ToDoubles(theirs[i]);
      ASSERT_EQ(a.size(), b.size());
      for (size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-5 * (1 + std::abs(b[k]))) << k;
    }
  }
  std::string WhyNotLoaded(const ModelMaker& maker, const Options& options, const Options& config = {}) {
    return runtime_->Load(maker.model, device_, options, config, &session_).message();
  }

  static inline Runtime* runtime_ = nullptr;
  static inline std::string why_not_;
  std::string adapter_, device_;
  std::unique_ptr<RuntimeSession> session_, expected_;
};
}  // namespace anydml::ort
