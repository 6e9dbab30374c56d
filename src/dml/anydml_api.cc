// The functions of anydml.h.
#include <anydml.h>

#include <algorithm>
#include <cstring>

#include "backend/backend.h"
#include "base/report.h"
#include "com/com_object.h"
#include "com/guard.h"
#include "d3d12/interop.h"
#include "dml/compiled_operator.h"
#include "dml/immediate_run.h"
#include "kernel/part_recorder.h"

namespace {

const anydml::dml::Program* ProgramOf(IDMLCompiledOperator* op) {
  const auto* compiled = anydml::dml::ImplementationOf<anydml::dml::CompiledOperator>(op);
  return compiled != nullptr ? compiled->program().get() : nullptr;
}

const anydml::GraphStep* StepOf(IDMLCompiledOperator* op, uint32_t step) {
  const auto* program = ProgramOf(op);
  return program != nullptr && step < program->facts.steps.size() ? &program->facts.steps[step] : nullptr;
}

uint32_t PlaceOf(const anydml::GraphStep::Tensor& tensor) {
  using Home = anydml::GraphValue::Home;
  if (!tensor.present) return ANYDML_PLACE_NONE;
  switch (tensor.home) {
    case Home::kInput:
      return ANYDML_PLACE_INPUT;
    case Home::kOutput:
      return ANYDML_PLACE_OUTPUT;
    case Home::kConstant:
    case Home::kPrepared:
      return ANYDML_PLACE_CONSTANT;
    case Home::kTemporary:
      return ANYDML_PLACE_TEMPORARY;
  }
  return ANYDML_PLACE_NONE;
}

const anydml::Backend* BackendWith(uint64_t luid) {
  for (const anydml::Backend* backend : anydml::Backends()) {
    if (backend->adapter().luid == luid) return backend;
  }
  return nullptr;
}

HRESULT Fail(const char* what) {
  anydml::ReportError(anydml::StrCat("AnyDmlCreateBufferFromMemory: ", what));
  return E_INVALIDARG;
}

template <typename Body>
HRESULT OnBackend(const char* function, ID3D12Device* device, Body&& body) {
  return anydml::Guard([&]() -> HRESULT {
    anydml::d3d12::Device* const ours = anydml::d3d12::DeviceFrom(device);
    if (ours == nullptr) {
      const char* const what = device == nullptr ? "null" : "not one of ours";
      return anydml::Fail(E_INVALIDARG, anydml::StrCat(function, ": device is ", what));
    }
    const anydml::Status status = body(anydml::d3d12::BackendOf(ours));
    if (status.ok()) return S_OK;
    return anydml::Fail(anydml::ToHresult(status.code()), anydml::StrCat(function, ": ", status.message()));
  });
}

}  // namespace

