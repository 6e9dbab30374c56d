#include "dml.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include <DirectML.h>
#include <anydml.h>
#include <wrl/client.h>

#include "client/c_desc.h"
#include "client/scoped_variable.h"
#include "client/session.h"

namespace anydml::bench {
namespace {

using Buffer = Microsoft::WRL::ComPtr<ID3D12Resource>;

// Whole buffers; null ones are absent tensors.
std::vector<DML_BUFFER_BINDING> Bindings(const std::vector<Buffer>& buffers) {
  std::vector<DML_BUFFER_BINDING> bindings;
  for (const Buffer& buffer : buffers) {
    bindings.push_back({buffer.Get(), 0, buffer ? buffer->GetDesc().Width : 0});
  }
  return bindings;
}

std::unique_ptr<client::Session> CreateSession() {
  client::SessionOptions options;
  options.debug = false;
  std::unique_ptr<client::Session> session;
  Check(client::Session::Create(options, &session));
  return session;
}

std::vector<double> ExecuteTimed(client::Session* session, const client::RecordedList& list, uint32_t count,
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

  const std::unique_ptr<client::Session> session = CreateSession();
  client::CompiledOperator op;
  std::vector<CaseNode> nodes;      // of a graph
  std::deque<client::CDesc> descs;  // of the nodes
  client::GraphPlan plan;
  bool compiles = false;
  std::vector<Set> sets;
  std::vector<uint64_t> output_bytes;  // 0: absent
  client::RecordedList list;
  std::optional<client::RecordedList> timed_list;
  std::string implementation;

  void Upload(const Bytes& bytes, Set* set) {
    Bytes whole_words = bytes;
    whole_words.resize((bytes.size() + 3) & ~size_t{3});
    Buffer& buffer = set->inputs.emplace_back();
    if (!bytes.empty()) Check(session->Upload(whole_words, &buffer));
  }

  void AddSet(const Case& c, const Inputs& inputs) {
    Set& set = sets.emplace_back();
    for (size_t i = 0; i < inputs.size(); ++i) Upload(i < c.first_weight ? inputs[i] : Bytes(), &set);
    for (const uint64_t bytes : output_bytes) {
      set.outputs.push_back(c.in_place ? set.inputs[0] : Buffer());
      if (!c.in_place && bytes != 0)
        Check(session->Allocate((bytes + 3) & ~uint64_t{3}, &set.outputs.back()));
    }
  }

  void CompileGraph(const Case& c, const Inputs& inputs) {
    PlanGraph(c);
    Check(session->CompileGraph(plan, DML_EXECUTION_FLAG_NONE, &op));
    Set weights;
    for (size_t i = 0; i < inputs.size(); ++i) Upload(i < c.first_weight ? Bytes() : inputs[i], &weights);
    const bool any = c.first_weight < inputs.size();
    Check(session->Initialize(any ? Bindings(weights.inputs) : std::vector<DML_BUFFER_BINDING>(), &op));
    std::string ignored;
    Check(session->Execute(&ignored));  // the weights' buffers are needed until then
  }

  void PlanGraph(const Case& c) {
    plan.input_count = static_cast<UINT>(c.desc.inputs().size());
    plan.output_count = static_cast<UINT>(c.desc.outputs().size());
    std::map<std::string, std::pair<UINT, UINT>> written;  // node and output
    nodes = c.nodes;
    for (UINT n = 0; n < nodes.size(); ++n) {
      const CaseNode& node = nodes[n];
      plan.nodes.push_back({&descs.emplace_back(node.desc).get(), nullptr});
      for (UINT t = 0; t < node.inputs.size(); ++t) {
        const std::string& name = node.inputs[t];
        if (name.empty()) continue;
        if (name[0] == 'i') {
          plan.input_edges.push_back({static_cast<UINT>(std::stoul(name.substr(1))), n, t, nullptr});
        } else {
          const auto [from, output] = written.at(name);
          plan.intermediate_edges.push_back({from, output, n, t, nullptr});
        }
      }
      for (UINT t = 0; t < node.outputs.size(); ++t) {
        written[node.outputs[t]] = {n, t};
        if (node.outputs[t][0] != 'o') continue;
        plan.output_edges.push_back(
            {n, t, static_cast<UINT>(std::stoul(node.outputs[t].substr(1))), nullptr});
      }
    }
  }

  void Dispatch(const Set& set) { Check(session->Record(op, Bindings(set.inputs), Bindings(set.outputs))); }
};

DmlRun::DmlRun(const Case& c, const Inputs& inputs, const std::string& implementation, uint32_t copies) {
  std::optional<client::ScopedVariable> force;  // read when the session's device is created
  if (!implementation.empty()) force.emplace("ANYDML_IMPLEMENTATION", implementation);
  state_ = std::make_unique<State>();
  State& s = *state_;
  if (c.nodes.empty()) {
    const client::CDesc desc(c.desc);
    Check(s.session->Compile(desc.get(), DML_EXECUTION_FLAG_NONE, {}, &s.op));
  } else {
    s.CompileGraph(c, inputs);
  }
  s.implementation = AnyDmlGetImplementation(s.op.compiled.Get());
  for (const TensorDesc* output : c.desc.outputs()) {
    s.output_bytes.push_back(output == nullptr ? 0 : DataBytes(*output));
  }
  for (uint32_t i = 0; i < std::max(copies, 1u); ++i) s.AddSet(c, inputs);
  Check(s.session->BeginList(/*timestamps=*/false));
  for (uint32_t i = 0; i < c.dispatches; ++i) {
    // They write to the same buffer, which Direct3D requires a barrier for.
    if (i > 0) s.session->RecordBarrier();
    s.Dispatch(s.sets[0]);
  }
  Check(s.session->EndList(&s.list));
  s.compiles = c.compiles;
  if (s.compiles) Check(s.session->Execute(s.list));  // runs will not execute it
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

void DmlRun::Run() {
  if (!state_->compiles) return Check(state_->session->Execute(state_->list));
  client::CompiledOperator compiled;
  Check(state_->session->CompileGraph(state_->plan, DML_EXECUTION_FLAG_NONE, &compiled));
}

std::vector<Bytes> DmlRun::ReadOutputs() {
  std::vector<Bytes> outputs(state_->output_bytes.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (state_->output_bytes[i] == 0) continue;
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
  client::RecordedList list;
  Check(session->BeginList(/*timestamps=*/true));
  for (int i = 0; i < kCopies; ++i) session->RecordCopy(to.Get(), from.Get(), kBytes);
  Check(session->EndList(&list));
  std::vector<double> times = ExecuteTimed(session.get(), list, 25, 5);
  std::nth_element(times.begin(), times.begin() + 12, times.end());
  return 2.0 * kBytes * kCopies / times[12];
}

}  // namespace anydml::bench
