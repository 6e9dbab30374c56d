#include "onnx/run/compiled_graphs.h"

#include <algorithm>

#include "onnx/file/model.h"

namespace anydml::onnx {
namespace {

// The most weights per graph, or this share of all weights, whichever is more, because they are in memory
// twice. A cut costs some time, since nothing is fused across it.
constexpr uint64_t kWeightBytes = uint64_t{32} << 20;
// On a GPU, which has its own memory, and where tensors at a cut are converted to another layout.
constexpr uint64_t kCopiedWeightBytes = uint64_t{1} << 30;
constexpr uint64_t kWeightShare = 8;

constexpr uintptr_t kAlignment = 8;  // of any element

// Smaller ones are not worth a comparison.
constexpr uint64_t kLeastShared = 1 << 20;
// Buffers are compared in pieces, because the host may not have room for them.
constexpr uint64_t kComparedBytes = uint64_t{8} << 20;

Status ReadPiece(ID3D12Resource* buffer, uint64_t offset, uint64_t bytes, client::Session* session,
                 client::HostBuffer* out) {
  Microsoft::WRL::ComPtr<ID3D12Resource> piece;
  ANYDML_RETURN_IF_ERROR(session->Copy(buffer, offset, bytes, &piece));
  return session->Read(piece.Get(), out);
}

// Whether two buffers of equal size have the same contents.
Status CompareBuffers(ID3D12Resource* a, ID3D12Resource* b, client::Session* session, bool* equal) {
  const uint64_t bytes = a->GetDesc().Width;
  client::HostBuffer of_a, of_b;
  *equal = true;
  for (uint64_t done = 0; done < bytes && *equal; done += kComparedBytes) {
    const uint64_t piece = std::min(kComparedBytes, bytes - done);
    ANYDML_RETURN_IF_ERROR(ReadPiece(a, done, piece, session, &of_a));
    ANYDML_RETURN_IF_ERROR(ReadPiece(b, done, piece, session, &of_b));
    *equal = of_a == of_b;
  }
  return {};
}

}  // namespace

uint64_t BufferBytes(ElementType type, const Shape& shape) {
  return (PackedBytes(type, shape).value_or(0) + 3) / 4 * 4;
}

// A device that takes host memory reads weights where the file is mapped; another one gets a copy.
struct CompiledGraphs::Weights {
  std::vector<DML_BUFFER_BINDING> bindings;  // of all inputs; empty if none is a weight
  std::vector<Buffer> buffers;
  std::vector<std::vector<uint64_t>> copies;  // of misaligned ones

  Status Take(const GraphBuilder::Description& description, client::Session* session) {
    for (size_t i = 0; i < description.inputs.size(); ++i) {
      const Tensor* const tensor = description.inputs[i].constant;
      if (tensor == nullptr) continue;
      bindings.resize(description.inputs.size());
      Buffer& buffer = buffers.emplace_back();
      ANYDML_RETURN_IF_ERROR(session->adapter().traits.TakesHostMemory != 0
                                 ? Wrap(*tensor, session, &buffer)
                                 : Upload(*tensor, session, &buffer));
      bindings[i] = {buffer.Get(), 0, BufferBytes(tensor->type, tensor->shape)};
    }
    return {};
  }

 private:
  Status Wrap(const Tensor& tensor, client::Session* session, Buffer* out) {
    auto* memory = const_cast<std::byte*>(tensor.data.data());  // initialisation only reads it
    const uintptr_t alignment = std::clamp<uintptr_t>(BitsOf(tensor.type) / 8, 1, kAlignment);
    // Tensors are read in whole units of 4 bytes.
    if (reinterpret_cast<uintptr_t>(memory) % alignment != 0 || tensor.data.size() % 4 != 0) {
      std::vector<uint64_t>& copy = copies.emplace_back((tensor.data.size() + 7) / 8);
      memory = reinterpret_cast<std::byte*>(copy.data());
      std::copy(tensor.data.begin(), tensor.data.end(), memory);
      DropPages(tensor);
    }
    return session->Wrap(memory, tensor.data.size(), out);
  }

