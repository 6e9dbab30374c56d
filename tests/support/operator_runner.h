// Shared by the tests of operator families: descriptions by field name, layouts, guarded buffers, and running
// an implementation on bytes.
#pragma once

#include <cstring>
#include <initializer_list>
#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/half.h"
#include "ops/operator.h"
#include "support/guarded_buffer.h"

namespace anydml::testing {

// A description from (field, value) pairs; omitted fields are absent.
OperatorDesc MakeDesc(const char* operator_name,
                      std::initializer_list<std::pair<const char*, FieldValue>> fields);

TensorDesc Packed(DataType type, const std::vector<uint32_t>& sizes);
TensorDesc Strided(DataType type, const std::vector<uint32_t>& sizes, const std::vector<uint32_t>& strides);

enum class LayoutKind { kPacked, kPadded, kTransposed, kBroadcast };
inline constexpr LayoutKind kInputLayouts[] = {LayoutKind::kPacked, LayoutKind::kPadded,
                                               LayoutKind::kTransposed, LayoutKind::kBroadcast};
inline constexpr LayoutKind kOutputLayouts[] = {LayoutKind::kPacked, LayoutKind::kPadded,
                                                LayoutKind::kTransposed};

// kPadded has gaps after some dimensions, kTransposed any order of dimensions (and gaps), kBroadcast some
// strides of 0.
TensorDesc MakeTensor(DataType type, const std::vector<uint32_t>& sizes, LayoutKind layout,
                      std::mt19937_64& random);

// Converts between elements in row-major order and the tensor's bytes. Bytes outside elements are 0xA5.
template <typename T>
Bytes Scattered(const TensorDesc& tensor, const std::vector<T>& elements);
template <typename T>
std::vector<T> Gathered(const TensorDesc& tensor, const Bytes& bytes);

// Element offsets in row-major order, computed by division, unlike in the code under test. Those of a packed
// tensor, as most large ones are, are 0, 1, 2...
std::vector<uint64_t> RowMajorOffsets(const TensorDesc& tensor);
bool IsPacked(const TensorDesc& tensor);

// Random bytes for a tensor: from few distinct values (many ties), special floating-point values, or
// anything.
Bytes RandomBytes(const TensorDesc& tensor, std::mt19937_64& random);

struct RunResult {
  std::string implementation;
  std::string explanation;
  Exactness exactness;                   // as the implementation declares it
  std::vector<Bytes> outputs;            // all bytes, gaps included (kGap before the run); absent ones: none
  std::vector<std::string> data_errors;  // messages, in order
};

struct RunOptions {
  std::string implementation;  // empty: the operator's choice
  FeatureLevel level = kLatestFeatureLevel;
  bool in_place = false;  // output 0 is input 0
  bool listen = true;     // give the kernel a DataErrorSink
  uint32_t threads = 1;
};

// Validates, checks, lowers, initialises, runs. `inputs` has an entry for every input, also for absent ones
// (empty). Buffers have exactly the described sizes and are between guards (GuardedBuffer). The test fails if
// the kernel fails, or touches a guard, an input, a gap or, in a run, the persistent resource.
RunResult RunOperator(const OperatorDesc& desc, const std::vector<Bytes>& inputs, const RunOptions& options);

// Runs every implementation that fits, with 1, 2 and 7 threads, and those that pack owned inputs also with
// such inputs. Expects the reference's results, which it returns, as closely as each declares, always the
// same bytes, and the reference's error messages.
RunResult ExpectAllAgree(const OperatorDesc& desc, const std::vector<Bytes>& inputs, bool in_place = false);

// The exactness that an implementation that fits declares.
Exactness ExactnessOf(const OperatorDesc& desc, const std::string& implementation);

const Operator& ImplementationOf(const OperatorDesc& desc);

// Names of the implementations that this machine can run; with ANYDML_TEST_BACKEND, only of that backend.
std::vector<const char*> RunnableImplementations(const OperatorDesc& desc);

// ANYDML_TEST_SEED, or a fixed one.
uint64_t TestSeed();

// ANYDML_TEST_PERCENT of `usual`: fewer for tools that slow everything down, or more than usual.
int TestIterations(int usual);

// How long a test draws random cases: ANYDML_TEST_SECONDS are shared evenly by all tests that the executable
// runs; by default `usual`. ANYDML_TEST_PERCENT of that.
double TestSeconds(double usual);

// Selects the cases of a grid to run: all, or ANYDML_TEST_PERCENT of them, spread evenly whatever their
// order.
class Thinning {
 public:
  bool Runs() { return next_++ * 0x9E3779B9u < share_; }  // multiples of the golden ratio

 private:
  const uint64_t share_ = (uint64_t{1} << 32) * TestIterations(100) / 100;  // of 2^32
  uint32_t next_ = 0;
};

uint32_t Uniform(std::mt19937_64& random, uint32_t low, uint32_t high);  // inclusive

template <typename T>
Bytes Scattered(const TensorDesc& tensor, const std::vector<T>& elements) {
  Bytes bytes(tensor.total_bytes, kGap);
  if (IsPacked(tensor)) {
    const uint64_t count = ElementCount(tensor);
    if (count > 0) std::memcpy(bytes.data(), &elements.at(count - 1) - (count - 1), count * sizeof(T));
    return bytes;
  }
  const auto offsets = RowMajorOffsets(tensor);
  for (size_t i = 0; i < offsets.size(); ++i) {
    std::memcpy(bytes.data() + offsets[i] * sizeof(T), &elements.at(i), sizeof(T));
  }
  return bytes;
}

template <typename T>
std::vector<T> Gathered(const TensorDesc& tensor, const Bytes& bytes) {
  std::vector<T> elements(ElementCount(tensor));
  if (IsPacked(tensor)) {
    if (!elements.empty()) std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(T));
    return elements;
  }
  const auto offsets = RowMajorOffsets(tensor);
  for (size_t i = 0; i < offsets.size(); ++i) {
    std::memcpy(&elements[i], bytes.data() + offsets[i] * sizeof(T), sizeof(T));
  }
  return elements;
}

}  // namespace anydml::testing
