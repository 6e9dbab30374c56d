// The parts of a model, each from its JSON. `folder` is the model's: relative paths
// start there.
#pragma once

#include <filesystem>

#include "anydml/json_node.h"
#include "anydml/model.h"

namespace anydml::tools {

Status ReadModelBuffer(const JsonNode& node, const std::filesystem::path& folder, ModelBuffer* out);
Status ReadModelOperator(const JsonNode& node, const Model& model, ModelOperator* out);
Status ReadModelCommand(const JsonNode& node, const std::filesystem::path& folder, const Model& model,
                        ModelCommand* out);

// The values of "bindings", or of none. `initial`: the inputs that DirectML owns,
// otherwise all the other tensors.
Status ReadBindings(const JsonNode& parent, const Model& model, const OperatorDesc& desc, bool initial,
                    DispatchCommand* out);

// Numbers, or lists of them to any depth, as elements of a tensor.
Status AppendElements(const JsonNode& node, DataType type, std::vector<std::byte>* bytes);

Status ReadDataType(const JsonNode& node, DataType* type);

// An array file as packed elements in row-major order.
Status ReadPackedNpy(const std::string& path, DataType* type, std::vector<uint32_t>* sizes,
                     std::vector<std::byte>* bytes);

// In the model's folder or, where there is none, in the current one.
std::string ResolveInput(const std::filesystem::path& folder, const std::string& path);

// Extensions without regard to case.
bool HasExtension(const std::string& path, std::initializer_list<std::string_view> extensions);
// Files that are neither these nor .npy are raw elements.
bool IsImage(const std::string& path);

}  // namespace anydml::tools
