// Objects that sessions reuse: descriptors and staging memory.
#include "client/session.h"

#include <anydml.h>
#include <gtest/gtest.h>

#include <cstring>

namespace anydml::client {
namespace {

using Microsoft::WRL::ComPtr;

class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    const Status status = Session::Create({.adapter = "cpu"}, &session_);
    ASSERT_TRUE(status.ok()) << status.message();
  }

  // An identity of that many bytes.
  DML_OPERATOR_DESC Identity(UINT bytes) {
    size_ = bytes;
    buffer_ = {DML_TENSOR_DATA_TYPE_UINT8, DML_TENSOR_FLAG_NONE, 1, &size_, nullptr, (bytes + 3) / 4 * 4, 0};
    tensor_ = {DML_TENSOR_TYPE_BUFFER, &buffer_};
    desc_ = {&tensor_, &tensor_, nullptr};
    return {DML_OPERATOR_ELEMENT_WISE_IDENTITY, &desc_};
  }

  std::unique_ptr<Session> session_;

 private:
  UINT size_ = 0;
  DML_BUFFER_TENSOR_DESC buffer_{};
  DML_TENSOR_DESC tensor_{};
  DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC desc_{};
};

// Every heap is an object with its own identifier: a program that calls operators for weeks must create only
// few.
TEST_F(SessionTest, DispatchesShareDescriptorHeaps) {
  CompiledOperator op;
  ASSERT_TRUE(session_->Compile(Identity(4), DML_EXECUTION_FLAG_NONE, {}, &op).ok());
  const HostBuffer bytes(4, std::byte{7});
  ComPtr<ID3D12Resource> input, output;
  ASSERT_TRUE(session_->Upload(bytes, &input).ok());
  ASSERT_TRUE(session_->Allocate(4, &output).ok());
  const DML_BUFFER_BINDING inputs[] = {{input.Get(), 0, 4}}, outputs[] = {{output.Get(), 0, 4}};
  const uint64_t before = AnyDmlGetLiveObjectCount();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(session_->Record(op, inputs, outputs).ok());
  EXPECT_EQ(AnyDmlGetLiveObjectCount(), before);
  // More descriptors than a heap holds, and then from its beginning again.
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(session_->Record(op, inputs, outputs).ok());
    std::string data_error;
    ASSERT_TRUE(session_->Execute(&data_error).ok());
    EXPECT_LE(AnyDmlGetLiveObjectCount(), before);
  }
  HostBuffer result;
  ASSERT_TRUE(session_->Read(output.Get(), &result).ok());
  EXPECT_EQ(result, bytes);
}

// Tensors larger than the staging buffers, with a partial last piece.
TEST_F(SessionTest, LargeTensorsGoInParts) {
  constexpr UINT kBytes = (20u << 20) + 4;
  HostBuffer bytes(kBytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + (i >> 16));
  RunResult result;
  const uint64_t sizes[] = {kBytes};
  const Status status = session_->Run(Identity(kBytes), {bytes}, sizes, &result);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(result.outputs[0] == bytes);
}

}  // namespace
}  // namespace anydml::client
