// All steps in one kernel. A block has some units of one direction, for the whole batch: their weights stay
// in shared memory, and so does everything that only these units need. Other blocks need the hidden state
// (for GRU also the reset one), so after each step the blocks of a direction wait for each other.
#pragma once

#include "ops/device/cuda/memory.cuh"
#include "ops/recurrent/cuda/resident_parts.cuh"

namespace anydml::recurrent_cuda {

template <uint32_t kBatch>
class ResidentBlock {
 public:
  __device__ ResidentBlock(const Resident& p, float* shared)
      : p_(p),
        at_(p),
        shared_(shared),
        direction_(blockIdx.x / p.blocks_per_direction),
        first_(blockIdx.x % p.blocks_per_direction * p.block_units),
        count_(min(p.block_units, p.units - first_)),
        warp_(threadIdx.x / 32),
        lane_(threadIdx.x % 32) {}

  __device__ void Run() {
    LoadConstants();
    StartState();
    CopyInputs(0);
    Wait();
    for (uint32_t step = 0; step < p_.steps; ++step) {
      RunStep(step);
      if (step + 1 == p_.steps) break;
      __syncthreads();  // inputs have been used
      CopyInputs(step + 1);
      Wait();
    }
    ForPairs([&](uint32_t unit, uint32_t element) {
      Put(p_.single, 0, unit, element, OwnHidden(unit, element));
      Put(p_.cell_single, 0, unit, element, OwnCell(unit, element));
    });
  }

 private:
  __device__ uint32_t* words() const { return reinterpret_cast<uint32_t*>(shared_); }
  static __device__ void Copy(float* to, const float* from, uint32_t bytes) {
    element_cuda::StartCopy(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from),
                            bytes);
  }
  __device__ float& OwnHidden(uint32_t unit, uint32_t element) {
    return shared_[at_.own_hidden + unit * kBatch + element];
  }
  __device__ float& OwnCell(uint32_t unit, uint32_t element) {
    return shared_[at_.own_cell + unit * kBatch + element];
  }
  __device__ float& SumOf(uint32_t gate, uint32_t unit, uint32_t element) {
    return shared_[at_.sums + (gate * p_.block_units + unit) * kBatch + element];
  }
  __device__ float InputOf(uint32_t gate, uint32_t unit, uint32_t element) {
    return shared_[at_.inputs + (gate * p_.block_units + unit) * kBatch + element];
  }
  // half: 0 for biases of weights, 1 for those of the recurrence.
  __device__ float BiasOf(uint32_t half, uint32_t gate, uint32_t unit) {
    return shared_[at_.biases + half * p_.rows() + gate * p_.block_units + unit];
  }
  __device__ uint32_t LengthOf(uint32_t element) const { return words()[at_.lengths + element]; }
  __device__ uint32_t TimeOfStep(uint32_t step, uint32_t element) const {
    const bool backward = direction_ == 1 || p_.first_is_backward;
    return static_cast<uint32_t>(TimeOf(step, LengthOf(element), backward));
  }
  __device__ float Get(const DeviceTensor& tensor, uint64_t b, uint64_t c, uint64_t d) const {
    if (tensor.data == nullptr) return 0;
    return reduce::LoadAs<float>(tensor.data, p_.type, PlaceOf(tensor, 0, b, c, d));
  }
  __device__ void Put(const DeviceTensor& tensor, uint64_t time, uint32_t unit, uint32_t element,
                      float number) const {
    if (tensor.data == nullptr) return;
    const uint64_t at = PlaceOf(tensor, time, direction_, element, first_ + unit);
    reduce::StoreAs(tensor.data, p_.type, at, Canonical(number));
  }
  // Of a state {direction, batch, unit_stride}.
  __device__ float* StateOf(float* all, uint32_t element) const {
    return all + (uint64_t{direction_} * p_.batch + element) * p_.unit_stride;
  }
  __device__ float* Hidden(uint32_t step) const {
    return p_.hidden + (step % 2) * uint64_t{p_.directions} * p_.batch * p_.unit_stride;
  }
  __device__ void Wait() { Meet(p_.arrived + direction_, ++meeting_, p_.blocks_per_direction); }

