#include "support/compare.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>

#include "base/half.h"
#include "ops/errors.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

// Maps sign and magnitude to an integer with the order of the floating-point numbers.
int64_t Ordered(uint32_t bits, uint32_t sign) {
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

uint64_t Distance(int64_t a, int64_t b) { return static_cast<uint64_t>(a < b ? b - a : a - b); }

bool IsNear(double got, double want, const Exactness& exactness) {
  if (std::isinf(exactness.absolute)) return true;  // there is no bound
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return want == got;
  const double error = std::abs(got - want);
  return error <= exactness.absolute || error <= exactness.relative * std::abs(want);
}

template <typename T>
T At(const Bytes& bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset * sizeof(T), sizeof(T));
  return value;
}

// Whether elements of a floating-point type agree; also sets their values for the message.
bool Agree(DataType type, const Bytes& got, const Bytes& want, uint64_t offset, const Exactness& exactness,
           double* got_value, double* want_value) {
  uint64_t ulps = 0;
  uint64_t allowed = 0;
  if (type == DataType::kFloat32) {
    const float a = At<float>(got, offset), b = At<float>(want, offset);
    *got_value = a, *want_value = b;
    ulps = UlpsApart(a, b), allowed = exactness.float32_ulps;
  } else if (type == DataType::kFloat16) {
    const Half a = At<Half>(got, offset), b = At<Half>(want, offset);
    *got_value = ToFloat(a), *want_value = ToFloat(b);
    ulps = HalfUlpsApart(a.bits, b.bits), allowed = exactness.float16_ulps;
  } else {
    *got_value = At<double>(got, offset), *want_value = At<double>(want, offset);
    return *got_value == *want_value || IsNear(*got_value, *want_value, exactness);
  }
  const bool any_nan = std::isnan(*got_value) || std::isnan(*want_value);
  return (!any_nan && ulps <= allowed) || IsNear(*got_value, *want_value, exactness);
}

bool IsFloat(DataType type) {
  return type == DataType::kFloat32 || type == DataType::kFloat16 || type == DataType::kFloat64;
}

}  // namespace

uint64_t UlpsApart(float a, float b) {
  constexpr uint32_t kSign = 0x80000000;
  return Distance(Ordered(std::bit_cast<uint32_t>(a), kSign), Ordered(std::bit_cast<uint32_t>(b), kSign));
}

uint64_t HalfUlpsApart(uint16_t a, uint16_t b) {
  constexpr uint32_t kSign = 0x8000;
  return Distance(Ordered(a, kSign), Ordered(b, kSign));
}

std::string Difference(const TensorDesc& tensor, const Bytes& got, const Bytes& want,
                       const Exactness& exactness, const std::vector<double>& errors) {
  if (got == want) return {};
  if (got.size() != want.size()) return StrCat("it has ", got.size(), " bytes, not ", want.size());
  Bytes rest = got;  // with values that are close enough replaced by the expected ones
  if (!exactness.exact() && IsFloat(tensor.type)) {
    const size_t width = BitSize(tensor.type) / 8;
    Exactness allowed = exactness;
    for (const uint64_t offset : RowMajorOffsets(tensor)) {
      double got_value, want_value;
      if (!errors.empty()) allowed.absolute = errors[offset];
      if (!Agree(tensor.type, got, want, offset, allowed, &got_value, &want_value)) {
        return StrCat("element ", offset, " is ", got_value, " but ", want_value, " in the reference; ",
                      "within ", exactness.float32_ulps, " ulp of FLOAT32, ", exactness.float16_ulps,
                      " of FLOAT16, ", exactness.relative, " of it or ", allowed.absolute, " is allowed");
      }
      std::memcpy(rest.data() + offset * width, want.data() + offset * width, width);
    }
  }
  for (size_t i = 0; i < want.size(); ++i) {
    if (rest[i] != want[i]) {
      return StrCat("byte ", i, " is ", int{rest[i]}, " but ", int{want[i]}, " in the reference");
    }
  }
  return {};
}

Errors ErrorsOf(const OperatorDesc& desc, const std::vector<Bytes>& inputs) {
  const std::unique_ptr<const Kernel> kernel = CreateErrors(desc);
  if (kernel == nullptr) return {};
  const auto outputs = desc.outputs();
  Errors errors(outputs.size());
  std::vector<Buffer> in, out;
  for (const Bytes& bytes : inputs) {
    // Kernels only read their inputs.
    in.push_back({bytes.empty() ? nullptr : reinterpret_cast<std::byte*>(const_cast<uint8_t*>(bytes.data())),
                  bytes.size()});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] != nullptr) errors[i].resize(outputs[i]->total_bytes * 8 / BitSize(outputs[i]->type));
    out.push_back({reinterpret_cast<std::byte*>(errors[i].data()), errors[i].size() * sizeof(double)});
  }
  // In units of an aligned type.
  std::vector<std::max_align_t> temporary(kernel->temporary_bytes() / sizeof(std::max_align_t) + 1);
  KernelArguments arguments;
  arguments.inputs = in;
  arguments.outputs = out;
  arguments.temporary = {reinterpret_cast<std::byte*>(temporary.data()),
                         temporary.size() * sizeof(std::max_align_t)};
  const Status status = kernel->Run(arguments);
  EXPECT_TRUE(status.ok()) << status.message();
  return errors;
}

std::string Difference(const OperatorDesc& desc, const std::vector<Bytes>& got,
                       const std::vector<Bytes>& want, const Exactness& exactness, const Errors& errors) {
  const auto tensors = desc.outputs();
  if (got.size() != tensors.size() || want.size() != tensors.size()) {
    return StrCat("there are ", got.size(), " outputs, and ", want.size(), " of the reference, not ",
                  tensors.size());
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i] == nullptr) continue;
    const std::string difference = Difference(*tensors[i], got[i], want[i], exactness,
                                              errors.empty() ? std::vector<double>() : errors[i]);
    if (!difference.empty()) return StrCat("output ", i, ": ", difference);
  }
  return {};
}

}  // namespace anydml::testing
