// The inputs of attention's products: rows of queries, keys and values in place, or copied. Copies are needed
// if past and new rows are in different tensors, and for biases; the same kernels write the present outputs.
#pragma once

#include "kernel/composite.h"
#include "ops/attention/problem.h"
#include "ops/gemm/problem.h"

namespace anydml {

// Copies past and new rows {batch, head, row, column}, in order, to the present output and to a packed copy.
// POD.
struct AttentionJoin {
  uint64_t batch = 1, heads = 1, rows = 1, columns = 1;
  uint64_t past = 0;  // rows
  uint64_t fresh = 0;
  AttentionView past_view{}, fresh_view{}, bias{}, present{};
  AttentionLengths lengths{};  // instead of `past`; past_view is then `present`, which is not written again
  bool has_copy = false;
  bool copy_is_half = false;  // otherwise FLOAT32, also for FLOAT16

  uint64_t AllRows() const { return batch * heads * rows; }
};

struct AttentionJoinMemory {
  const std::byte* past = nullptr;
  const std::byte* fresh = nullptr;
  const std::byte* bias = nullptr;
  const int32_t* lengths = nullptr;
  std::byte* present = nullptr;
  std::byte* copy = nullptr;
};

enum class AttentionRowSource : uint8_t { kPast, kFresh, kNone };
struct AttentionRowPlace {
  AttentionRowSource source;
  uint64_t row;
};

// The source of row `row` of batch `b`. With lengths there are rows after the new ones; they are not read,
// because nobody has written them.
constexpr AttentionRowPlace PlaceOf(const AttentionJoin& join, const int32_t* lengths, uint64_t b,
                                    uint64_t row) {
  const uint64_t past = join.lengths.exists ? join.lengths.Of(lengths, b) : join.past;
  if (row < past) return {AttentionRowSource::kPast, row};
  if (row - past < join.fresh) return {AttentionRowSource::kFresh, row - past};
  return {AttentionRowSource::kNone, 0};
}

// The softmax of logits {batch, heads, queries, keys}, in place. POD.
struct AttentionWeights {
  uint64_t batch = 1, heads = 1, queries = 1, keys = 1;
  AttentionView position_bias{};
  AttentionMask mask{};
  AttentionLengths lengths{};

  uint64_t Rows() const { return batch * heads * queries; }
};

// The inputs of AttentionWeights; null if absent.
struct AttentionWeightsMemory {
  const std::byte* position_bias = nullptr;
  const int32_t* mask = nullptr;
  const int32_t* lengths = nullptr;
};

// The number of keys that query `q` of batch `b` sees.
constexpr uint64_t KeysOf(const AttentionWeights& weights, const int32_t* lengths, uint64_t b, uint64_t q) {
  return weights.lengths.exists ? weights.lengths.Of(lengths, b) + q + 1 : weights.keys;
}

class AttentionOperands : public CompositeKernel {
 protected:
  struct Operand {
    AttentionJoin join;
    bool joins = false;  // needed for the copy or the present output
    AttentionView view;  // the rows as the products read them, in the copy or in an input
    DataType type = DataType::kFloat32;
    ScratchLayout::Piece copy;
  };

  // The requirements of the products.
  struct Needs {
    bool matrices = true;         // evenly spaced rows with their biases included
    bool matching_types = false;  // the same type for queries and keys, and FLOAT32 for values
    bool one_stride = false;      // one stride between heads across batches, and the alignment of bindings
  };

  AttentionOperands(const AttentionProblem& problem, const Needs& needs);

  const AttentionProblem& problem() const { return problem_; }
  const AttentionWeights& weights() const { return weights_; }
  bool is_half() const { return problem_.type == DataType::kFloat16; }

  const Operand& query() const { return query_; }
  const Operand& key() const { return key_; }
  const Operand& value() const { return value_; }

  virtual void Join(const AttentionJoin& join, const AttentionJoinMemory& memory,
                    const KernelArguments& arguments) const = 0;

  void RunJoins(const KernelArguments& arguments) const;
  // From the operand's first element on.
  Buffer BufferOf(const Operand& operand, const KernelArguments& arguments) const;
  AttentionWeightsMemory WeightsMemory(const KernelArguments& arguments) const;

  // Whether the distance from the last head of a batch to the next one equals the stride of heads.
  bool HasOneStride(const AttentionView& view, uint64_t heads) const {
    return problem_.batch == 1 || heads == 1 || view.batch == heads * view.head;
  }
  // Whether the queries of a group, which share a key head, are evenly spaced.
  bool RowsAreEven() const { return problem_.group == 1 || problem_.queries == 1; }
  // A group's queries as rows of a matrix, if they are evenly spaced or packed.
  GemmMatrix GroupMatrix(const AttentionView& view) const {
    const uint64_t row = problem_.queries == 1 ? view.head : view.row;
    return {{view.batch, problem_.group * view.head}, row, view.column};
  }

 private:
  Operand RowsOperand(const AttentionRows& rows, bool wide, const Needs& needs, const char* name);
  Operand QueryOperand(const Needs& needs);
  bool IsPlain(const AttentionView& view, uint64_t heads) const;
  void AddCopy(Operand* operand, bool copy_is_half, const char* name);
  void RunJoin(const Operand& operand, const KernelArguments& arguments) const;

  AttentionProblem problem_;
  AttentionWeights weights_;
  Operand query_, key_, value_;
};

}  // namespace anydml
