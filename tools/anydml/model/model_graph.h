// The dispatches of a model as one DirectML graph: data that one dispatch writes to a buffer and another one
// reads there flow along an edge.
#pragma once

#include <cstdint>
#include <vector>

#include "anydml/model/model.h"
#include "base/status.h"
#include "client/session.h"

namespace anydml::client {

// Refers to the model.
struct ModelGraph {
  static constexpr uint32_t kNone = ~uint32_t{0};

  // A tensor that is in a buffer for some time.
  struct Value {
    size_t buffer = 0;
    uint64_t offset = 0;                 // in the buffer
    const TensorDesc* tensor = nullptr;  // as it is written; for a graph input as it is first read
    uint32_t node = kNone;               // its writer; kNone: a graph input
    uint32_t port = 0;                   // index among that node's outputs, or among the graph inputs
    uint32_t output = kNone;             // index among the graph outputs, if it is one
    bool is_read = false;
    bool is_shown = false;  // by a command of the model
  };
  // A dispatch. Indices of values; kNone: an optional tensor that is absent.
  struct Node {
    size_t op = 0;
    std::vector<uint32_t> inputs;
    std::vector<uint32_t> outputs;
  };

  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<uint32_t> inputs;   // values
  std::vector<uint32_t> outputs;  // values
  uint32_t execution_flags = 0;   // common to all dispatches
};

// Values that a command shows, or that no dispatch reads, are graph outputs; with `only_shown` the unread
// ones that no command shows have no edge. A tensor must be read as it was written: reading a part of one, or
// of two, is refused.
Status MakeModelGraph(const Model& model, bool only_shown, ModelGraph* out);

// Initialise it with Session::Initialize.
Status CompileModelGraph(const Model& model, const ModelGraph& graph, Session* session,
                         CompiledOperator* out);

}  // namespace anydml::client
