// The resources that a process holds, and whether they grow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace anydml::test {

struct ProcessState {
  uint64_t objects = 0;      // AnyDmlGetLiveObjectCount
  uint64_t descriptors = 0;  // open files
  uint64_t heap = 0;         // allocated bytes (by the sanitizer's count, if there is one)
  uint64_t resident = 0;     // resident memory in bytes
};
ProcessState MeasureProcess();

struct Sample {
  double seconds = 0;
  uint64_t rounds = 0;  // of work until here
  ProcessState state;
};

// The growth that is allowed between the second quarter of the samples and the last one; the first quarter is
// warm-up. A leak of L bytes a round is found if L exceeds `per_round` and lasts for slack / (L - per_round)
// rounds.
struct Allowance {
  const char* name;
  uint64_t ProcessState::*member;
  double slack;
  double per_round;
};
// Counts are exact, because nothing runs when a sample is taken. Allocated bytes vary by the memory that
// queue threads keep for later, a few pieces of every size: up to 40 KiB between medians on two otherwise
// busy processors, until each size occurs; the process's memory varies in larger pieces (60 KiB).
inline constexpr Allowance kObjects = {"live objects", &ProcessState::objects, 0, 0};
inline constexpr Allowance kDescriptors = {"open files", &ProcessState::descriptors, 0, 0};
inline constexpr Allowance kHeap = {"allocated bytes", &ProcessState::heap, 64 << 10, 2};
inline constexpr Allowance kResident = {"resident bytes", &ProcessState::resident, 2 << 20, 8};

// A message about excessive growth; empty if there is none. Quarters are compared by their medians.
std::string FindGrowth(const std::vector<Sample>& samples, const Allowance& allowance);

// The smallest leak, in bytes per round, that FindGrowth would have found.
double SmallestLeak(const std::vector<Sample>& samples, const Allowance& allowance);

// One line per sample.
void WriteCsv(const std::vector<Sample>& samples, const std::string& path);

}  // namespace anydml::test
