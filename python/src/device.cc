#include "device.h"

#include <cstring>

#include <anydml.h>

#include "client/c_desc.h"
#include "client/describe/desc_fields.h"
#include "client/describe/explain.h"
#include "client/describe/field_values.h"
#include "client/exit_status.h"
#include "process.h"
#include "status.h"

namespace anydml::python {
namespace {

constexpr size_t kMaxReserved = 8;  // streams per operator

Status DescribeNested(const NestedOperator& nested, OperatorDesc* desc) {
  ANYDML_RETURN_IF_ERROR(client::FindSchema(nested.name, &desc->schema));
  desc->fields.assign(desc->schema->fields.size(), {});
  for (const auto& [name, text] : nested.attributes) {
    size_t field = 0;
    ANYDML_RETURN_IF_ERROR(client::FindSchemaField(*desc->schema, name, &field));
    ANYDML_RETURN_IF_ERROR(
        client::ParseFieldValue(desc->schema->fields[field], text, DataType::kUnknown, &desc->fields[field]));
  }
  for (size_t i = 0; i < desc->fields.size(); ++i) {
    const FieldSchema& field = desc->schema->fields[i];
    const bool given = !std::holds_alternative<std::monostate>(desc->fields[i]);
    if (given || field.optional || field.kind != FieldKind::kAttribute) continue;
    if (client::IsCount(*desc->schema, i)) continue;
    return client::UsageError(desc->schema->name, ": ", field.name, " is missing (",
                              client::FieldTypeName(field), ")");
  }
  return client::SetCounts(desc);
}

Status SetAttribute(size_t field, const Attribute& value, client::Description* description) {
  if (const auto* text = std::get_if<std::string>(&value)) return description->SetAttribute(field, *text);
  std::vector<OperatorDesc> operators;
  for (const NestedOperator& nested : std::get<std::vector<NestedOperator>>(value)) {
    ANYDML_RETURN_IF_ERROR(DescribeNested(nested, &operators.emplace_back()));
  }
  description->SetOperators(field, std::move(operators));
  return {};
}

// Sets given attributes, by field; others get defaults. Scalars last, because their type is another
// attribute.
Status SetAttributes(const OperatorSchema& schema, const Request& request, client::Description* description) {
  std::vector<const Attribute*> given(schema.fields.size());
  for (const auto& [name, value] : request.attributes) {
    size_t field = 0;
    ANYDML_RETURN_IF_ERROR(client::FindSchemaField(schema, name, &field));
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

Status Describe(const Request& request, FeatureLevel level, client::Description* description) {
  const OperatorSchema& schema = *description->desc().schema;
  for (const auto& [name, tensor] : request.inputs) {
    size_t field = 0;
    ANYDML_RETURN_IF_ERROR(client::FindSchemaField(schema, name, &field));
    description->AddInput(field, tensor);
  }
  ANYDML_RETURN_IF_ERROR(description->AlignInputs(level));
  ANYDML_RETURN_IF_ERROR(SetAttributes(schema, request, description));
  std::vector<client::OutputRequest> outputs(schema.fields.size());
  for (const auto& [name, output] : request.outputs) {
    size_t field = 0;
    ANYDML_RETURN_IF_ERROR(client::FindSchemaField(schema, name, &field));
    outputs[field] = output;
  }
  return description->InferOutputs(outputs);
}

// Temporary memory for a call in the stream, or null. Called with the operator's lock.
std::shared_ptr<Memory> TakeReserved(const CompiledOperator& compiled, const Stream& stream) {
  if (stream.capturing) {
    const auto captured = compiled.captured.find(stream.id);
    if (captured != compiled.captured.end()) return captured->second;
  }
  auto reserved = compiled.reserved.extract(stream.id);
  return reserved ? std::move(reserved.mapped()) : nullptr;
}

void Reserve(const CompiledOperator& compiled, const Stream& stream, const std::shared_ptr<Memory>& memory) {
  decltype(compiled.reserved)::node_type forgotten;  // freed after the lock
  const std::lock_guard lock(compiled.mutex);
  if (compiled.reserved.size() >= kMaxReserved && !compiled.reserved.contains(stream.id)) {
    // Probably for the stream unused for longest.
    forgotten = compiled.reserved.extract(compiled.reserved.begin());
  }
  compiled.reserved.try_emplace(stream.id, memory);
}

}  // namespace

Status Device::Open(const std::string& adapter, std::shared_ptr<Device>* out) {
  ANYDML_RETURN_IF_ERROR(CheckProcess());
  WatchForks();
  auto device = std::make_shared<Device>();
  client::SessionOptions options;
  options.adapter = adapter;
  ANYDML_RETURN_IF_ERROR(client::Session::Create(options, &device->session_));
  ComPtr<ID3D12Device> d3d;
  device->session_->queue()->GetDevice(IID_PPV_ARGS(&d3d));
  device->memory_ = std::make_shared<MemoryPool>(std::move(d3d));
  *out = std::move(device);
  return {};
}

Device::~Device() {
  // A forked child lacks the threads for which the session would wait.
  if (Forked()) session_.release();
}

CompiledOperator::~CompiledOperator() {
  if (!Forked()) return;
  op.compiled.Detach();
  op.persistent.Detach();
}

void Device::Remove() {
  ComPtr<ID3D12Device5> device;
  if (SUCCEEDED(memory_->device()->QueryInterface(IID_PPV_ARGS(&device)))) device->RemoveDevice();
}

template <typename Body>
Status Device::Locked(Body&& body) {
  ANYDML_RETURN_IF_ERROR(CheckProcess());
  std::lock_guard lock(mutex_);
  Status status = Caught(body);
  if (!status.ok()) session_->Discard();
  if (status.code() != Code::kOutOfMemory || session_->removed()) return status;
  memory_->Empty();
  status = Caught(body);
  if (!status.ok()) session_->Discard();
  return status;
}

Status Device::Compile(const Request& request, std::shared_ptr<CompiledOperator>* out) {
  const OperatorSchema* schema = nullptr;
  ANYDML_RETURN_IF_ERROR(client::FindSchema(request.name, &schema));
  client::Description description(*schema);
  const auto describe = [&](FeatureLevel level, client::Description* into) {
    return Describe(request, level, into);
  };
  Status status = describe(feature_level(), &description);
  if (status.ok()) status = Compile(description, out);
  return client::Explain(status, description, feature_level(), describe);
}

Status Device::Compile(const client::Description& description, std::shared_ptr<CompiledOperator>* out) {
  const OperatorDesc& desc = description.desc();
  auto compiled = std::make_shared<CompiledOperator>();
  compiled->device = shared_from_this();
  for (const TensorDesc* output : desc.outputs()) {
    compiled->outputs.push_back(output != nullptr ? std::optional(description.AsGiven(*output))
                                                  : std::nullopt);
  }
  const client::CDesc c_desc(desc);
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
                   std::span<void* const> outputs, const Stream& stream, bool wait, std::string* data_error) {
  ANYDML_RETURN_IF_ERROR(CheckProcess());
  AnyDmlRunDesc desc{};
  desc.InputCount = static_cast<uint32_t>(inputs.size());
  desc.Inputs = inputs.data();
  desc.OutputCount = static_cast<uint32_t>(outputs.size());
  desc.Outputs = outputs.data();
  desc.CudaStream = reinterpret_cast<void*>(stream.handle);
  desc.Wait = wait ? 1 : 0;
  const bool in_stream = !wait && stream.handle != 0;
  std::shared_ptr<Memory> temporary;
  std::unique_lock<std::mutex> lock;
  if (compiled.temporary_bytes != 0) {
    if (in_stream) {
      lock = std::unique_lock(compiled.mutex);
      temporary = TakeReserved(compiled, stream);
      if (!stream.capturing) lock.unlock();  // calls in a capture are serialised
    }
    if (!temporary) ANYDML_RETURN_IF_ERROR(memory_->Take(compiled.temporary_bytes, stream, &temporary));
    if (lock) compiled.captured[stream.id] = temporary;
    desc.Temporary = reinterpret_cast<void*>(temporary->address());
  }
  if (compiled.op.persistent) {
    desc.Persistent = reinterpret_cast<void*>(compiled.op.persistent->GetGPUVirtualAddress());
  }
  const HRESULT result = AnyDmlRun(compiled.op.compiled.Get(), &desc);
  if (result == S_FALSE) *data_error = AnyDmlGetLastErrorMessage();
  Status status =
      SUCCEEDED(result) ? Status() : Status(static_cast<Code>(result), AnyDmlGetLastErrorMessage());
  if (in_stream) MemoryPool::MoveEnd(stream);  // also after a failure, since some work may be in flight
  if (in_stream && temporary && !stream.capturing) Reserve(compiled, stream, temporary);
  return status;
}

Status Device::OwnStream(Stream* stream) {
  return memory_->Describe(reinterpret_cast<uintptr_t>(AnyDmlGetCudaStream(session_->queue())), stream);
}

Status Device::Upload(Region host, const Stream& stream, std::shared_ptr<Memory>* out) {
  return Locked([&]() -> Status {
    const auto* bytes = reinterpret_cast<const std::byte*>(host.address);
    ComPtr<ID3D12Resource> buffer;
    ANYDML_RETURN_IF_ERROR(session_->Upload({bytes, host.bytes}, &buffer));
    std::string nothing;
    ANYDML_RETURN_IF_ERROR(session_->Execute(&nothing));
    *out = std::make_shared<Memory>(memory_, std::move(buffer), 0, MemoryUser{stream});
    return {};
  });
}

Status Device::Duplicate(Region device, const Stream& stream, std::shared_ptr<Memory>* out) {
  return Locked([&]() -> Status {
    Stream own;
    ANYDML_RETURN_IF_ERROR(OwnStream(&own));
    ANYDML_RETURN_IF_ERROR(memory_->Order(stream, own));
    // Allocations begin at multiples of 16, so the bytes before the region belong to the same allocation.
    const uint64_t before = device.address % DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT;
    ComPtr<ID3D12Resource> source, buffer;
    ANYDML_RETURN_IF_ERROR(
        session_->Wrap(reinterpret_cast<void*>(device.address - before), before + device.bytes, &source));
    ANYDML_RETURN_IF_ERROR(session_->Copy(source.Get(), before, device.bytes, &buffer));
    std::string nothing;
    ANYDML_RETURN_IF_ERROR(session_->Execute(&nothing));
    *out = std::make_shared<Memory>(memory_, std::move(buffer), 0, MemoryUser{stream});
    return {};
  });
}

Status Device::Download(const Memory& memory, uint64_t bytes, std::byte* host) {
  if (bytes > memory.bytes()) {
    return InvalidArgument("the tensor has ", bytes, " bytes by its shape but its memory has ",
                           memory.bytes());
  }
  return Locked([&]() -> Status {
    Stream own;
    ANYDML_RETURN_IF_ERROR(OwnStream(&own));
    ANYDML_RETURN_IF_ERROR(memory.OrderBefore(own));
    ComPtr<ID3D12Resource> buffer;
    ANYDML_RETURN_IF_ERROR(session_->Wrap(reinterpret_cast<void*>(memory.address()), bytes, &buffer));
    client::HostBuffer read;
    ANYDML_RETURN_IF_ERROR(session_->Read(buffer.Get(), &read));
    std::memcpy(host, read.data(), bytes);
    return {};
  });
}

}  // namespace anydml::python
