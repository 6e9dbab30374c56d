// Runs the examples of the TOP_K1 and SCATTER_ND documentation and compares every number; then a trained
// model.
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "client/session.h"
#include "client/tensor_text.h"
#include "digits.h"

namespace anydml::client {
namespace {

constexpr uint64_t kPrintLimit = 100;

// A packed tensor, its elements, and the C structs that describe it.
class HostTensor {
 public:
  template <typename T>
  HostTensor(std::vector<uint32_t> sizes, const std::vector<T>& elements)
      : tensor_(PackedTensor(kTypeOf<T>, sizes.data(), static_cast<uint32_t>(sizes.size()))) {
    data_.resize(tensor_.total_bytes);
    std::memcpy(data_.data(), elements.data(), elements.size() * sizeof(T));
    buffer_.DataType = static_cast<DML_TENSOR_DATA_TYPE>(tensor_.type);
    buffer_.DimensionCount = tensor_.rank;
    buffer_.Sizes = tensor_.sizes.data();
    buffer_.TotalTensorSizeInBytes = tensor_.total_bytes;
  }
  HostTensor(const HostTensor&) = delete;
  HostTensor& operator=(const HostTensor&) = delete;

  const DML_TENSOR_DESC* desc() const { return &desc_; }
  const HostBuffer& data() const { return data_; }
  uint64_t bytes() const { return tensor_.total_bytes; }

  // The tensor's own elements, or others of the same description.
  void Print(const char* name) const { Print(name, data_); }
  void Print(const char* name, const HostBuffer& data) const {
    std::fputs(DescribeTensor(name, tensor_, data, kPrintLimit).c_str(), stdout);
  }

 private:
  template <typename T>
  static constexpr DataType kTypeOf = std::is_same_v<T, float> ? DataType::kFloat32 : DataType::kUInt32;

  TensorDesc tensor_;
  HostBuffer data_;
  DML_BUFFER_TENSOR_DESC buffer_{};
  const DML_TENSOR_DESC desc_{DML_TENSOR_TYPE_BUFFER, &buffer_};
};

class Demo {
 public:
  explicit Demo(Session* session) : session_(session) {}

  void TopK1(const char* title, const HostTensor& input, uint32_t axis, uint32_t k,
             DML_AXIS_DIRECTION direction, const HostTensor& values, const HostTensor& indices) {
    std::printf("== TOP_K1, %s\n\n", title);
    input.Print("InputTensor");
    std::printf("\nAxis: %u\nK: %u\nAxisDirection: DML_AXIS_DIRECTION_%s\n\n", axis, k,
                direction == DML_AXIS_DIRECTION_DECREASING ? "DECREASING" : "INCREASING");
    DML_TOP_K1_OPERATOR_DESC desc{};
    desc.InputTensor = input.desc();
    desc.OutputValueTensor = values.desc();
    desc.OutputIndexTensor = indices.desc();
    desc.Axis = axis;
    desc.K = k;
    desc.AxisDirection = direction;
    Run({DML_OPERATOR_TOP_K1, &desc}, {&input},
        {{"OutputValueTensor", &values}, {"OutputIndexTensor", &indices}});
  }

  void ScatterNd(const char* title, const HostTensor& input, const HostTensor& indices,
                 const HostTensor& updates, uint32_t input_dimensions, uint32_t indices_dimensions,
                 const HostTensor& output) {
    std::printf("== SCATTER_ND, %s\n\n", title);
    input.Print("InputTensor");
    indices.Print("IndicesTensor");
    updates.Print("UpdatesTensor");
    std::printf("\nInputDimensionCount: %u\nIndicesDimensionCount: %u\n\n", input_dimensions,
                indices_dimensions);
    DML_SCATTER_ND_OPERATOR_DESC desc{};
    desc.InputTensor = input.desc();
    desc.IndicesTensor = indices.desc();
    desc.UpdatesTensor = updates.desc();
    desc.OutputTensor = output.desc();
    desc.InputDimensionCount = input_dimensions;
    desc.IndicesDimensionCount = indices_dimensions;
    Run({DML_OPERATOR_SCATTER_ND, &desc}, {&input, &indices, &updates}, {{"OutputTensor", &output}});
  }

  int differences() const { return differences_; }

 private:
  struct Expected {
    const char* name;
    const HostTensor* tensor;
  };

  void Run(const DML_OPERATOR_DESC& desc, const std::vector<const HostTensor*>& inputs,
           const std::vector<Expected>& expected) {
    std::vector<HostBuffer> input_data;
    for (const HostTensor* input : inputs) input_data.push_back(input->data());
    std::vector<uint64_t> output_sizes;
    for (const Expected& output : expected) output_sizes.push_back(output.tensor->bytes());
    RunResult result;
    Status status = session_->Run(desc, input_data, output_sizes, &result);
    if (status.ok() && !result.data_error.empty()) status = Status(Code::kFail, result.data_error);
    if (!status.ok()) {
      std::printf("✗ %s\n\n", status.message().c_str());
      ++differences_;
      return;
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i].tensor->Print(expected[i].name, result.outputs[i]);
      const bool equal = result.outputs[i] == expected[i].tensor->data();
      std::fputs(equal ? "✓ as expected\n\n" : "✗ differs; expected:\n", stdout);
      if (equal) continue;
      expected[i].tensor->Print(expected[i].name);
      ++differences_;
    }
  }

