// Models that run on the device under test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onnx/run/session.h"
#include "support/onnx_models.h"

namespace anydml::onnx {

class OnnxRun : public testing::Test {
 protected:
  void SetUp() override {
    client::SessionOptions options;
    const char* const backend = std::getenv("ANYDML_TEST_BACKEND");
    options.adapter = backend != nullptr ? backend : "cpu";
    ASSERT_EQ(client::Session::Create(options, &device_).message(), "");
  }

  void Load(ModelMaker maker) {
    auto model = std::make_unique<Model>(std::move(maker.model));
    ASSERT_EQ(ModelSession::Create(std::move(model), device_.get(), &session_).message(), "");
  }
  // The only output, or the error message.
  std::vector<double> Run(const std::map<std::string, Tensor>& inputs) {
    std::vector<NamedResult> results;
    const Status status = session_->Run(inputs, &results);
    EXPECT_EQ(status.message(), "");
    if (!status.ok()) return {};
    shape_ = results[0].tensor.shape;
    return ToDoubles(results[0].tensor);
  }
  // Output number i.
  std::vector<double> Output(const std::map<std::string, Tensor>& inputs, size_t i) {
    std::vector<NamedResult> results;
    EXPECT_EQ(session_->Run(inputs, &results).message(), "");
    if (i >= results.size()) return {};
    shape_ = results[i].tensor.shape;
    return ToDoubles(results[i].tensor);
  }
  std::string Failure(const std::map<std::string, Tensor>& inputs) {
    std::vector<NamedResult> results;
    return session_->Run(inputs, &results).message();
  }

  std::unique_ptr<client::Session> device_;
  std::unique_ptr<ModelSession> session_;
  Shape shape_;
};

using Numbers = std::vector<double>;

}  // namespace anydml::onnx
