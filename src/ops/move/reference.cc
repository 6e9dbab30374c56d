// Every operator as its documentation says: for each element of an output, the element of an input that it
// copies. Does not use the affine maps.
#include <algorithm>
#include <cstring>

#include "ops/common/coordinates.h"
#include "ops/move/border_maps.h"
#include "ops/move/problem.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

using Type = OperatorType;

// Copies the elements of one run. `width` in bytes.
struct Mover {
  const KernelArguments& arguments;
  uint64_t width;

  void Move(uint32_t from, const TensorDesc& source, const Dimensions& at, uint32_t to,
            const TensorDesc& target, const Dimensions& to_at) const {
    std::memcpy(arguments.outputs[to].data + ElementOffset(target, to_at) * width,
                arguments.inputs[from].data + ElementOffset(source, at) * width, width);
  }
  void Put(uint64_t bits, const TensorDesc& target, const Dimensions& to_at) const {
    std::memcpy(arguments.outputs[0].data + ElementOffset(target, to_at) * width, &bits, width);
  }

  // Element `at` of output 0 is element source_of(at) of input 0.
  template <typename SourceOf>
  void Gather(const TensorDesc& input, const TensorDesc& output, SourceOf&& source_of) const {
    ForEachCoordinate(output.sizes, output.rank, [&](const Dimensions& at) {
      Dimensions from{};
      for (uint32_t d = 0; d < output.rank; ++d) from[d] = static_cast<uint32_t>(source_of(at, d));
      Move(0, input, from, 0, output, at);
    });
  }
};

// Coordinate `at` of the window, in the tensor that contains the window.
template <typename Desc>
int64_t InWindow(const Desc& desc, uint32_t at, uint32_t d) {
  const int64_t stride = desc.input_window_strides[d];
  const int64_t begin = desc.input_window_offsets[d];
  return (stride > 0 ? begin : begin + desc.input_window_sizes[d] - 1) + stride * at;
}

void RunSlices(const Mover& mover, const OperatorDesc& desc) {
  if (desc.schema->type == static_cast<uint32_t>(Type::kSlice)) {
    const auto slice = SliceDesc::From(desc);
    mover.Gather(slice.input, slice.output, [&](const Dimensions& at, uint32_t d) {
      return slice.offsets[d] + uint64_t{slice.strides[d]} * at[d];
    });
  } else if (desc.schema->type == static_cast<uint32_t>(Type::kSlice1)) {
    const auto slice = Slice1Desc::From(desc);
    mover.Gather(slice.input, slice.output,
                 [&](const Dimensions& at, uint32_t d) { return InWindow(slice, at[d], d); });
  } else {
    const auto slice = SliceGradDesc::From(desc);
    const TensorDesc &input = slice.input_gradient, &output = slice.output_gradient;
    ForEachCoordinate(output.sizes, output.rank, [&](const Dimensions& at) { mover.Put(0, output, at); });
    ForEachCoordinate(input.sizes, input.rank, [&](const Dimensions& at) {
      Dimensions to{};
      for (uint32_t d = 0; d < input.rank; ++d) to[d] = static_cast<uint32_t>(InWindow(slice, at[d], d));
      mover.Move(0, input, at, 0, output, to);
    });
  }
}

void RunSplit(const Mover& mover, const SplitDesc& desc) {
  uint32_t begin = 0;
  for (uint32_t i = 0; i < desc.outputs.size(); ++i) {
    const TensorDesc& output = desc.outputs[i];
    ForEachCoordinate(output.sizes, output.rank, [&](const Dimensions& at) {
      Dimensions from = at;
      from[desc.axis] += begin;
      mover.Move(0, desc.input, from, i, output, at);
    });
    begin += output.sizes[desc.axis];
  }
}