  // Calls body(unit, element) for the thread's pairs, which are always the same.
  template <typename Body>
  __device__ void ForPairs(Body&& body) {
    for (uint32_t i = threadIdx.x; i < p_.block_units * p_.batch; i += kResidentThreads) {
      const uint32_t unit = i % p_.block_units;
      if (unit < count_) body(unit, i / p_.block_units);
    }
  }

  __device__ void LoadConstants() {
    for (uint32_t i = threadIdx.x; i < at_.partials; i += kResidentThreads) shared_[i] = 0;
    __syncthreads();
    const uint32_t rows = p_.rows();
    for (uint32_t row = warp_; row < rows; row += kWarps) {
      const uint32_t gate = row / p_.block_units, unit = row % p_.block_units;
      if (unit >= count_) continue;
      const uint64_t place = uint64_t{gate} * p_.units + first_ + unit;
      for (uint32_t k = lane_; k < p_.units; k += 32) {
        shared_[at_.weights + row * at_.k_stride + k] = Get(p_.recurrence, direction_, place, k);
      }
      if (lane_ != 0) continue;
      words()[at_.places + row] = static_cast<uint32_t>(place);
      shared_[at_.biases + row] = Get(p_.bias, 0, direction_, place);
      shared_[at_.biases + rows + row] = Get(p_.bias, 0, direction_, uint64_t{p_.gates} * p_.units + place);
    }
    for (uint32_t i = threadIdx.x; i < 3 * p_.block_units; i += kResidentThreads) {
      const uint32_t gate = i / p_.block_units, unit = i % p_.block_units;
      if (unit >= count_) continue;
      shared_[at_.peepholes + i] = Get(p_.peephole, 0, direction_, uint64_t{gate} * p_.units + first_ + unit);
    }
    for (uint32_t element = threadIdx.x; element < p_.batch; element += kResidentThreads) {
      words()[at_.lengths + element] =
          p_.lengths == nullptr ? p_.steps : min(p_.steps, p_.lengths[element * p_.lengths_stride]);
    }
    __syncthreads();
  }

  __device__ void StartState() {
    ForPairs([&](uint32_t unit, uint32_t element) {
      const float hidden = Get(p_.hidden_init, direction_, element, first_ + unit);
      OwnHidden(unit, element) = hidden;
      OwnCell(unit, element) = Get(p_.cell_init, direction_, element, first_ + unit);
      StateOf(Hidden(0), element)[first_ + unit] = hidden;
    });
    if (first_ + count_ < p_.units) return;
    // What follows the last unit is multiplied by zeros, and must not be NaN.
    const uint32_t behind = p_.unit_stride - p_.units;
    for (uint32_t i = threadIdx.x; i < p_.batch * behind; i += kResidentThreads) {
      const uint32_t element = i / behind, at = p_.units + i % behind;
      StateOf(Hidden(0), element)[at] = 0;
      StateOf(Hidden(1), element)[at] = 0;
      if (p_.resets_first()) StateOf(p_.reset, element)[at] = 0;
    }
  }

  // Copies the contribution of a step's inputs; complete after CopyState.
  __device__ void CopyInputs(uint32_t step) {
    for (uint32_t element = warp_; element < p_.batch; element += kWarps) {
      if (step >= LengthOf(element)) continue;
      const uint64_t time = uint64_t{direction_} * p_.steps + TimeOfStep(step, element);
      const float* const from = p_.from_inputs + (time * p_.batch + element) * p_.gates * p_.units;
      for (uint32_t row = lane_; row < p_.rows(); row += 32) {
        if (row % p_.block_units >= count_) continue;
        Copy(shared_ + at_.inputs + row * kBatch + element, from + words()[at_.places + row], 4);
      }
    }
  }

  // The whole direction's state, bypassing L1, because other multiprocessors have written it.
  __device__ void CopyState(float* all) {
    for (uint32_t element = warp_; element < p_.batch; element += kWarps) {
      const float* const from = StateOf(all, element);
      float* const to = shared_ + at_.state + element * at_.k_stride;
      for (uint32_t unit = 4 * lane_; unit < p_.unit_stride; unit += 128) {
        Copy(to + unit, from + unit, 16);
      }
    }
    element_cuda::WaitForCopies();
    __syncthreads();
  }

