// Runs and compares implementations of operators. Longer than most files: one table of buffers and their
// guards is what all of it works on.
#include "support/operator_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <variant>

#include "schema/validate.h"
#include "support/compare.h"
#include "support/device_run.h"
#include "support/guarded_buffer.h"

namespace anydml::testing {
namespace {

class Listener final : public DataErrorSink {
 public:
  void ReportDataError(const std::string& message) override { messages.push_back(message); }
  std::vector<std::string> messages;
};

// Runs the tasks from the last to the first, which reveals code that relies on their order.
class BackwardExecutor final : public Executor {
 public:
  void Run(uint32_t count, Task task, void* context) override {
    while (count-- > 0) task(context, count);
  }
};

// The backend of an implementation: "cuda" of "cuda.rows".
std::string BackendOf(const std::string& implementation) {
  return implementation.empty() ? "cpu" : implementation.substr(0, implementation.find('.'));
}

// The bytes of `tensor` that belong to no element.
std::vector<size_t> Gaps(const TensorDesc& tensor) {
  const size_t bits = BitSize(tensor.type);
  if (IsPacked(tensor)) {
    const size_t end = (ElementCount(tensor) * bits + 7) / 8;
    std::vector<size_t> behind(tensor.total_bytes - end);
    std::iota(behind.begin(), behind.end(), end);
    return behind;
  }
  std::vector<bool> covered(tensor.total_bytes);
  for (uint64_t offset : RowMajorOffsets(tensor)) {
    for (size_t b = offset * bits / 8; b < (offset * bits + bits + 7) / 8; ++b) covered[b] = true;
  }
  std::vector<size_t> gaps;
  for (size_t i = 0; i < covered.size(); ++i) {
    if (!covered[i]) gaps.push_back(i);
  }
  return gaps;
}

// The memory of one run, all of it between guards.
class KernelRun {
 public:
  KernelRun(const OperatorDesc& desc, const LoweredOperator& lowered, const std::vector<Bytes>& inputs,
            const RunOptions& options)
      : lowered_(lowered),
        kernel_(*lowered.kernel),
        gpu_(FindGpu(BackendOf(lowered.implementation))),
        input_tensors_(desc.inputs()),
        output_tensors_(desc.outputs()),
        in_place_(options.in_place) {
    // Alternately. A GPU has no guard pages, and buffers keep their alignment there.
    static bool at_end = false;
    at_end_ = at_end = !at_end && gpu_ == nullptr;
    for (size_t i = 0; i < input_tensors_.size(); ++i) {
      in_.push_back(input_tensors_[i] == nullptr ? nullptr : Allocate(inputs[i]));
    }
    for (const TensorDesc* tensor : output_tensors_) {
      out_.push_back(tensor == nullptr           ? nullptr
                     : in_place_ && out_.empty() ? in_[0]
                                                 : Allocate(tensor->total_bytes));
    }
    temporary_ = AllocateScratch(kernel_.temporary_bytes());
    persistent_ = AllocateScratch(kernel_.persistent_bytes());
    initialization_temporary_ = AllocateScratch(kernel_.initialization_temporary_bytes());
  }

  void Run(const RunOptions& options, RunResult* result) {
    BackwardExecutor executor;
    Listener listener;
    KernelArguments arguments = {.executor = options.threads > 1 ? &executor : nullptr};
    if (kernel_.persistent_bytes() != 0) Initialize(arguments);
    const Bytes persistent = persistent_->content();
    std::vector<Bytes> before;
    for (const GuardedBuffer* buffer : out_) before.push_back(ContentOf(buffer));

    std::vector<Buffer> inputs, outputs;
    for (uint32_t i = 0; i < in_.size(); ++i) {
      inputs.push_back(IsOwned(i) && kernel_.packs_input(i) ? Buffer{} : BufferOf(in_[i]));
    }
    for (const GuardedBuffer* buffer : out_) outputs.push_back(BufferOf(buffer));
    arguments.inputs = inputs;
    arguments.outputs = outputs;
    arguments.temporary = temporary_->buffer();
    arguments.persistent = persistent_->buffer();
    arguments.data_errors = options.listen ? &listener : nullptr;
    Execute(arguments, /*initialize=*/false);

    EXPECT_EQ(persistent_->content(), persistent) << name() << " wrote to the persistent resource";
    for (size_t i = 0; i < out_.size(); ++i) {
      result->outputs.push_back(ContentOf(out_[i]));
      if (out_[i] == nullptr) continue;
      for (size_t gap : Gaps(*output_tensors_[i])) {
        EXPECT_EQ(result->outputs[i][gap], before[i][gap]) << name() << " wrote to a gap of output " << i;
      }
    }
    result->data_errors = listener.messages;
  }

  void ExpectUntouched(const std::vector<Bytes>& inputs) const {
    for (const auto& buffer : memory_) EXPECT_TRUE(buffer->GuardsIntact()) << name();
    for (size_t i = in_place_ ? 1 : 0; i < in_.size(); ++i) {
      if (in_[i] != nullptr) EXPECT_EQ(in_[i]->content(), inputs[i]) << name() << " wrote to input " << i;
    }
  }

