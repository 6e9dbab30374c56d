#include "graph/run/kernel.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "graph/run/guards.h"
#include "kernel/part_recorder.h"

namespace anydml {
namespace {

using Place = GraphKernel::Place;

Buffer At(const Buffer& memory, const Place& place) {
  return memory.data == nullptr ? Buffer{} : Buffer{memory.data + place.offset, place.bytes};
}

Buffer Resolve(const Place& place, const KernelArguments& arguments) {
  switch (place.in) {
    case Place::In::kNowhere:
    case Place::In::kPacked:
    case Place::In::kPrepared:
      return {};
    case Place::In::kInput:
      return At(arguments.inputs[place.index], place);
    case Place::In::kOutput:
      return At(arguments.outputs[place.index], place);
    case Place::In::kTemporary:
      return At(arguments.temporary, place);
    case Place::In::kPersistent:
      return At(arguments.persistent, place);
  }
  return {};
}

// Whole cache lines.
constexpr uint64_t kPreparedAlignment = 64;

uint64_t Now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

// Reports the beginning and end of each part to the recorder, if there is one. On a stream, parts are only
// enqueued while the graph runs, so the device's clock gives the times when everything is done.
class PartTimes {
 public:
  PartTimes(const DeviceTraits& device, void* stream) : recorder_(CurrentPartRecorder()) {
    if (recorder_.record == nullptr || device.create_clock == nullptr) return;
    clock_ = device.create_clock(stream);
    if (!clock_ || !clock_->Mark().ok()) recorder_ = {};
  }

  void Begin() { begin_ = recorder_.record != nullptr ? Now() : 0; }
  void End(const std::string& part) {
    if (recorder_.record == nullptr) return;
    if (!clock_) {
      recorder_.record(recorder_.context, part.c_str(), begin_, Now());
    } else if (clock_->Mark().ok()) {
      marked_.push_back(&part);
    }
  }
  void Finish() {
    std::vector<uint64_t> marks;
    if (!clock_ || marked_.empty() || !clock_->Read(&marks).ok() || marks.size() != marked_.size() + 1)
      return;
    const uint64_t zero = Now() - marks.back();
    for (size_t i = 0; i < marked_.size(); ++i) {
      recorder_.record(recorder_.context, marked_[i]->c_str(), zero + marks[i], zero + marks[i + 1]);
    }
  }

 private:
  PartRecorder recorder_;
  std::unique_ptr<StreamClock> clock_;
  std::vector<const std::string*> marked_;
  uint64_t begin_ = 0;
};

// Prefixes errors in data with the part's name.
class PartErrors final : public DataErrorSink {
 public:
  PartErrors(const std::string& part, DataErrorSink* sink) : part_(part), sink_(sink) {}
  void ReportDataError(const std::string& message) override {
    sink_->ReportDataError(StrCat(part_, ": ", message));
  }

 private:
  const std::string& part_;
  DataErrorSink* const sink_;
};

// Memory for the operands of one part. Execution allocates at most once per thread and depth: a callback
// during a run (a profiler, a message callback) may submit another graph, which may run on this thread.
class OperandSpace {
 public:
  explicit OperandSpace(size_t count) {
    if (spaces.size() == depth) spaces.emplace_back();
    std::vector<Buffer>& space = spaces[depth];
    if (space.size() < count) space.resize(count);
    data_ = space.data();  // does not move when `spaces` grows
    ++depth;
  }
  ~OperandSpace() { --depth; }
  OperandSpace(const OperandSpace&) = delete;
  OperandSpace& operator=(const OperandSpace&) = delete;

  Buffer* data() const { return data_; }

