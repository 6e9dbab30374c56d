// The dispatches of a model as one DirectML graph: what one of them writes to a buffer and another reads
// there flows along an edge.
#pragma once

#include <cstdint>
#include <vector>

#include "anydml/model/model.h"
#include "base/status.h"
#include "common/session.h"

namespace anydml::tools {

// Refers to the model.
struct ModelGraph {
  static constexpr uint32_t kNone = ~uint32_t{0};

  // A tensor that is in a buffer for a while.
  struct Value {
    size_t buffer = 0;
    uint64_t offset = 0;                 // in the buffer
    const TensorDesc* tensor = nullptr;  // as it is written; of a graph input as it is read first
    uint32_t node = kNone;               // that writes it; none: a graph input
    uint32_t port = 0;                   // which of that node's outputs, or of the graph inputs
    uint32_t output = kNone;             // which of the graph outputs, if it is one
    bool is_read = false;
    bool is_shown = false;  // by a command of the model
  };
  // A dispatch. Values; kNone: an optional tensor that is absent.
  struct Node {
    size_t op = 0;
    std::vector<uint32_t> inputs;
    std::vector<uint32_t> outputs;
  };

  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<uint32_t> inputs;   // values
  std::vector<uint32_t> outputs;  // values
  uint32_t execution_flags = 0;   // that all dispatches have
};

// What a command shows, or no dispatch reads, is a graph output; with `only_shown` what no dispatch reads and
// no command shows has no edge. A tensor is read as it was written: reading a part of it, or of two, is
// refused.
Status MakeModelGraph(const Model& model, bool only_shown, ModelGraph* out);

// It is to be initialised (Session::Initialize).
Status CompileModelGraph(const Model& model, const ModelGraph& graph, Session* session,
                         CompiledOperator* out);

}  // namespace anydml::tools