 private:
  const std::string& name() const { return lowered_.implementation; }
  bool IsOwned(uint32_t i) const { return input_tensors_[i] != nullptr && input_tensors_[i]->owned_by_dml; }
  static Buffer BufferOf(const GuardedBuffer* buffer) {
    return buffer == nullptr ? Buffer{} : buffer->buffer();
  }
  static Bytes ContentOf(const GuardedBuffer* buffer) {
    return buffer == nullptr ? Bytes() : buffer->content();
  }

  template <typename SizeOrContent>
  GuardedBuffer* Allocate(const SizeOrContent& content) {
    return memory_.emplace_back(std::make_unique<GuardedBuffer>(content, at_end_)).get();
  }
  // Aligned like a binding, as its contents require.
  GuardedBuffer* AllocateScratch(uint64_t bytes) { return Allocate((bytes + 15) / 16 * 16); }

  void Initialize(KernelArguments arguments) {
    std::vector<Buffer> inputs, outputs(out_.size());
    for (uint32_t i = 0; i < in_.size(); ++i) inputs.push_back(IsOwned(i) ? BufferOf(in_[i]) : Buffer{});
    arguments.inputs = inputs;
    arguments.outputs = outputs;
    arguments.temporary = initialization_temporary_->buffer();
    arguments.persistent = persistent_->buffer();
    Execute(arguments, /*initialize=*/true);
  }

  void Execute(const KernelArguments& arguments, bool initialize) {
    Status status;
    if (gpu_ != nullptr) {
      std::vector<Buffer> blocks;
      for (const auto& buffer : memory_) blocks.push_back(buffer->with_guards());
      status = RunOnDevice(*gpu_, kernel_, initialize, blocks, arguments);
    } else {
      status = initialize ? kernel_.Initialize(arguments) : kernel_.Run(arguments);
    }
    EXPECT_TRUE(status.ok()) << name() << ": " << status.message();
  }

