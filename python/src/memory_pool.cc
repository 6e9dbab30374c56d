#include "memory_pool.h"

#include <algorithm>
#include <bit>

#include <anydml.h>

#include "process.h"

namespace anydml::python {
namespace {

constexpr uint64_t kMaxPooledBytes = uint64_t{1} << 30;
constexpr size_t kMaxPooled = 256;
constexpr size_t kManyStreams = 64;
constexpr uint64_t kLeastBytes = uint64_t{64} << 10;  // the minimum of an allocation anyway
constexpr uint64_t kLargeGranularity = uint64_t{2} << 20;

// Rounds so that few different sizes occur.
uint64_t KeptBytes(uint64_t bytes) {
  if (bytes >= kLargeGranularity)
    return (bytes + kLargeGranularity - 1) / kLargeGranularity * kLargeGranularity;
  return std::max(kLeastBytes, std::bit_ceil(bytes));
}

void* Pointer(uintptr_t handle) { return reinterpret_cast<void*>(handle); }

Status ToStatus(HRESULT result) {
  return SUCCEEDED(result) ? Status() : Status(static_cast<Code>(result), AnyDmlGetLastErrorMessage());
}

}  // namespace

StreamEnd::~StreamEnd() {
  if (Forked()) return;
  for (void* const mark : {mark_, captured_mark_}) {
    if (mark != nullptr) AnyDmlFreeCudaMark(device_.Get(), mark);
  }
}

void StreamEnd::MoveTo(uintptr_t stream, bool capturing) noexcept {
  std::lock_guard lock(mutex_);
  const HRESULT result =
      AnyDmlMarkCudaStream(device_.Get(), Pointer(stream), capturing ? &captured_mark_ : &mark_);
  if (!capturing) lost_ = FAILED(result);
}

Status StreamEnd::OrderBefore(uintptr_t stream, bool capturing) const {
  void* mark = nullptr;
  bool lost = false;
  {
    std::lock_guard lock(mutex_);
    mark = capturing ? captured_mark_ : mark_;
    lost = lost_ && !capturing;
  }
  if (lost) return ToStatus(AnyDmlWaitForCudaStream(device_.Get(), nullptr));
  if (mark == nullptr) return {};  // no work was enqueued
  return ToStatus(AnyDmlWaitForCudaMark(device_.Get(), mark, Pointer(stream)));
}

Memory::Memory(std::shared_ptr<MemoryPool> pool, ComPtr<ID3D12Resource> buffer, uint64_t kept_bytes,
               MemoryUser first)
    : pool_(std::move(pool)),
      buffer_(std::move(buffer)),
      address_(buffer_->GetGPUVirtualAddress()),
      bytes_(buffer_->GetDesc().Width),
      kept_bytes_(kept_bytes),
      users_{std::move(first)} {}

Memory::~Memory() {
  if (Forked()) {
    buffer_.Detach();
    return;
  }
  std::list<MemoryPool::Kept> pieces;
  try {
    pieces.emplace_back();
  } catch (const std::bad_alloc&) {
    for (const MemoryUser& user : users_) pool_->WaitFor(user);
    return;
  }
  pieces.front() = {kept_bytes_, std::move(users_), std::move(buffer_)};
  pool_->Give(std::move(pieces));
}

uintptr_t Memory::latest_stream() const {
  std::lock_guard lock(mutex_);
  return users_.back().stream.handle;
}

Status Memory::OrderBefore(const Stream& after) const {
  std::lock_guard lock(mutex_);
  for (const MemoryUser& user : users_) {
    ANYDML_RETURN_IF_ERROR(pool_->OrderBehind(user.stream, user.late, after));
  }
  return {};
}

Status Memory::Enter(const Stream& stream, bool exported) {
  ANYDML_RETURN_IF_ERROR(CheckProcess());
  std::lock_guard lock(mutex_);
  MemoryUser entering{stream};
  bool moved = false;
  for (const MemoryUser& user : users_) {
    if (user.stream.id == stream.id) {
      entering.uses = user.uses;
      entering.exports = user.exports;
      entering.late = user.late;
    } else {
      ANYDML_RETURN_IF_ERROR(pool_->OrderBehind(user.stream, user.late && user.exports == 0, stream));
      moved = true;
    }
  }
  // The stream exists now, and contains everything that finished exports have enqueued in it.
  const bool late_is_over = entering.late && entering.exports == 0 && !stream.capturing;
  if (moved || late_is_over) MemoryPool::MoveEnd(stream);
  if (late_is_over) entering.late = false;
  ++entering.uses;
  if (exported) {
    ++entering.exports;
    entering.late = true;
  }
  users_.reserve(users_.size() + 1);
  // Finished uses are ordered before this stream from now on.
  std::erase_if(users_,
                [&](const MemoryUser& user) { return user.uses == 0 || user.stream.id == stream.id; });
  users_.push_back(std::move(entering));
  return {};
}

void Memory::Leave(const Stream& stream, bool exported) noexcept {
  if (Forked()) return;
  std::lock_guard lock(mutex_);
  for (MemoryUser& user : users_) {
    if (user.stream.id != stream.id) continue;
    --user.uses;
    if (exported) --user.exports;
  }
}

Status MemoryUse::Begin(std::shared_ptr<Memory> memory, const Stream& stream, bool exported,
                        std::shared_ptr<MemoryUse>* out) {
  auto use = std::make_shared<MemoryUse>(std::move(memory), stream, exported);
  ANYDML_RETURN_IF_ERROR(use->memory_->Enter(stream, exported));
  use->begun_ = true;
  *out = std::move(use);
  return {};
}

MemoryPool::~MemoryPool() {
  if (Forked()) {
    for (Kept& piece : kept_) piece.buffer.Detach();
    return;
  }
  Empty();
}

Status MemoryPool::Take(uint64_t bytes, const Stream& stream, std::shared_ptr<Memory>* out) {
  ANYDML_RETURN_IF_ERROR(CheckProcess());
  const uint64_t kept_bytes = KeptBytes(bytes);
  std::list<Kept> taken;
  {
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& piece) {
      // A graph cannot be ordered after the present work of other streams.
      return piece.bytes == kept_bytes && piece.users.back().stream.id == stream.id &&
             (piece.users.size() == 1 || !stream.capturing);
    });
    if (found != kept_.end()) {
      taken.splice(taken.begin(), kept_, found);
      kept_bytes_ -= kept_bytes;
    }
  }
  MemoryUser user{stream};
  ComPtr<ID3D12Resource> buffer;
  if (taken.empty()) {
    ANYDML_RETURN_IF_ERROR(Allocate(kept_bytes, &buffer));
  } else {
    if (Status status = OrderKept(taken.front(), &user); !status.ok()) {
      Release(std::move(taken));
      return status;
    }
    buffer = std::move(taken.front().buffer);
  }
  *out = std::make_shared<Memory>(shared_from_this(), std::move(buffer), kept_bytes, std::move(user));
  return {};
}

