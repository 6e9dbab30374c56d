// Products of successive matrices with the same weights, which are packed once: the states that go from step
// to step. Columns are in groups of units with all their gates, so that the thread that computes a group's
// sums also processes them while they are in a cache.
#pragma once

#include <span>
#include <vector>

#include "ops/gemm/problem.h"
#include "ops/product/micro_kernel.h"

namespace anydml {

// With fewer multiplications, a thread costs more to wake than it saves.
inline constexpr uint64_t kProductsPerThread = uint64_t{1} << 17;

class GroupedProduct final : public Kernel {
 public:
  struct Group {
    uint32_t direction;
    uint64_t unit, units;
    uint64_t width;    // the number of units rounded up to whole vectors
    uint64_t weights;  // offset in the packed weights
  };

  class Sink {
   public:
    // Announces that the sums of a gate of these rows come next, so that other data can be prefetched.
    virtual void Expect(const Group& group, uint32_t gate, uint64_t row, uint64_t rows) const = 0;
    // sums[(gate * batch + row) * group.width + unit]. Finish may change them.
    virtual void Finish(const Group& group, float* sums) const = 0;

   protected:
    ~Sink() = default;
  };

  // Matrices with weights of their own, whose products are added; a k of 0: none.
  struct Inputs {
    uint64_t k = 0;
    GemmMatrix weights = {};
  };

  // Products of {direction, batch, unit} with {direction, unit, gate and unit}; see CreatePackedProduct. The
  // weights of `inputs` are input 2 of Initialize.
  GroupedProduct(const GemmProblem& problem, const Inputs& inputs, DataType weights, uint32_t threads);

  uint64_t persistent_bytes() const override { return weights_floats_ * sizeof(float); }
  uint64_t temporary_bytes() const override { return workers_ * worker_floats() * sizeof(float); }
  Status Initialize(const KernelArguments& arguments) const override;
  Status Run(const KernelArguments& arguments) const override;

  // The same, for a sink. Threads keep their groups from run to run, since those may still be in their
  // caches. `inputs` has the rows of each direction, if there are inputs.
  using Rows = MicroKernel::Rows;
  void RunGroups(const KernelArguments& arguments, std::span<const Rows> inputs, const Sink& sink) const;

  bool adds_inputs() const { return inputs_.k != 0; }

 private:
  struct Share {
    uint64_t begin, end;  // range in groups_
  };
  // Rows as kernels take them, in place or packed, and their steps.
  struct Side {
    Rows rows;
    uint64_t k;
  };

  bool in_place() const { return tile_.in_place[0][0] != nullptr; }
  uint64_t k() const { return inputs_.k + p_.k; }
  uint64_t worker_floats() const { return sums_floats_ + rows_floats_; }
  void AddGroups(uint64_t begin, uint64_t end);
  void PackGroup(const Group& group, const KernelArguments& arguments) const;
  Side SideOf(const Rows& rows, uint64_t k, bool packs, float** scratch) const;
  void RunGroup(const Group& group, const Side (&sides)[2], const float* weights, const float* next,
                const Sink& sink, float* sums) const;
  void RunTile(const Side& side, uint64_t row, uint64_t step, uint64_t steps, const float* b, uint64_t width,
               float* to, uint64_t to_stride, bool accumulate, const MicroKernel::Ahead& ahead) const;

  const GemmProblem p_;
  const Inputs inputs_;
  const DataType type_;  // of weights
  const MicroKernel& tile_;
  const uint32_t gates_;
  const uint64_t steps_;  // at a time
  uint32_t workers_;
  std::vector<Group> groups_;
  std::vector<Share> shares_;  // per worker
  uint64_t weights_floats_ = 0, sums_floats_ = 0, rows_floats_ = 0;
};

}  // namespace anydml
