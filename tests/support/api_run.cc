#include "support/api_run.h"

#include <cstdlib>
#include <memory>
#include <optional>

#include <anydml.h>
#include <gtest/gtest.h>

#include "anydml/c_desc.h"
#include "common/scoped_variable.h"
#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

using test::Bound;
using test::Check;
using test::ComPtr;
using test::DmlHarness;

// A tensor's memory: guarded on the CPU. A GPU cannot reach such pages and has a buffer of its own.
class Operand {
 public:
  Operand(DmlHarness& harness, const Bytes& content, bool at_end) : harness_(harness), size_(content.size()) {
    if (test::AdapterOf(harness.d3d()) != "cpu") {
      buffer_ = harness.Upload(content);
      return;
    }
    memory_ = std::make_unique<GuardedBuffer>(content, at_end);
    Check(AnyDmlCreateBufferFromMemory(harness.d3d(), memory_->data(), size_, nullptr, nullptr, &buffer_),
          "AnyDmlCreateBufferFromMemory");
  }

  Bound bound() const { return {buffer_.Get()}; }
  Bytes Content() {
    if (!memory_) return harness_.Download(buffer_.Get(), size_);
    EXPECT_TRUE(memory_->GuardsIntact());
    return memory_->content();
  }

 private:
  DmlHarness& harness_;
  const size_t size_;
  std::unique_ptr<GuardedBuffer> memory_;
  ComPtr<ID3D12Resource> buffer_;  // goes before its memory
};

// Null when an implementation is forced that does not fit.
ComPtr<IDMLCompiledOperator> Compile(DmlHarness& harness, const OperatorDesc& desc, bool forced) {
  const tools::CDesc c_desc(desc);
  const auto op = harness.CreateOperator(c_desc.get().Type, c_desc.get().Desc);
  ComPtr<IDMLCompiledOperator> compiled;
  const HRESULT result =
      harness.dml()->CompileOperator(op.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled));
  if (forced && result == DXGI_ERROR_UNSUPPORTED) return nullptr;
  Check(result, "CompileOperator");
  return compiled;
}

ComPtr<ID3D12InfoQueue> InfoQueueOf(ID3D12Device* device) {
  ComPtr<ID3D12InfoQueue> queue;
  Check(device->QueryInterface(IID_PPV_ARGS(&queue)), "QueryInterface(ID3D12InfoQueue)");
  return queue;
}

}  // namespace

std::string BackendUnderTest() {
  const char* const backend = std::getenv("ANYDML_TEST_BACKEND");
  return backend != nullptr ? backend : "cpu";
}

std::vector<std::string> ImplementationsUnderTest(const Operator& op) {
  std::vector<std::string> names;
  for (const std::string name : op.implementations) {
    if (name.starts_with(BackendUnderTest() + ".")) names.push_back(name);
  }
  return names;
}

void EnableDebugLayer() {
  ComPtr<ID3D12Debug> debug;
  Check(D3D12GetDebugInterface(IID_PPV_ARGS(&debug)), "D3D12GetDebugInterface");
  debug->EnableDebugLayer();
}

ApiResult RunThroughApi(DmlHarness& given, const Problem& problem, const std::string& implementation) {
  ApiResult result;
  std::optional<DmlHarness> forced;  // a DirectML device of its own: it reads the variable when it is made
  if (!implementation.empty()) {
    const tools::ScopedVariable variable("ANYDML_IMPLEMENTATION", implementation);
    forced.emplace(given.d3d(), given.queue());
  }
  DmlHarness& harness = forced ? *forced : given;
  const auto info_queue = InfoQueueOf(harness.d3d());
  info_queue->SetMuteDebugOutput(TRUE);
  const auto op = Compile(harness, problem.desc, forced.has_value());
  info_queue->ClearStoredMessages();  // why it does not fit
  if (!op) return result;
  result.implementation = AnyDmlGetImplementation(op.Get());
  harness.Initialize(op.Get());
  static bool at_end = false;  // turn about
  at_end = !at_end;
  std::vector<std::unique_ptr<Operand>> inputs, outputs;
  std::vector<Bound> input_bounds, output_bounds;
  for (const Bytes& content : problem.inputs) {
    inputs.push_back(std::make_unique<Operand>(harness, content, at_end));
    input_bounds.push_back(inputs.back()->bound());
  }
  for (const TensorDesc* tensor : problem.desc.outputs()) {
    const bool in_place = problem.in_place && outputs.empty();
    outputs.push_back(in_place
                          ? std::move(inputs[0])
                          : std::make_unique<Operand>(harness, Bytes(tensor->total_bytes, kGap), at_end));
    output_bounds.push_back(outputs.back()->bound());
  }
  harness.Dispatch(op.Get(), input_bounds, output_bounds);
  harness.ReuseDescriptors();
  Check(harness.dml()->GetDeviceRemovedReason(), "GetDeviceRemovedReason");
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]) {
      EXPECT_TRUE(inputs[i]->Content() == problem.inputs[i])
          << result.implementation << " wrote to input " << i << " of " << problem.name;
    }
  }
  for (const auto& output : outputs) result.outputs.push_back(output->Content());
  result.messages = Messages(harness.d3d());
  info_queue->ClearStoredMessages();
  return result;
}

}  // namespace anydml::testing
