#include "base/half.h"
#include "ops/common/coordinates.h"
#include "ops/scan/nonzero.h"
#include "ops/scan/problem.h"

namespace anydml {
namespace {

// Loads and stores by data type; Total is the type of the running total.
template <typename Total>
Total LoadNumber(DataType type, const std::byte* data, uint64_t at) {
  if (type == DataType::kFloat16) return static_cast<Total>(ToFloat(Load<Half>(data, at)));
  return Load<Total>(data, at);
}
template <typename Total>
void StoreNumber(DataType type, std::byte* data, uint64_t at, Total total) {
  // NOLINTNEXTLINE(misc-redundant-expression): only NaN differs from itself
  const bool is_nan = total != total;
  if (type == DataType::kFloat16) {
    Store(data, at, is_nan ? Half{0x7E00} : ToHalf(static_cast<float>(total)));
  } else if (is_nan) {
    Store(data, at, uint32_t{0x7FC00000});
  } else {
    Store(data, at, total);
  }
}

template <typename Total>
class ScanReference final : public Kernel {
 public:
  explicit ScanReference(const ScanProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const ScanProblem& p = problem_;
    Dimensions sizes = p.output.sizes;
    const uint32_t length = sizes[p.axis];
    sizes[p.axis] = 1;
    ForEachCoordinate(sizes, p.output.rank, [&](Dimensions at) {
      Total total{p.multiplies ? Total{1} : Total{0}};
      for (uint32_t i = 0; i < length; ++i) {
        at[p.axis] = p.reverse ? length - 1 - i : i;
        const auto x = LoadNumber<Total>(p.input.type, arguments.inputs[0].data, ElementOffset(p.input, at));
        const Total next = p.multiplies ? total * x : total + x;
        StoreNumber(p.output.type, arguments.outputs[0].data, ElementOffset(p.output, at),
                    p.exclusive ? total : next);
        total = next;
      }
    });
    return {};
  }

 private:
  ScanProblem problem_;
};

// Whether the element is zero, of either sign.
bool IsZero(DataType type, const std::byte* data, uint64_t at) {
  switch (type) {
    case DataType::kFloat32:
      return Load<float>(data, at) == 0;
    case DataType::kFloat16:
      return ToFloat(Load<Half>(data, at)) == 0;
    case DataType::kInt32:
    case DataType::kUInt32:
      return Load<uint32_t>(data, at) == 0;
    case DataType::kInt16:
    case DataType::kUInt16:
      return Load<uint16_t>(data, at) == 0;
    default:
      return Load<uint8_t>(data, at) == 0;
  }
}

class NonzeroReference final : public Kernel {
 public:
  explicit NonzeroReference(const NonzeroProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const NonzeroProblem& p = problem_;
    const uint32_t last = p.coordinates.rank - 1, columns = p.coordinates.sizes[last];
    Dimensions to{};
    uint32_t count = 0;
    ForEachCoordinate(p.input.sizes, p.input.rank, [&](const Dimensions& at) {
      if (IsZero(p.input.type, arguments.inputs[0].data, ElementOffset(p.input, at))) return;
      to[last - 1] = count++;
      for (uint32_t c = 0; c < columns; ++c) {
        to[last] = c;
        Store(arguments.outputs[1].data, ElementOffset(p.coordinates, to), at[p.input.rank - columns + c]);
      }
    });
    Store(arguments.outputs[0].data, 0, count);
    return {};
  }

 private:
  NonzeroProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateScanReference(const ScanProblem& problem, const LowerContext&,
                                                  std::string*) {
  const DataType type = problem.output.type;
  if (type == DataType::kFloat32 || type == DataType::kFloat16) {
    return std::make_unique<ScanReference<float>>(problem);
  }
  if (BitSize(type) == 64) return std::make_unique<ScanReference<uint64_t>>(problem);
  return std::make_unique<ScanReference<uint32_t>>(problem);
}

std::unique_ptr<const Kernel> CreateNonzeroReference(const NonzeroProblem& problem, const LowerContext&,
                                                     std::string*) {
  return std::make_unique<NonzeroReference>(problem);
}

}  // namespace anydml
