// Compiles a program for given sizes, node by node: what depends only on sizes and constants is computed at
// once, the rest becomes nodes of a DirectML graph. If an operator cannot be made without the elements of a
// tensor that the graph computes (a shape that depends on data), the part ends: it is run, the elements are
// read, and the next part begins there.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onnx/lower/graph_builder.h"
#include "onnx/lower/lowering.h"
#include "onnx/model/program.h"

namespace anydml::onnx {

// A value that exists before a part runs.
struct OutsideValue {
  ElementType type = ElementType::kUndefined;
  Shape shape;
  const Tensor* host = nullptr;  // its elements, if the host has them
  bool is_tensor = true;         // false for a sequence, which only the host uses
};
using FindOutside = std::function<std::optional<OutsideValue>(ValueId)>;

// A part of a program, compiled for its inputs.
struct Part {
  size_t begin = 0;
  size_t end = 0;  // nodes

  // Valid for values of these types and sizes,
  struct Expected {
    ValueId id;
    ElementType type;
    Shape shape;
  };
  std::vector<Expected> expected;
  // and for these elements, on which sizes or attributes depend.
  std::vector<std::pair<ValueId, Tensor>> pinned;

  std::string refused;  // why the host computes the node at its end, although DirectML was tried first

  std::shared_ptr<GraphBuilder> builder;
  std::vector<Source> graph_outputs;

  // The place of a result: an output of the graph, another value's bytes, or a constant.
  struct Result {
    ValueId id;
    ElementType type;
    Shape shape;
    size_t graph_output = kNever;
    ValueId same_as = kAbsent;
    std::optional<Tensor> constant;
  };
  std::vector<Result> results;
  uint64_t live_bytes = 0;         // the most intermediate bytes at a time, before fusion
  std::vector<ValueId> read_back;  // values whose elements the next part needs

  bool Fits(const FindOutside& outside) const;
};

// Runs what the outputs need, which is constants only: a tensor for each output.
using FoldConstants = std::function<Status(GraphBuilder*, std::span<const Source> outputs,
                                           std::vector<std::vector<std::byte>>* bytes)>;

class Tracer {
 public:
  Tracer(const Program& program, OperatorMaker* maker, FindOutside outside);

  // Nodes with constant inputs too large for the host are run at once; without `fold` they stay nodes.
  void set_fold(FoldConstants fold) { fold_ = std::move(fold); }
  // Conditions of If that depend on elements of outside values: with `pin` the part is valid for these
  // elements only, as it is for shapes. Otherwise the host decides in every run.
  void set_pin_conditions(bool pin) { pin_conditions_ = pin; }

  void set_progress(std::function<void(size_t)> progress) { progress_ = std::move(progress); }

  // Traces from this node on as far as possible: to the end, to a node that the host runs (control flow), or
  // to one that needs elements first. A part may be empty: then only `read_back` matters.
  Status Trace(size_t begin, Part* out);

 private:
  enum class Step { kDone, kNeedsElements };

  Status TraceNode(size_t index, Part* part, Step* step);
  Status Evaluate(size_t index, const OperatorRow& row, const std::vector<std::optional<Tensor>>& inputs,
                  std::vector<Tensor>* outputs);
  Status Lower(size_t index, const OperatorRow& row, Part* part);
  bool EvaluateConstants(size_t index, const OperatorRow& row, const std::vector<const TraceValue*>& inputs,
                         Status* status);
  // Runs a node with constant inputs on the device. `*done` is false if that does not pay.
  Status Fold(size_t index, const OperatorRow& row, const std::vector<const TraceValue*>& inputs,
              const std::vector<std::optional<Tensor>>& host, bool* done);
  Status TakeResults(size_t index, std::vector<TraceValue> results);
  // Inlines the nodes of the taken branch if the condition is known. `*done` is false if the host must run
  // it.
  Status InlineIf(size_t index, bool* done);
  Status InlineBranch(ValueId of, size_t index, bool* done);
  Status InlineBody(const Program& body, std::vector<TraceValue>* results, bool* done);
  // The elements of a value: a constant, elements that the host has (on which the part then depends), or
  // computed from these; empty if only the graph knows them.
  Status Elements(ValueId id, int depth, std::optional<Tensor>* out);
  // The elements of a value from outside the part, if the host has them and they are few.
  void PinElements(ValueId id, std::optional<Tensor>* out);
  TraceValue* Value(ValueId id);
  bool IsConstant(const ProgramNode& node);
  bool IsForHost(const ProgramNode& node);
  bool CanEvaluate(const ProgramNode& node) const;
  void Finish(Part* part);
  uint64_t MostLiveBytes(const Part& part) const;

  const Program& program_;
  OperatorMaker& maker_;
  const FindOutside outside_;
  std::vector<TraceValue> values_;
  std::map<ValueId, Tensor> pinned_;
  std::map<ValueId, std::optional<Tensor>> elements_;  // those that were requested
  std::map<ValueId, Part::Expected> expected_;
  size_t begin_ = 0;
  std::shared_ptr<GraphBuilder> builder_;
  Tracer* around_ = nullptr;             // of a branch: the enclosing tracer, which has
  std::map<ValueId, ValueId> captured_;  // these values
  FoldConstants fold_;                   // may be empty
  uint64_t folded_bytes_ = 0;
  bool pin_conditions_ = false;
  std::function<void(size_t)> progress_;  // may be empty
};

// Whether the host runs it, because it has bodies or sequences.
bool IsHostNode(const ProgramNode& node);
// Of sequences or optional values.
bool IsSequenceOperator(const std::string& type);

}  // namespace anydml::onnx
