// All steps in one kernel, for FLOAT16. A cluster of blocks has one or two groups of four elements of the
// batch in one direction; elements are independent, so clusters never wait for each other. A block has 32
// units, a warp four of them with up to four gates each, and their weights stay in its registers. After a
// step each warp writes the hidden state of its units to the shared memory of all blocks of the cluster; a
// barrier there counts the arriving bytes. With two groups, one is computed while the other's state is in
// flight.
//
// The state is FLOAT32. Tensor cores see it as two FLOAT16 numbers, `high` + `low` / 2048, in neighbouring
// columns of a tile: eight columns are four elements. That is accurate to 2^-22 of a number, for numbers in
// FLOAT16's range.
#pragma once

#include "ops/device/cuda/cluster.cuh"
#include "ops/device/cuda/memory.cuh"
#include "ops/device/cuda/tensor_cores.cuh"
#include "ops/recurrent/cuda/cell.cuh"

namespace anydml::recurrent_cuda {

inline constexpr uint32_t kClusterThreads = 256;
inline constexpr uint32_t kGroupElements = 4;
inline constexpr uint32_t kBlockUnits = 32;  // for eight warps
inline constexpr uint32_t kWarpUnits = 4;
inline constexpr float kLowScale = 2048;

// The state of a group, as the right factor for tensor cores: eight bytes are four units in one column, as a
// thread needs them for a tile (lane / 4 is the column, lane % 4 the warp of the units, and that + 4 for the
// next tile). 64 bytes are the eight columns; for warps 2, 3, 6 and 7 the second four come first, so that a
// half-warp accesses different banks.
template <uint32_t kBlocks>
struct GroupState {
  static constexpr uint32_t kBlockBytes = kBlockUnits * kGroupElements * 2 * sizeof(__half);
  static constexpr uint32_t kBytes = kBlocks * kBlockBytes;

  static __device__ uint32_t PlaceOf(uint32_t block, uint32_t warp, uint32_t column) {
    return block * kBlockBytes + warp * 64 + (column ^ (warp & 2) * 2) * 8;
  }

  alignas(16) std::byte numbers[2][kBytes];  // before and after a step, alternating
  ArrivalBarrier arrived[2];                 // for both
};

template <uint32_t kBlocks, uint32_t kGroups>
class ClusterBlock {
 public:
  using State = GroupState<kBlocks>;

  __device__ ClusterBlock(const Cell& p, State (&states)[kGroups])
      : p_(p),
        states_(states),
        rank_(blockIdx.x % kBlocks),
        warp_(threadIdx.x / 32),
        lane_(threadIdx.x % 32),
        is_second_(lane_ / 4 % 2),
        unit_(rank_ * kBlockUnits + warp_ * kWarpUnits + lane_ / 8) {
    constexpr uint32_t kElements = kGroups * kGroupElements;
    const uint32_t clusters = (p.batch + kElements - 1) / kElements, cluster = blockIdx.x / kBlocks;
    direction_ = cluster / clusters;
    first_element_ = cluster % clusters * kElements;
    ANYDML_UNROLL for (uint32_t i = 0; i < kBlocks / kBlocksAtOnce; ++i) {
      windows_[i] = WindowOf(i * kBlocksAtOnce + lane_ / 4 % kBlocksAtOnce, &states);
    }
  }

  __device__ void Run() {
    if (threadIdx.x == 0) {
      for (State& state : states_) {
        for (ArrivalBarrier& barrier : state.arrived) {
          barrier.Initialize();
          barrier.Expect(State::kBytes);
        }
      }
    }
    LoadWeights();
    LoadConstants();
    ANYDML_UNROLL for (uint32_t g = 0; g < kGroups; ++g) {
      StartGroup(g);
      LoadInputs(0, groups_[g]);
    }
    SyncCluster();
    for (uint32_t step = 0; step < p_.steps; ++step) {
      ANYDML_UNROLL for (uint32_t g = 0; g < kGroups; ++g) RunStep(step, states_[g], groups_[g]);
    }
    ANYDML_UNROLL for (uint32_t g = 0; g < kGroups; ++g) {
      if (!Writes(groups_[g])) continue;
      Put(p_.single, groups_[g].element, groups_[g].hidden);
      Put(p_.cell_single, groups_[g].element, groups_[g].cell);
    }
    SyncCluster();  // other blocks may still write here
  }

 private:
  static constexpr uint32_t kBlocksAtOnce = kBlocks < 8 ? kBlocks : 8;  // that a warp sends to

  // The thread's element of a group.
  struct Group {
    uint32_t element, length;
    bool exists;  // and the unit
    float hidden, cell;
    float inputs[2];           // the contribution of the next step's inputs, for the thread's rows
    const float* from_inputs;  // at time 0
    std::byte* sequence;       // at time 0; null: none
  };

  // Rows lane / 4 (number 0) and lane / 4 + 8 of the warp's tile. Four neighbouring rows are a unit's gates.
  __device__ uint32_t GateOf(uint32_t number) const { return is_second_ * 2 + number; }
  // One of the two threads with the same unit and element writes them.
  __device__ bool Writes(const Group& group) const { return group.exists && !is_second_; }

