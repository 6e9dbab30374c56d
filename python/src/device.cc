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
  device->process_ = getpid();
  *out = std::move(device);
  return {};
}

Device::~Device() {
  // A forked child has none of the threads that the session would wait for.
  if (process_ != getpid()) session_.release();
}

uintptr_t Device::cuda_stream() const {
  return reinterpret_cast<uintptr_t>(AnyDmlGetCudaStream(session_->queue()));
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
  *out = std::move(compiled);
  return {};
}

Status Device::Wrap(std::span<const Region> regions, std::vector<DML_BUFFER_BINDING>* bindings) {
  for (const Region& region : regions) {
    DML_BUFFER_BINDING& binding = bindings->emplace_back();
    if (region.address == 0) continue;
    ComPtr<ID3D12Resource> buffer;
    ANYDML_RETURN_IF_ERROR(session_->Wrap(reinterpret_cast<void*>(region.address), region.bytes, &buffer));
    binding = {buffer.Get(), 0, buffer->GetDesc().Width};
  }
  return {};
}

Status Device::Run(const CompiledOperator& compiled, std::span<const Region> inputs,
                   std::span<const Region> outputs, std::string* data_error) {
  return Locked([&]() -> Status {
    std::vector<DML_BUFFER_BINDING> bound_inputs, bound_outputs;
    ANYDML_RETURN_IF_ERROR(Wrap(inputs, &bound_inputs));
    ANYDML_RETURN_IF_ERROR(Wrap(outputs, &bound_outputs));
    ANYDML_RETURN_IF_ERROR(session_->Record(compiled.op, bound_inputs, bound_outputs));
    return session_->Execute(data_error);
  });
}

Status Device::Allocate(uint64_t bytes, ComPtr<ID3D12Resource>* out) {
  return Locked([&]() -> Status {
    ANYDML_RETURN_IF_ERROR(session_->Allocate(bytes, out));
    session_->Discard();  // nothing recorded needs to keep it
    return {};
  });
}

Status Device::Upload(Region host, ComPtr<ID3D12Resource>* out) {
  return Locked([&]() -> Status {
    const auto* bytes = reinterpret_cast<const std::byte*>(host.address);
    ANYDML_RETURN_IF_ERROR(session_->Upload({bytes, host.bytes}, out));
    std::string nothing;
    return session_->Execute(&nothing);
  });
}

Status Device::Duplicate(Region device, ComPtr<ID3D12Resource>* out) {
  return Locked([&]() -> Status {
    // Allocations begin at multiples of 16: what lies before the region belongs to the same one.
    const uint64_t before = device.address % DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT;
    ComPtr<ID3D12Resource> source;
    ANYDML_RETURN_IF_ERROR(
        session_->Wrap(reinterpret_cast<void*>(device.address - before), before + device.bytes, &source));
    ANYDML_RETURN_IF_ERROR(session_->Copy(source.Get(), before, device.bytes, out));
    std::string nothing;
    return session_->Execute(&nothing);
  });
}

Status Device::Download(Region device, std::byte* host) {
  return Locked([&]() -> Status {
    ComPtr<ID3D12Resource> buffer;
    ANYDML_RETURN_IF_ERROR(session_->Wrap(reinterpret_cast<void*>(device.address), device.bytes, &buffer));
    tools::HostBuffer bytes;
    ANYDML_RETURN_IF_ERROR(session_->Read(buffer.Get(), &bytes));
    std::memcpy(host, bytes.data(), device.bytes);
    return {};
  });
}

}  // namespace anydml::python
