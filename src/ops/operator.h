// What an operator family provides, and the list of all that are implemented.
// A new family is a folder here and a line in CMakeLists.txt.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernel/device_traits.h"
#include "kernel/kernel.h"
#include "ops/exactness.h"
#include "ops/operator_traits.h"
#include "schema/operator_desc.h"

namespace anydml {

// Everything that a lowering may depend on besides the description. Kernels keep only `device`, which lives
// as long as the process.
struct LowerContext {
  std::string_view implementation;  // forces an implementation by name ("cpu.reference"); empty: the first
                                    // that fits
  FeatureLevel level = kLatestFeatureLevel;
  uint32_t threads = 1;          // the number that may share a run; results do not depend on it
  uint32_t execution_flags = 0;  // DML_EXECUTION_FLAGS
  const DeviceTraits* device = &kHostDevice;
  bool host_fallback = true;  // the host may run what the device has no implementation for
  bool graph_guards = false;  // run a graph's parts between inaccessible pages

  // For choosing the parts of a composite kernel: a forced implementation is that of the whole, and if
  // something has to run on the host, it is the whole.
  LowerContext ForPart() const {
    LowerContext part = *this;
    part.implementation = {};
    part.host_fallback = false;
    return part;
  }
};

struct LoweredOperator {
  std::unique_ptr<const Kernel> kernel;
  std::string implementation;  // "cpu.heap"
  std::string explanation;     // one line per implementation: name, then "chosen" or why not
  Exactness exactness;
  uint32_t abilities = 0;  // of Ability (ops/implementation_list.h)
  // (input, output) binding indices that may be bound to the same region.
  std::vector<std::pair<uint32_t, uint32_t>> in_place;
};

struct Operator {
  uint32_t type;  // DML_OPERATOR_TYPE

  // Checks rules beyond the schema's tables, which the description already obeys.
  Status (*check)(const OperatorDesc& desc, FeatureLevel level);

  // Resolves a checked description into a kernel. Fails with kUnsupported and the list of reasons if the
  // forced implementation does not fit. Call it through LowerOperator.
  Status (*lower)(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out);

  // Fills in the absent output tensors (packed) from inputs and attributes, as far as the operator determines
  // them. A type that it does not determine stays as the caller set it in the tensor's `type`, or becomes the
  // first allowed one.
  Status (*infer)(OperatorDesc* desc);

  std::string_view family;  // Problem::kFamily

  OperatorTraits traits;
};

// What a family's function RegisterOperators fills: each family has one in lower.cc.
class OperatorList {
 public:
  // They live as long as the process.
  void Add(const Operator& op) { operators_.push_back(&op); }
  void Add(std::span<const Operator> operators) {
    for (const Operator& op : operators) Add(op);
  }
  std::span<const Operator* const> operators() const { return operators_; }

 private:
  std::vector<const Operator*> operators_;
};

// Names of the operator's implementations in all columns of this process, the CPU's and those of modules:
// fastest first within each backend, the reference last.
std::vector<const char*> ImplementationNames(const Operator& op);

// Lowers an operator of this description by `lower` for the context's device or, where that cannot be and the
// context allows it, for the host.
using LowerFunction = std::function<Status(const LowerContext& context, LoweredOperator* out)>;
Status LowerOrRunOnHost(const OperatorDesc& desc, const LowerContext& context, const LowerFunction& lower,
                        LoweredOperator* out);

// Operator::lower; prefixes the message of a failure with the operator's name.
Status LowerOperator(const Operator& op, const OperatorDesc& desc, const LowerContext& context,
                     LoweredOperator* out);

std::span<const Operator* const> ImplementedOperators();
const Operator* FindImplementation(uint32_t type);  // null if the schema has no such operator

}  // namespace anydml
