#include "ops/work.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "kernel/work_estimate.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

// In the bytes of WorkEstimate, of which a Neoverse N1 moves some 80 in a nanosecond. By the slowest cases:
// elements that are far apart, of any type, and loops of few iterations.
constexpr double kElementBytes = 256;
constexpr double kSetBytes = 16 << 10;  // what is reduced to one element
constexpr double kMatrixBytes = 64 << 10, kIntegerMatrixBytes = 256 << 10;
// A multiplication and an addition. Few output channels share what a convolution puts in order.
constexpr double kProductBytes = 16, kConvolutionBytes = 128;

double Elements(const std::vector<const TensorDesc*>& tensors) {
  double elements = 0;
  for (const TensorDesc* tensor : tensors) {
    if (tensor != nullptr) elements += static_cast<double>(ElementCount(*tensor));
  }
  return elements;
}

double Elements(const OperatorDesc& desc, const char* tensor) { return Elements({desc.tensor(tensor)}); }

double WorkOfMatrices(const OperatorDesc& desc, double matrix_bytes) {
  const TensorDesc& output = *desc.tensor("OutputTensor");
  const double columns = output.sizes[output.rank - 1], rows = output.sizes[output.rank - 2];
  const double products = Elements(desc, "ATensor") * columns;
  return kProductBytes * products + matrix_bytes * Elements({&output}) / (rows * columns);
}

// Forward, each element of the output meets the filter of its channel; backward, each of the input.
double WorkOfConvolution(const OperatorDesc& desc, double matrix_bytes) {
  const double met = std::max(Elements(desc, "InputTensor"), Elements(desc, "OutputTensor"));
  const double products = met * Elements(desc, "FilterTensor") / desc.tensor("FilterTensor")->sizes[0];
  const double matrices = static_cast<double>(desc.tensor("InputTensor")->sizes[0]) * desc.uint("GroupCount");
  return kConvolutionBytes * products + matrix_bytes * matrices;
}

double SetsOfSoftmax(const OperatorDesc& desc) {
  const TensorDesc& input = *desc.tensor("InputTensor");
  double elements = input.sizes[input.rank - 1];  // of a set
  if (const int field = FindField(*desc.schema, "Axes"); field >= 0) {
    elements = 1;
    for (const uint32_t axis : std::get<std::vector<uint32_t>>(desc.fields[field]))
      elements *= input.sizes[axis];
  }
  return Elements({&input}) / elements;
}

uint64_t EstimateWork(const OperatorDesc& desc) {
  double bytes = kElementBytes * (Elements(desc.inputs()) + Elements(desc.outputs()));
  switch (static_cast<OperatorType>(desc.schema->type)) {
    case OperatorType::kGemm:
      bytes += WorkOfMatrices(desc, kMatrixBytes);
      break;
    case OperatorType::kMatrixMultiplyInteger:
    case OperatorType::kMatrixMultiplyIntegerToFloat:
    case OperatorType::kQuantizedLinearMatrixMultiply:
      bytes += WorkOfMatrices(desc, kIntegerMatrixBytes);
      break;
    case OperatorType::kConvolution:
      bytes += WorkOfConvolution(desc, kMatrixBytes);
      break;
    case OperatorType::kConvolutionInteger:
    case OperatorType::kQuantizedLinearConvolution:
      bytes += WorkOfConvolution(desc, kIntegerMatrixBytes);
      break;
    case OperatorType::kActivationLogSoftmax:
    case OperatorType::kActivationLogSoftmax1:
    case OperatorType::kActivationSoftmax:
    case OperatorType::kActivationSoftmax1:
      bytes += kSetBytes * SetsOfSoftmax(desc);
      break;
    case OperatorType::kArgmax:
    case OperatorType::kArgmin:
    case OperatorType::kReduce:
      bytes += kSetBytes * Elements(desc, "OutputTensor");
      break;
    case OperatorType::kBatchNormalization:
    case OperatorType::kGather:
    case OperatorType::kJoin:
    case OperatorType::kMeanVarianceNormalization:
    case OperatorType::kMeanVarianceNormalization1:
    case OperatorType::kMeanVarianceNormalization2:
    case OperatorType::kPadding:
    case OperatorType::kPadding1:
    case OperatorType::kSlice:
    case OperatorType::kSlice1:
    case OperatorType::kSplit:
    case OperatorType::kTile:
      break;
    default:
      return WorkEstimate::kUnknown;
  }
  return bytes < 0x1p63 ? static_cast<uint64_t>(bytes) : WorkEstimate::kUnknown;
}

}  // namespace

uint64_t WorkOf(const LoweredOperator& lowered, const OperatorDesc* desc) {
  if (const auto* const own = dynamic_cast<const WorkEstimate*>(lowered.kernel.get())) {
    return own->work_bytes();
  }
  // Parts may need much of the stack: element programs with many registers do.
  const bool known =
      desc != nullptr && (lowered.abilities & kIsReference) == 0 && lowered.kernel->made_of().empty();
  return known ? EstimateWork(*desc) : WorkEstimate::kUnknown;
}

}  // namespace anydml
