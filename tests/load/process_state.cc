#include "load/process_state.h"

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include <anydml.h>

// A function of the sanitizers; GCC does not provide the header that declares it.
extern "C" size_t __sanitizer_get_current_allocated_bytes() __attribute__((weak));

namespace anydml::test {
namespace {

uint64_t HeapBytes() {
  if (__sanitizer_get_current_allocated_bytes != nullptr) return __sanitizer_get_current_allocated_bytes();
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

uint64_t ResidentBytes() {
  uint64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t OpenFiles() {
  DIR* const files = opendir("/proc/self/fd");
  if (files == nullptr) return 0;
  uint64_t count = 0;
  while (readdir(files) != nullptr) ++count;
  closedir(files);
  return count;
}

// The medians of a quarter of the samples (0 to 3).
struct Quarter {
  double rounds;
  double value;
};

template <typename Get>
double Median(const std::vector<Sample>& samples, size_t quarter, Get get) {
  std::vector<double> values;
  for (size_t i = samples.size() * quarter / 4; i < samples.size() * (quarter + 1) / 4; ++i) {
    values.push_back(static_cast<double>(get(samples[i])));
  }
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

Quarter QuarterOf(const std::vector<Sample>& samples, size_t quarter, const Allowance& allowance) {
  return {Median(samples, quarter, [](const Sample& sample) { return sample.rounds; }),
          Median(samples, quarter, [&](const Sample& sample) { return sample.state.*allowance.member; })};
}

}  // namespace

ProcessState MeasureProcess() {
  return {AnyDmlGetLiveObjectCount(), OpenFiles(), HeapBytes(), ResidentBytes()};
}

std::string FindGrowth(const std::vector<Sample>& samples, const Allowance& allowance) {
  const Quarter second = QuarterOf(samples, 1, allowance), last = QuarterOf(samples, 3, allowance);
  const double rounds = last.rounds - second.rounds, growth = last.value - second.value;
  if (growth <= allowance.slack + allowance.per_round * rounds) return {};
  std::ostringstream text;
  text << allowance.name << " grew by " << growth << " in " << rounds << " rounds, " << growth / rounds
       << " a round";
  return text.str();
}

double SmallestLeak(const std::vector<Sample>& samples, const Allowance& allowance) {
  const double rounds = QuarterOf(samples, 3, allowance).rounds - QuarterOf(samples, 1, allowance).rounds;
  return allowance.per_round + allowance.slack / std::max(rounds, 1.0);
}

void WriteCsv(const std::vector<Sample>& samples, const std::string& path) {
  std::ofstream file(path);
  file << "seconds,rounds,live_objects,open_files,heap_bytes,resident_bytes\n";
  for (const Sample& sample : samples) {
    file << sample.seconds << ',' << sample.rounds << ',' << sample.state.objects << ','
         << sample.state.descriptors << ',' << sample.state.heap << ',' << sample.state.resident << '\n';
  }
}

}  // namespace anydml::test