  Session* session_;
  int differences_ = 0;
};

void RunTopK1Examples(Demo* demo) {
  using Floats = std::vector<float>;
  using Indices = std::vector<uint32_t>;
  const HostTensor distinct({1, 1, 3, 4}, Floats{0, 1, 10, 11, 3, 2, 9, 8, 4, 5, 6, 7});
  const HostTensor tied({1, 1, 3, 4}, Floats{1, 2, 2, 3, 3, 4, 5, 5, 6, 6, 6, 6});
  demo->TopK1("example 1", distinct, 3, 2, DML_AXIS_DIRECTION_DECREASING,
              HostTensor({1, 1, 3, 2}, Floats{11, 10, 9, 8, 7, 6}),
              HostTensor({1, 1, 3, 2}, Indices{3, 2, 2, 3, 3, 2}));
  demo->TopK1("example 2: using a different axis", distinct, 2, 2, DML_AXIS_DIRECTION_DECREASING,
              HostTensor({1, 1, 2, 4}, Floats{4, 5, 10, 11, 3, 2, 9, 8}),
              HostTensor({1, 1, 2, 4}, Indices{2, 2, 0, 0, 1, 1, 1, 1}));
  demo->TopK1("example 3: tied values", tied, 3, 3, DML_AXIS_DIRECTION_DECREASING,
              HostTensor({1, 1, 3, 3}, Floats{3, 2, 2, 5, 5, 4, 6, 6, 6}),
              HostTensor({1, 1, 3, 3}, Indices{3, 1, 2, 2, 3, 1, 0, 1, 2}));
  demo->TopK1("example 4: increasing axis direction", tied, 3, 3, DML_AXIS_DIRECTION_INCREASING,
              HostTensor({1, 1, 3, 3}, Floats{1, 2, 2, 3, 4, 5, 6, 6, 6}),
              HostTensor({1, 1, 3, 3}, Indices{0, 1, 2, 0, 1, 2, 0, 1, 2}));
}

// The documentation prints FLOAT32 indices and unequal dimension counts, which are misprints; this is the
// same example in its legal form.
void RunScatterNdExample(Demo* demo) {
  demo->ScatterNd("the page's example", HostTensor({1, 8}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}),
                  HostTensor({4, 1}, std::vector<uint32_t>{4, 3, 1, 7}),
                  HostTensor({1, 4}, std::vector<float>{9, 10, 11, 12}), 1, 2,
                  HostTensor({1, 8}, std::vector<float>{1, 11, 3, 10, 9, 6, 7, 12}));
}

// The documentation gives only the sizes: a {1,2} array of 3-coordinate tuples, each of which replaces a
// {6,7} slice.
void RunScatterNdSizesExample(Demo* demo) {
  constexpr size_t kSlice = 6 * 7;
  std::vector<float> input(3 * 4 * 5 * kSlice);
  std::iota(input.begin(), input.end(), 0.0f);
  const std::vector<uint32_t> indices = {2, 0, 3, 1, 3, 4};
  std::vector<float> updates(2 * kSlice);
  std::iota(updates.begin(), updates.end(), -100.0f);

  std::vector<float> expected = input;
  for (size_t tuple = 0; tuple < 2; ++tuple) {
    const uint32_t* index = &indices[3 * tuple];
    const size_t slice = (index[0] * 4 + index[1]) * 5 + index[2];
    for (size_t i = 0; i < kSlice; ++i) expected[slice * kSlice + i] = updates[tuple * kSlice + i];
  }
  demo->ScatterNd("the page's five-dimensional sizes", HostTensor({3, 4, 5, 6, 7}, input),
                  HostTensor({1, 1, 1, 2, 3}, indices), HostTensor({1, 1, 2, 6, 7}, updates), 5, 3,
                  HostTensor({3, 4, 5, 6, 7}, expected));
}

int Main() {
  std::unique_ptr<Session> session;
  if (const Status status = Session::Create({}, &session); !status.ok()) {
    std::fprintf(stderr, "anydml-demo: %s\n", status.message().c_str());
    return 1;
  }
  Demo demo(session.get());
  RunTopK1Examples(&demo);
  RunScatterNdExample(&demo);
  RunScatterNdSizesExample(&demo);
  if (demo.differences() > 0) {
    std::printf("%d differences\n", demo.differences());
    return 1;
  }
  std::printf("All examples give the documented results.\n");

  int wrong = 0;
  if (const Status status = RunDigits(session.get(), &wrong); !status.ok()) {
    std::fprintf(stderr, "anydml-demo: %s\n", status.message().c_str());
    return 1;
  }
  if (wrong > 0) {
    std::printf("%d answers are wrong\n", wrong);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace anydml::client

int main() { return anydml::client::Main(); }
