#include "ops/work.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "kernel/work_estimate.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

// In the bytes of WorkEstimate, of which a Neoverse N1 moves about 80 per nanosecond. Based on the slowest
// cases: scattered elements of any type, and short loops.
constexpr double kElementBytes = 256;
constexpr double kSetBytes = 16 << 10;  // for each set that is reduced to one element
constexpr double kMatrixBytes = 64 << 10, kIntegerMatrixBytes = 256 << 10;
// For a multiply-add. With few output channels, little work shares the cost of rearranging a convolution's
// input.
constexpr double kProductBytes = 16, kConvolutionBytes = 128;

double Elements(const std::vector<const TensorDesc*>& tensors) {
  double elements = 0;
  for (const TensorDesc* tensor : tensors) {
    if (tensor != nullptr) elements += static_cast<double>(ElementCount(*tensor));
  }
  return elements;
}

double Elements(const OperatorDesc& desc, const char* tensor) { return Elements({desc.tensor(tensor)}); }

double MatrixWork(const OperatorDesc& desc, double matrix_bytes) {
  const TensorDesc& output = *desc.tensor("OutputTensor");
  const double columns = output.sizes[output.rank - 1], rows = output.sizes[output.rank - 2];
  const double products = Elements(desc, "ATensor") * columns;
  return kProductBytes * products + matrix_bytes * Elements({&output}) / (rows * columns);
}

// Forward, each output element is multiplied with the filter of its channel; backward, each input element.
double ConvolutionWork(const OperatorDesc& desc, double matrix_bytes) {
  const double met = std::max(Elements(desc, "InputTensor"), Elements(desc, "OutputTensor"));
  const double products = met * Elements(desc, "FilterTensor") / desc.tensor("FilterTensor")->sizes[0];
  const double matrices = static_cast<double>(desc.tensor("InputTensor")->sizes[0]) * desc.uint("GroupCount");
  return kConvolutionBytes * products + matrix_bytes * matrices;
}

double SetsOfSoftmax(const OperatorDesc& desc) {
  const TensorDesc& input = *desc.tensor("InputTensor");
  double elements = input.sizes[input.rank - 1];  // in each set
  if (const int field = FindField(*desc.schema, "Axes"); field >= 0) {
    elements = 1;
    for (const uint32_t axis : std::get<std::vector<uint32_t>>(desc.fields[field]))
      elements *= input.sizes[axis];
  }
  return Elements({&input}) / elements;
}

}  // namespace

double WorkOfElements(const OperatorDesc& desc) {
  return kElementBytes * (Elements(desc.inputs()) + Elements(desc.outputs()));
}

double WorkOfSoftmax(const OperatorDesc& desc) {
  return WorkOfElements(desc) + kSetBytes * SetsOfSoftmax(desc);
}

double WorkOfReduction(const OperatorDesc& desc) {
  return WorkOfElements(desc) + kSetBytes * Elements(desc, "OutputTensor");
}

double WorkOfProduct(const OperatorDesc& desc) {
  return WorkOfElements(desc) + MatrixWork(desc, kMatrixBytes);
}

double WorkOfIntegerProduct(const OperatorDesc& desc) {
  return WorkOfElements(desc) + MatrixWork(desc, kIntegerMatrixBytes);
}

double WorkOfConvolution(const OperatorDesc& desc) {
  return WorkOfElements(desc) + ConvolutionWork(desc, kMatrixBytes);
}

double WorkOfIntegerConvolution(const OperatorDesc& desc) {
  return WorkOfElements(desc) + ConvolutionWork(desc, kIntegerMatrixBytes);
}

uint64_t WorkOf(const LoweredOperator& lowered, const OperatorDesc* desc) {
  if (const auto* const own = dynamic_cast<const WorkEstimate*>(lowered.kernel.get())) {
    return own->work_bytes();
  }
  // Other kernels may need much stack: element programs with many registers do.
  const bool known =
      desc != nullptr && (lowered.abilities & kIsReference) == 0 && lowered.kernel->made_of().empty();
  if (!known) return WorkEstimate::kUnknown;
  const double bytes = FindImplementation(desc->schema->type)->traits.work_bytes(*desc);
  return bytes < 0x1p63 ? static_cast<uint64_t>(bytes) : WorkEstimate::kUnknown;
}

}  // namespace anydml