void RunJoin(const Mover& mover, const JoinDesc& desc) {
  uint32_t begin = 0;
  for (uint32_t i = 0; i < desc.inputs.size(); ++i) {
    const TensorDesc& input = desc.inputs[i];
    ForEachCoordinate(input.sizes, input.rank, [&](const Dimensions& at) {
      Dimensions to = at;
      to[desc.axis] += begin;
      mover.Move(i, input, at, 0, desc.output, to);
    });
    begin += input.sizes[desc.axis];
  }
}

template <typename Desc>
void RunPadding(const Mover& mover, const Desc& desc, uint64_t value) {
  ForEachCoordinate(desc.output.sizes, desc.output.rank, [&](const Dimensions& at) {
    Dimensions from{};
    bool is_outside = false;
    for (uint32_t d = 0; d < desc.output.rank; ++d) {
      const int64_t i = int64_t{at[d]} - desc.start_padding[d], size = desc.input.sizes[d];
      is_outside |= i < 0 || i >= size;
      from[d] = static_cast<uint32_t>(PaddedCoordinate(desc.padding_mode, i, size));
    }
    if (is_outside && desc.padding_mode == PaddingMode::kConstant) {
      mover.Put(value, desc.output, at);
    } else {
      mover.Move(0, desc.input, from, 0, desc.output, at);
    }
  });
}

// The channel of a pixel in a block.
uint32_t BlockChannel(DepthSpaceOrder order, uint32_t block, uint32_t channels, uint32_t channel,
                      uint32_t row, uint32_t column) {
  return order == DepthSpaceOrder::kDepthColumnRow ? (row * block + column) * channels + channel
                                                   : (channel * block + row) * block + column;
}

void RunDepthSpace(const Mover& mover, const OperatorDesc& desc) {
  const auto type = static_cast<Type>(desc.schema->type);
  const bool has_order = type == Type::kDepthToSpace1 || type == Type::kSpaceToDepth1;
  const bool to_space = type == Type::kDepthToSpace1 || type == Type::kDepthToSpace;
  const auto order =
      has_order ? static_cast<DepthSpaceOrder>(desc.uint("Order")) : DepthSpaceOrder::kDepthColumnRow;
  const TensorDesc &input = *desc.tensor("InputTensor"), &output = *desc.tensor("OutputTensor");
  const TensorDesc& space = to_space ? output : input;
  const uint32_t block = desc.uint("BlockSize");
  ForEachCoordinate(space.sizes, 4, [&](const Dimensions& at) {
    const uint32_t channel = BlockChannel(order, block, space.sizes[1], at[1], at[2] % block, at[3] % block);
    const Dimensions deep = {at[0], channel, at[2] / block, at[3] / block};
    if (to_space) {
      mover.Move(0, input, deep, 0, output, at);
    } else {
      mover.Move(0, input, at, 0, output, deep);
    }
  });
}

class MoveReference final : public Kernel {
 public:
  explicit MoveReference(const MoveProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const OperatorDesc& desc = problem_.desc;
    const Mover mover = {arguments, BitSize(problem_.type) / 8};
    switch (static_cast<Type>(desc.schema->type)) {
      case Type::kSlice:
      case Type::kSlice1:
      case Type::kSliceGrad:
        RunSlices(mover, desc);
        break;
      case Type::kSplit:
        RunSplit(mover, SplitDesc::From(desc));
        break;
      case Type::kJoin:
        RunJoin(mover, JoinDesc::From(desc));
        break;
      case Type::kTile: {
        const auto tile = TileDesc::From(desc);
        mover.Gather(tile.input, tile.output,
                     [&](const Dimensions& at, uint32_t d) { return at[d] % tile.input.sizes[d]; });
        break;
      }
      case Type::kPadding:
        RunPadding(mover, PaddingDesc::From(desc), problem_.fill);
        break;
      case Type::kPadding1:
        RunPadding(mover, Padding1Desc::From(desc), problem_.fill);
        break;
      default:
        RunDepthSpace(mover, desc);
    }
    return {};
  }

 private:
  MoveProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateMoveReference(const MoveProblem& problem, const LowerContext&,
                                                  std::string*) {
  return std::make_unique<MoveReference>(problem);
}

}  // namespace anydml
