#include "ops/operator_table.h"

#include "kernel/module.h"
#include "ops/attention/problem.h"
#include "ops/batchnorm/problem.h"
#include "ops/convolution/problem.h"
#include "ops/dynamic_quantize/problem.h"
#include "ops/element/problem.h"
#include "ops/fold/problem.h"
#include "ops/gather/problem.h"
#include "ops/gemm/problem.h"
#include "ops/gemm/softmax.h"
#include "ops/generate/problem.h"
#include "ops/generate/random.h"
#include "ops/integer_product/problem.h"
#include "ops/lrn/problem.h"
#include "ops/moments/problem.h"
#include "ops/moments/window_sums.h"
#include "ops/move/problem.h"
#include "ops/move/reverse.h"
#include "ops/move/value_scale.h"
#include "ops/mvn/problem.h"
#include "ops/one_hot/problem.h"
#include "ops/pooling/problem.h"
#include "ops/recurrent/problem.h"
#include "ops/reduce/problem.h"
#include "ops/resample/problem.h"
#include "ops/roi/problem.h"
#include "ops/scan/nonzero.h"
#include "ops/scan/problem.h"
#include "ops/scatter/problem.h"
#include "ops/softmax/problem.h"
#include "ops/top_k/problem.h"

namespace anydml {

const OperatorTable& OwnOperatorTable() {
  static const OperatorTable table = {
      .attention = AttentionImplementations(),
      .batchnorm = BatchNormImplementations(),
      .convolution = ConvolutionImplementations(),
      .dynamic_quantize = DynamicQuantizeImplementations(),
      .element = ElementImplementations(),
      .fold = FoldImplementations(),
      .gather = GatherImplementations(),
      .gemm = GemmImplementations(),
      .gemm_softmax = GemmSoftmaxImplementations(),
      .generate = GenerateImplementations(),
      .integer_product = IntegerProductImplementations(),
      .lrn = LrnImplementations(),
      .max_unpooling = MaxUnpoolingImplementations(),
      .moments = MomentsImplementations(),
      .move = MoveImplementations(),
      .mvn = MvnImplementations(),
      .nonzero = NonzeroImplementations(),
      .one_hot = OneHotImplementations(),
      .pooling = PoolingImplementations(),
      .pooling_grad = PoolingGradImplementations(),
      .random = RandomImplementations(),
      .recurrent = RecurrentImplementations(),
      .reduce = ReduceImplementations(),
      .resample = ResampleImplementations(),
      .reverse = ReverseImplementations(),
      .roi = RoiImplementations(),
      .scan = ScanImplementations(),
      .scatter = ScatterImplementations(),
      .softmax = SoftmaxImplementations(),
      .top_k = TopKImplementations(),
      .value_scale = ValueScaleImplementations(),
      .window_sums = WindowSumsImplementations(),
  };
  return table;
}

const OperatorTable& OperatorTableOf(std::string_view backend) {
  const Module* const module = FindModule(backend);
  return module != nullptr ? module->operators() : OwnOperatorTable();
}

}  // namespace anydml
