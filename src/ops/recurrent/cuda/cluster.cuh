// All steps in one kernel, for FLOAT16. A cluster of blocks has four elements of the batch in one direction:
// elements know nothing of each other, so that clusters never wait for one another. A block has 32 units, a
// warp four of them with up to four gates each, and their weights stay in its registers. After a step each
// warp writes the hidden state of its units into the shared memory of all blocks of the cluster; a barrier
// there counts the bytes that have arrived.
//
// The state is FLOAT32. Tensor cores see it as two FLOAT16 numbers, `high` + `low` / 2048, in neighbouring
// columns of a tile: eight columns are four elements. That is exact but for 2^-22 of a number, for numbers
// that FLOAT16 has room for.
#pragma once

#include "ops/common/cuda_cluster.cuh"
#include "ops/common/tensor_cores.cuh"
#include "ops/element/cuda/memory.cuh"
#include "ops/recurrent/cuda/cell.cuh"

namespace anydml::recurrent_cuda {

inline constexpr uint32_t kClusterThreads = 256;
inline constexpr uint32_t kClusterElements = 4;
inline constexpr uint32_t kBlockUnits = 32;  // of eight warps
inline constexpr uint32_t kWarpUnits = 4;
inline constexpr float kLowScale = 2048;

// The state of four elements, as the tensor cores' right factor: eight bytes are four units in one column, as
// a thread needs them for a tile (lane / 4 is the column, lane % 4 the warp whose units they are, and for the
// next tile that + 4). 64 bytes are the eight columns; of warps 2, 3, 6 and 7 the second four come first, so
// that a half-warp meets different banks.
template <uint32_t kBlocks>
struct ClusterState {
  static constexpr uint32_t kBlockBytes = kBlockUnits * kClusterElements * 2 * sizeof(__half);
  static constexpr uint32_t kBytes = kBlocks * kBlockBytes;

  static __device__ uint32_t PlaceOf(uint32_t block, uint32_t warp, uint32_t column) {
    return block * kBlockBytes + warp * 64 + (column ^ (warp & 2) * 2) * 8;
  }

  alignas(16) std::byte numbers[2][kBytes];  // before and after a step, by turns
  ArrivalBarrier arrived[2];                 // of both
};

template <uint32_t kBlocks>
class ClusterBlock {
 public:
  using State = ClusterState<kBlocks>;

  __device__ ClusterBlock(const Cell& p, State& state)
      : p_(p),
        state_(state),
        direction_(blockIdx.x / kBlocks / Groups()),
        rank_(blockIdx.x % kBlocks),
        warp_(threadIdx.x / 32),
        lane_(threadIdx.x % 32),
        is_second_(lane_ / 4 % 2),
        unit_(rank_ * kBlockUnits + warp_ * kWarpUnits + lane_ / 8),
        element_(blockIdx.x / kBlocks % Groups() * kClusterElements + lane_ % 4),
        exists_(unit_ < p.units && element_ < p.batch) {}

  __device__ void Run() {
    if (threadIdx.x == 0) {
      for (ArrivalBarrier& barrier : state_.arrived) {
        barrier.Initialize();
        barrier.Expect(State::kBytes);
      }
    }
    LoadWeights();
    LoadConstants();
    StartState();
    LoadInputs(0);
    SyncCluster();
    for (uint32_t step = 0; step < p_.steps; ++step) {
      RunStep(step);
      if (step + 1 < p_.steps) Send(step + 1);
    }
    Put(p_.single, 0, hidden_);
    Put(p_.cell_single, 0, cell_);
    SyncCluster();  // others may still write here
  }

 private:
  __device__ uint32_t Groups() const { return (p_.batch + kClusterElements - 1) / kClusterElements; }
  // Rows lane / 4 (number 0) and that + 8 of the warp's tile. Those of neighbouring fours are a unit's gates.
  __device__ uint32_t GateOf(uint32_t number) const { return is_second_ * 2 + number; }

  __device__ float Get(const DeviceTensor& tensor, uint64_t b, uint64_t c, uint64_t d) const {
    if (tensor.data == nullptr) return 0;
    return reduce::LoadAs<float>(tensor.data, DataType::kFloat16, PlaceOf(tensor, 0, b, c, d));
  }
  __device__ float GetOfUnit(const DeviceTensor& tensor, uint32_t gate) const {
    return unit_ < p_.units ? Get(tensor, 0, direction_, uint64_t{gate} * p_.units + unit_) : 0;
  }
  __device__ void Put(const DeviceTensor& tensor, uint64_t time, float number) const {
    if (tensor.data == nullptr || !exists_ || is_second_) return;
    reduce::StoreAs(tensor.data, DataType::kFloat16, PlaceOf(tensor, time, direction_, element_, unit_),
                    number);
  }

