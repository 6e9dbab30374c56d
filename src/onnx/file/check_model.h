// What a file says of its versions, types and constants, checked while it is read.
#pragma once

#include <string>

#include "onnx/file/model.h"

namespace anydml::onnx {

Status CheckIrVersion(int64_t version);
Status CheckOpset(const std::string& domain, int64_t version);
// One that ONNX has, or 0, which stands for no type.
Status CheckElementType(int64_t number, ElementType* out);

// Removes constants that a later one of the same name replaces; initializers come before the nodes.
// onnxruntime reads such models, which some exporters write, in the same way. `names` get those that had
// several.
void KeepLastConstants(GraphProto* graph, std::vector<std::string>* names);

// An initializer is the value of the input of its name, and has to be what that is declared as.
Status CheckInitializers(const GraphProto& graph);

}  // namespace anydml::onnx
