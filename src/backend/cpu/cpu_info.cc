#include "backend/cpu/cpu_info.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

namespace anydml {
namespace {

constexpr uint32_t kIntel = 0x8086;
constexpr uint32_t kAmd = 0x1022;
constexpr uint32_t kArm = 0x13B5;
constexpr uint64_t kCpuLuid = 0x0000'0001'0000'C901;  // any value but 0, the same in every process

constexpr uint32_t kMaxThreads = 256;

struct ArmPart {
  uint32_t implementer;
  uint32_t part;
  const char* name;
};

// aarch64 kernels report numbers instead of a name. These are the server and desktop parts that a
// machine-learning program is likely to meet.
constexpr ArmPart kArmParts[] = {
    {0x41, 0xd03, "Arm Cortex-A53"},  {0x41, 0xd08, "Arm Cortex-A72"},  {0x41, 0xd0b, "Arm Cortex-A76"},
    {0x41, 0xd0c, "Arm Neoverse-N1"}, {0x41, 0xd40, "Arm Neoverse-V1"}, {0x41, 0xd49, "Arm Neoverse-N2"},
    {0x41, 0xd4f, "Arm Neoverse-V2"}, {0x41, 0xd84, "Arm Neoverse-V3"}, {0x41, 0xd8e, "Arm Neoverse-N3"},
    {0x41, 0xd85, "Arm Cortex-X925"}, {0x41, 0xd87, "Arm Cortex-A725"}, {0xc0, 0xac3, "Ampere-1"},
    {0xc0, 0xac4, "Ampere-1a"},       {0x61, 0x022, "Apple M1"},        {0x61, 0x032, "Apple M2"},
    {0x4e, 0x004, "NVIDIA Carmel"},   {0x46, 0x001, "Fujitsu A64FX"},
};

std::string Trim(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

uint32_t ParseNumber(const std::string& text) {
  return static_cast<uint32_t>(std::strtoul(text.c_str(), nullptr, 0));
}

std::string MachineName() {
  utsname names{};
  return uname(&names) == 0 ? std::string(names.machine) + " processor" : "processor";
}

void DescribeArm(const std::map<std::string, std::string>& fields, CpuIdentity* identity) {
  const uint32_t implementer = ParseNumber(fields.at("CPU implementer"));
  const auto part_field = fields.find("CPU part");
  const uint32_t part = part_field == fields.end() ? 0 : ParseNumber(part_field->second);
  identity->vendor_id = kArm;
  identity->device_id = part;
  const auto known = std::find_if(std::begin(kArmParts), std::end(kArmParts), [&](const ArmPart& candidate) {
    return candidate.implementer == implementer && candidate.part == part;
  });
  if (!identity->description.empty()) return;
  if (known != std::end(kArmParts)) {
    identity->description = known->name;
  } else {
    std::ostringstream text;
    text << "Arm processor (implementer 0x" << std::hex << implementer << ", part 0x" << part << ")";
    identity->description = text.str();
  }
}

std::string ReadFile(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Physical memory, or the container's limit if that is smaller.
uint64_t MemoryBytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  uint64_t bytes = pages > 0 && page_size > 0
                       ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_size)
                       : uint64_t{1} << 32;
  const uint64_t limit = std::strtoull(ReadFile("/sys/fs/cgroup/memory.max").c_str(), nullptr, 10);
  if (limit != 0) bytes = std::min(bytes, limit);  // "max" parses as 0: no limit
  return bytes;
}

}  // namespace

CpuIdentity ParseCpuInfo(const std::string& proc_cpuinfo) {
  std::map<std::string, std::string> fields;  // of the first processor: emplace keeps the earliest
  std::istringstream lines(proc_cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (colon != std::string::npos) fields.emplace(Trim(line.substr(0, colon)), Trim(line.substr(colon + 1)));
  }
  CpuIdentity identity;
  if (const auto name = fields.find("model name"); name != fields.end()) identity.description = name->second;
  if (fields.count("CPU implementer") != 0) {
    DescribeArm(fields, &identity);
  } else {
    const auto vendor = fields.find("vendor_id");
    identity.vendor_id = vendor != fields.end() && vendor->second == "AuthenticAMD" ? kAmd : kIntel;
    if (const auto model = fields.find("model"); model != fields.end())
      identity.device_id = ParseNumber(model->second);
  }
  if (identity.description.empty()) identity.description = MachineName();
  return identity;
}

uint32_t ParseCpuQuota(const std::string& cpu_max) {
  std::istringstream fields(cpu_max);
  uint64_t quota = 0;
  uint64_t period = 0;
  if (!(fields >> quota >> period) || quota == 0 || period == 0) return 0;  // "max 100000"
  return static_cast<uint32_t>(std::min<uint64_t>((quota - 1) / period + 1, kMaxThreads));
}

Status WantedThreads(uint32_t* threads) {
  *threads = 0;
  const char* text = std::getenv("ANYDML_THREADS");
  if (text == nullptr || *text == 0) return {};
  char* end = nullptr;
  const long wanted = std::strtol(text, &end, 10);
  if (wanted < 1 || *end != 0) {
    return InvalidArgument("the environment variable ANYDML_THREADS is \"", text,
                           "\" but must be a number from 1 on");
  }
  *threads = static_cast<uint32_t>(std::min<long>(wanted, kMaxThreads));
  return {};
}

uint32_t CpuThreads() {
  if (uint32_t wanted = 0; WantedThreads(&wanted).ok() && wanted != 0) return wanted;
  cpu_set_t allowed;
  const int count = sched_getaffinity(0, sizeof(allowed), &allowed) == 0
                        ? CPU_COUNT(&allowed)
                        : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const auto threads = static_cast<uint32_t>(std::clamp(count, 1, int{kMaxThreads}));
  const uint32_t quota = ParseCpuQuota(ReadFile("/sys/fs/cgroup/cpu.max"));
  return quota == 0 ? threads : std::min(threads, quota);
}

AdapterInfo DescribeCpu() {
  const CpuIdentity identity = ParseCpuInfo(ReadFile("/proc/cpuinfo"));
  AdapterInfo info;
  info.id = "cpu";
  info.description = identity.description;
  info.luid = kCpuLuid;
  info.vendor_id = identity.vendor_id;
  info.device_id = identity.device_id;
  info.dedicated_bytes = 0;
  info.shared_bytes = MemoryBytes();
  info.unified_memory = true;
  info.takes_host_memory = true;
  info.is_gpu = false;
  info.dlpack_type = 1;  // kDLCPU
  return info;
}

}  // namespace anydml
