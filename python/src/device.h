// An adapter for Python: one session, used by one thread at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "anydml/describe/description.h"
#include "base/status.h"
#include "common/session.h"

namespace anydml::python {

using Microsoft::WRL::ComPtr;

// An operator without tensors, as FusedActivation takes it.
struct NestedOperator {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;  // field, text
};

using Attribute = std::variant<std::string, std::vector<NestedOperator>>;

// What is to be compiled, with the fields' names in the schema.
struct Request {
  std::string name;
  std::vector<std::pair<std::string, TensorDesc>> inputs;  // in binding order
  std::vector<std::pair<std::string, Attribute>> attributes;
  std::vector<std::pair<std::string, tools::OutputRequest>> outputs;
};

// Memory on the device, or, on the CPU, anywhere.
struct Region {
  uintptr_t address = 0;  // 0: an absent optional tensor
  uint64_t bytes = 0;
};

class Device;

struct CompiledOperator {
  std::shared_ptr<Device> device;
  tools::CompiledOperator op;
  std::vector<std::optional<TensorDesc>> outputs;  // in binding order, as the caller sees them
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  static Status Open(const std::string& adapter, std::shared_ptr<Device>* out);
  ~Device();

  const tools::Adapter& adapter() const { return session_->adapter(); }
  FeatureLevel feature_level() const { return session_->feature_level(); }
  uintptr_t cuda_stream() const;
  bool removed() const { return session_->removed(); }

  Status Compile(const Request& request, std::shared_ptr<CompiledOperator>* out);
  // Executes and waits. `data_error` is the sentence about data that only execution sees, or empty.
  Status Run(const CompiledOperator& compiled, std::span<const Region> inputs,
             std::span<const Region> outputs, std::string* data_error);

  Status Allocate(uint64_t bytes, ComPtr<ID3D12Resource>* out);
  Status Upload(Region host, ComPtr<ID3D12Resource>* out);
  Status Duplicate(Region device, ComPtr<ID3D12Resource>* out);  // aligned, whatever the original is
  Status Download(Region device, std::byte* host);

 private:
  Status Describe(const Request& request, tools::Description* description) const;
  Status Wrap(std::span<const Region> regions, std::vector<DML_BUFFER_BINDING>* bindings);
  // Locks, runs `body`, and leaves the session usable when it fails.
  template <typename Body>
  Status Locked(Body&& body);

  std::mutex mutex_;
  std::unique_ptr<tools::Session> session_;
  pid_t process_ = 0;
};

}  // namespace anydml::python
