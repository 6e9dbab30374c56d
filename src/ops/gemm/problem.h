// GEMM: output = activation(Alpha * A x B + Beta * C), for every matrix of a batch.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "ops/element/problem.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"

namespace anydml {

const Operator& GemmOperator();

// A matrix for each index of the batch's two dimensions. Strides are in elements, so that transposed and
// broadcast operands differ in their strides only.
struct GemmMatrix {
  std::array<uint64_t, 2> batch{};
  uint64_t row = 0;
  uint64_t column = 0;

  GemmMatrix Transposed() const { return {batch, column, row}; }
};

struct GemmProblem {
  static constexpr std::string_view kFamily = "gemm";

  DataType type = DataType::kFloat32;  // of the operands; or FLOAT16
  DataType output_type = DataType::kFloat32;
  std::array<uint64_t, 2> batch = {1, 1};
  uint64_t m = 1, n = 1, k = 1;
  GemmMatrix a;                 // m x k
  GemmMatrix b;                 // k x n
  std::optional<GemmMatrix> c;  // m x n; also absent if Beta is 0, because C must then have no effect
  GemmMatrix output;            // m x n
  float alpha = 1;
  float beta = 0;
  ElementProgram activation;                    // on register 0, FLOAT32; empty: none
  bool a_is_owned = false, b_is_owned = false;  // OWNED_BY_DML: may be packed at initialisation

  uint64_t Batches() const { return batch[0] * batch[1]; }

  // Whether C, if present, is one contiguous row that is added to all rows.
  bool AddsRow() const {
    const auto stays = [](uint64_t size, uint64_t stride) { return size == 1 || stride == 0; };
    return !c || (beta == 1 && stays(m, c->row) && stays(batch[0], c->batch[0]) &&
                  stays(batch[1], c->batch[1]) && (n == 1 || c->column == 1));
  }

  // The same product with rows and columns exchanged.
  GemmProblem Transposed() const {
    GemmProblem t = *this;
    std::swap(t.m, t.n);
    t.a = b.Transposed();
    t.b = a.Transposed();
    if (c) t.c = c->Transposed();
    t.output = output.Transposed();
    std::swap(t.a_is_owned, t.b_is_owned);
    return t;
  }
};

Exactness GemmBound(const GemmProblem& problem);

std::unique_ptr<const Kernel> CreateGemmFew(const GemmProblem& problem, const LowerContext& context,
                                            std::string* why_not);
std::unique_ptr<const Kernel> CreateGemmPacked(const GemmProblem& problem, const LowerContext& context,
                                               std::string* why_not);
std::unique_ptr<const Kernel> CreateGemmReference(const GemmProblem& problem, const LowerContext& context,
                                                  std::string* why_not);
std::unique_ptr<const Kernel> CreateGemmCublas(const GemmProblem& problem, const LowerContext& context,
                                               std::string* why_not);
std::unique_ptr<const Kernel> CreateGemmOneRowCuda(const GemmProblem& problem, const LowerContext& context,
                                                   std::string* why_not);
std::unique_ptr<const Kernel> CreateGemmWindowsCuda(const GemmProblem& problem, const LowerContext& context,
                                                    std::string* why_not);
std::unique_ptr<const Kernel> CreateGemmInTwo(const GemmProblem& problem, const LowerContext& context,
                                              std::string* why_not);
std::unique_ptr<const Kernel> CreateGemmTiledCuda(const GemmProblem& problem, const LowerContext& context,
                                                  std::string* why_not);

}  // namespace anydml
