// Compiled for this machine (see CMakeLists.txt), because a floor may use everything that the processor has.
#include "floor.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace anydml::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// Keeps the compiler from removing the computation of a value.
template <typename T>
void Use(T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

// Spins without a pause: the answer comes at once, unless another thread wants the processor.
template <typename Ready>
void Spin(Ready ready) {
  for (uint32_t i = 0; !ready(); ++i) {
    if (i >= 10000) std::this_thread::yield();
  }
}

// Operators that write at most one byte per this many read ones, such as reductions, are compared with
// reading.
constexpr size_t kReadersWriteOne = 16;

typedef uint64_t Vector __attribute__((vector_size(64)));

// Sums with eight accumulators: enough loads in flight for any cache.
void Read(const std::byte* data, size_t bytes) {
  constexpr size_t kStep = 8;
  const auto* vectors = reinterpret_cast<const Vector*>(data);
  const size_t count = bytes / sizeof(Vector) / kStep * kStep;
  Vector sums[kStep] = {};
  for (size_t i = 0; i < count; i += kStep) {
    for (size_t j = 0; j < kStep; ++j) sums[j] += vectors[i + j];
  }
  uint8_t rest = 0;
  for (size_t i = count * sizeof(Vector); i < bytes; ++i) rest += static_cast<uint8_t>(data[i]);
  Use(sums);
  Use(rest);
}

#if defined(__x86_64__)
#define ANYDML_BENCH_STREAM 1
// Non-temporal stores: the target is not read first.
void Stream(std::byte* to, const std::byte* from, size_t bytes) {
  const size_t count = bytes / 16;
  for (size_t i = 0; i < count; ++i) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to) + i,
                     _mm_load_si128(reinterpret_cast<const __m128i*>(from) + i));
  }
  _mm_sfence();
  std::memcpy(to + count * 16, from + count * 16, bytes - count * 16);
}
#endif

// The operator's work on 8 elements, as plain C.
void ScatterOfEight() {
  static float input[8] = {}, updates[4] = {1, 2, 3, 4};
  static uint32_t indices[4] = {7, 1, 3, 0};
  float output[8];
  Use(input);
  Use(updates);
  Use(indices);
  std::memcpy(output, input, sizeof(output));
  for (int i = 0; i < 4; ++i) {
    if (indices[i] < 8) output[indices[i]] = updates[i];
  }
  Use(output);
}

void SumOfEight() {
  static float a[8] = {}, b[8] = {};
  float output[8];
  Use(a);
  Use(b);
  for (int i = 0; i < 8; ++i) output[i] = a[i] + b[i];
  Use(output);
}

}  // namespace

// Memory as the library allocates it: aligned to huge pages, and in them if the system provides them.
struct Floor::Region {
  static constexpr size_t kHugePage = size_t{2} << 20;

  explicit Region(const Bytes& bytes) : Region(bytes.size()) { std::memcpy(data, bytes.data(), size); }
  explicit Region(size_t bytes) : size(bytes), mapped(bytes + kHugePage) {
    mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) throw std::runtime_error("no memory for the floor");
    const auto address = reinterpret_cast<uintptr_t>(mapping);
    data = reinterpret_cast<std::byte*>((address + kHugePage - 1) & ~(kHugePage - 1));
    if (size >= kHugePage) madvise(data, size, MADV_HUGEPAGE);
    std::memset(data, 1, size);  // otherwise all pages would map the zero page
  }
  Region(Region&& other) noexcept
      : data(other.data),
        size(other.size),
        mapped(other.mapped),
        mapping(std::exchange(other.mapping, MAP_FAILED)) {}
  ~Region() {
    if (mapping != MAP_FAILED) munmap(mapping, mapped);
  }

  // A thread's share, cut at cache lines.
  std::pair<size_t, size_t> Share(uint32_t thread, uint32_t threads) const {
    const size_t lines = (size + 63) / 64;
    const size_t begin = lines * thread / threads * 64;
    const size_t end = std::min(size, lines * (thread + 1) / threads * 64);
    return {begin, end - std::min(begin, end)};
  }

  std::byte* data;
  size_t size, mapped;
  void* mapping;
};