  const LoweredOperator& lowered_;
  const Kernel& kernel_;
  Backend* const gpu_;
  const std::vector<const TensorDesc*> input_tensors_;
  const std::vector<const TensorDesc*> output_tensors_;
  const bool in_place_;
  bool at_end_;
  std::vector<std::unique_ptr<GuardedBuffer>> memory_;
  std::vector<GuardedBuffer*> in_, out_;  // null: absent
  GuardedBuffer* temporary_;
  GuardedBuffer* persistent_;
  GuardedBuffer* initialization_temporary_;
};

Status LowerFor(const OperatorDesc& desc, const RunOptions& options, LoweredOperator* lowered) {
  const Backend* const gpu = FindGpu(BackendOf(options.implementation));
  return LowerOperator(ImplementationOf(desc), desc,
                       {.implementation = options.implementation,
                        .level = options.level,
                        .threads = options.threads,
                        .device = gpu != nullptr ? &gpu->traits() : &kHostDevice},
                       lowered);
}

// The same with inputs that are OWNED_BY_DML, or not.
OperatorDesc WithOwnedInputs(OperatorDesc desc, bool owned = true) {
  for (size_t i = 0; i < desc.fields.size(); ++i) {
    if (desc.schema->fields[i].kind != FieldKind::kInput) continue;
    if (auto* tensor = std::get_if<TensorDesc>(&desc.fields[i])) tensor->owned_by_dml = owned;
    if (auto* tensors = std::get_if<std::vector<TensorDesc>>(&desc.fields[i])) {
      for (TensorDesc& tensor : *tensors) tensor.owned_by_dml = owned;
    }
  }
  return desc;
}

// Whether an implementation packs any of its owned inputs.
bool HasInitialization(const OperatorDesc& desc, const RunOptions& options) {
  LoweredOperator lowered;
  return LowerFor(desc, options, &lowered).ok() && lowered.kernel->persistent_bytes() != 0;
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
    // The stride of a dimension of size 1 never matters: make it absurd.
    tensor.strides[d] = repeated ? 0 : sizes[d] == 1 ? 0xFFFFFF : stride;
    if (!repeated) stride *= sizes[d];
    if (layout != LayoutKind::kBroadcast) stride += Uniform(random, 0, 2) == 0 ? Uniform(random, 1, 3) : 0;
  }
  tensor.total_bytes = MinimumTotalBytes(tensor) + 4 * Uniform(random, 0, 2);
  return tensor;
}

bool IsPacked(const TensorDesc& tensor) {
  uint64_t stride = 1;
  for (uint32_t d = tensor.rank; d-- > 0; stride *= tensor.sizes[d]) {
    if (tensor.sizes[d] != 1 && tensor.strides[d] != stride) return false;
  }
  return true;
}

std::vector<uint64_t> RowMajorOffsets(const TensorDesc& tensor) {
  std::vector<uint64_t> offsets(ElementCount(tensor));
  if (IsPacked(tensor)) {
    std::iota(offsets.begin(), offsets.end(), 0);
    return offsets;
  }
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
  // Half of the tensors have only a few values. Those of floating point are special: zeros of both signs,
  // denormals, infinities, NaNs of several payloads and signs.
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
  RunResult result;
  // A graph's constants are owned even where clients cannot own anything.
  const OperatorDesc given = desc.schema->owned_by_dml ? desc : WithOwnedInputs(desc, false);
  Status checked = ValidateOperatorDesc(given, options.level);
  if (checked.ok()) checked = ImplementationOf(desc).check(desc, options.level);
  EXPECT_TRUE(checked.ok()) << checked.message();
  if (!checked.ok()) return result;
  LoweredOperator lowered;
  const Status status = LowerFor(desc, options, &lowered);
  result.implementation = lowered.implementation;
  result.explanation = lowered.explanation;
  result.exactness = lowered.exactness;
  if (!status.ok()) {
    result.explanation = status.message();  // why it refuses
    // Only a forced implementation may refuse, never the reference.
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_FALSE(options.implementation.empty() || options.implementation == "cpu.reference")
        << status.message();
    return result;
  }
  KernelRun run(desc, lowered, inputs, options);
  run.Run(options, &result);
  run.ExpectUntouched(inputs);
  return result;
}

RunResult ExpectAllAgree(const OperatorDesc& desc, const std::vector<Bytes>& inputs, bool in_place) {
  RunResult reference = RunOperator(desc, inputs, {.implementation = "cpu.reference", .in_place = in_place});
  const Errors errors = ErrorsOf(desc, inputs);
  const auto expect_agrees = [&](const RunResult& result, const RunResult& first, const std::string& how) {
    EXPECT_EQ(Difference(desc, result.outputs, reference.outputs, result.exactness, errors), "") << how;
    EXPECT_EQ(result.data_errors, reference.data_errors) << how;
    // Whatever the distance from the reference, always the same.
    EXPECT_EQ(result.outputs, first.outputs) << how;
  };
  for (const char* name : RunnableImplementations(desc)) {
    if (std::string(name) == "cpu.reference") continue;
    RunResult first, first_owned;
    for (const uint32_t threads : {1u, 2u, 7u}) {
      // A GPU has no such threads: run it twice.
      const bool on_cpu = BackendOf(name) == "cpu";
      if (threads > 2 && !on_cpu) break;
      RunOptions options = {.implementation = name, .in_place = in_place, .threads = on_cpu ? threads : 1};
      const RunResult result = RunOperator(desc, inputs, options);
      if (result.implementation.empty()) break;  // does not fit
      if (threads == 1) first = result;
      expect_agrees(result, first, StrCat(name, ", threads ", threads));
      if (in_place) continue;  // a graph's constants are owned, whatever clients may do
      const OperatorDesc owned = WithOwnedInputs(desc);
      if (!HasInitialization(owned, options)) continue;
      const RunResult with_owned = RunOperator(owned, inputs, options);
      if (threads == 1) first_owned = with_owned;
      // Where clients have no choice, the kernel may add constants in another order.
      expect_agrees(with_owned, desc.schema->owned_by_dml ? first : first_owned,
                    StrCat(name, " with owned inputs, threads ", threads));
    }
  }
  return reference;
}

Exactness ExactnessOf(const OperatorDesc& given, const std::string& implementation) {
  OperatorDesc desc = given;
  // As the library sees it: clients pass no strides for packed tensors.
  const auto pack = [](TensorDesc* tensor) {
    TensorDesc packed = *tensor;
    SetPackedStrides(&packed);
    if (SameLayout(packed, *tensor)) *tensor = packed;
  };
  for (FieldValue& field : desc.fields) {
    if (auto* tensor = std::get_if<TensorDesc>(&field)) pack(tensor);
    if (auto* tensors = std::get_if<std::vector<TensorDesc>>(&field)) {
      for (TensorDesc& tensor : *tensors) pack(&tensor);
    }
  }
  LoweredOperator lowered;
  const Status status = LowerFor(desc, {.implementation = implementation}, &lowered);
  EXPECT_TRUE(status.ok()) << status.message();
  return lowered.exactness;
}

std::vector<const char*> RunnableImplementations(const OperatorDesc& desc) {
  const char* wanted = std::getenv("ANYDML_TEST_BACKEND");
  std::vector<const char*> names;
  if (wanted != nullptr && std::string_view(wanted) != "cpu" && FindGpu(wanted) == nullptr) {
    ADD_FAILURE() << "ANYDML_TEST_BACKEND is " << wanted << ", of which there is none: " << WhyNoGpu();
  }
  for (const char* name : ImplementationNames(ImplementationOf(desc))) {
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

double TestSeconds(double usual) {
  const char* const text = std::getenv("ANYDML_TEST_SECONDS");
  const int tests = std::max(1, ::testing::UnitTest::GetInstance()->test_to_run_count());
  return (text != nullptr ? std::atof(text) / tests : usual) * TestIterations(100) / 100;
}

uint32_t Uniform(std::mt19937_64& random, uint32_t low, uint32_t high) {
  return low + static_cast<uint32_t>(random() % (uint64_t{high} - low + 1));
}

}  // namespace anydml::testing
