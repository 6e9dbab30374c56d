// Facts about the machine's processor and memory.
#pragma once

#include <cstdint>
#include <string>

#include "backend/backend.h"

namespace anydml {

AdapterInfo DescribeCpu();

// The number of threads to compute with: ANYDML_THREADS, or as many as this process may use at once.
uint32_t CpuThreads();
// The value of ANYDML_THREADS; 0 if it is not set.
Status WantedThreads(uint32_t* threads);

// Separate functions, so that tests can feed them text from other machines.
struct CpuIdentity {
  std::string description;
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
};
CpuIdentity ParseCpuInfo(const std::string& proc_cpuinfo);
// Parses cgroup's cpu.max ("200000 100000") into a number of processors, rounded up; 0: no limit.
uint32_t ParseCpuQuota(const std::string& cpu_max);

}  // namespace anydml
