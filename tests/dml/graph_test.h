// Small operators for the tests of graphs.
#pragma once

#include "dml/dml_test.h"
#include "support/graph_builder.h"

namespace anydml::test {

class GraphTest : public DmlTest {
 protected:
  static constexpr DML_TENSOR_DATA_TYPE kFloat = DML_TENSOR_DATA_TYPE_FLOAT32;

  // a + b
  ComPtr<IDMLOperator> Add(const Tensor& a, const Tensor& b, const Tensor& output) {
    const DML_ELEMENT_WISE_ADD_OPERATOR_DESC desc = {a.desc(), b.desc(), output.desc()};
    return h().CreateOperator(DML_OPERATOR_ELEMENT_WISE_ADD, &desc);
  }
  ComPtr<IDMLOperator> Add(std::vector<uint32_t> sizes, DML_TENSOR_FLAGS b_flags = DML_TENSOR_FLAG_NONE) {
    const Tensor tensor(kFloat, sizes), b(kFloat, sizes, b_flags);
    return Add(tensor, b, tensor);
  }
  // x * scale + bias
  ComPtr<IDMLOperator> Scale(const Tensor& input, const Tensor& output, float scale, float bias) {
    const DML_SCALE_BIAS scale_bias = {scale, bias};
    const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC desc = {input.desc(), output.desc(), &scale_bias};
    return h().CreateOperator(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &desc);
  }
  ComPtr<IDMLOperator> Scale(std::vector<uint32_t> sizes, float scale, float bias) {
    const Tensor tensor(kFloat, sizes);
    return Scale(tensor, tensor, scale, bias);
  }

  // Initializes and dispatches; inputs without bytes are not bound.
  std::vector<std::vector<float>> Run(IDMLCompiledOperator* compiled,
                                      const std::vector<std::vector<float>>& inputs,
                                      const std::vector<size_t>& outputs,
                                      const std::vector<bool>& owned = {}) {
    std::vector<ComPtr<ID3D12Resource>> buffers;
    std::vector<Bound> at_run, at_init, results;
    for (size_t i = 0; i < inputs.size(); ++i) {
      buffers.push_back(inputs[i].empty() ? nullptr : h().Upload(inputs[i]));
      const bool is_owned = i < owned.size() && owned[i];
      at_init.push_back(is_owned ? Bound{buffers.back().Get()} : Bound{});
      at_run.push_back(is_owned ? Bound{} : Bound{buffers.back().Get()});
    }
    for (const size_t count : outputs) {
      buffers.push_back(count == 0 ? nullptr : h().CreateBuffer(count * sizeof(float)));
      results.push_back({buffers.back().Get()});
    }
    const auto persistent = h().CreatePersistent(compiled);
    h().Initialize(compiled, persistent.Get(), at_init);
    h().Dispatch(compiled, at_run, results, persistent.Get());
    std::vector<std::vector<float>> downloads;
    for (size_t i = 0; i < outputs.size(); ++i) {
      downloads.push_back(outputs[i] == 0 ? std::vector<float>()
                                          : h().Download<float>(results[i].buffer, outputs[i]));
    }
    EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
    return downloads;
  }
};

}  // namespace anydml::test
