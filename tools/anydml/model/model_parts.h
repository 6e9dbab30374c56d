// The parts of a model, each from its JSON.
#pragma once

#include "anydml/model/model.h"
#include "client/json/json_node.h"
#include "client/values/input_file.h"

namespace anydml::client {

// `before`: the bytes of the model's other buffers so far.
Status ReadModelBuffer(const JsonNode& node, const ModelFolder& folder, uint64_t before, ModelBuffer* out);
Status ReadModelOperator(const JsonNode& node, const Model& model, ModelOperator* out);
Status ReadModelCommand(const JsonNode& node, const ModelFolder& folder, const Model& model,
                        ModelCommand* out);

// The values of "bindings", if present. `initial`: for the inputs that DirectML owns, otherwise for all other
// tensors.
Status ReadBindings(const JsonNode& parent, const Model& model, const OperatorDesc& desc, bool initial,
                    DispatchCommand* out);

// Numbers, or nested lists of them, as elements of a tensor; 4-bit elements take a byte each.
Status AppendElements(const JsonNode& node, DataType type, std::vector<std::byte>* bytes);
// Likewise, packed, and as many as the buffer has.
Status ReadExpectedElements(const JsonNode& node, const ModelBuffer& buffer, std::vector<std::byte>* bytes);

Status ReadDataType(const JsonNode& node, DataType* type);

// An array file as packed elements in row-major order: of `type` if that has four bits and the file's
// elements can be converted, otherwise of the file's own type, which `type` becomes.
Status ReadPackedNpy(const InputPath& path, DataType* type, std::vector<uint32_t>* sizes,
                     std::vector<std::byte>* bytes);

// {"Type": "ACTIVATION_ELU", "Alpha": 0.5}, a list of these, or names separated by commas: what `anydml op`
// takes for operators in another operator's description.
Status ParseFusedOperators(const FieldSchema& field, std::string_view text, std::vector<OperatorDesc>* out);

// The path that a string names, which starts at the model's folder. Models from Windows may separate folders
// by backslashes.
Status ResolveTarget(const JsonNode& node, const ModelFolder& folder, std::string* path);
// Of a file that is read: one that may be outside and is not there starts at the current folder.
Status ResolveSource(const JsonNode& node, const ModelFolder& folder, InputPath* path);

// Ignores case.
bool HasExtension(const std::string& path, std::string_view extension);
// Other files, except .npy, are raw elements.
bool IsImage(const std::string& path);

}  // namespace anydml::client