  __device__ float Get(const DeviceTensor& tensor, uint64_t b, uint64_t c, uint64_t d) const {
    if (tensor.data == nullptr) return 0;
    return reduce::LoadAs<float>(tensor.data, DataType::kFloat16, PlaceOf(tensor, 0, b, c, d));
  }
  __device__ float GetOfUnit(const DeviceTensor& tensor, uint32_t gate) const {
    return unit_ < p_.units ? Get(tensor, 0, direction_, uint64_t{gate} * p_.units + unit_) : 0;
  }
  __device__ void Put(const DeviceTensor& tensor, uint32_t element, float number) const {
    if (tensor.data == nullptr) return;
    reduce::StoreAs(tensor.data, DataType::kFloat16, PlaceOf(tensor, 0, direction_, element, unit_), number);
  }

  // For the thread's rows, four units per tile.
  __device__ void LoadWeights() {
    ANYDML_UNROLL for (uint32_t number = 0; number < 2; ++number) {
      const bool exists = GateOf(number) < p_.gates && unit_ < p_.units;
      const uint64_t row = exists ? uint64_t{GateOf(number)} * p_.units + unit_ : 0;
      const uint64_t stride = p_.recurrence.strides[3];
      const uint32_t units = exists ? p_.units : 0, first = lane_ % 4 * kWarpUnits;
      const uint16_t* const from = reinterpret_cast<const uint16_t*>(p_.recurrence.data) +
                                   PlaceOf(p_.recurrence, 0, direction_, row, 0);
      const bool by_four = stride == 1 && p_.units % 4 == 0 && reinterpret_cast<uintptr_t>(from) % 8 == 0;
      const auto take = [&](auto&& four_at) {
        ANYDML_UNROLL for (uint32_t tile = 0; tile < 2 * kBlocks; ++tile) {
          const uint2 four = four_at(tile * 16 + first);
          weights_[tile].registers[number] = four.x;
          weights_[tile].registers[number + 2] = four.y;
        }
      };
      if (__all_sync(~0u, by_four)) {
        take([&](uint32_t at) {
          return at < units ? __ldg(reinterpret_cast<const uint2*>(from + at)) : uint2{0, 0};
        });
      } else {
        const auto one = [&](uint32_t at) { return at < units ? uint32_t{from[at * stride]} : 0; };
        take([&](uint32_t at) {
          return uint2{one(at) | one(at + 1) << 16, one(at + 2) | one(at + 3) << 16};
        });
      }
    }
  }

  __device__ void LoadConstants() {
    const uint32_t all = p_.gates;  // biases of weights, then those of the recurrence
    ANYDML_UNROLL for (uint32_t number = 0; number < 2; ++number) {
      const uint32_t gate = GateOf(number);
      bias_[number] = gate < all ? GetOfUnit(p_.bias, gate) + GetOfUnit(p_.bias, all + gate) : 0;
    }
    // GRU's last gate needs the state's sum separately: the inputs' sum takes the place of a fourth gate.
    if (p_.kind == CellKind::kGru && is_second_) {
      bias_[0] = GetOfUnit(p_.bias, all + 2);
      bias_[1] = GetOfUnit(p_.bias, 2);
    }
    ANYDML_UNROLL for (uint32_t gate = 0; gate < 3; ++gate) peephole_[gate] = GetOfUnit(p_.peephole, gate);
  }

  __device__ void StartGroup(uint32_t g) {
    const uint32_t first = first_element_ + g * kGroupElements;
    // The initial state of all units, which FLOAT16 represents exactly.
    for (uint32_t i = threadIdx.x; i < kBlocks * kBlockUnits * kGroupElements; i += kClusterThreads) {
      const uint32_t unit = i / kGroupElements, at = i % kGroupElements;
      const bool exists = unit < p_.units && first + at < p_.batch;
      const float hidden = exists ? Get(p_.hidden_init, direction_, first + at, unit) : 0;
      const uint32_t warp = unit % kBlockUnits / kWarpUnits;
      std::byte* const to =
          states_[g].numbers[0] + State::PlaceOf(unit / kBlockUnits, warp, 2 * at) + unit % kWarpUnits * 2;
      reinterpret_cast<__half*>(to)[0] = __float2half_rn(hidden);
      reinterpret_cast<__half*>(to)[kWarpUnits] = __float2half_rn(0);
    }
    Group& group = groups_[g];
    group.element = first + lane_ % 4;
    group.exists = unit_ < p_.units && group.element < p_.batch;
    group.length = group.exists ? p_.steps : 0;
    if (group.exists && p_.lengths != nullptr) {
      group.length = min(p_.steps, p_.lengths[group.element * p_.lengths_stride]);
    }
    group.hidden = group.exists ? Get(p_.hidden_init, direction_, group.element, unit_) : 0;
    group.cell = group.exists ? Get(p_.cell_init, direction_, group.element, unit_) : 0;
    group.inputs[0] = group.inputs[1] = 0;
    group.from_inputs = p_.from_inputs +
                        (uint64_t{direction_} * p_.steps * p_.batch + group.element) * p_.gates * p_.units +
                        uint64_t{GateOf(0)} * p_.units + unit_;
    group.sequence = nullptr;
    if (p_.sequence.data != nullptr && Writes(group)) {
      group.sequence =
          p_.sequence.data + PlaceOf(p_.sequence, 0, direction_, group.element, unit_) * sizeof(__half);
    }
  }

