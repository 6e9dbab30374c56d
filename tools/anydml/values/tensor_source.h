// A tensor as `anydml op` takes it after "Field=".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "anydml/values/npy.h"
#include "base/status.h"

namespace anydml::tools {

// What a tensor is for.
struct TensorUse {
  DataType type = DataType::kFloat32;  // of literals and random values that do not say theirs
  Emptiness emptiness = Emptiness::kRefused;
};

// A literal "[[1,2],[3,4]]:float16", "random:8x1000:float32:seed=1" (also min= and max=), or the path of a
// .npy file, perhaps with ":int4". `field` stands for it in sentences.
Status ReadTensorSource(std::string_view field, const std::string& text, NpyArray* out,
                        const TensorUse& use = {});

// An output: "out.npy", "out.npy:float16", ":2x3:int4". Without a path it is printed; what is not given of
// the sizes and the type is inferred.
struct OutputTarget {
  std::string path;
  TensorDesc tensor;  // rank 0 and kUnknown where they are not given
};
Status ParseOutputTarget(std::string_view field, const std::string& text, OutputTarget* out);

// Several of them, or several paths: separated by commas, but not inside brackets.
std::vector<std::string> SplitTensors(const std::string& text);

}  // namespace anydml::tools
