#include <algorithm>

#include "base/dispatch.h"
#include "ops/common/coordinates.h"
#include "ops/gather/problem.h"

namespace anydml {
namespace {

template <typename Element, typename Index>
class GatherReference final : public Kernel {
 public:
  explicit GatherReference(const GatherProblem& problem) : p_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const std::byte* input = arguments.inputs[0].data;
    const std::byte* indices = arguments.inputs[1].data;
    ForEachCoordinate(p_.output.sizes, p_.output.rank, [&](const Dimensions& at) {
      const Dimensions source = Source(indices, at);
      Store(arguments.outputs[0].data, ElementOffset(p_.output, at),
            Load<Element>(input, ElementOffset(p_.input, source)));
    });
    if (arguments.data_errors != nullptr) ReportFirstBad(indices, arguments.data_errors);
    return {};
  }

 private:
  // The source of the output's element at `at`.
  Dimensions Source(const std::byte* indices, const Dimensions& at) const {
    const uint32_t rank = p_.output.rank;
    Dimensions source{}, tuple{};
    if (p_.kind == GatherProblem::Kind::kElements) {
      tuple = source = at;
    } else if (p_.kind == GatherProblem::Kind::kAxis) {
      const uint32_t behind = rank - 1 - p_.axis;  // dimensions of the input after the axis
      const uint32_t k = p_.indices_dimensions;
      for (uint32_t d = 0; d < behind; ++d) source[rank - 1 - d] = at[rank - 1 - d];
      for (uint32_t d = 0; d < k; ++d) tuple[rank - 1 - d] = at[rank - 1 - behind - d];
      for (uint32_t d = 0; d < p_.axis && behind + k + d < rank; ++d) {
        source[p_.axis - 1 - d] = at[rank - 1 - behind - k - d];
      }
    } else {
      const uint32_t slice = p_.input_dimensions - p_.batch_dimensions - p_.tuple_size();
      const uint32_t positions = p_.indices_dimensions - 1;
      for (uint32_t d = 0; d < slice; ++d) source[rank - 1 - d] = at[rank - 1 - d];
      for (uint32_t d = 0; d < positions; ++d) tuple[rank - 2 - d] = at[rank - 1 - slice - d];
      for (uint32_t d = 0; d < p_.batch_dimensions; ++d) {
        source[rank - p_.input_dimensions + d] = at[rank - slice - positions + d];
      }
    }
    for (uint32_t c = 0; c < p_.tuple_size(); ++c) {
      const uint32_t d = p_.source_dimension(c);
      const int64_t index = Wrapped(indices, tuple, c);
      source[d] = static_cast<uint32_t>(std::clamp<int64_t>(index, 0, int64_t{p_.input.sizes[d]} - 1));
    }
    return source;
  }

  // Component `c` of a tuple. Unsigned values beyond INT64 are out of range anyway.
  int64_t Wrapped(const std::byte* indices, Dimensions tuple, uint32_t c) const {
    if (p_.kind == GatherProblem::Kind::kNd) tuple[p_.indices.rank - 1] = c;
    const Index index = Load<Index>(indices, ElementOffset(p_.indices, tuple));
    if constexpr (std::is_unsigned_v<Index>) {
      return static_cast<int64_t>(std::min<uint64_t>(index, INT64_MAX));
    } else {
      return index < 0 && p_.wraps ? index + int64_t{p_.input.sizes[p_.source_dimension(c)]} : index;
    }
  }

  void ReportFirstBad(const std::byte* indices, DataErrorSink* sink) const {
    Dimensions sizes = p_.indices.sizes;
    if (p_.kind == GatherProblem::Kind::kNd) sizes[p_.indices.rank - 1] = 1;
    bool reported = false;
    ForEachCoordinate(sizes, p_.indices.rank, [&](const Dimensions& at) {
      for (uint32_t c = 0; c < p_.tuple_size() && !reported; ++c) {
        const int64_t index = Wrapped(indices, at, c);
        if (index >= 0 && index < p_.input.sizes[p_.source_dimension(c)]) continue;
        sink->ReportDataError(DescribeBadIndex(p_, indices, at));
        reported = true;
      }
    });
  }

  GatherProblem p_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateGatherReference(const GatherProblem& problem, const LowerContext&,
                                                    std::string*) {
  return DispatchByWidth(problem.output.type, [&]<typename Element>() {
    return DispatchByIndexType(problem.indices.type, [&]<typename Index>() -> std::unique_ptr<const Kernel> {
      return std::make_unique<GatherReference<Element, Index>>(problem);
    });
  });
}

}  // namespace anydml
