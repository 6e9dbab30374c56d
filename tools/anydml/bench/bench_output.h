// The results of `anydml bench`, as a table and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "anydml/bench/bench_cases.h"
#include "anydml/bench/bench_timer.h"
#include "anydml/bench/report_data.h"
#include "client/json/json_writer.h"

namespace anydml::client {

struct BenchAdapter {
  std::string id;
  std::string description;
  double bandwidth = 0;  // bytes per second of a copy
};

// The result of one case on one adapter; times in seconds.
struct BenchResult {
  BenchCase info;      // its model is empty
  size_t adapter = 0;  // index
  std::string implementation;
  std::string explanation;
  uint64_t iterations = 0;
  uint64_t bytes = 0;
  Summary end_to_end;
  Summary device;
};

struct BenchResults {
  std::vector<BenchAdapter> adapters;
  std::vector<BenchResult> results;  // a case's adapters one after the other
};

// A table; with several adapters it includes a comparison with the first.
std::string BenchTable(const BenchResults& results);
std::string BenchCsv(const BenchResults& results);
// The members "adapters" and "cases" of the open object.
void WriteBenchJson(const BenchResults& results, bool why, JsonWriter* json);
ReportSection BenchSection(const BenchResults& results);

}  // namespace anydml::client
