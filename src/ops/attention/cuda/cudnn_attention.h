// What cuDNN is told of an attention without biases and masks.
#pragma once

#include <memory>
#include <string>

#include "ops/common/cudnn/graph.h"
#include "ops/attention/problem.h"

namespace anydml {

// softmax(scale * Q x K^T) x V of FLOAT16 with FLOAT32 between them, but for the weights, which are rounded
// to FLOAT16. `key` and `value`: where all their rows are. Null, with a reason. The device is the thread's
// current one. Addresses that Run wants: of queries, keys, values, the scale (FLOAT32, the host's) and the
// output, each of the first element.
std::shared_ptr<const cudnn::Graph> CreateCudnnAttention(const AttentionProblem& problem,
                                                         const AttentionView& key, const AttentionView& value,
                                                         int device, std::string* why_not);

}  // namespace anydml
