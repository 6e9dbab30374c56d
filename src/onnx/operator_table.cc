#include <map>
#include <string_view>
#include <utility>

#include "onnx/operators.h"

namespace anydml::onnx {

const OperatorRow* FindOperator(std::string_view domain, std::string_view name) {
  using Key = std::pair<std::string_view, std::string_view>;
  static const std::map<Key, const OperatorRow*> rows = [] {
    std::map<Key, const OperatorRow*> all;
    for (const auto family :
         {ElementOperators(),   ActivationOperators(),  ShapeOperators(),          MoveOperators(),
          MatrixOperators(),    ConvolutionOperators(), PoolingOperators(),        NormalizationOperators(),
          ReductionOperators(), IndexOperators(),       QuantizationOperators(),   ResizeOperators(),
          RecurrentOperators(), FusedOperators(),       FusedAttentionOperators(), GroupQueryOperators(),
          QuantizedOperators(), GenerateOperators(),    AttentionOperators(),      EinsumOperators(),
          LossOperators(),      RegionOperators(),      SelectOperators(),         SignalOperators(),
          SpectrumOperators(),  RandomOperators(),      PlaceOperators(),          DeformOperators()}) {
      for (const OperatorRow& row : family) all[{row.domain, row.name}] = &row;
    }
    return all;
  }();
  const auto found = rows.find({domain, name});
  return found == rows.end() ? nullptr : found->second;
}

}  // namespace anydml::onnx