  __device__ void LoadWeights() {
    const auto* const halves = reinterpret_cast<const uint16_t*>(p_.recurrence.data);
    const uint64_t stride = p_.recurrence.strides[3];
    ANYDML_UNROLL for (uint32_t number = 0; number < 2; ++number) {
      const bool exists = GateOf(number) < p_.gates && unit_ < p_.units;
      const uint64_t row = uint64_t{GateOf(number)} * p_.units + unit_;
      const uint16_t* const from = exists ? halves + PlaceOf(p_.recurrence, 0, direction_, row, 0) : halves;
      const bool by_eight = stride == 1 && p_.units % 4 == 0 && reinterpret_cast<uintptr_t>(from) % 8 == 0;
      ANYDML_UNROLL for (uint32_t tile = 0; tile < 2 * kBlocks; ++tile) {
        const uint32_t first = tile * 16 + lane_ % 4 * kWarpUnits;
        uint2 four = {0, 0};
        if (exists && by_eight) {
          if (first < p_.units) four = *reinterpret_cast<const uint2*>(from + first);
        } else if (exists) {
          const auto at = [&](uint32_t k) {
            return first + k < p_.units ? uint32_t{from[(first + k) * stride]} : 0;
          };
          four = {at(0) | at(1) << 16, at(2) | at(3) << 16};
        }
        weights_[tile].registers[number] = four.x;
        weights_[tile].registers[number + 2] = four.y;
      }
    }
  }

  __device__ void LoadConstants() {
    const uint32_t all = p_.gates;  // biases of weights, then those of the recurrence
    ANYDML_UNROLL for (uint32_t number = 0; number < 2; ++number) {
      const uint32_t gate = GateOf(number);
      bias_[number] = gate < all ? GetOfUnit(p_.bias, gate) + GetOfUnit(p_.bias, all + gate) : 0;
    }
    // The last gate of GRU sees the sum of the state apart: the inputs' is what the fourth gate would be.
    if (p_.kind == CellKind::kGru && is_second_) {
      bias_[0] = GetOfUnit(p_.bias, all + 2);
      bias_[1] = GetOfUnit(p_.bias, 2);
    }
    ANYDML_UNROLL for (uint32_t gate = 0; gate < 3; ++gate) peephole_[gate] = GetOfUnit(p_.peephole, gate);
    length_ = 0;
    if (element_ < p_.batch) {
      length_ = p_.lengths == nullptr ? p_.steps : min(p_.steps, p_.lengths[element_ * p_.lengths_stride]);
    }
  }

  // The initial state, which FLOAT16 holds, of all units.
  __device__ void StartState() {
    const uint32_t first = element_ - lane_ % 4;
    for (uint32_t i = threadIdx.x; i < kBlocks * kBlockUnits * kClusterElements; i += kClusterThreads) {
      const uint32_t unit = i / kClusterElements, at = i % kClusterElements;
      const bool exists = unit < p_.units && first + at < p_.batch;
      const float hidden = exists ? Get(p_.hidden_init, direction_, first + at, unit) : 0;
      const uint32_t warp = unit % kBlockUnits / kWarpUnits;
      std::byte* const to =
          state_.numbers[0] + State::PlaceOf(unit / kBlockUnits, warp, 2 * at) + unit % kWarpUnits * 2;
      reinterpret_cast<__half*>(to)[0] = __float2half_rn(hidden);
      reinterpret_cast<__half*>(to)[4] = __float2half_rn(0);
    }
    hidden_ = exists_ ? Get(p_.hidden_init, direction_, element_, unit_) : 0;
    cell_ = exists_ ? Get(p_.cell_init, direction_, element_, unit_) : 0;
  }

  __device__ uint32_t TimeOfStep(uint32_t step) const {
    const bool backward = direction_ == 1 || p_.first_is_backward;
    return static_cast<uint32_t>(TimeOf(step, length_, backward));
  }

  // What comes from the inputs of a step, for the thread's rows.
  __device__ void LoadInputs(uint32_t step) {
    if (!exists_ || step >= length_) return;
    const uint64_t time = uint64_t{direction_} * p_.steps + TimeOfStep(step);
    const float* const from = p_.from_inputs + (time * p_.batch + element_) * p_.gates * p_.units + unit_;
    ANYDML_UNROLL for (uint32_t number = 0; number < 2; ++number) {
      const uint32_t gate = GateOf(number);
      if (gate < p_.gates) inputs_[number] = from[uint64_t{gate} * p_.units];
    }
  }

