#include "support/device_run.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <map>
#include <vector>

namespace anydml::testing {
namespace {

// Kept between runs: creating these takes longer than most kernels.
struct Session {
  std::unique_ptr<Stream> stream;
  std::shared_ptr<Memory> host;
  std::shared_ptr<Memory> device;
};

Status Reserve(Backend& backend, uint64_t bytes, Session* session) {
  if (!session->stream) session->stream = backend.CreateStream();
  if (session->device && session->device->size() >= bytes) return {};
  const uint64_t rounded = std::max<uint64_t>(2 * bytes, uint64_t{1} << 20);
  ANYDML_RETURN_IF_ERROR(backend.Allocate(MemoryKind::kReadback, rounded, &session->host));
  return backend.Allocate(MemoryKind::kDefault, rounded, &session->device);
}

Status Finish(Stream& stream) {
  std::promise<Status> outcome;
  ANYDML_RETURN_IF_ERROR(stream.Flush([&outcome](const Status& status) { outcome.set_value(status); }));
  return outcome.get_future().get();
}

}  // namespace

Backend* FindGpu(std::string_view kind) {
  for (Backend* backend : Backends()) {
    if (backend->adapter().is_gpu && backend->traits().backend == kind) return backend;
  }
  return nullptr;
}

Status RunOnDevice(Backend& backend, const Kernel& kernel, bool initialize, std::span<const Buffer> blocks,
                   const KernelArguments& arguments) {
  static std::map<const Backend*, Session> sessions;
  Session& session = sessions[&backend];
  std::vector<uint64_t> offsets;
  uint64_t bytes = 0;
  for (const Buffer& block : blocks) {
    offsets.push_back(bytes);
    bytes += (block.size + 15) / 16 * 16 + 16;  // so that no block has a larger alignment by chance
  }
  ANYDML_RETURN_IF_ERROR(Reserve(backend, bytes, &session));
  const auto on_device = [&](const Buffer& buffer) -> Buffer {
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (buffer.data >= blocks[i].data && buffer.data < blocks[i].data + blocks[i].size) {
        return {session.device->device() + offsets[i] + (buffer.data - blocks[i].data), buffer.size};
      }
    }
    return {};
  };
  std::vector<Buffer> inputs, outputs;
  for (const Buffer& buffer : arguments.inputs) inputs.push_back(on_device(buffer));
  for (const Buffer& buffer : arguments.outputs) outputs.push_back(on_device(buffer));

  for (size_t i = 0; i < blocks.size(); ++i) {
    std::memcpy(session.host->host() + offsets[i], blocks[i].data, blocks[i].size);
  }
  Stream& stream = *session.stream;
  ANYDML_RETURN_IF_ERROR(stream.Copy(session.device->device(), session.host->device(), bytes));
  KernelArguments there = arguments;
  there.inputs = inputs;
  there.outputs = outputs;
  there.temporary = on_device(arguments.temporary);
  there.persistent = on_device(arguments.persistent);
  Status status = initialize ? stream.Initialize(kernel, there) : stream.Run(kernel, there);
  if (status.ok()) status = stream.Copy(session.host->device(), session.device->device(), bytes);
  const Status finished = Finish(stream);
  ANYDML_RETURN_IF_ERROR(status);
  ANYDML_RETURN_IF_ERROR(finished);
  for (size_t i = 0; i < blocks.size(); ++i) {
    std::memcpy(blocks[i].data, session.host->host() + offsets[i], blocks[i].size);
  }
  return {};
}

}  // namespace anydml::testing
