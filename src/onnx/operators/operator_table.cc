#include <map>
#include <string_view>
#include <utility>

#include "onnx/operators/operator_list.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {

namespace {

using Key = std::pair<std::string_view, std::string_view>;

const std::map<Key, const OperatorRow*>& OperatorRows() {
  static const std::map<Key, const OperatorRow*> rows = [] {
    std::map<Key, const OperatorRow*> all;
    for (const auto family : {ElementOperators(),
                              ActivationOperators(),
                              ShapeOperators(),
                              MoveOperators(),
                              MatrixOperators(),
                              ConvolutionOperators(),
                              PoolingOperators(),
                              NormalizationOperators(),
                              ReductionOperators(),
                              IndexOperators(),
                              QuantizationOperators(),
                              ResizeOperators(),
                              RecurrentOperators(),
                              MicrosoftFusedOperators(),
                              MicrosoftAttentionOperators(),
                              GroupQueryAttentionOperators(),
                              MicrosoftQuantizedOperators(),
                              GenerateOperators(),
                              AttentionOperators(),
                              EinsumOperators(),
                              LossOperators(),
                              ImageRegionOperators(),
                              SelectOperators(),
                              SignalOperators(),
                              SpectrumOperators(),
                              RandomOperators(),
                              GridCropCacheOperators(),
                              DeformConvolutionOperators(),
                              TextOperators(),
                              OldestAndNewestOperators(),
                              LinearAttentionOperators()}) {
      for (const OperatorRow& row : family) all[{row.domain, row.name}] = &row;
    }
    return all;
  }();
  return rows;
}

}  // namespace

const OperatorRow* FindOperator(std::string_view domain, std::string_view name) {
  const auto found = OperatorRows().find({domain, name});
  return found == OperatorRows().end() ? nullptr : found->second;
}

std::vector<const OperatorRow*> AllOperators() {
  std::vector<const OperatorRow*> all;
  for (const auto& [key, row] : OperatorRows()) all.push_back(row);
  return all;
}

std::string WhyUnknown(std::string_view domain) {
  if (domain == "ai.onnx.ml")
    return "DirectML has nothing for trees, linear models and encoders (the domain ai.onnx.ml)";
  if (domain == "ai.onnx.training" || domain == "ai.onnx.preview.training")
    return "models are run, not trained";
  if (domain == kOnnx || domain == kMicrosoft) return "no such operator is known";
  return StrCat("no operators of the domain ", domain.substr(0, 80), " are known");
}

}  // namespace anydml::onnx