  __device__ uint32_t TimeOfStep(uint32_t step, const Group& group) const {
    const bool backward = direction_ == 1 || p_.first_is_backward;
    return static_cast<uint32_t>(TimeOf(step, group.length, backward));
  }

  __device__ void LoadInputs(uint32_t step, Group& group) const {
    if (step >= group.length) return;
    const float* const from = group.from_inputs + uint64_t{TimeOfStep(step, group)} *
                                                      (p_.batch * p_.gates * p_.units);  // fewer than 2^32
    if (GateOf(0) < p_.gates) group.inputs[0] = from[0];
    if (GateOf(1) < p_.gates) group.inputs[1] = from[p_.units];
  }

  // Weights times the state: for the thread's two rows and its element.
  __device__ float2 Multiply(const std::byte* state) const {
    constexpr uint32_t kChains = 4;  // independent sums
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

  __device__ void RunStep(uint32_t step, State& state, Group& group) {
    if (step > 0) {
      ArrivalBarrier& arrived = state.arrived[step % 2];
      arrived.Wait((step - 1) / 2);
      if (threadIdx.x == 0 && step + 2 < p_.steps) arrived.Expect(State::kBytes);
    }
    __syncwarp();
    const float2 of_state = Multiply(state.numbers[step % 2]);
    float own[2] = {of_state.x, of_state.y};
    if (p_.kind == CellKind::kGru && is_second_) {
      own[0] += bias_[0];
      own[1] = group.inputs[0] + bias_[1];
    } else {
      own[0] = own[0] + group.inputs[0] + bias_[0];
      own[1] = own[1] + group.inputs[1] + bias_[1];
    }
    float sums[4];
    ANYDML_UNROLL for (uint32_t number = 0; number < 2; ++number) {
      const float others = __shfl_xor_sync(~0u, own[number], 4);
      sums[number] = is_second_ ? others : own[number];
      sums[number + 2] = is_second_ ? own[number] : others;
    }
    const bool ended = step >= group.length;
    if (!ended) group.hidden = Canonical(Next(sums, group));
    __syncwarp();
    if (step + 1 < p_.steps) {
      Send(state, step + 1, group.hidden);
      LoadInputs(step + 1, group);
    }
    if (group.sequence == nullptr) return;
    const uint64_t time = ended ? step : TimeOfStep(step, group);
    reduce::StoreAs(group.sequence, DataType::kFloat16, time * p_.sequence.strides[0],
                    ended ? 0 : group.hidden);
  }

  __device__ float Next(const float (&sums)[4], Group& group) const {
    if (p_.has_usual_functions) {
      return NextHidden(p_, QuickFunctions{p_.kind}, sums, peephole_, group.hidden, &group.cell);
    }
    return NextHidden(p_, GivenFunctions{p_.activations[direction_]}, sums, peephole_, group.hidden,
                      &group.cell);
  }

  // Sends the warp's four units to all blocks. A thread has an element, and sends its four units to some of
  // the blocks.
  __device__ void Send(State& state, uint32_t step, float hidden) const {
    const __half high = __float2half_rn(hidden);
    const float rest = hidden == __half2float(high) ? 0 : (hidden - __half2float(high)) * kLowScale;
    const uint32_t both = __half_as_ushort(high) | uint32_t{__half_as_ushort(__float2half_rn(rest))} << 16;
    uint32_t of_unit[kWarpUnits];
    ANYDML_UNROLL for (uint32_t unit = 0; unit < kWarpUnits; ++unit) {
      of_unit[unit] = __shfl_sync(~0u, both, unit * 8 + lane_ % 4);
    }
    const uint4 numbers = {
        __byte_perm(of_unit[0], of_unit[1], 0x5410), __byte_perm(of_unit[2], of_unit[3], 0x5410),
        __byte_perm(of_unit[0], of_unit[1], 0x7632), __byte_perm(of_unit[2], of_unit[3], 0x7632)};
    if (lane_ / 4 >= kBlocksAtOnce) return;
    std::byte* const to = state.numbers[step % 2] + State::PlaceOf(rank_, warp_, lane_ % 4 * 2);
    for (const uint32_t window : windows_) state.arrived[step % 2].Send(window, to, numbers);
  }

  const Cell& p_;
  State (&states_)[kGroups];
  const uint32_t rank_, warp_, lane_;
  const bool is_second_;  // the second of two threads with the same unit and element
  const uint32_t unit_;
  uint32_t direction_, first_element_;
  uint32_t windows_[kBlocks / kBlocksAtOnce];  // to blocks that the thread sends to
  LeftTile weights_[2 * kBlocks];
  float bias_[2], peephole_[3];
  Group groups_[kGroups];
};

}  // namespace anydml::recurrent_cuda
