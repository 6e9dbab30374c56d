// Runs the cases of `anydml bench` on the adapters.
#pragma once

#include <string>
#include <vector>

#include "anydml/bench/bench_cases.h"
#include "anydml/bench/bench_output.h"
#include "anydml/bench/bench_timer.h"
#include "anydml/bench/report_data.h"
#include "anydml/cli/options.h"
#include "anydml/cli/output.h"
#include "anydml/cli/progress.h"

namespace anydml::client {

struct BenchOptions {
  ExecutionOptions execution;
  TimingLimits limits;
  DataType index_type = DataType::kUnknown;
  bool csv = false;
  std::string report;
  std::string command;  // as given, for the report
  std::vector<ReportSection> peers;

  bool allow_outside = false;  // let the model read files outside its folder
  std::string model;           // or, if empty:
  const OperatorSchema* schema = nullptr;
  std::vector<FieldArguments> sweep;  // one entry per case; empty: only draws the peers
};

class Bench {
 public:
  Bench(const BenchOptions& options, Output* output)
      : options_(options), output_(output), progress_(options.sweep.size()) {}

  // Finds all adapters, before anything takes time.
  Status FindAdapters(const std::string& compare);
  // results() has what was timed even after an error.
  Status Run();
  const BenchResults& results() const { return results_; }

 private:
  Status NeedBandwidth(size_t adapter);
  Status RunCase(const FieldArguments& fields);
  Status Load(const FieldArguments& fields, const Session& session, BenchCase* out) const;
  Status CheckData(const Model& model, size_t adapter) const;
  Status TimeOn(size_t adapter, const FieldArguments& fields);

  SessionOptions OptionsFor(size_t adapter, bool debug) const;

  const BenchOptions& options_;
  Output* const output_;
  Progress progress_;
  BenchResults results_;
  size_t done_ = 0;  // cases, including skipped ones
};

}  // namespace anydml::client