Status MemoryPool::OrderKept(const Kept& piece, MemoryUser* user) const {
  const Stream& stream = user->stream;
  for (size_t i = 0; i + 1 < piece.users.size(); ++i) {
    ANYDML_RETURN_IF_ERROR(OrderBehind(piece.users[i].stream, piece.users[i].late, stream));
  }
  const bool late = piece.users.back().late;
  user->late = late && stream.capturing;
  if (piece.users.size() > 1 || (late && !stream.capturing)) MoveEnd(stream);
  return {};
}

Status MemoryPool::TakeNew(uint64_t bytes, const Stream& stream, std::shared_ptr<Memory>* out) {
  ANYDML_RETURN_IF_ERROR(CheckProcess());
  ComPtr<ID3D12Resource> buffer;
  ANYDML_RETURN_IF_ERROR(Allocate(bytes, &buffer));
  *out = std::make_shared<Memory>(shared_from_this(), std::move(buffer), 0, MemoryUser{stream});
  return {};
}

Status MemoryPool::Allocate(uint64_t bytes, ComPtr<ID3D12Resource>* out) {
  Status status = AllocateNew(bytes, out);
  if (status.code() != Code::kOutOfMemory) return status;
  Empty();
  return AllocateNew(bytes, out);
}

Status MemoryPool::AllocateNew(uint64_t bytes, ComPtr<ID3D12Resource>* out) const {
  D3D12_HEAP_PROPERTIES properties{};
  properties.Type = D3D12_HEAP_TYPE_DEFAULT;
  D3D12_RESOURCE_DESC desc{};
  desc.Dimension = D3D12_RESOURCE_DIMENSION_BUFFER;
  desc.Width = bytes;
  desc.Height = desc.DepthOrArraySize = desc.MipLevels = desc.SampleDesc.Count = 1;
  desc.Layout = D3D12_TEXTURE_LAYOUT_ROW_MAJOR;
  desc.Flags = D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS;
  return ToStatus(device_->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &desc,
                                                   D3D12_RESOURCE_STATE_UNORDERED_ACCESS, nullptr,
                                                   IID_PPV_ARGS(out->ReleaseAndGetAddressOf())));
}

