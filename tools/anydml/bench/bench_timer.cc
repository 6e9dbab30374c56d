#include "anydml/bench/bench_timer.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>

#include "client/values/input_file.h"

namespace anydml::client {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kLeastIterations = 3;
// The shortest time between two timestamps: long enough that reading the clock does not matter.
constexpr double kLeastStampedSeconds = 200e-6;
constexpr double kMostStamped = 64;

std::atomic<bool> stopped{false};

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

const DispatchCommand* AsDispatch(const ModelCommand& command) {
  return std::get_if<DispatchCommand>(&command.action);
}

// A model with one dispatch that copies `bytes`.
Model CopyModel(uint64_t bytes) {
  const OperatorSchema* schema = FindOperator("ELEMENT_WISE_IDENTITY");
  const auto count = static_cast<uint32_t>(bytes / sizeof(uint32_t));
  const uint32_t sizes[] = {1, 1, 1, count};
  const TensorDesc tensor = PackedTensor(DataType::kFloat32, sizes, 4);
  Model model;
  for (const char* name : {"input", "output"}) {
    model.buffers.push_back({name, tensor.type, {count}, std::vector<std::byte>(bytes), 0, bytes});
  }
  ModelOperator& op = model.operators.emplace_back();
  op.desc.schema = schema;
  op.desc.fields.assign(schema->fields.size(), {});
  for (size_t i = 0; i < schema->fields.size(); ++i) {
    if (schema->fields[i].kind != FieldKind::kAttribute) op.desc.fields[i] = tensor;
  }
  model.commands.push_back({"", DispatchCommand{0, {{0, 0}}, {{1, 0}}}});
  return model;
}

}  // namespace

void StopTiming() { stopped = true; }
bool TimingStopped() { return stopped; }

Status ModelTimer::RecordList(uint32_t times, bool timestamps, RecordedList* out) {
  ANYDML_RETURN_IF_ERROR(session_->BeginList(timestamps));
  bool first = true;
  for (uint32_t i = 0; i < times; ++i) {
    for (const ModelCommand& command : model_.commands) {
      const DispatchCommand* dispatch = AsDispatch(command);
      if (dispatch == nullptr) continue;
      if (!first) session_->RecordBarrier();
      first = false;
      ANYDML_RETURN_IF_ERROR(At(command.where, on_device_->Record(*dispatch)));
    }
  }
  return session_->EndList(out);
}

Status ModelTimer::TimeOnce(const RecordedList& list, double* seconds) {
  const Clock::time_point start = Clock::now();
  ANYDML_RETURN_IF_ERROR(session_->Execute(list));
  *seconds = SecondsSince(start);
  return {};
}

Status ModelTimer::Time(const TimingLimits& limits, Timings* out) {
  // Two lists, because timestamps would add to the host's measurement.
  RecordedList plain, stamped;
  ANYDML_RETURN_IF_ERROR(RecordList(1, false, &plain));
  double seconds = 0, fastest = kLeastStampedSeconds;
  for (uint32_t i = 0; i < limits.warm_up && !TimingStopped(); ++i) {
    ANYDML_RETURN_IF_ERROR(TimeOnce(plain, &seconds));
    fastest = std::min(fastest, seconds);
  }
  const double repeats = std::clamp(std::round(kLeastStampedSeconds / fastest), 1.0, kMostStamped);
  ANYDML_RETURN_IF_ERROR(RecordList(static_cast<uint32_t>(repeats), true, &stamped));
  for (uint32_t i = 0; i < limits.warm_up && !TimingStopped(); ++i) {
    ANYDML_RETURN_IF_ERROR(session_->Execute(stamped));
  }
  ANYDML_RETURN_IF_ERROR(session_->CheckDevices());
  const Clock::time_point start = Clock::now();
  for (uint64_t done = 0; !TimingStopped();) {
    ANYDML_RETURN_IF_ERROR(TimeOnce(plain, &seconds));
    out->end_to_end.push_back(seconds);
    ANYDML_RETURN_IF_ERROR(session_->Execute(stamped));
    ANYDML_RETURN_IF_ERROR(session_->DeviceSeconds(stamped, &seconds));
    out->device.push_back(seconds / repeats);
    if (++done == limits.iterations) break;
    const bool enough = limits.iterations > 0 || done >= kLeastIterations;
    if (enough && SecondsSince(start) >= limits.seconds) break;
  }
  return session_->CheckDevices();
}

uint64_t BytesMoved(const Model& model) {
  uint64_t bytes = 0;
  for (const ModelCommand& command : model.commands) {
    const DispatchCommand* dispatch = AsDispatch(command);
    if (dispatch == nullptr) continue;
    const OperatorDesc& desc = model.operators[dispatch->op].desc;
    for (const auto& tensors : {desc.inputs(), desc.outputs()}) {
      for (const TensorDesc* tensor : tensors) bytes += tensor != nullptr ? tensor->total_bytes : 0;
    }
  }
  return bytes;
}

Status MeasureBandwidth(Session* session, double* bytes_per_second) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  const Model model = CopyModel(std::clamp(LargestBuffer() / 8 / kMiB, uint64_t{16}, uint64_t{128}) * kMiB);
  ModelOnDevice on_device(model, session);
  ANYDML_RETURN_IF_ERROR(on_device.Prepare());
  Timings timings;
  ANYDML_RETURN_IF_ERROR(ModelTimer(model, &on_device, session).Time({2, 9, 5}, &timings));
  if (timings.device.empty()) return {};  // stopped
  *bytes_per_second = static_cast<double>(BytesMoved(model)) / Summarize(timings.device).min;
  return {};
}

Summary Summarize(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto rank = [&samples](double share) {
    const double place = std::ceil(share * static_cast<double>(samples.size()));
    return samples[static_cast<size_t>(std::max(place, 1.0)) - 1];
  };
  const double sum = std::accumulate(samples.begin(), samples.end(), 0.0);
  return {samples[0], rank(0.5), rank(0.9), rank(0.99), sum / static_cast<double>(samples.size())};
}

}  // namespace anydml::client
