// What the machine says about its processor and memory.
#pragma once

#include <cstdint>
#include <string>

#include "backend/backend.h"

namespace anydml {

AdapterInfo DescribeCpu();

// The threads to compute with: ANYDML_THREADS, or as many as this process may use at once.
uint32_t CpuThreads();
// What ANYDML_THREADS says; 0: nothing.
Status WantedThreads(uint32_t* threads);

// The parts that tests feed with text of other machines.
struct CpuIdentity {
  std::string description;
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
};
CpuIdentity ParseCpuInfo(const std::string& proc_cpuinfo);
// From the text of cgroup's cpu.max ("200000 100000"): how many processors that is
// worth, rounded up; 0: no limit.
uint32_t ParseCpuQuota(const std::string& cpu_max);

}  // namespace anydml
