// An adapter for Python: one session, in which one thread at a time compiles and copies; operators run
// outside it (AnyDmlRun), on any number of threads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "client/describe/description.h"
#include "client/session.h"
#include "memory_pool.h"

namespace anydml::python {

// An operator without tensors, for FusedActivation.
struct NestedOperator {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;  // field, text
};

using Attribute = std::variant<std::string, std::vector<NestedOperator>>;

// A compilation request, with the fields' names in the schema.
struct Request {
  std::string name;
  std::vector<std::pair<std::string, TensorDesc>> inputs;  // in binding order
  std::vector<std::pair<std::string, Attribute>> attributes;
  std::vector<std::pair<std::string, client::OutputRequest>> outputs;
};

// Memory on the device or, for the CPU, anywhere.
struct Region {
  uintptr_t address = 0;  // 0: an absent optional tensor
  uint64_t bytes = 0;
};

class Device;

struct CompiledOperator {
  CompiledOperator() = default;
  ~CompiledOperator();
  CompiledOperator(const CompiledOperator&) = delete;
  CompiledOperator& operator=(const CompiledOperator&) = delete;

  std::shared_ptr<Device> device;
  client::CompiledOperator op;
  uint64_t temporary_bytes = 0;
  // Temporary memory by stream: for graphs that captured calls, and for the next call in the stream. The
  // latter belongs to each operator, because a capture of several operators cannot allocate any.
  mutable std::mutex mutex;
  mutable std::map<uint64_t, std::shared_ptr<Memory>> captured;
  mutable std::map<uint64_t, std::shared_ptr<Memory>> reserved;
  std::vector<std::optional<TensorDesc>> outputs;  // in binding order, as the caller sees them
};

class Device : public std::enable_shared_from_this<Device> {
 public:
  static Status Open(const std::string& adapter, std::shared_ptr<Device>* out);
  ~Device();

  const client::Adapter& adapter() const { return session_->adapter(); }
  FeatureLevel feature_level() const { return session_->feature_level(); }
  bool removed() const { return session_->removed(); }
  void Remove();  // for tests

  Status Compile(const Request& request, std::shared_ptr<CompiledOperator>* out);
  // Runs in a stream (on the CPU: 0, at once) on the given addresses, null for absent tensors. `data_error`
  // is the message about data that only execution can detect, or empty; on a GPU only with `wait`.
  Status Run(const CompiledOperator& compiled, std::span<void* const> inputs, std::span<void* const> outputs,
             const Stream& stream, bool wait, std::string* data_error);

  MemoryPool& memory() { return *memory_; }
  // These are complete when they return; reads wait for the work that is now in `stream`, or that uses
  // `memory`.
  Status Upload(Region host, const Stream& stream, std::shared_ptr<Memory>* out);
  // Aligned, even if the original is not.
  Status Duplicate(Region device, const Stream& stream, std::shared_ptr<Memory>* out);
  Status Download(const Memory& memory, uint64_t bytes, std::byte* host);

 private:
  Status Compile(const client::Description& description, std::shared_ptr<CompiledOperator>* out);
  // The session's stream.
  Status OwnStream(Stream* stream);
  // Locks, runs `body`, and leaves the session usable if it fails. If memory runs out, tries again after
  // freeing the pool's.
  template <typename Body>
  Status Locked(Body&& body);

  std::mutex mutex_;
  std::unique_ptr<client::Session> session_;
  std::shared_ptr<MemoryPool> memory_;
};

}  // namespace anydml::python
