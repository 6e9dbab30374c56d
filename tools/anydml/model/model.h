// A model in the JSON format of Microsoft's DxDispatch tool: buffers, operators on them, and commands.
// Everything is read and checked before anything runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml::client {

struct ModelBuffer {
  std::string name;
  DataType type = DataType::kUnknown;  // of the initial values; kUnknown: several types
  std::vector<uint32_t> sizes;         // those of the file with the values, otherwise their number
  std::vector<std::byte> bytes;        // the whole buffer
  // The part with initial values, which is printed and written.
  uint64_t values_offset = 0;
  uint64_t values_bytes = 0;

  // Only valid for values of a single type.
  uint64_t value_count() const {
    return std::accumulate(sizes.begin(), sizes.end(), uint64_t{1}, std::multiplies<>());
  }
};

struct ModelBinding {
  static constexpr size_t kAbsent = SIZE_MAX;

  size_t buffer = kAbsent;  // index into Model::buffers
  uint64_t offset = 0;      // in bytes; the binding extends to the end of the buffer
};

struct ModelOperator {
  std::string name;
  std::string where;  // "model.json:12:5: dispatchables.NAME: "
  OperatorDesc desc;
  uint32_t execution_flags = 0;
  bool as_graph = false;            // compiled as a graph of one node
  std::vector<ModelBinding> owned;  // one per input, or empty if DirectML owns none
};

struct DispatchCommand {
  size_t op = 0;  // index into Model::operators
  std::vector<ModelBinding> inputs;
  std::vector<ModelBinding> outputs;
};

struct PrintCommand {
  size_t buffer = 0;
  bool verbose = false;         // with the bits of every element
  std::vector<uint32_t> sizes;  // empty: as one row
};

struct WriteFileCommand {
  size_t buffer = 0;
  std::string path;
  bool npy = false;
  std::vector<uint32_t> sizes;
};

struct ExpectCommand {
  size_t buffer = 0;
  std::vector<std::byte> values;  // of the buffer's type
  double relative_tolerance = 0;
  double absolute_tolerance = 0;
  uint32_t ulps = 0;        // for FLOAT32 and FLOAT16: the allowed error in ulps
  std::vector<bool> exact;  // elements that must match exactly; empty: none
};

struct ModelCommand {
  std::string where;
  std::variant<DispatchCommand, PrintCommand, WriteFileCommand, ExpectCommand> action;
};

struct Model {
  std::vector<ModelBuffer> buffers;
  std::vector<ModelOperator> operators;
  std::vector<ModelCommand> commands;
  // The indices of named ones.
  std::unordered_map<std::string, size_t> buffers_by_name;
  std::unordered_map<std::string, size_t> operators_by_name;
};

// The folder of a model's files. Models may come from anywhere: unless `allow_outside` is set, one that names
// a file outside the folder, even through a symbolic link, is refused.
struct ModelFolder {
  std::filesystem::path path;
  bool allow_outside = false;
};

Status LoadModel(const std::string& path, bool allow_outside, Model* out);
// `name` is the file's name in error messages.
Status ParseModel(const std::string& name, std::string_view text, const ModelFolder& folder, Model* out);

}  // namespace anydml::client
