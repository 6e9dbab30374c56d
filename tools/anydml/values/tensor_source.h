// A tensor in the syntax of `anydml op`, after "Field=".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/values/npy.h"

namespace anydml::client {

// The use of a tensor.
struct TensorUse {
  DataType type = DataType::kFloat32;  // for literals and random values without a type
  Emptiness emptiness = Emptiness::kRefused;
};

// A literal "[[1,2],[3,4]]:float16", "random:8x1000:float32:seed=1" (also min= and max=), or the path of a
// .npy file, optionally with ":int4". `field` is its name in messages.
Status ReadTensorSource(std::string_view field, const std::string& text, NpyArray* out,
                        const TensorUse& use = {});

// An output: "out.npy", "out.npy:float16", ":2x3:int4". Without a path it is printed; missing sizes and types
// are inferred.
struct OutputTarget {
  std::string path;
  TensorDesc tensor;  // rank 0 and kUnknown if they are not given
};
Status ParseOutputTarget(std::string_view field, const std::string& text, OutputTarget* out);

// Splits several of them, or several paths, at commas outside brackets.
std::vector<std::string> SplitTensors(const std::string& text);

}  // namespace anydml::client
