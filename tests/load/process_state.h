// What a process holds on to, and whether that grows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace anydml::test {

struct ProcessState {
  uint64_t objects = 0;      // AnyDmlGetLiveObjectCount
  uint64_t descriptors = 0;  // open files
  uint64_t heap = 0;         // bytes that are allocated (by the sanitizer's count, where there is one)
  uint64_t resident = 0;     // bytes of memory that the process has
};
ProcessState MeasureProcess();

struct Sample {
  double seconds = 0;
  uint64_t rounds = 0;  // of work until here
  ProcessState state;
};

// What may grow between the second quarter of the samples and the last one: the first is still
// warming up. A leak of L bytes a round is found when it is over `per_round` and lasts for
// slack / (L - per_round) rounds.
struct Allowance {
  const char* name;
  uint64_t ProcessState::*member;
  double slack;
  double per_round;
};
// Counts are exact, as nothing runs when a sample is taken. Allocated bytes differ by what the threads of
// queues keep for later, of every size a few pieces: 40 KiB more between medians on two processors that are
// busy otherwise, until there is some of every size; the process's memory comes and goes in larger pieces (60
// KiB).
inline constexpr Allowance kObjects = {"live objects", &ProcessState::objects, 0, 0};
inline constexpr Allowance kDescriptors = {"open files", &ProcessState::descriptors, 0, 0};
inline constexpr Allowance kHeap = {"allocated bytes", &ProcessState::heap, 64 << 10, 2};
inline constexpr Allowance kResident = {"resident bytes", &ProcessState::resident, 2 << 20, 8};

// A sentence about what grew too much; empty when nothing did. Quarters count by their medians.
std::string FindGrowth(const std::vector<Sample>& samples, const Allowance& allowance);

// The smallest leak, in bytes a round, that FindGrowth would have found.
double SmallestLeak(const std::vector<Sample>& samples, const Allowance& allowance);

// One line per sample.
void WriteCsv(const std::vector<Sample>& samples, const std::string& path);

}  // namespace anydml::test
