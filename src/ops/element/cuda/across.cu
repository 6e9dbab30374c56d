// One function of two inputs, one of which is transposed relative to the output: it comes through a tile in
// shared memory, 16 bytes at a time, as do all other accesses.
#include <array>

#include "ops/device/cuda/tiles.cuh"
#include "ops/device/cuda/units.cuh"
#include "ops/element/cuda/flat.cuh"
#include "ops/element/ordered_loops.h"

namespace anydml {
namespace element_cuda {
namespace {

struct Across {
  const std::byte* crossed = nullptr;
  const std::byte* along = nullptr;
  std::byte* output = nullptr;
  bool crossed_first = false;  // `crossed` is the function's first source
  uint32_t rows = 1;           // along which `crossed` is contiguous
  uint32_t columns = 1;
  uint64_t column_stride = 0;  // of `crossed`; the others have 1
  uint64_t along_stride = 0;   // of rows; `crossed` has 1
  uint64_t output_stride = 0;
  uint64_t outer_strides[3] = {};  // of an enclosing loop: of crossed, along, output
  TileOrder order;
  Instruction instruction = {};
};

// Lines of 256 bytes on both sides.
template <typename T>
using AcrossTile = VectorTile<T, 256 / sizeof(T)>;

template <typename Body, typename T>
__device__ uint4 ApplyToUnits(const uint4& a, const uint4& b, const Instruction& instruction) {
  constexpr uint32_t kCount = 16 / sizeof(T);
  Pack<T, kCount> first, second, result;
  memcpy(&first, &a, sizeof(first));
  memcpy(&second, &b, sizeof(second));
  float numbers[kCount];
#pragma unroll
  for (uint32_t e = 0; e < kCount; ++e) {
    numbers[e] =
        Body::Call(NumberOfElement(first.elements[e]), NumberOfElement(second.elements[e]), 0, instruction);
  }
#pragma unroll
  for (uint32_t e = 0; e < kCount; e += 2) ToElements(numbers[e], numbers[e + 1], result.elements + e);
  uint4 unit;
  memcpy(&unit, &result, sizeof(unit));
  return unit;
}

// Loads of both inputs are in flight before anything waits.
template <typename Body, typename T>
__global__ void __launch_bounds__(AcrossTile<T>::kThreads, 1024 / AcrossTile<T>::kThreads)
    AcrossKernel(const __grid_constant__ Across p) {
  using Tile = AcrossTile<T>;
  __shared__ Tile tile;
  uint64_t row_tile, column_tile;
  const uint32_t outer = p.order.Find(blockIdx.x, &row_tile, &column_tile);
  const uint64_t row = row_tile * Tile::kRows, column = column_tile * Tile::kColumns;
  const T* const crossed =
      reinterpret_cast<const T*>(p.crossed) + outer * p.outer_strides[0] + row + column * p.column_stride;
  const T* const along =
      reinterpret_cast<const T*>(p.along) + outer * p.outer_strides[1] + row * p.along_stride + column;
  T* const output =
      reinterpret_cast<T*>(p.output) + outer * p.outer_strides[2] + row * p.output_stride + column;
  const auto is_inside = [&](uint32_t r, uint32_t c) { return row + r < p.rows && column + c < p.columns; };

  uint4 loaded[Tile::kLoads], others[Tile::kStores][Tile::kPerStore];
#pragma unroll
  for (uint32_t i = 0; i < Tile::kLoads; ++i) {
    const auto place = Tile::LoadPlace(i);
    loaded[i] = {};
    if (is_inside(place.row, place.column)) {
      loaded[i] =
          __ldcs(reinterpret_cast<const uint4*>(crossed + place.row + place.column * p.column_stride));
    }
  }
#pragma unroll
  for (uint32_t i = 0; i < Tile::kStores; ++i) {
    const auto place = Tile::StorePlace(i);
#pragma unroll
    for (uint32_t e = 0; e < Tile::kPerStore; ++e) {
      others[i][e] = {};
      if (is_inside(place.row + e, place.column)) {
        others[i][e] =
            *reinterpret_cast<const uint4*>(along + (place.row + e) * p.along_stride + place.column);
      }
    }
  }
#pragma unroll
  for (uint32_t i = 0; i < Tile::kLoads; ++i) tile.Put(i, loaded[i]);
  __syncthreads();
#pragma unroll
  for (uint32_t i = 0; i < Tile::kStores; ++i) {
    const auto place = Tile::StorePlace(i);
    uint4 units[Tile::kPerStore];
    tile.Get(i, units);
#pragma unroll
    for (uint32_t e = 0; e < Tile::kPerStore; ++e) {
      const uint4 result = p.crossed_first ? ApplyToUnits<Body, T>(units[e], others[i][e], p.instruction)
                                           : ApplyToUnits<Body, T>(others[i][e], units[e], p.instruction);
      if (is_inside(place.row + e, place.column)) {
        *reinterpret_cast<uint4*>(output + (place.row + e) * p.output_stride + place.column) = result;
      }
    }
  }
}

using AcrossLaunch = void(Across across, uint64_t outer, void* stream);

template <typename Row, typename T>
void LaunchAcross(Across across, uint64_t outer, void* stream) {
  using Tile = AcrossTile<T>;
  across.order = TileOrder((across.rows + Tile::kRows - 1) / Tile::kRows,
                           (across.columns + Tile::kColumns - 1) / Tile::kColumns);
  const auto blocks = static_cast<uint32_t>(outer * across.order.tiles());
  // An error stays the thread's last CUDA error, where the backend finds it.
  AcrossKernel<RowBody<Row>, T><<<blocks, Tile::kThreads, 0, static_cast<cudaStream_t>(stream)>>>(across);
}

template <typename T>
AcrossLaunch* FindLaunch(ElementFunction function) {
  using F = ElementFunction;
  switch (function) {
    case F::kAdd:
      return LaunchAcross<rows::Add, T>;
    case F::kSubtract:
      return LaunchAcross<rows::Subtract, T>;
    case F::kMultiply:
      return LaunchAcross<rows::Multiply, T>;
    case F::kDivide:
      return LaunchAcross<rows::Divide, T>;
    case F::kMaximum:
      return LaunchAcross<rows::Maximum, T>;
    case F::kMinimum:
      return LaunchAcross<rows::Minimum, T>;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace element_cuda

namespace {

using element_cuda::Across;

class ElementAcrossCuda final : public Kernel {
 public:
  // Other functions, and addresses that do not allow units of 16 bytes, use another kernel.
  ElementAcrossCuda(const ElementProblem& problem, const LowerContext& context, std::string* why_not)
      : otherwise_(CreateElementProgramCuda(problem, context, why_not)) {}

  // False, with a reason, if there is no kernel.
  bool Find(const ElementProblem& problem, std::string* why_not) {
    *why_not = "there is no kernel for the program";
    if (otherwise_ == nullptr || !ReadProgram(problem)) return false;
    const DataType type = problem.outputs[0].type;
    for (const ElementOperand& input : problem.inputs) {
      if (input.type != type) return false;
    }
    using element_cuda::FindLaunch;
    if (type == DataType::kFloat32) launch_ = FindLaunch<float>(across_.instruction.function);
    if (type == DataType::kFloat16) launch_ = FindLaunch<Half>(across_.instruction.function);
    if (launch_ == nullptr) return false;
    *why_not = "no input lies across the output in units of 16 bytes";
    return FindLoops(problem, kMaxUnitBytes / (BitSize(type) / 8));
  }

  Status Run(const KernelArguments& arguments) const override {
    Across across = across_;
    across.crossed = arguments.inputs[crossed_].data;
    across.along = arguments.inputs[along_].data;
    across.output = arguments.outputs[0].data;
    const uint64_t addresses = AddressOf(across.crossed) | AddressOf(across.along) | AddressOf(across.output);
    if (addresses % kMaxUnitBytes != 0) return otherwise_->Run(arguments);
    launch_(across, outer_, arguments.stream);
    return {};
  }

  uint64_t temporary_bytes() const override { return otherwise_->temporary_bytes(); }

 private:
  // Reads a program of two loads of FLOAT32 numbers, a function of them, and its store.
  bool ReadProgram(const ElementProblem& problem) {
    const auto& i = problem.program.instructions;
    using F = ElementFunction;
    if (problem.inputs.size() != 2 || problem.outputs.size() != 1 || i.size() != 4) return false;
    if (i[0].function != F::kLoad || i[1].function != F::kLoad || i[3].function != F::kStore) return false;
    const Instruction& f = i[2];
    const bool in_order = f.sources[0] == i[0].target && f.sources[1] == i[1].target;
    if (f.type != Class::kF32 || i[0].type != Class::kF32 || i[1].type != Class::kF32) return false;
    if (!in_order || i[0].target == i[1].target || i[3].sources[0] != f.target) return false;
    if (i[0].sources[0] == i[1].sources[0]) return false;
    across_.instruction = f;
    inputs_ = {i[0].sources[0], i[1].sources[0]};
    return true;
  }

  bool FindLoops(const ElementProblem& problem, uint64_t unit) {
    constexpr uint64_t kShortest = 64;
    const auto loops = OrderedLoops<OrderedLoop>(problem);
    if (loops.size() < 2 || loops.size() > 3) return false;
    const OrderedLoop& rows = loops[loops.size() - 2];
    const OrderedLoop& columns = loops.back();
    constexpr size_t kOutput = 2;
    const bool first = rows.strides[inputs_[0]] == 1 && columns.strides[inputs_[0]] != 1;
    crossed_ = inputs_[first ? 0 : 1];
    along_ = inputs_[first ? 1 : 0];
    uint64_t distances =
        rows.size | columns.size | columns.strides[crossed_] | rows.strides[along_] | rows.strides[kOutput];
    if (loops.size() == 3) {
      outer_ = loops[0].size;
      const std::array<uint64_t, 3> strides = {loops[0].strides[crossed_], loops[0].strides[along_],
                                               loops[0].strides[kOutput]};
      for (uint32_t o = 0; o < strides.size(); ++o) {
        across_.outer_strides[o] = strides[o];
        distances |= strides[o];
      }
    }
    across_.crossed_first = first;
    across_.rows = static_cast<uint32_t>(rows.size);
    across_.columns = static_cast<uint32_t>(columns.size);
    across_.column_stride = columns.strides[crossed_];
    across_.along_stride = rows.strides[along_];
    across_.output_stride = rows.strides[kOutput];
    return rows.strides[crossed_] == 1 && across_.column_stride >= rows.size &&
           columns.strides[along_] == 1 && columns.strides[kOutput] == 1 && distances % unit == 0 &&
           rows.size >= kShortest && columns.size >= kShortest;
  }

  const std::unique_ptr<const Kernel> otherwise_;
  Across across_;
  std::array<uint32_t, 2> inputs_{};  // the function's sources
  uint32_t crossed_ = 0, along_ = 0;
  uint64_t outer_ = 1;
  element_cuda::AcrossLaunch* launch_ = nullptr;
};

}  // namespace

std::unique_ptr<const Kernel> CreateElementAcrossCuda(const ElementProblem& problem,
                                                      const LowerContext& context, std::string* why_not) {
  auto kernel = std::make_unique<ElementAcrossCuda>(problem, context, why_not);
  if (!kernel->Find(problem, why_not)) return nullptr;
  return kernel;
}

}  // namespace anydml
