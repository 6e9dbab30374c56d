// What the machine says about its processor and memory.
#pragma once

#include <cstdint>
#include <string>

#include "backend/backend.h"

namespace anydml {

AdapterInfo DescribeCpu();

// The parts that tests feed with text of other machines.
struct CpuIdentity {
  std::string description;
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
};
CpuIdentity ParseCpuInfo(const std::string& proc_cpuinfo);

}  // namespace anydml
