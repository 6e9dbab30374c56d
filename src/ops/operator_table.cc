#include "ops/operator_table.h"

#include "kernel/module.h"
#include "ops/batchnorm/problem.h"
#include "ops/dynamic_quantize/problem.h"
#include "ops/element/problem.h"
#include "ops/lrn/problem.h"
#include "ops/moments/problem.h"
#include "ops/moments/window_sums.h"
#include "ops/mvn/problem.h"
#include "ops/fold/problem.h"
#include "ops/pooling/problem.h"
#include "ops/resample/problem.h"
#include "ops/roi/problem.h"
#include "ops/gather/problem.h"
#include "ops/generate/problem.h"
#include "ops/generate/random.h"
#include "ops/one_hot/problem.h"
#include "ops/scan/nonzero.h"
#include "ops/scan/problem.h"
#include "ops/move/problem.h"
#include "ops/move/reverse.h"
#include "ops/move/value_scale.h"
#include "ops/convolution/problem.h"
#include "ops/dynamic_quantize/problem.h"
#include "ops/element/problem.h"
#include "ops/gemm/problem.h"
#include "ops/integer_product/problem.h"
#include "ops/scatter/problem.h"
#include "ops/top_k/problem.h"

namespace anydml {

const OperatorTable& OwnOperatorTable() {
  static const OperatorTable table = {
      .batchnorm = BatchNormImplementations(),
      .dynamic_quantize = DynamicQuantizeImplementations(),
      .element = ElementImplementations(),
      .lrn = LrnImplementations(),
      .moments = MomentsImplementations(),
      .mvn = MvnImplementations(),
      .fold = FoldImplementations(),
      .max_unpooling = MaxUnpoolingImplementations(),
      .pooling = PoolingImplementations(),
      .pooling_grad = PoolingGradImplementations(),
      .resample = ResampleImplementations(),
      .roi = RoiImplementations(),
      .gather = GatherImplementations(),
      .generate = GenerateImplementations(),
      .nonzero = NonzeroImplementations(),
      .one_hot = OneHotImplementations(),
      .random = RandomImplementations(),
      .scan = ScanImplementations(),
      .convolution = ConvolutionImplementations(),
      .dynamic_quantize = DynamicQuantizeImplementations(),
      .element = ElementImplementations(),
      .gemm = GemmImplementations(),
      .integer_product = IntegerProductImplementations(),
      .scatter = ScatterImplementations(),
      .top_k = TopKImplementations(),
      .window_sums = WindowSumsImplementations(),
      .move = MoveImplementations(),
      .reverse = ReverseImplementations(),
      .scatter = ScatterImplementations(),
      .top_k = TopKImplementations(),
      .value_scale = ValueScaleImplementations(),
  };
  return table;
}

const OperatorTable& OperatorTableOf(std::string_view backend) {
  const Module* const module = FindModule(backend);
  return module != nullptr ? module->operators() : OwnOperatorTable();
}

}  // namespace anydml