  // Sums of rows [begin, end): weights times the state. A warp has a part of each row.
  __device__ void Multiply(uint32_t begin, uint32_t end) {
    if (p_.type == DataType::kFloat16) return MultiplyHalves(begin, end);
    MultiplyFloats(begin, end);
  }

  __device__ void MultiplyFloats(uint32_t begin, uint32_t end) {
    constexpr uint32_t kColumns = kBatch / 8;  // elements of the batch per thread
    const uint32_t part = at_.k / kWarps;
    for (uint32_t tile = begin; tile < end; tile += kTileRows) {
      float sums[4][kColumns] = {};
      const float* const weights = shared_ + at_.weights + (tile + lane_ % 4) * at_.k_stride + warp_ * part;
      const float* const state = shared_ + at_.state + lane_ / 4 * at_.k_stride + warp_ * part;
      for (uint32_t k = 0; k < part; k += 4) {
        float4 w[4], s[kColumns];
        ANYDML_UNROLL for (uint32_t i = 0; i < 4; ++i) {
          w[i] = *reinterpret_cast<const float4*>(weights + 4 * i * at_.k_stride + k);
        }
        ANYDML_UNROLL for (uint32_t j = 0; j < kColumns; ++j) {
          s[j] = *reinterpret_cast<const float4*>(state + 8 * j * at_.k_stride + k);
        }
        ANYDML_UNROLL for (uint32_t i = 0; i < 4; ++i) {
          ANYDML_UNROLL for (uint32_t j = 0; j < kColumns; ++j) {
            float sum = sums[i][j];
            sum = __fmaf_rn(w[i].x, s[j].x, sum);
            sum = __fmaf_rn(w[i].y, s[j].y, sum);
            sum = __fmaf_rn(w[i].z, s[j].z, sum);
            sums[i][j] = __fmaf_rn(w[i].w, s[j].w, sum);
          }
        }
      }
      ANYDML_UNROLL for (uint32_t i = 0; i < 4; ++i) {
        ANYDML_UNROLL for (uint32_t j = 0; j < kColumns; ++j) {
          Partial(warp_, lane_ % 4 + 4 * i, lane_ / 4 + 8 * j) = sums[i][j];
        }
      }
      AddPartials(tile, end);
    }
  }

  // The same on tensor cores, for FLOAT16 weights: these are TF32 numbers, and a state is the sum of two such
  // numbers to within 2^-21.
  __device__ void MultiplyHalves(uint32_t begin, uint32_t end) {
    constexpr uint32_t kColumns = kBatch / 8;
    const uint32_t part = at_.k / kWarps, below = 8 * at_.k_stride;
    const uint32_t place = lane_ / 4 * at_.k_stride + warp_ * part + lane_ % 4;
    for (uint32_t tile = begin; tile < end; tile += kTileRows) {
      float sums[kColumns][4] = {};
      const float* const weights = shared_ + at_.weights + tile * at_.k_stride + place;
      const float* const state = shared_ + at_.state + place;
      for (uint32_t k = 0; k < part; k += 8) {
        const float w[] = {weights[k], weights[below + k], weights[k + 4], weights[below + k + 4]};
        ANYDML_UNROLL for (uint32_t j = 0; j < kColumns; ++j) {
          const float s[] = {state[j * below + k], state[j * below + k + 4]};
          const float upper[] = {UpperBits(s[0]), UpperBits(s[1])};
          const float lower[] = {RestOf(s[0], upper[0]), RestOf(s[1], upper[1])};
          MultiplyTiles(w, upper, sums[j]);
          MultiplyTiles(w, lower, sums[j]);
        }
      }
      ANYDML_UNROLL for (uint32_t j = 0; j < kColumns; ++j) {
        ANYDML_UNROLL for (uint32_t i = 0; i < 4; ++i) {
          Partial(warp_, lane_ / 4 + i / 2 * 8, 8 * j + lane_ % 4 * 2 + i % 2) = sums[j][i];
        }
      }
      AddPartials(tile, end);
    }
  }

