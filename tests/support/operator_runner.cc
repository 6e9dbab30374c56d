#include "support/operator_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "schema/validate.h"
#include "support/device_run.h"
#include "support/guarded_buffer.h"

namespace anydml::testing {
namespace {

class Listener final : public DataErrorSink {
 public:
  void ReportDataError(const std::string& message) override { messages.push_back(message); }
  std::vector<std::string> messages;
};

// Takes the tasks from the last to the first: whoever relies on their order is found out.
class BackwardExecutor final : public Executor {
 public:
  void Run(uint32_t count, Task task, void* context) override {
    while (count-- > 0) task(context, count);
  }
};

// The backend that an implementation is for: "cuda" of "cuda.rows".
std::string BackendOf(const std::string& implementation) {
  return implementation.empty() ? "cpu" : implementation.substr(0, implementation.find('.'));
}

// Bytes of `tensor` that belong to no element.
std::vector<size_t> Gaps(const TensorDesc& tensor) {
  std::vector<bool> covered(tensor.total_bytes);
  const size_t bits = BitSize(tensor.type);
  for (uint64_t offset : RowMajorOffsets(tensor)) {
    for (size_t b = offset * bits / 8; b < (offset * bits + bits + 7) / 8; ++b) covered[b] = true;
  }
  std::vector<size_t> gaps;
  for (size_t i = 0; i < covered.size(); ++i) {
    if (!covered[i]) gaps.push_back(i);
  }
  return gaps;
}

void RunKernel(const OperatorDesc& desc, const LoweredOperator& lowered, const std::vector<Bytes>& inputs,
               const RunOptions& options, RunResult* result) {
  Backend* const gpu = FindGpu(BackendOf(lowered.implementation));
  // Turn about. A GPU has no guard pages, and buffers keep their alignment there.
  static bool at_end = false;
  at_end = !at_end && gpu == nullptr;
  std::vector<std::unique_ptr<GuardedBuffer>> memory;
  std::vector<Buffer> in, out;
  for (const Bytes& bytes : inputs) {
    in.push_back(memory.emplace_back(std::make_unique<GuardedBuffer>(bytes, at_end))->buffer());
  }
  const auto output_tensors = desc.outputs();
  std::vector<Bytes> before;
  for (size_t i = 0; i < output_tensors.size(); ++i) {
    if (i == 0 && options.in_place) {
      out.push_back(in[0]);
      before.push_back(inputs[0]);
    } else {
      memory.push_back(std::make_unique<GuardedBuffer>(output_tensors[i]->total_bytes, at_end));
      out.push_back(memory.back()->buffer());
      before.push_back(memory.back()->content());
    }
  }
  // Aligned like a binding: what is put into it needs that.
  memory.push_back(
      std::make_unique<GuardedBuffer>((lowered.kernel->temporary_bytes() + 15) / 16 * 16, at_end));
  Listener listener;
  BackwardExecutor executor;
  const KernelArguments arguments = {.inputs = in,
                                     .outputs = out,
                                     .temporary = memory.back()->buffer(),
                                     .data_errors = options.listen ? &listener : nullptr,
                                     .executor = options.threads > 1 ? &executor : nullptr};
  if (gpu != nullptr) {
    std::vector<Buffer> blocks;
    for (const auto& buffer : memory) blocks.push_back(buffer->with_guards());
    const Status status = RunOnDevice(*gpu, *lowered.kernel, blocks, arguments);
    EXPECT_TRUE(status.ok()) << lowered.implementation << ": " << status.message();
  } else {
    const Status status = lowered.kernel->Run(arguments);
    EXPECT_TRUE(status.ok()) << lowered.implementation << ": " << status.message();
  }

  for (const auto& buffer : memory) EXPECT_TRUE(buffer->GuardsIntact()) << lowered.implementation;
  for (size_t i = options.in_place ? 1 : 0; i < inputs.size(); ++i) {
    EXPECT_EQ(memory[i]->content(), inputs[i]) << lowered.implementation << " wrote to input " << i;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const auto* data = reinterpret_cast<const uint8_t*>(out[i].data);
    result->outputs.emplace_back(data, data + out[i].size);
    for (size_t gap : Gaps(*output_tensors[i])) {
      EXPECT_EQ(data[gap], before[i][gap]) << lowered.implementation << " wrote to a gap of output " << i;
    }
  }
  result->data_errors = listener.messages;
}

}  // namespace

OperatorDesc MakeDesc(const char* operator_name,
                      std::initializer_list<std::pair<const char*, FieldValue>> fields) {
  OperatorDesc desc;
  desc.schema = FindOperator(operator_name);
  desc.fields.resize(desc.schema->fields.size());
  for (const auto& [name, value] : fields) desc.fields.at(FindField(*desc.schema, name)) = value;
  return desc;
}

TensorDesc Packed(DataType type, const std::vector<uint32_t>& sizes) {
  return PackedTensor(type, sizes.data(), static_cast<uint32_t>(sizes.size()));
}

TensorDesc Strided(DataType type, const std::vector<uint32_t>& sizes, const std::vector<uint32_t>& strides) {
  TensorDesc tensor = Packed(type, sizes);
  std::copy(strides.begin(), strides.end(), tensor.strides.begin());
  tensor.total_bytes = MinimumTotalBytes(tensor);
  return tensor;
}

TensorDesc MakeTensor(DataType type, const std::vector<uint32_t>& sizes, LayoutKind layout,
                      std::mt19937_64& random) {
  TensorDesc tensor = Packed(type, sizes);
  if (layout == LayoutKind::kPacked) return tensor;
  std::vector<uint32_t> order(sizes.size());  // outermost first
  std::iota(order.begin(), order.end(), 0);
  if (layout == LayoutKind::kTransposed) std::shuffle(order.begin(), order.end(), random);
  uint32_t stride = layout == LayoutKind::kPadded ? Uniform(random, 1, 3) : 1;
  for (size_t i = order.size(); i-- > 0;) {
    const uint32_t d = order[i];
    const bool repeated = layout == LayoutKind::kBroadcast && Uniform(random, 0, 1) == 0;
    // A stride on a dimension of size 1 never matters: make it absurd.
    tensor.strides[d] = repeated ? 0 : sizes[d] == 1 ? 0xFFFFFF : stride;
    if (!repeated) stride *= sizes[d];
    if (layout != LayoutKind::kBroadcast) stride += Uniform(random, 0, 2) == 0 ? Uniform(random, 1, 3) : 0;
  }
  tensor.total_bytes = MinimumTotalBytes(tensor) + 4 * Uniform(random, 0, 2);
  return tensor;
}

std::vector<uint64_t> RowMajorOffsets(const TensorDesc& tensor) {
  std::vector<uint64_t> offsets(ElementCount(tensor));
  for (uint64_t i = 0; i < offsets.size(); ++i) {
    uint64_t rest = i;
    for (uint32_t d = tensor.rank; d-- > 0; rest /= tensor.sizes[d]) {
      offsets[i] += (rest % tensor.sizes[d]) * tensor.strides[d];
    }
  }
  return offsets;
}

Bytes RandomBytes(const TensorDesc& tensor, std::mt19937_64& random) {
  Bytes bytes(tensor.total_bytes);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  // Half of the tensors: a few values only. Floating point ones are special: zeros of
  // both signs, denormals, infinities, NaNs of several payloads and signs.
  const uint32_t kind = Uniform(random, 0, 3);
  if (kind >= 2) return bytes;
  static constexpr uint32_t kFloats[] = {0,          0x80000000, 1,          0x80000001,
                                         0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001,
                                         0x7F800001, 0x3F800000, 0xBF800000, 0x7F7FFFFF};
  static constexpr uint16_t kHalves[] = {0,      0x8000, 1,      0x8001, 0x7C00, 0xFC00,
                                         0x7E00, 0xFE01, 0x7C01, 0x3C00, 0xBC00, 0x7BFF};
  const size_t width = BitSize(tensor.type) / 8;
  const uint32_t distinct = kind == 0 ? 12 : 3;
  for (size_t at = 0; at + width <= bytes.size(); at += width) {
    const uint32_t pick = Uniform(random, 0, distinct - 1);
    uint64_t value = pick < distinct / 2 ? pick : uint64_t{0} - pick;
    if (tensor.type == DataType::kFloat32) value = kFloats[pick];
    if (tensor.type == DataType::kFloat16) value = kHalves[pick];
    std::memcpy(bytes.data() + at, &value, width);
  }
  return bytes;
}

RunResult RunOperator(const OperatorDesc& desc, const std::vector<Bytes>& inputs, const RunOptions& options) {
  const Operator& op = ImplementationOf(desc);
  RunResult result;
  Status checked = ValidateOperatorDesc(desc, options.level);
  if (checked.ok()) checked = op.check(desc, options.level);
  EXPECT_TRUE(checked.ok()) << checked.message();
  if (!checked.ok()) return result;
  LoweredOperator lowered;
  const std::string backend = BackendOf(options.implementation);
  Backend* const gpu = FindGpu(backend);
  const Status status = LowerOperator(op, desc,
                                      {.backend = backend,
                                       .implementation = options.implementation,
                                       .level = options.level,
                                       .threads = options.threads,
                                       .device = gpu != nullptr ? &gpu->device_properties() : nullptr},
                                      &lowered);
  result.implementation = lowered.implementation;
  result.explanation = lowered.explanation;
  if (!status.ok()) {
    // Only a forced implementation may refuse, never the reference.
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_FALSE(options.implementation.empty() || options.implementation == "cpu.reference")
        << status.message();
    return result;
  }
  RunKernel(desc, lowered, inputs, options, &result);
  return result;
}

RunResult ExpectAllAgree(const OperatorDesc& desc, const std::vector<Bytes>& inputs, bool in_place) {
  RunResult reference = RunOperator(desc, inputs, {.implementation = "cpu.reference", .in_place = in_place});
  for (const char* name : RunnableImplementations(desc)) {
    if (std::string(name) == "cpu.reference") continue;
    for (const uint32_t threads : {1u, 2u, 7u}) {
      if (threads > 1 && BackendOf(name) != "cpu") break;
      const RunResult result =
          RunOperator(desc, inputs, {.implementation = name, .in_place = in_place, .threads = threads});
      if (result.implementation.empty()) break;  // does not fit
      EXPECT_EQ(result.outputs, reference.outputs) << name << ", threads " << threads;
      EXPECT_EQ(result.data_errors, reference.data_errors) << name << ", threads " << threads;
    }
  }
  return reference;
}

std::vector<const char*> RunnableImplementations(const OperatorDesc& desc) {
  const char* wanted = std::getenv("ANYDML_TEST_BACKEND");
  std::vector<const char*> names;
  for (const char* name : ImplementationOf(desc).implementations) {
    const std::string backend = BackendOf(name);
    if (wanted != nullptr && backend != wanted) continue;
    if (backend == "cpu" || FindGpu(backend) != nullptr) names.push_back(name);
  }
  return names;
}

const Operator& ImplementationOf(const OperatorDesc& desc) { return *FindImplementation(desc.schema->type); }

uint64_t TestSeed() {
  const char* text = std::getenv("ANYDML_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : 20240607;
}

int TestIterations(int usual) {
  const char* percent = std::getenv("ANYDML_TEST_PERCENT");
  return percent == nullptr ? usual : std::max(1, usual * std::atoi(percent) / 100);
}

uint32_t Uniform(std::mt19937_64& random, uint32_t low, uint32_t high) {
  return low + static_cast<uint32_t>(random() % (uint64_t{high} - low + 1));
}

}  // namespace anydml::testing
