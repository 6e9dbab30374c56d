#include "dml.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include <DirectML.h>
#include <anydml.h>
#include <wrl/client.h>

#include "common/scoped_variable.h"
#include "common/session.h"

namespace anydml::bench {
namespace {

using Buffer = Microsoft::WRL::ComPtr<ID3D12Resource>;

void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

// A packed tensor.
struct Tensor {
  Tensor(const std::string& type, std::vector<UINT> tensor_sizes) : sizes(std::move(tensor_sizes)) {
    DML_TENSOR_DATA_TYPE dml_type = DML_TENSOR_DATA_TYPE_UINT32;
    uint64_t bytes = 4;
    if (type == "float32") dml_type = DML_TENSOR_DATA_TYPE_FLOAT32;
    if (type == "float16") dml_type = DML_TENSOR_DATA_TYPE_FLOAT16, bytes = 2;
    if (type == "int8") dml_type = DML_TENSOR_DATA_TYPE_INT8, bytes = 1;
    if (type == "int32") dml_type = DML_TENSOR_DATA_TYPE_INT32;
    if (type == "int64") dml_type = DML_TENSOR_DATA_TYPE_INT64, bytes = 8;
    for (UINT size : sizes) bytes *= size;
    buffer = {dml_type,
              DML_TENSOR_FLAG_NONE,
              static_cast<UINT>(sizes.size()),
              sizes.data(),
              nullptr,
              (bytes + 3) & ~uint64_t{3},
              0};
  }
  Tensor(const Tensor&) = delete;
  const std::vector<UINT> sizes;
  DML_BUFFER_TENSOR_DESC buffer;
  const DML_TENSOR_DESC desc{DML_TENSOR_TYPE_BUFFER, &buffer};
};

std::vector<UINT> Padded(const std::vector<UINT>& sizes, size_t rank) {
  std::vector<UINT> padded(rank - std::min(rank, sizes.size()), 1);
  padded.insert(padded.end(), sizes.begin(), sizes.end());
  return padded;
}

// Whole buffers.
std::vector<DML_BUFFER_BINDING> Bindings(const std::vector<Buffer>& buffers) {
  std::vector<DML_BUFFER_BINDING> bindings;
  for (const Buffer& buffer : buffers) bindings.push_back({buffer.Get(), 0, buffer->GetDesc().Width});
  return bindings;
}

std::unique_ptr<tools::Session> CreateSession() {
  tools::SessionOptions options;
  options.debug = false;
  std::unique_ptr<tools::Session> session;
  Check(tools::Session::Create(options, &session));
  return session;
}

std::vector<double> ExecuteTimed(tools::Session* session, const tools::RecordedList& list, uint32_t count,
                                 uint32_t warm) {
  std::vector<double> milliseconds;
  for (uint32_t i = 0; i < warm + count; ++i) {
    double seconds = 0;
    Check(session->Execute(list));
    Check(session->DeviceSeconds(list, &seconds));
    if (i >= warm) milliseconds.push_back(1e3 * seconds);
  }
  Check(session->CheckDevices());
  return milliseconds;
}

}  // namespace

struct DmlRun::State {
  // The buffers of one dispatch.
  struct Set {
    std::vector<Buffer> inputs, outputs;
  };

  const std::unique_ptr<tools::Session> session = CreateSession();
  tools::CompiledOperator op;
  std::vector<Set> sets;
  std::vector<uint64_t> output_bytes;
  tools::RecordedList list;
  std::optional<tools::RecordedList> timed_list;
  std::string implementation;

  void Upload(const Bytes& bytes, Set* set) {
    Bytes whole_words = bytes;
    whole_words.resize((bytes.size() + 3) & ~size_t{3});
    Check(session->Upload(whole_words, &set->inputs.emplace_back()));
  }

  void AddSet(const Case& c, const Inputs& inputs) {
    Set& set = sets.emplace_back();
    Upload(inputs.input, &set);
    if (c.op != "topk") {
      Upload(inputs.indices, &set);
      Upload(inputs.updates, &set);
    }
    for (const uint64_t bytes : output_bytes) {
      set.outputs.push_back(set.inputs[0]);
      if (!c.in_place) Check(session->Allocate((bytes + 3) & ~uint64_t{3}, &set.outputs.back()));
    }
  }

  void Compile(const DML_OPERATOR_DESC& desc) {
    Check(session->Compile(desc, DML_EXECUTION_FLAG_NONE, {}, &op));
    implementation = AnyDmlGetImplementation(op.compiled.Get());
  }