 private:
  static inline thread_local std::vector<std::vector<Buffer>> spaces;
  static inline thread_local size_t depth = 0;
  Buffer* data_;
};

}  // namespace

GraphKernel::GraphKernel(Layout layout) : layout_(std::move(layout)) {
  for (size_t i = 0; i < layout_.constants.size(); ++i) {
    persistent_data_.push_back({layout_.constant_offsets[i], layout_.constants[i]});
  }
  for (Part& part : layout_.parts) {
    most_operands_ = std::max(most_operands_, part.inputs.size() + part.outputs.size());
    part.first_note = note_count_;
    note_count_ += part.kernel->note_count();
  }
}

Status GraphKernel::RunPart(const Part& part, KernelArguments& own, Buffer* operands,
                            const KernelArguments& arguments) const {
  if (!layout_.guarded || !layout_.device->is_host) return part.kernel->Run(own);
  std::vector<Buffer*> buffers = {&own.temporary};
  for (size_t i = 0; i < part.inputs.size() + part.outputs.size(); ++i) buffers.push_back(operands + i);
  const GuardedPart guarded(arguments.temporary, std::move(buffers));
  return part.kernel->Run(own);
}

// Copies the step's inputs, the first of which is `*next`. `inputs` has room for those of the graph.
Status GraphKernel::CopyInputs(uint32_t step, size_t* next, Buffer* inputs,
                               KernelArguments* arguments) const {
  const auto& all = layout_.copied_inputs;
  for (; *next < all.size() && all[*next].step == step; ++*next) {
    const CopiedInput& copied = all[*next];
    const Buffer from = arguments->inputs[copied.input];
    if (from.data == nullptr || from.data != arguments->outputs[copied.output].data) continue;
    const Buffer to = {arguments->temporary.data + copied.offset, copied.bytes};
    KernelArguments own = *arguments;
    own.inputs = {&from, 1};
    own.outputs = {&to, 1};
    own.temporary = own.persistent = {};
    own.notes = {};
    ANYDML_RETURN_IF_ERROR(copied.kernel->Run(own));
    if (arguments->inputs.data() != inputs) {
      std::copy(arguments->inputs.begin(), arguments->inputs.end(), inputs);
      arguments->inputs = {inputs, arguments->inputs.size()};
    }
    inputs[copied.input] = to;
  }
  return {};
}

Status GraphKernel::Run(const KernelArguments& given) const {
  const OperandSpace own_space(most_operands_ + (layout_.copied_inputs.empty() ? 0 : given.inputs.size()));
  Buffer* const space = own_space.data();
  KernelArguments arguments = given;
  PartTimes times(*layout_.device, arguments.stream);
  size_t next_copy = 0;
  for (uint32_t step = 0; step < layout_.parts.size(); ++step) {
    ANYDML_RETURN_IF_ERROR(CopyInputs(step, &next_copy, space + most_operands_, &arguments));
    const Part& part = layout_.parts[step];
    KernelArguments own = arguments;
    Buffer* next = space;
    for (const Place& input : part.inputs) *next++ = Resolve(input, arguments);
    for (const Place& output : part.outputs) *next++ = Resolve(output, arguments);
    own.inputs = {space, part.inputs.size()};
    own.outputs = {space + part.inputs.size(), part.outputs.size()};
    own.temporary = Resolve(part.scratch, arguments);
    own.persistent = Resolve(part.persistent, arguments);
    PartErrors errors(part.name, arguments.data_errors);
    if (arguments.data_errors != nullptr) own.data_errors = &errors;
    if (!arguments.notes.empty()) {
      own.notes = arguments.notes.subspan(part.first_note, part.kernel->note_count());
    }
    times.Begin();
    const Status status = RunPart(part, own, space, arguments);
    times.End(part.name);
    if (!status.ok()) return Status(status.code(), StrCat(part.name, ": ", status.message()));
  }
  times.Finish();
  return {};
}

// The size of the values that the part packs; they are in the temporary memory, before the part's own
// scratch.
uint64_t GraphKernel::PreparedBytes(const Part& part) const {
  uint64_t bytes = 0;
  for (const Place& input : part.inputs) {
    if (input.in != Place::In::kPrepared) continue;
    bytes = SaturatingAdd(bytes, SaturatingAlignUp(layout_.prepared[input.index].bytes, kPreparedAlignment));
  }
  return bytes;
}

uint64_t GraphKernel::initialization_temporary_bytes() const {
  uint64_t most = 0;
  const auto need = [&](const std::vector<Part>& preparations, uint64_t before) {
    for (const Part& part : preparations) {
      most = std::max(most, SaturatingAdd(before, part.kernel->temporary_bytes()));
    }
  };
  need(layout_.preparations, 0);
  for (const Part& part : layout_.parts) {
    const uint64_t before = PreparedBytes(part);
    most = std::max(most, SaturatingAdd(before, part.kernel->initialization_temporary_bytes()));
    for (const Place& input : part.inputs) {
      if (input.in == Place::In::kPrepared) need(layout_.prepared[input.index].parts, before);
    }
  }
  return most;
}

// The buffer of an operand that is known at initialisation; otherwise an empty one.
Buffer GraphKernel::ResolveKnown(const Place& place, const KernelArguments& arguments) const {
  switch (place.in) {
    case Place::In::kInput:
    case Place::In::kPersistent:
      return Resolve(place, arguments);
    case Place::In::kPacked: {
      // kernels only read it
      auto* const constant = const_cast<std::byte*>(layout_.packed_constants[place.index].data());
      return At({constant, layout_.packed_constants[place.index].size()}, place);
    }
    default:
      return {};
  }
}

Status GraphKernel::Prepare(const Part& part, const Buffer& output, const Buffer& temporary,
                            const KernelArguments& arguments) const {
  KernelArguments own = arguments;
  const Buffer input = ResolveKnown(part.inputs[0], arguments);
  own.inputs = {&input, 1};
  own.outputs = {&output, 1};
  own.temporary = {temporary.data, part.kernel->temporary_bytes()};
  own.persistent = {};
  const Status status = part.kernel->Run(own);
  return status.ok() ? status : Status(status.code(), StrCat(part.name, ": ", status.message()));
}

Status GraphKernel::InitializePart(const Part& part, const KernelArguments& arguments) const {
  KernelArguments own = arguments;
  std::vector<Buffer> inputs;
  uint64_t offset = 0;
  const uint64_t before = PreparedBytes(part);
  const Buffer rest = {arguments.temporary.data + before, arguments.temporary.size - before};
  for (const Place& input : part.inputs) {
    inputs.push_back(ResolveKnown(input, arguments));
    if (input.in != Place::In::kPrepared) continue;
    const Prepared& prepared = layout_.prepared[input.index];
    const Buffer whole = {arguments.temporary.data + offset, prepared.bytes};
    offset += SaturatingAlignUp(prepared.bytes, kPreparedAlignment);
    for (const Part& maker : prepared.parts) {
      ANYDML_RETURN_IF_ERROR(Prepare(maker, At(whole, maker.outputs[0]), rest, arguments));
    }
    inputs.back() = At(whole, input);
  }
  const std::vector<Buffer> outputs(part.outputs.size());
  own.inputs = inputs;
  own.outputs = outputs;
  own.persistent = Resolve(part.persistent, arguments);
  const uint64_t temporary = part.kernel->initialization_temporary_bytes();
  own.temporary = temporary == 0 ? Buffer{} : Buffer{rest.data, temporary};
  const Status status = part.kernel->Initialize(own);
  return status.ok() ? status : Status(status.code(), StrCat(part.name, ": ", status.message()));
}

Status GraphKernel::Initialize(const KernelArguments& arguments) const {
  for (const Part& part : layout_.preparations) {
    ANYDML_RETURN_IF_ERROR(
        Prepare(part, Resolve(part.outputs[0], arguments), arguments.temporary, arguments));
  }
  for (const Part& part : layout_.parts) {
    if (part.kernel->persistent_bytes() != 0) ANYDML_RETURN_IF_ERROR(InitializePart(part, arguments));
  }
  return {};
}

std::string GraphKernel::Describe(uint32_t number, const DataErrorNote& note) const {
  for (auto part = layout_.parts.rbegin(); part != layout_.parts.rend(); ++part) {
    if (number >= part->first_note) {
      return StrCat(part->name, ": ", part->kernel->Describe(number - part->first_note, note));
    }
  }
  return {};
}

}  // namespace anydml
