// The description of an attention without biases and masks for cuDNN.
#pragma once

#include <memory>
#include <string>

#include "ops/device/cuda/cudnn/graph.h"
#include "ops/attention/problem.h"

namespace anydml {

// softmax(scale * Q x K^T) x V of FLOAT16 with FLOAT32 intermediates, except for the weights, which are
// rounded to FLOAT16. `key` and `value`: the places of all their rows. Null, with a reason, on failure. The
// device must be current. Run takes the addresses of queries, keys, values, the scale (FLOAT32, in host
// memory) and the output, each of the first element.
std::shared_ptr<const cudnn::Graph> CreateCudnnAttention(const AttentionProblem& problem,
                                                         const AttentionView& key, const AttentionView& value,
                                                         int device, std::string* why_not);

}  // namespace anydml