extern "C" {

const char* AnyDmlGetLastErrorMessage() { return anydml::LastErrorMessage(); }

void AnyDmlClearLastError() { anydml::ClearLastErrorMessage(); }

const char* AnyDmlGetVersion() { return ANYDML_VERSION; }

const char* AnyDmlGetImplementation(IDMLCompiledOperator* op) {
  const auto* program = ProgramOf(op);
  return program != nullptr ? program->lowered.implementation.c_str() : "";
}

const char* AnyDmlExplainImplementation(IDMLCompiledOperator* op) {
  const auto* program = ProgramOf(op);
  return program != nullptr ? program->lowered.explanation.c_str() : "";
}

uint32_t AnyDmlGetStepCount(IDMLCompiledOperator* op) {
  const auto* program = ProgramOf(op);
  return program != nullptr ? static_cast<uint32_t>(program->facts.steps.size()) : 0;
}

int32_t AnyDmlGetStep(IDMLCompiledOperator* op, uint32_t step, AnyDmlStep* out) {
  const anydml::GraphStep* const found = StepOf(op, step);
  if (found == nullptr || out == nullptr) return E_INVALIDARG;
  *out = {found->name.c_str(), found->implementation.c_str(), static_cast<uint32_t>(found->inputs.size()),
          static_cast<uint32_t>(found->outputs.size())};
  return S_OK;
}

int32_t AnyDmlGetStepTensor(IDMLCompiledOperator* op, uint32_t step, uint32_t tensor, AnyDmlStepTensor* out) {
  const anydml::GraphStep* const found = StepOf(op, step);
  if (found == nullptr || out == nullptr) return E_INVALIDARG;
  const size_t inputs = found->inputs.size();
  if (tensor >= inputs + found->outputs.size()) return E_INVALIDARG;
  const auto& described = tensor < inputs ? found->inputs[tensor] : found->outputs[tensor - inputs];
  *out = {PlaceOf(described), described.index, described.bytes};
  return S_OK;
}

int32_t AnyDmlMayRunInPlace(IDMLCompiledOperator* op, uint32_t input, uint32_t output) {
  const auto* program = ProgramOf(op);
  return program != nullptr && anydml::dml::MayRunInPlace(*program, input, output) ? 1 : 0;
}

const char* AnyDmlGetAdapterId(uint64_t luid) {
  const anydml::Backend* const backend = BackendWith(luid);
  return backend != nullptr ? backend->adapter().id.c_str() : "";
}

int32_t AnyDmlGetAdapterTraits(uint64_t luid, AnyDmlAdapterTraits* traits, uint64_t bytes) {
  return anydml::Guard([&]() -> HRESULT {
    constexpr char kName[] = "AnyDmlGetAdapterTraits: ";
    if (traits == nullptr) return anydml::Fail(E_INVALIDARG, anydml::StrCat(kName, "traits is null"));
    const anydml::Backend* const backend = BackendWith(luid);
    if (backend == nullptr)
      return anydml::Fail(E_INVALIDARG, anydml::StrCat(kName, "no adapter has the LUID ", luid));
    const anydml::AdapterInfo& info = backend->adapter();
    const anydml::DeviceTraits& device = backend->traits();
    const AnyDmlAdapterTraits all = {.RunsOnHost = device.is_host ? 1 : 0,
                                     .TakesHostMemory = info.takes_host_memory ? 1 : 0,
                                     .DlpackDeviceType = info.dlpack_type,
                                     .DlpackDeviceId = info.dlpack_id,
                                     .DataTypes = device.data_types,
                                     .UnitBytes = device.unit_bytes,
                                     .SubgroupLanes = device.subgroup_lanes,
                                     .KeepsDenormals = device.keeps_denormals ? 1 : 0,
                                     .FusesMultiplyAdd = device.fuses_multiply_add ? 1 : 0};
    std::memset(traits, 0, bytes);
    std::memcpy(traits, &all, std::min<uint64_t>(bytes, sizeof(all)));
    return S_OK;
  });
}

void AnyDmlSetProfiler(void (*record)(void* context, const char* node, uint64_t begin, uint64_t end),
                       void* context) {
  anydml::SetPartRecorder({record, context});
}

const char* AnyDmlWhyNoGpu() { return anydml::WhyNoGpu().c_str(); }

int32_t AnyDmlCreateBufferFromMemory(ID3D12Device* device, void* memory, uint64_t bytes,
                                     void (*release)(void* context), void* context, ID3D12Resource** buffer) {
  return anydml::Guard([&]() -> HRESULT {
    if (buffer == nullptr) return Fail("buffer is null");
    *buffer = nullptr;
    anydml::d3d12::Device* const ours = anydml::d3d12::DeviceFrom(device);
    if (ours == nullptr) return Fail(device == nullptr ? "device is null" : "device is not one of ours");
    return anydml::d3d12::CreateBufferFromMemory(
        ours, memory, bytes,
        [release, context] {
          if (release != nullptr) release(context);
        },
        buffer);
  });
}

void* AnyDmlGetCudaStream(ID3D12CommandQueue* queue) { return anydml::d3d12::NativeStream(queue); }

int32_t AnyDmlRun(IDMLCompiledOperator* op, const AnyDmlRunDesc* desc) {
  return anydml::dml::RunImmediately(op, desc);
}

int32_t AnyDmlOrderCudaStreams(ID3D12Device* device, void* before, void* after) {
  return OnBackend("AnyDmlOrderCudaStreams", device,
                   [&](anydml::Backend& backend) { return backend.OrderStreams(before, after); });
}

int32_t AnyDmlWaitForCudaStream(ID3D12Device* device, void* stream) {
  return OnBackend("AnyDmlWaitForCudaStream", device,
                   [&](anydml::Backend& backend) { return backend.WaitForStream(stream); });
}

int32_t AnyDmlDescribeCudaStream(ID3D12Device* device, void* stream, AnyDmlCudaStreamInfo* info) {
  constexpr const char* kFunction = "AnyDmlDescribeCudaStream";
  if (info == nullptr) return anydml::Fail(E_INVALIDARG, anydml::StrCat(kFunction, ": info is null"));
  *info = {};
  return OnBackend(kFunction, device, [&](anydml::Backend& backend) -> anydml::Status {
    anydml::ForeignStream described;
    ANYDML_RETURN_IF_ERROR(backend.DescribeStream(stream, &described));
    *info = {described.id, described.capturing ? 1 : 0};
    return {};
  });
}

int32_t AnyDmlMarkCudaStream(ID3D12Device* device, void* stream, void** mark) {
  constexpr const char* kFunction = "AnyDmlMarkCudaStream";
  if (mark == nullptr) return anydml::Fail(E_INVALIDARG, anydml::StrCat(kFunction, ": mark is null"));
  return OnBackend(kFunction, device,
                   [&](anydml::Backend& backend) { return backend.MarkStream(stream, mark); });
}

int32_t AnyDmlWaitForCudaMark(ID3D12Device* device, void* mark, void* stream) {
  return OnBackend("AnyDmlWaitForCudaMark", device,
                   [&](anydml::Backend& backend) { return backend.WaitForMark(mark, stream); });
}

int32_t AnyDmlFreeCudaMark(ID3D12Device* device, void* mark) {
  return OnBackend("AnyDmlFreeCudaMark", device,
                   [&](anydml::Backend& backend) { return backend.FreeMark(mark); });
}

uint64_t AnyDmlGetLiveObjectCount() { return anydml::LiveObjectCount(); }

}  // extern "C"
