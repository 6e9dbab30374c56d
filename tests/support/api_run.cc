#include "support/api_run.h"

#include <cstdlib>
#include <memory>
#include <optional>

#include <anydml.h>
#include <gtest/gtest.h>

#include "client/c_desc.h"
#include "client/scoped_variable.h"
#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

using test::Bound;
using test::Check;
using test::ComPtr;
using test::DmlHarness;

// A tensor's memory: guarded on the CPU. A GPU cannot access such pages and has a buffer of its own.
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
  ComPtr<ID3D12Resource> buffer_;  // destroyed before its memory
};

// Null if a forced implementation does not fit.
ComPtr<IDMLCompiledOperator> Compile(DmlHarness& harness, const OperatorDesc& desc, bool forced) {
  const client::CDesc c_desc(desc);
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
  for (const std::string name : ImplementationNames(op)) {
    if (name.starts_with(BackendUnderTest() + ".")) names.push_back(name);
  }
  return names;
}

void EnableDebugLayer() {
  ComPtr<ID3D12Debug> debug;
  Check(D3D12GetDebugInterface(IID_PPV_ARGS(&debug)), "D3D12GetDebugInterface");
  debug->EnableDebugLayer();
}

ApiResult RunThroughApi(DmlHarness& given, const Case& problem, const std::string& implementation) {
  ApiResult result;
  std::optional<DmlHarness> forced;  // a separate DirectML device, which reads the variable when it is
                                     // created
  if (!implementation.empty()) {
    const client::ScopedVariable variable("ANYDML_IMPLEMENTATION", implementation);
    forced.emplace(given.d3d(), given.queue());
  }
  DmlHarness& harness = forced ? *forced : given;
  const auto info_queue = InfoQueueOf(harness.d3d());
  info_queue->SetMuteDebugOutput(TRUE);
  const auto op = Compile(harness, problem.desc, forced.has_value());
  info_queue->ClearStoredMessages();  // why it does not fit
  if (!op) return result;
  result.implementation = AnyDmlGetImplementation(op.Get());
  static bool at_end = false;  // alternately
  at_end = !at_end;
  std::vector<std::unique_ptr<Operand>> inputs, outputs;  // null: absent
  const auto input_tensors = problem.desc.inputs();
  std::vector<Bound> owned_bounds(input_tensors.size()), input_bounds(input_tensors.size()), output_bounds;
  for (size_t i = 0; i < input_tensors.size(); ++i) {
    inputs.emplace_back();
    if (input_tensors[i] == nullptr) continue;
    inputs.back() = std::make_unique<Operand>(harness, problem.inputs[i], at_end);
    (input_tensors[i]->owned_by_dml ? owned_bounds : input_bounds)[i] = inputs.back()->bound();
  }
  for (const TensorDesc* tensor : problem.desc.outputs()) {
    outputs.emplace_back();
    output_bounds.emplace_back();
    if (tensor == nullptr) continue;
    const bool in_place = problem.in_place && outputs.size() == 1;
    outputs.back() = in_place ? std::move(inputs[0])
                              : std::make_unique<Operand>(harness, Bytes(tensor->total_bytes, kGap), at_end);
    output_bounds.back() = outputs.back()->bound();
  }
  const auto persistent = harness.CreatePersistent(op.Get());
  harness.Initialize(op.Get(), persistent.Get(), owned_bounds);
  harness.Dispatch(op.Get(), input_bounds, output_bounds, persistent.Get());
  harness.ReuseDescriptors();
  Check(harness.dml()->GetDeviceRemovedReason(), "GetDeviceRemovedReason");
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]) {
      EXPECT_TRUE(inputs[i]->Content() == problem.inputs[i])
          << result.implementation << " wrote to input " << i << " of " << Describe(problem);
    }
  }
  for (const auto& output : outputs) result.outputs.push_back(output ? output->Content() : Bytes());
  result.messages = Messages(harness.d3d());
  info_queue->ClearStoredMessages();
  return result;
}

}  // namespace anydml::testing
