// The cases of `anydml bench`: an operator for every combination of its fields' values, or a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "anydml/describe/operation.h"
#include "anydml/model/model.h"
#include "base/status.h"

namespace anydml::client {

// One combination.
using FieldArguments = std::vector<FieldArgument>;

// Fields that are given several times, or with braces ("K={1,10}"), take each value in turn; the last field
// changes fastest. (A shell that expands braces makes several fields of one.)
Status ExpandSweep(const FieldArguments& given, std::vector<FieldArguments>* out);

struct BenchCase {
  std::string name;  // "TOP_K1 1x1000 FLOAT32 K=10", or the model's file
  std::string op;    // "TOP_K1", or "model"
  // Of the first input; empty for a model.
  std::string type;
  std::vector<uint64_t> sizes;
  std::optional<uint64_t> k;  // of operators that have it
  std::string variant;        // the values of other swept fields
  Model model;
};

// `fields` is one of `sweep`.
Status LoadOperatorCase(const OperatorSchema& schema, const std::vector<FieldArguments>& sweep,
                        const FieldArguments& fields, FeatureLevel level, DataType index_type,
                        BenchCase* out);
Status LoadModelCase(const std::string& path, bool allow_outside, BenchCase* out);

// "1x1000"
std::string SizesText(const std::vector<uint64_t>& sizes);

}  // namespace anydml::client
