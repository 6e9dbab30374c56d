#include "device.h"

#include <unistd.h>

#include <cstring>

#include <anydml.h>

#include "anydml/cli/exit_status.h"
#include "anydml/describe/desc_fields.h"
#include "anydml/describe/field_values.h"
#include "common/c_desc.h"

namespace anydml::python {
namespace {

Status DescribeNested(const NestedOperator& nested, OperatorDesc* desc) {
  ANYDML_RETURN_IF_ERROR(tools::FindSchema(nested.name, &desc->schema));
  desc->fields.assign(desc->schema->fields.size(), {});
  for (const auto& [name, text] : nested.attributes) {
    size_t field = 0;
    ANYDML_RETURN_IF_ERROR(tools::FindSchemaField(*desc->schema, name, &field));
    ANYDML_RETURN_IF_ERROR(
        tools::ParseFieldValue(desc->schema->fields[field], text, DataType::kUnknown, &desc->fields[field]));
  }
  for (size_t i = 0; i < desc->fields.size(); ++i) {
    const FieldSchema& field = desc->schema->fields[i];
    const bool given = !std::holds_alternative<std::monostate>(desc->fields[i]);
    if (given || field.optional || field.kind != FieldKind::kAttribute) continue;
    return tools::UsageError(desc->schema->name, ": ", field.name, " is missing (",
                             tools::FieldTypeName(field), ")");
  }
  return {};
}

Status SetAttribute(size_t field, const Attribute& value, tools::Description* description) {
  if (const auto* text = std::get_if<std::string>(&value)) return description->SetAttribute(field, *text);
  std::vector<OperatorDesc> operators;
  for (const NestedOperator& nested : std::get<std::vector<NestedOperator>>(value)) {
    ANYDML_RETURN_IF_ERROR(DescribeNested(nested, &operators.emplace_back()));
  }
  description->SetOperators(field, std::move(operators));
  return {};
}

// Attributes that were given, by field; the others get defaults. Scalars last: their type is another
// attribute.
Status SetAttributes(const OperatorSchema& schema, const Request& request, tools::Description* description) {
  std::vector<const Attribute*> given(schema.fields.size());
  for (const auto& [name, value] : request.attributes) {
    size_t field = 0;
    ANYDML_RETURN_IF_ERROR(tools::FindSchemaField(schema, name, &field));
    given[field] = &value;
  }
  for (const bool scalars : {false, true}) {
    for (size_t i = 0; i < given.size(); ++i) {
      const FieldSchema& field = schema.fields[i];
      if (field.kind != FieldKind::kAttribute || (field.type == FieldType::kScalarUnion) != scalars) continue;
      ANYDML_RETURN_IF_ERROR(given[i] != nullptr ? SetAttribute(i, *given[i], description)
                                                 : description->SetDefault(i));
    }
  }
  return {};
}

}  // namespace

Status Device::Open(const std::string& adapter, std::shared_ptr<Device>* out) {
  auto device = std::make_shared<Device>();
  tools::SessionOptions options;
  options.adapter = adapter;
  ANYDML_RETURN_IF_ERROR(tools::Session::Create(options, &device->session_));
  ComPtr<ID3D12Device> d3d;
  device->session_->queue()->GetDevice(IID_PPV_ARGS(&d3d));
  device->memory_ = std::make_shared<MemoryPool>(std::move(d3d));
  device->process_ = getpid();
  *out = std::move(device);
  return {};
}

Device::~Device() {
  // A forked child has none of the threads that the session would wait for.
  if (process_ == getpid()) return;
  session_.release();
  if (memory_) memory_->Forget();
}

void Device::Remove() {
  ComPtr<ID3D12Device5> device;
  if (SUCCEEDED(memory_->device()->QueryInterface(IID_PPV_ARGS(&device)))) device->RemoveDevice();
}

template <typename Body>
Status Device::Locked(Body&& body) {
  std::lock_guard lock(mutex_);
  Status status = body();
  if (!status.ok()) session_->Discard();
  return status;
}

Status Device::Describe(const Request& request, tools::Description* description) const {
  const OperatorSchema& schema = *description->desc().schema;
  for (const auto& [name, tensor] : request.inputs) {
    size_t field = 0;
    ANYDML_RETURN_IF_ERROR(tools::FindSchemaField(schema, name, &field));
    description->AddInput(field, tensor);
  }
  ANYDML_RETURN_IF_ERROR(description->AlignInputs(feature_level()));
  ANYDML_RETURN_IF_ERROR(SetAttributes(schema, request, description));
  std::vector<tools::OutputRequest> outputs(schema.fields.size());
  for (const auto& [name, output] : request.outputs) {
    size_t field = 0;
    ANYDML_RETURN_IF_ERROR(tools::FindSchemaField(schema, name, &field));
    outputs[field] = output;
  }
  return description->InferOutputs(outputs);
}

Status Device::Compile(const Request& request, std::shared_ptr<CompiledOperator>* out) {
  const OperatorSchema* schema = nullptr;
  ANYDML_RETURN_IF_ERROR(tools::FindSchema(request.name, &schema));
  tools::Description description(*schema);
  ANYDML_RETURN_IF_ERROR(Describe(request, &description));
  const OperatorDesc& desc = description.desc();
  auto compiled = std::make_shared<CompiledOperator>();
  compiled->device = shared_from_this();
  for (const TensorDesc* output : desc.outputs()) {
    compiled->outputs.push_back(output != nullptr ? std::optional(description.AsGiven(*output))
                                                  : std::nullopt);
  }
  const tools::CDesc c_desc(desc);
  ANYDML_RETURN_IF_ERROR(Locked([&]() -> Status {
    ANYDML_RETURN_IF_ERROR(session_->Compile(c_desc.get(), DML_EXECUTION_FLAG_NONE, {}, &compiled->op));
    std::string nothing;
    return session_->Execute(&nothing);
  }));
  compiled->temporary_bytes = compiled->op.compiled->GetBindingProperties().TemporaryResourceSize;
  *out = std::move(compiled);
  return {};
}

Status Device::Run(const CompiledOperator& compiled, std::span<void* const> inputs,
                   std::span<void* const> outputs, uintptr_t stream, bool wait, std::string* data_error) {
  AnyDmlRunDesc desc{};
  desc.InputCount = static_cast<uint32_t>(inputs.size());
  desc.Inputs = inputs.data();
  desc.OutputCount = static_cast<uint32_t>(outputs.size());
  desc.Outputs = outputs.data();
  desc.CudaStream = reinterpret_cast<void*>(stream);
  desc.Wait = wait ? 1 : 0;
  std::shared_ptr<Memory> temporary;
  std::unique_lock<std::mutex> lock;
  if (compiled.temporary_bytes != 0) {
    if (!wait && stream != 0) {
      lock = std::unique_lock(compiled.mutex);  // calls in one stream come one after the other as a whole
      temporary = compiled.temporary[stream];
    }
    if (!temporary) ANYDML_RETURN_IF_ERROR(memory_->Take(compiled.temporary_bytes, stream, &temporary));
    if (lock) compiled.temporary[stream] = temporary;
    desc.Temporary = reinterpret_cast<void*>(temporary->address());
  }
  if (compiled.op.persistent) {
    desc.Persistent = reinterpret_cast<void*>(compiled.op.persistent->GetGPUVirtualAddress());
  }
  const HRESULT result = AnyDmlRun(compiled.op.compiled.Get(), &desc);
  if (result == S_FALSE) *data_error = AnyDmlGetLastErrorMessage();
  return SUCCEEDED(result) ? Status() : Status(static_cast<Code>(result), AnyDmlGetLastErrorMessage());
}

Status Device::ComeAfter(uintptr_t stream) {
  if (stream == 0) return {};
  const HRESULT result = AnyDmlOrderCudaStreams(memory_->device(), reinterpret_cast<void*>(stream),
                                                AnyDmlGetCudaStream(session_->queue()));
  return SUCCEEDED(result) ? Status() : Status(static_cast<Code>(result), AnyDmlGetLastErrorMessage());
}

Status Device::Upload(Region host, uintptr_t stream, std::shared_ptr<Memory>* out) {
  return Locked([&]() -> Status {
    const auto* bytes = reinterpret_cast<const std::byte*>(host.address);
    ComPtr<ID3D12Resource> buffer;
    ANYDML_RETURN_IF_ERROR(session_->Upload({bytes, host.bytes}, &buffer));
    std::string nothing;
    ANYDML_RETURN_IF_ERROR(session_->Execute(&nothing));
    *out = std::make_shared<Memory>(memory_, std::move(buffer), 0, stream);
    return {};
  });
}

Status Device::Duplicate(Region device, uintptr_t stream, std::shared_ptr<Memory>* out) {
  return Locked([&]() -> Status {
    ANYDML_RETURN_IF_ERROR(ComeAfter(stream));
    // Allocations begin at multiples of 16: what lies before the region belongs to the same one.
    const uint64_t before = device.address % DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT;
    ComPtr<ID3D12Resource> source, buffer;
    ANYDML_RETURN_IF_ERROR(
        session_->Wrap(reinterpret_cast<void*>(device.address - before), before + device.bytes, &source));
    ANYDML_RETURN_IF_ERROR(session_->Copy(source.Get(), before, device.bytes, &buffer));
    std::string nothing;
    ANYDML_RETURN_IF_ERROR(session_->Execute(&nothing));
    *out = std::make_shared<Memory>(memory_, std::move(buffer), 0, stream);
    return {};
  });
}

Status Device::Download(Region device, uintptr_t stream, std::byte* host) {
  return Locked([&]() -> Status {
    ANYDML_RETURN_IF_ERROR(ComeAfter(stream));
    ComPtr<ID3D12Resource> buffer;
    ANYDML_RETURN_IF_ERROR(session_->Wrap(reinterpret_cast<void*>(device.address), device.bytes, &buffer));
    tools::HostBuffer bytes;
    ANYDML_RETURN_IF_ERROR(session_->Read(buffer.Get(), &bytes));
    std::memcpy(host, bytes.data(), device.bytes);
    return {};
  });
}

}  // namespace anydml::python