  __device__ float& Partial(uint32_t warp, uint32_t row, uint32_t element) {
    constexpr uint32_t kStride = SharedLayout<kBatch>::kPartialStride;
    return shared_[at_.partials + (warp * kTileRows + row) * kStride + element];
  }

  __device__ void AddPartials(uint32_t tile, uint32_t end) {
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < kTileRows * kBatch; i += kResidentThreads) {
      const uint32_t row = i / kBatch, element = i % kBatch;
      if (tile + row >= end) continue;
      float sum = 0;
      for (uint32_t warp = 0; warp < kWarps; ++warp) sum += Partial(warp, row, element);
      shared_[at_.sums + (tile + row) * kBatch + element] = sum;
    }
    __syncthreads();
  }

  __device__ void RunStep(uint32_t step) {
    CopyState(Hidden(step));
    if (p_.resets_first()) {
      Multiply(0, 2 * p_.block_units);
      ForPairs([&](uint32_t unit, uint32_t element) {
        if (step >= LengthOf(element)) return;
        const Activation& f = p_.activations[direction_][0];
        SumOf(0, unit, element) = Apply(f, WholeSum(0, unit, element));
        const float reset = Apply(f, WholeSum(1, unit, element));
        StateOf(p_.reset, element)[first_ + unit] = reset * OwnHidden(unit, element);
      });
      Wait();
      CopyState(p_.reset);
      Multiply(2 * p_.block_units, p_.rows());
    } else {
      Multiply(0, p_.rows());
    }
    ForPairs([&](uint32_t unit, uint32_t element) {
      const bool ended = step >= LengthOf(element);
      if (!ended) OwnHidden(unit, element) = Canonical(NextHidden(unit, element));
      StateOf(Hidden(step + 1), element)[first_ + unit] = OwnHidden(unit, element);
      const uint32_t time = ended ? step : TimeOfStep(step, element);
      Put(p_.sequence, time, unit, element, ended ? 0.0f : OwnHidden(unit, element));
    });
  }

  // The sum of the contributions of state, input and biases.
  __device__ float WholeSum(uint32_t gate, uint32_t unit, uint32_t element) {
    const float sum = SumOf(gate, unit, element) + InputOf(gate, unit, element);
    return sum + (BiasOf(0, gate, unit) + BiasOf(1, gate, unit));
  }

  __device__ float NextHidden(uint32_t unit, uint32_t element) {
    if (p_.resets_first()) {
      const float z = SumOf(0, unit, element);
      const float added = (1 - z) * Apply(p_.activations[direction_][1], WholeSum(2, unit, element));
      return added + z * OwnHidden(unit, element);
    }
    float sums[4] = {}, peephole[3] = {};
    const bool is_gru = p_.kind == CellKind::kGru;
    for (uint32_t gate = 0; gate < (is_gru ? 2 : p_.gates); ++gate) {
      sums[gate] = WholeSum(gate, unit, element);
    }
    if (is_gru) {
      sums[2] = SumOf(2, unit, element) + BiasOf(1, 2, unit);
      sums[3] = InputOf(2, unit, element) + BiasOf(0, 2, unit);
    }
    if (p_.peephole.data != nullptr) {
      for (uint32_t gate = 0; gate < 3; ++gate) {
        peephole[gate] = shared_[at_.peepholes + gate * p_.block_units + unit];
      }
    }
    float* const cell = &OwnCell(unit, element);
    const float hidden = OwnHidden(unit, element);
    if (p_.has_usual_functions) {
      return recurrent_cuda::NextHidden(p_, UsualFunctions{p_.kind}, sums, peephole, hidden, cell);
    }
    const GivenFunctions functions = {p_.activations[direction_]};
    return recurrent_cuda::NextHidden(p_, functions, sums, peephole, hidden, cell);
  }

  const Resident& p_;
  const SharedLayout<kBatch> at_;
  float* const shared_;
  const uint32_t direction_, first_, count_;
  const uint32_t warp_, lane_;
  uint32_t meeting_ = 0;
};

}  // namespace anydml::recurrent_cuda