  void Dispatch(const Set& set) { Check(session->Record(op, Bindings(set.inputs), Bindings(set.outputs))); }
};

DmlRun::DmlRun(const Case& c, const Inputs& inputs, const std::string& implementation, uint32_t copies) {
  std::optional<tools::ScopedVariable> force;  // read when the session's device is made
  if (!implementation.empty()) force.emplace("ANYDML_IMPLEMENTATION", implementation);
  state_ = std::make_unique<State>();
  State& s = *state_;
  if (c.op == "topk") {
    std::vector<UINT> result_sizes = c.sizes;
    result_sizes[c.axis] = c.k;
    const Tensor input(c.type, c.sizes), values(c.type, result_sizes), indices("uint32", result_sizes);
    const DML_TOP_K1_OPERATOR_DESC desc{&input.desc, &values.desc, &indices.desc,
                                        c.axis,      c.k,          DML_AXIS_DIRECTION_DECREASING};
    s.Compile({DML_OPERATOR_TOP_K1, &desc});
    const uint64_t count = c.elements() / c.sizes[c.axis] * c.k;
    s.output_bytes = {count * c.element_bytes(), count * sizeof(uint32_t)};
  } else {
    // All tensors have one rank; the dimensions in front are 1.
    const size_t rank = std::max(c.sizes.size(), size_t{2});
    std::vector<UINT> update_sizes(c.sizes.begin() + c.tuple_size, c.sizes.end());
    update_sizes.insert(update_sizes.begin(), c.tuples);
    const Tensor input(c.type, Padded(c.sizes, rank)),
        indices("uint32", Padded({c.tuples, c.tuple_size}, rank)),
        updates(c.type, Padded(update_sizes, rank)), output(c.type, Padded(c.sizes, rank));
    const DML_SCATTER_ND_OPERATOR_DESC desc{
        &input.desc, &indices.desc, &updates.desc, &output.desc, static_cast<UINT>(c.sizes.size()), 2};
    s.Compile({DML_OPERATOR_SCATTER_ND, &desc});
    s.output_bytes = {c.elements() * c.element_bytes()};
  }
  for (uint32_t i = 0; i < std::max(copies, 1u); ++i) s.AddSet(c, inputs);
  Check(s.session->BeginList(/*timestamps=*/false));
  for (uint32_t i = 0; i < c.dispatches; ++i) {
    // They write the same buffer, which Direct3D allows only with a barrier in between.
    if (i > 0) s.session->RecordBarrier();
    s.Dispatch(s.sets[0]);
  }
  Check(s.session->EndList(&s.list));
}

DmlRun::~DmlRun() = default;

std::vector<double> DmlRun::TimeOnDevice(uint32_t count, uint32_t warm) {
  State& s = *state_;
  if (!s.timed_list) {
    Check(s.session->BeginList(/*timestamps=*/true));
    for (const State::Set& set : s.sets) s.Dispatch(set);
    Check(s.session->EndList(&s.timed_list.emplace()));
  }
  std::vector<double> times = ExecuteTimed(s.session.get(), *s.timed_list, count, warm);
  for (double& time : times) time /= static_cast<double>(s.sets.size());
  return times;
}

void DmlRun::Run() { Check(state_->session->Execute(state_->list)); }

std::vector<Bytes> DmlRun::ReadOutputs() {
  std::vector<Bytes> outputs(state_->output_bytes.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    Check(state_->session->Read(state_->sets[0].outputs[i].Get(), &outputs[i]));
    outputs[i].resize(state_->output_bytes[i]);
  }
  return outputs;
}

const std::string& DmlRun::implementation() const { return state_->implementation; }

double CopyBandwidth() {
  constexpr uint64_t kBytes = uint64_t{1} << 30;
  constexpr int kCopies = 4;
  const auto session = CreateSession();
  Buffer from, to;
  Check(session->Allocate(kBytes, &from));
  Check(session->Allocate(kBytes, &to));
  tools::RecordedList list;
  Check(session->BeginList(/*timestamps=*/true));
  for (int i = 0; i < kCopies; ++i) session->RecordCopy(to.Get(), from.Get());
  Check(session->EndList(&list));
  std::vector<double> times = ExecuteTimed(session.get(), list, 25, 5);
  std::nth_element(times.begin(), times.begin() + 12, times.end());
  return 2.0 * kBytes * kCopies / times[12];
}

}  // namespace anydml::bench
