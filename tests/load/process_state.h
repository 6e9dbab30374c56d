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

// Under a sanitizer `resident` is mostly the sanitizer's own memory.
bool ResidentMeansSomething();

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
// Counts are exact, as nothing runs when a sample is taken. The heap differs by what threads keep for
// later and by the tables of the library that grow now and then: the slack is some times that. Memory
// of the process comes and goes in larger pieces.
inline constexpr Allowance kObjects = {"live objects", &ProcessState::objects, 0, 0};
inline constexpr Allowance kDescriptors = {"open files", &ProcessState::descriptors, 0, 0};
inline constexpr Allowance kHeap = {"allocated bytes", &ProcessState::heap, 32 << 10, 16};
inline constexpr Allowance kResident = {"resident bytes", &ProcessState::resident, 4 << 20, 50};

// A sentence about what grew too much; empty when nothing did. Quarters count by their medians.
std::string FindGrowth(const std::vector<Sample>& samples, const Allowance& allowance);

// The smallest leak, in bytes a round, that FindGrowth would have found.
double SmallestLeak(const std::vector<Sample>& samples, const Allowance& allowance);

// One line per sample.
void WriteCsv(const std::vector<Sample>& samples, const std::string& path);

}  // namespace anydml::test