Floor::Floor(const Case& c, const Inputs& inputs, uint32_t threads) : case_(c), threads_(threads) {
  if (!c.floor.empty()) return;
  if (c.Is("TOP_K1") || c.Is("SCATTER_ND")) {
    if (!c.in_place) regions_.emplace_back(inputs[0]);
    for (size_t i = 1; i < inputs.size(); ++i) regions_.emplace_back(inputs[i]);
    if (c.Is("SCATTER_ND") && !c.in_place) target_.emplace_back(inputs[0].size());
    return;
  }
  // Moves as many bytes as the operator reads and writes, at the speed of a copy or, if it writes few, of
  // reading.
  size_t read = 0, written = 0;
  for (const Bytes& input : inputs) read += input.size();
  for (const TensorDesc* output : c.desc.outputs()) written += output == nullptr ? 0 : DataBytes(*output);
  if (c.moved > 0) read = c.moved - written;
  if (written < read / kReadersWriteOne) {
    regions_.emplace_back(read);
    return;
  }
  regions_.emplace_back((read + written) / 2);
  target_.emplace_back((read + written) / 2);
}

Floor::~Floor() = default;

std::vector<std::string> Floor::variants() const {
  if (!case_.floor.empty()) return {case_.floor};
  if (target_.empty()) return {"read"};
#ifdef ANYDML_BENCH_STREAM
  return {"memcpy", "stream"};
#else
  return {"memcpy"};
#endif
}

void Floor::Part(const std::string& variant, uint32_t thread) {
  if (variant == "handover") return;  // the call and its answer are the whole measurement
  if (variant == "loop") return case_.Is("SCATTER_ND") ? ScatterOfEight() : SumOfEight();
  for (size_t r = 0; r < regions_.size(); ++r) {
    const auto [begin, size] = regions_[r].Share(thread, threads_);
    if (r > 0 || variant == "read") {
      Read(regions_[r].data + begin, size);
#ifdef ANYDML_BENCH_STREAM
    } else if (variant == "stream") {
      Stream(target_[0].data + begin, regions_[r].data + begin, size);
#endif
    } else {
      std::memcpy(target_[0].data + begin, regions_[r].data + begin, size);
    }
  }
}

// The helpers spin between runs, so that waking them is not part of the floor.
std::vector<double> Floor::Time(const std::string& variant, uint32_t count, uint32_t warm) {
  // For a hand-over, a second thread does the work, as with a queue.
  const bool hand_over = variant == "handover";
  const uint32_t helpers = hand_over ? 1 : variant == "loop" ? 0 : threads_ - 1;
  std::atomic<uint32_t> run{0}, done{0};
  std::vector<std::thread> team;
  for (uint32_t h = 0; h < helpers; ++h) {
    team.emplace_back([&, h] {
      for (uint32_t r = 1; r <= warm + count; ++r) {
        Spin([&] { return run.load(std::memory_order_acquire) >= r; });
        Part(variant, h + 1);
        done.fetch_add(1, std::memory_order_release);
      }
    });
  }
  std::vector<double> times;
  for (uint32_t r = 1; r <= warm + count; ++r) {
    const auto start = Clock::now();
    run.store(r, std::memory_order_release);
    // A single one is too short for the clock.
    for (uint32_t d = 0; d < case_.dispatches; ++d) {
      if (!hand_over) Part(variant, 0);
    }
    Spin([&] { return done.load(std::memory_order_acquire) >= r * helpers; });
    if (r > warm) times.push_back(Milliseconds(Clock::now() - start) / case_.dispatches);
  }
  for (std::thread& helper : team) helper.join();
  return times;
}

}  // namespace anydml::bench
