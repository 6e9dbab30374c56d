// A tensor as `anydml op` takes it after "Field=".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "anydml/npy.h"
#include "base/status.h"

namespace anydml::tools {

// A literal "[[1,2],[3,4]]:float16" (FLOAT32 without a type), "random:8x1000:float32:seed=1"
// (also min= and max=), or the path of a .npy file. `field` stands for it in sentences.
Status ReadTensorSource(std::string_view field, const std::string& text, NpyArray* out);

// Several of them, or several paths: separated by commas, but not inside brackets.
std::vector<std::string> SplitTensors(const std::string& text);

}  // namespace anydml::tools
