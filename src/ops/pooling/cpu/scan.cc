// Maxima of any type and layout, with or without indices.
#include "ops/pooling/cpu/scan.h"

#include "base/dispatch.h"
#include "ops/pooling/cpu/kernels.h"
#include "ops/pooling/cpu/units.h"

namespace anydml {
namespace {

using pooling::ScanWindow;

class PoolingScan final : public Kernel {
 public:
  PoolingScan(const PoolingProblem& problem, const LowerContext& context)
      : p_(problem),
        rows_(problem.shape.Windows() / problem.shape.axes[2].windows),
        parts_(pooling::PartsOf(problem.shape, problem.input.type, rows_, context.threads)) {}

  Status Run(const KernelArguments& arguments) const override {
    DispatchByType(p_.input.type, [&]<typename T>() {
      if constexpr (!std::is_same_v<T, double>) {
        pooling::ForParts(arguments.executor, rows_, parts_, [&](uint32_t, uint64_t begin, uint64_t end) {
          for (uint64_t row = begin; row < end; ++row) ScanRow<T>(arguments, row);
        });
      }
    });
    return {};
  }

 private:
  // A row of windows.
  template <typename T>
  void ScanRow(const KernelArguments& arguments, uint64_t row) const {
    const auto& axes = p_.shape.axes;
    const auto h = static_cast<uint32_t>(row % axes[1].windows);
    row /= axes[1].windows;
    const auto d = static_cast<uint32_t>(row % axes[0].windows);
    const uint64_t plane = row / axes[0].windows;
    const uint64_t n = plane / p_.shape.channels, c = plane % p_.shape.channels;
    const auto offset = [&](const PoolingTensor& tensor) {
      return n * tensor.strides[0] + c * tensor.strides[1] + d * tensor.strides[2] + h * tensor.strides[3];
    };
    const T* const channel = reinterpret_cast<const T*>(arguments.inputs[0].data) + n * p_.input.strides[0] +
                             c * p_.input.strides[1];
    const uint64_t first_index =
        plane * axes[0].input * axes[1].input * axes[2].input;  // of the channel's elements
    for (uint32_t w = 0; w < axes[2].windows; ++w) {
      const pooling::TapBox box = pooling::TapBoxOf(p_.shape, {d, h, w});
      const auto maximum = ScanWindow<T>(p_, channel, box);
      if (p_.output.present()) {
        reinterpret_cast<T*>(arguments.outputs[0].data)[offset(p_.output) + w * p_.output.strides[4]] =
            maximum.element;
      }
      if (!p_.indices.present()) continue;
      const uint64_t index = box.empty() ? 0 : first_index + maximum.place;
      const uint64_t to = offset(p_.indices) + w * p_.indices.strides[4];
      if (p_.indices.type == DataType::kUInt64) {
        reinterpret_cast<uint64_t*>(arguments.outputs[1].data)[to] = index;
      } else {
        reinterpret_cast<uint32_t*>(arguments.outputs[1].data)[to] = static_cast<uint32_t>(index);
      }
    }
  }

  PoolingProblem p_;
  uint64_t rows_;
  uint32_t parts_;
};

}  // namespace

std::unique_ptr<const Kernel> CreatePoolingScan(const PoolingProblem& problem, const LowerContext& context,
                                                std::string* why_not) {
  if (problem.function != PoolingFunction::kMax) {
    *why_not = "is for maxima";
    return nullptr;
  }
  return std::make_unique<PoolingScan>(problem, context);
}

}  // namespace anydml