void MemoryPool::Give(std::list<Kept> pieces) noexcept {
  std::list<Kept> released;
  if (pieces.front().bytes == 0 || pieces.front().bytes > kMaxPooledBytes) {
    released = std::move(pieces);
  } else {
    std::lock_guard lock(mutex_);
    kept_bytes_ += pieces.front().bytes;
    kept_.splice(kept_.begin(), pieces);
    // Drops the older half at a time, because freeing memory waits for its users.
    const bool too_many = kept_bytes_ > kMaxPooledBytes || kept_.size() > kMaxPooled;
    while (too_many && (kept_bytes_ > kMaxPooledBytes / 2 || kept_.size() > kMaxPooled / 2)) {
      kept_bytes_ -= kept_.back().bytes;
      released.splice(released.end(), kept_, std::prev(kept_.end()));
    }
  }
  Release(std::move(released));
}

void MemoryPool::Empty() noexcept {
  std::list<Kept> pieces;
  {
    std::lock_guard lock(mutex_);
    pieces.swap(kept_);
    kept_bytes_ = 0;
  }
  Release(std::move(pieces));
}

void MemoryPool::Release(std::list<Kept> pieces) noexcept {
  // The pieces of one stream together; there are few.
  while (!pieces.empty()) {
    const MemoryUser user = pieces.front().users.back();
    const bool done = WaitFor(user);
    for (auto piece = pieces.begin(); piece != pieces.end();) {
      const auto each = piece++;
      if (!done) {
        if (each->users.back().stream.id != user.stream.id) continue;
        std::lock_guard lock(mutex_);
        kept_bytes_ += each->bytes;
        kept_.splice(kept_.end(), pieces, each);
        continue;
      }
      std::erase_if(each->users, [&](const MemoryUser& other) {
        return other.stream.id == user.stream.id && (user.late || !other.late) &&
               (user.stream.capturing || !other.stream.capturing);
      });
      if (each->users.empty()) pieces.erase(each);
    }
  }
}

Status MemoryPool::Describe(uintptr_t handle, Stream* stream) {
  ANYDML_RETURN_IF_ERROR(CheckProcess());
  AnyDmlCudaStreamInfo info{};
  if (handle != 0) {
    ANYDML_RETURN_IF_ERROR(ToStatus(AnyDmlDescribeCudaStream(device_.Get(), Pointer(handle), &info)));
  }
  *stream = {handle, info.Id, info.Capturing != 0, nullptr};
  if (stream->lasting()) return {};
  std::lock_guard lock(ends_mutex_);
  std::shared_ptr<StreamEnd>& end = ends_[info.Id];
  const bool is_new = end == nullptr;
  if (is_new) end = std::make_shared<StreamEnd>(device_);
  stream->end = end;
  if (is_new && ends_.size() > kManyStreams) {
    std::erase_if(ends_, [](const auto& each) { return each.second.use_count() == 1; });
  }
  return {};
}

void MemoryPool::MoveEnd(const Stream& stream) noexcept {
  if (stream.end) stream.end->MoveTo(stream.handle, stream.capturing);
}

Status MemoryPool::Order(const Stream& before, const Stream& after) const {
  ANYDML_RETURN_IF_ERROR(CheckProcess());
  if (before.id == after.id) return {};
  uintptr_t handle = before.handle;
  // The default stream is ordered after every thread's own stream, and neither is ever destroyed.
  if (handle == Stream::kPerThread) handle = Stream::kDefault;
  return ToStatus(AnyDmlOrderCudaStreams(device_.Get(), Pointer(handle), Pointer(after.handle)));
}

Status MemoryPool::OrderBehind(const Stream& before, bool late, const Stream& after) const {
  ANYDML_RETURN_IF_ERROR(CheckProcess());
  if (before.id == after.id) return {};
  // A graph may run at any time, in any stream.
  const bool unknown = before.capturing || (late && !before.lasting());
  if (unknown && !after.capturing) return WaitForAll();
  if (before.lasting()) return Order(before, after);
  return before.end->OrderBefore(after.handle, before.capturing);
}

Status MemoryPool::WaitForAll() const { return ToStatus(AnyDmlWaitForCudaStream(device_.Get(), nullptr)); }

bool MemoryPool::WaitFor(const MemoryUser& user) const {
  const Stream& stream = user.stream;
  if (stream.handle == 0) return true;
  // The number of this thread's own stream cannot be distinguished from another thread's.
  if (stream.capturing || stream.handle == Stream::kPerThread) return WaitForAll().ok();
  if (stream.lasting()) return SUCCEEDED(AnyDmlWaitForCudaStream(device_.Get(), Pointer(stream.handle)));
  return user.late ? WaitForAll().ok() : stream.end->OrderBefore(0, false).ok();
}

}  // namespace anydml::python
