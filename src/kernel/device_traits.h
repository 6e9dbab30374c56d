// What a device can do and what it is fast with, as its backend states it. Code above the backends decides by
// these facts, never by a backend's name.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/data_type.h"
#include "kernel/part_recorder.h"

namespace anydml {

class Column;  // ops/column.h

// The order of a convolution's elements in memory with which a device's kernels are fast.
enum class ConvolutionChannels : uint8_t {
  kAsGiven,
  kFillVectors,  // channels last (NHWC) if they fill wide vectors
  kFillUnits,    // channels last (NHWC) if they fill whole units (DeviceTraits::unit_bytes)
};

inline constexpr uint32_t kAllDataTypes = (1u << kDataTypeCount) - 2;  // all but UNKNOWN

// The defaults are those of a device of which nothing is known.
struct DeviceTraits {
  // The prefix of its implementations' names; nothing else may depend on it.
  std::string_view backend = "cpu";
  const Column* column = nullptr;  // its implementations; null: those of the host

  // Kernels run on threads of this process, in its memory. They may pack constants when a graph is
  // initialised.
  bool is_host = false;
  // Kernels can be called for a few rows at a time, and the results stay in a cache for the next kernel.
  bool runs_blocks_of_rows = false;
  // Kernels load and store this many bytes at once; in a graph, their operands are aligned to it.
  uint32_t unit_bytes = 1;
  // The types that its kernels take, as a bit for each (1 << DataType). Operators with others run on the
  // host.
  uint32_t data_types = kAllDataTypes;
  uint32_t subgroup_lanes = 1;  // threads of a kernel that go in step, and can exchange registers
  // Promises of docs/determinism.md that a driver may break. `anydml adapters --verbose` lists those that say
  // false.
  bool keeps_denormals = true;
  bool fuses_multiply_add = true;  // an explicit fused multiply-add rounds once, and nothing else is fused
  ConvolutionChannels convolution_channels = ConvolutionChannels::kAsGiven;
  uint32_t vector_lanes = 0;  // FLOAT32 lanes per vector, for kFillVectors; 0: those of the CPU this runs on

  int ordinal = 0;                      // the device's index within its backend
  uint32_t multiprocessors = 1;         // on a CPU: its threads
  uint64_t shared_bytes_per_block = 0;  // the most that one kernel may use
  uint64_t l2_bytes = 0;                // 0: unknown

  // Makes device `ordinal` current for the calling thread and returns the previous one; null if the backend
  // has no current device.
  int (*make_current)(int ordinal) = nullptr;
  // Takes KernelArguments::stream and measures time by the device's clock. The pointer is null if kernels are
  // complete when Run returns; the function returns null if time cannot be measured now.
  std::unique_ptr<StreamClock> (*create_clock)(void* stream) = nullptr;
};

// A CPU of one thread.
inline constexpr DeviceTraits kHostDevice = {
    .is_host = true, .runs_blocks_of_rows = true, .convolution_channels = ConvolutionChannels::kFillVectors};

// Makes a device the thread's current one for the object's lifetime and then restores the application's
// choice. Queries and settings of the device's API concern the current one.
class CurrentDevice {
 public:
  explicit CurrentDevice(const DeviceTraits& device)
      : make_current_(device.make_current),
        before_(make_current_ != nullptr ? make_current_(device.ordinal) : 0) {}
  ~CurrentDevice() {
    if (make_current_ != nullptr) make_current_(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int (*const make_current_)(int);
  const int before_;
};

}  // namespace anydml