  // Weights times the state: of the thread's two rows, for its element.
  __device__ float2 Multiply(const std::byte* state) const {
    constexpr uint32_t kChains = 4;  // sums that do not wait for each other
    SumTile sums[kChains] = {};
    const std::byte* const from = state + State::PlaceOf(0, lane_ % 4, lane_ / 4);
    ANYDML_UNROLL for (uint32_t tile = 0; tile < 2 * kBlocks; ++tile) {
      const uint2 right = *reinterpret_cast<const uint2*>(from + tile * 4 * 64);
      anydml::Multiply(weights_[tile], right.x, right.y, &sums[tile % kChains]);
    }
    float x[4];
    ANYDML_UNROLL for (uint32_t i = 0; i < 4; ++i) {
      x[i] = (sums[0].x[i] + sums[1].x[i]) + (sums[2].x[i] + sums[3].x[i]);
    }
    return {x[0] + x[1] / kLowScale, x[2] + x[3] / kLowScale};
  }

  __device__ void RunStep(uint32_t step) {
    if (step > 0) {
      ArrivalBarrier& arrived = state_.arrived[step % 2];
      arrived.Wait((step - 1) / 2);
      if (threadIdx.x == 0 && step + 2 < p_.steps) arrived.Expect(State::kBytes);
      __syncwarp();
    }
    const float2 of_state = Multiply(state_.numbers[step % 2]);
    float own[2] = {of_state.x, of_state.y};
    if (p_.kind == CellKind::kGru && is_second_) {
      own[0] += bias_[0];
      own[1] = inputs_[0] + bias_[1];
    } else {
      own[0] = own[0] + inputs_[0] + bias_[0];
      own[1] = own[1] + inputs_[1] + bias_[1];
    }
    LoadInputs(step + 1);
    __syncwarp();
    float sums[4];
    ANYDML_UNROLL for (uint32_t number = 0; number < 2; ++number) {
      const float others = __shfl_xor_sync(~0u, own[number], 4);
      sums[number] = is_second_ ? others : own[number];
      sums[number + 2] = is_second_ ? own[number] : others;
    }
    const bool ended = step >= length_;
    if (exists_ && !ended) {
      hidden_ = Canonical(
          p_.has_usual_functions
              ? NextHidden(p_, UsualFunctions{p_.kind}, sums, peephole_, hidden_, &cell_)
              : NextHidden(p_, GivenFunctions{p_.activations[direction_]}, sums, peephole_, hidden_, &cell_));
    }
    Put(p_.sequence, ended ? step : TimeOfStep(step), ended ? 0 : hidden_);
  }

  // The warp's four units to all blocks. A thread has an element: all four units of it for every eighth
  // block.
  __device__ void Send(uint32_t step) const {
    const __half high = __float2half_rn(hidden_);
    const float rest = hidden_ == __half2float(high) ? 0 : (hidden_ - __half2float(high)) * kLowScale;
    const uint32_t both = __half_as_ushort(high) | uint32_t{__half_as_ushort(__float2half_rn(rest))} << 16;
    uint32_t of_unit[kWarpUnits];
    __syncwarp();
    ANYDML_UNROLL for (uint32_t unit = 0; unit < kWarpUnits; ++unit) {
      of_unit[unit] = __shfl_sync(~0u, both, unit * 8 + lane_ % 4);
    }
    const uint4 numbers = {
        __byte_perm(of_unit[0], of_unit[1], 0x5410), __byte_perm(of_unit[2], of_unit[3], 0x5410),
        __byte_perm(of_unit[0], of_unit[1], 0x7632), __byte_perm(of_unit[2], of_unit[3], 0x7632)};
    std::byte* const to = state_.numbers[step % 2] + State::PlaceOf(rank_, warp_, lane_ % 4 * 2);
    ANYDML_UNROLL for (uint32_t first = 0; first < kBlocks; first += 8) {
      const uint32_t block = first + lane_ / 4;
      if (block < kBlocks) state_.arrived[step % 2].Send(block, to, numbers);
    }
  }

  const Cell& p_;
  State& state_;
  const uint32_t direction_, rank_, warp_, lane_;
  const bool is_second_;  // of the two threads that have the same unit and element
  const uint32_t unit_, element_;
  const bool exists_;
  LeftTile weights_[2 * kBlocks];
  float bias_[2], peephole_[3], inputs_[2] = {0, 0};
  float hidden_, cell_;
  uint32_t length_;
};

}  // namespace anydml::recurrent_cuda
