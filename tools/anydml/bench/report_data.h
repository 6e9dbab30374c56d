// The data of a benchmark report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace anydml::client {

// A measured time, and the time that moving the bytes alone takes there.
struct ReportTime {
  std::string who;
  double seconds = 0;
  std::string floor_name;
  double floor_seconds = 0;
  double low = 0, high = 0;    // its spread: the fastest, and the slowest or the 90th percentile; 0: unknown
  uint64_t iterations = 0;     // 0: unknown
  std::string implementation;  // of ours
  std::string mark;            // a letter if a peer's result differs
};

struct ReportCase {
  std::string name;
  std::string op;
  std::string type;             // of the first input, like its sizes
  std::vector<uint64_t> sizes;  // empty: unknown
  std::optional<uint64_t> k;    // of operators that have it
  std::string variant;          // other properties that distinguish it, for grouping
  std::vector<ReportTime> times;
};

// Cases that were measured in one run and are therefore comparable.
struct ReportSection {
  std::string title;
  std::string text;
  std::vector<ReportCase> cases;
};

struct Report {
  std::vector<std::pair<std::string, std::string>> facts;  // about the machine and the run
  std::vector<ReportSection> sections;
};

// The names of ours begin with this; all others are peers.
inline constexpr std::string_view kOurs = "AnyDML";

// Reads the records of `./dev bench --json`, one section per number of threads.
Status ReadPeers(const std::string& path, std::vector<ReportSection>* out);

}  // namespace anydml::client