  static Status Upload(const Tensor& tensor, client::Session* session, Buffer* out) {
    const uint64_t bytes = BufferBytes(tensor.type, tensor.shape);
    std::vector<std::byte> padded;
    if (tensor.data.size() != bytes) {
      padded.assign(tensor.data.begin(), tensor.data.end());
      padded.resize(bytes);
    }
    ANYDML_RETURN_IF_ERROR(session->Upload(padded.empty() ? tensor.data : padded, out));
    DropPages(tensor);
    return {};
  }
};

CompiledGraphs::Place CompiledGraphs::PlaceOf(const GraphBuilder::Description::GraphInput& input) {
  if (input.constant != nullptr) return {};
  if (input.value == kAbsent) return {Place::In::kSlot, slots_.at(input.node)};
  const auto [found, added] = input_numbers_.try_emplace(input.value, inputs_.size());
  if (added) inputs_.push_back(input.value);
  return {Place::In::kInput, found->second};
}

Status CompiledGraphs::ShareWeights(const CompiledGraphs& other, client::Session* session) {
  Buffer& own = graphs_.back().compiled.persistent;
  if (graphs_.size() > other.graphs_.size() || !own) return {};
  const Buffer& known = other.graphs_[graphs_.size() - 1].compiled.persistent;
  const uint64_t bytes = own->GetDesc().Width;
  if (!known || known->GetDesc().Width != bytes || bytes < kLeastShared) return {};
  bool equal = false;
  const Status status = CompareBuffers(own.Get(), known.Get(), session, &equal);
  if (status.code() == Code::kOutOfMemory && !session->removed()) {  // continues without sharing
    session->Discard();
    return {};
  }
  ANYDML_RETURN_IF_ERROR(status);
  if (!equal) return {};
  own = known;
  persistent_bytes_ -= bytes;
  return {};
}

Status CompiledGraphs::Add(const GraphBuilder& builder, const GraphBuilder::Description& description,
                           const CompiledGraphs* other, client::Session* session, DML_EXECUTION_FLAGS flags) {
  Graph& graph = graphs_.emplace_back();
  for (const auto& input : description.inputs) graph.inputs.push_back(PlaceOf(input));
  for (const Source& source : description.outputs) {
    const auto [found, added] = slots_.try_emplace(source, slot_bytes_.size());
    if (added) slot_bytes_.push_back(builder.BytesOf(source));
    graph.outputs.push_back(found->second);
  }
  ANYDML_RETURN_IF_ERROR(session->CompileGraph(description.desc, flags, &graph.compiled));
  const DML_BINDING_PROPERTIES properties = graph.compiled.compiled->GetBindingProperties();
  temporary_bytes_ = std::max(temporary_bytes_, properties.TemporaryResourceSize);
  persistent_bytes_ += properties.PersistentResourceSize;
  Weights weights;
  ANYDML_RETURN_IF_ERROR(weights.Take(description, session));
  ANYDML_RETURN_IF_ERROR(session->Initialize(weights.bindings, &graph.compiled));
  std::string data_error;
  ANYDML_RETURN_IF_ERROR(session->Execute(&data_error));
  for (const auto& input : description.inputs) {
    if (input.constant != nullptr) DropPages(*input.constant);
  }
  return other != nullptr ? ShareWeights(*other, session) : Status();
}

Status CompiledGraphs::Create(GraphBuilder* builder, std::span<const Source> outputs,
                              const CompiledGraphs* other, client::Session* session,
                              DML_EXECUTION_FLAGS flags) {
  for (const Source& source : outputs) {
    slots_[source] = slot_bytes_.size();
    slot_bytes_.push_back(builder->BytesOf(source));
  }
  const uint64_t least = session->adapter().traits.TakesHostMemory != 0 ? kWeightBytes : kCopiedWeightBytes;
  const uint64_t limit = std::max(least, builder->WeightBytes(outputs) / kWeightShare);
  for (const GraphBuilder::Range& range : builder->Cut(outputs, limit)) {
    GraphBuilder::Description description;
    builder->Describe(outputs, range, &description);
    if (!description.nodes.empty()) ANYDML_RETURN_IF_ERROR(Add(*builder, description, other, session, flags));
    builder->ReleaseConstants(outputs, range.end);
  }
  input_numbers_.clear();
  slots_.clear();
  return {};
}

std::string CompiledGraphs::explanation() const {
  std::string lines;
  for (const Graph& graph : graphs_) {
    lines += graph.compiled.explanation;
    if (!lines.ends_with('\n')) lines += '\n';
  }
  return lines;
}

Status CompiledGraphs::Record(std::span<const Buffer> inputs, std::span<const uint64_t> input_bytes,
                              std::span<const Buffer> slots, Buffer* temporary,
                              client::Session* session) const {
  if (temporary_bytes_ > 0 && !*temporary)
    ANYDML_RETURN_IF_ERROR(session->Allocate(temporary_bytes_, temporary));
  for (const Graph& graph : graphs_) {
    std::vector<DML_BUFFER_BINDING> read(graph.inputs.size()), written(graph.outputs.size());
    for (size_t i = 0; i < read.size(); ++i) {
      const Place& place = graph.inputs[i];
      if (place.in == Place::In::kInput) read[i] = {inputs[place.index].Get(), 0, input_bytes[place.index]};
      if (place.in == Place::In::kSlot) read[i] = {slots[place.index].Get(), 0, slot_bytes_[place.index]};
    }
    for (size_t i = 0; i < written.size(); ++i) {
      const size_t slot = graph.outputs[i];
      written[i] = {slots[slot].Get(), 0, slot_bytes_[slot]};
    }
    ANYDML_RETURN_IF_ERROR(session->Record(graph.compiled, read, written, temporary->Get()));
    session->RecordBarrier();
  }
  return {};
}

}  // namespace anydml::onnx
