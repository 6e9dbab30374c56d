#include "anydml/bench/bench_runner.h"

#include <anydml.h>

#include <algorithm>
#include <utility>

#include "anydml/cli/output_files.h"
#include "anydml/model/model_device.h"
#include "client/adapters.h"
#include "client/exit_status.h"
#include "client/scoped_variable.h"

namespace anydml::client {
namespace {

// Ctrl-C stops the timing and keeps complete results; a second one ends the process as usual.
struct StopOnInterrupt {
  StopOnInterrupt() { OnInterrupt(StopTiming); }
  ~StopOnInterrupt() { OnInterrupt(nullptr); }
};

}  // namespace

Status Bench::FindAdapters(const std::string& compare) {
  const std::string& list = compare.empty() ? options_.execution.session.adapter : compare;
  for (size_t start = 0; start <= list.size();) {
    const size_t comma = compare.empty() ? list.size() : std::min(list.find(',', start), list.size());
    Adapter adapter;
    ANYDML_RETURN_IF_ERROR(ChooseAdapter(list.substr(start, comma - start), &adapter));
    for (const BenchAdapter& other : results_.adapters) {
      if (other.id == adapter.id)
        return UsageError("--compare ", compare, ": ", adapter.id, " is there twice");
    }
    results_.adapters.push_back({adapter.id, adapter.description, 0});
    start = comma + 1;
  }
  return {};
}

SessionOptions Bench::OptionsFor(size_t adapter, bool debug) const {
  SessionOptions options = options_.execution.session;
  options.adapter = results_.adapters[adapter].id;
  options.debug = debug;
  return options;
}

// Once per adapter, when there is something to time.
Status Bench::NeedBandwidth(size_t adapter) {
  BenchAdapter& entry = results_.adapters[adapter];
  if (entry.bandwidth > 0) return {};
  SessionOptions session_options = OptionsFor(adapter, /*debug=*/false);
  session_options.implementation.clear();
  // A forced implementation must not apply to the copy.
  const ScopedVariable any_implementation("ANYDML_IMPLEMENTATION", std::nullopt);
  std::unique_ptr<Session> session;
  ANYDML_RETURN_IF_ERROR(Session::Create(session_options, &session));
  return MeasureBandwidth(session.get(), &entry.bandwidth);
}

Status Bench::Load(const FieldArguments& fields, const Session& session, BenchCase* out) const {
  if (!options_.model.empty()) return LoadModelCase(options_.model, options_.allow_outside, out);
  return LoadOperatorCase(*options_.schema, options_.sweep, fields, session.feature_level(),
                          options_.index_type, out);
}

// Timed runs do not look for errors in the data; this does, once.
Status Bench::CheckData(const Model& model, size_t adapter) const {
  if (options_.execution.allow_out_of_range) return {};
  std::unique_ptr<Session> session;
  ANYDML_RETURN_IF_ERROR(Session::Create(OptionsFor(adapter, /*debug=*/true), &session));
  ModelOnDevice on_device(model, session.get());
  ANYDML_RETURN_IF_ERROR(on_device.Prepare());
  for (const ModelCommand& command : model.commands) {
    const auto* dispatch = std::get_if<DispatchCommand>(&command.action);
    if (dispatch == nullptr) continue;
    std::string data_error;
    ANYDML_RETURN_IF_ERROR(At(command.where, on_device.Record(*dispatch)));
    ANYDML_RETURN_IF_ERROR(session->Execute(&data_error));
    if (!data_error.empty()) return Status(Code::kFail, command.where + data_error);
  }
  return {};
}

Status Bench::TimeOn(size_t adapter, const FieldArguments& fields) {
  std::unique_ptr<Session> session;
  ANYDML_RETURN_IF_ERROR(Session::Create(OptionsFor(adapter, /*debug=*/false), &session));
  BenchResult result;
  result.adapter = adapter;
  ANYDML_RETURN_IF_ERROR(Load(fields, *session, &result.info));
  ANYDML_RETURN_IF_ERROR(CheckData(result.info.model, adapter));
  ANYDML_RETURN_IF_ERROR(NeedBandwidth(adapter));
  ModelOnDevice on_device(std::exchange(result.info.model, {}), session.get());
  const Model& model = on_device.model();
  ANYDML_RETURN_IF_ERROR(on_device.Prepare());
  Timings timings;
  ANYDML_RETURN_IF_ERROR(ModelTimer(model, &on_device, session.get()).Time(options_.limits, &timings));
  if (TimingStopped()) return {};
  for (size_t i = 0; i < model.operators.size(); ++i) {
    const char* name = AnyDmlGetImplementation(on_device.op(i).compiled.Get());
    result.implementation += StrCat(i > 0 ? ", " : "", name);
    result.explanation += StrCat(i > 0 ? "\n" : "", on_device.op(i).explanation);
  }
  result.iterations = timings.end_to_end.size();
  result.bytes = BytesMoved(model);
  result.end_to_end = Summarize(std::move(timings.end_to_end));
  result.device = Summarize(std::move(timings.device));
  results_.results.push_back(std::move(result));
  return {};
}

// A case counts only if it was timed on all adapters.
Status Bench::RunCase(const FieldArguments& fields) {
  const size_t before = results_.results.size();
  std::string doing = options_.model.empty() ? options_.schema->name : options_.model;
  for (const auto& [name, text] : fields) doing += StrCat(" ", name, "=", text);
  Status status;
  for (size_t i = 0; i < results_.adapters.size() && status.ok() && !TimingStopped(); ++i) {
    progress_.Show(done_, StrCat(results_.adapters[i].id, " ", doing));
    status = TimeOn(i, fields);
  }
  const bool complete = results_.results.size() == before + results_.adapters.size();
  if (!complete) results_.results.resize(before);
  // For example K beyond the axis: not every combination of a sweep is valid.
  if (status.code() != Code::kInvalidArgument || options_.sweep.size() == 1) return status;
  progress_.Clear();
  output_->Note(StrCat("left out: ", doing, ": ", status.message()));
  return {};
}

Status Bench::Run() {
  const StopOnInterrupt stop_on_interrupt;
  for (const FieldArguments& fields : options_.sweep) {
    if (TimingStopped()) break;
    ANYDML_RETURN_IF_ERROR(RunCase(fields));
    ++done_;
  }
  progress_.Clear();
  if (TimingStopped()) {
    return Status(kInterrupted,
                  StrCat("interrupted after ", results_.results.size() / results_.adapters.size(), " of ",
                         options_.sweep.size(), " cases"));
  }
  if (!results_.results.empty()) return {};
  return InvalidArgument("none of the ", options_.sweep.size(), " combinations is allowed");
}

}  // namespace anydml::client
