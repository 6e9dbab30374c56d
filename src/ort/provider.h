// The provider of one onnxruntime session: one device, and the nodes that were compiled for it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "ort/compiled_node.h"

namespace anydml::ort {

inline constexpr char kProviderName[] = "AnyDML";

struct ProviderOptions {
  std::string adapter;         // "cpu", "cuda:0"
  std::string memory_of;       // the adapter whose memory has onnxruntime's tensors; empty: the host's
  std::string feature_level;   // "5.0": nodes that need a higher level are left to others; empty: the
                               // device's
  std::string half_precision;  // "1": FLOAT16 need not be rounded between operators; empty: "0"
  std::string fallback;        // "0": what AnyDML turns out not to be able to run fails; empty: "1"
};

class Provider : public OrtEp {
 public:
  static Status Create(const Api& api, const OrtLogger* logger, const ProviderOptions& options,
                       std::unique_ptr<Provider>* out);

 private:
  Provider(const Api& api, const OrtLogger* logger);
  Status Claim(const OrtGraph* graph, OrtEpGraphSupportInfo* info);
  void LogClaim(const Graph& graph, const std::vector<std::string>& refused,
                const std::vector<std::vector<size_t>>& groups) const;
  Status CompileNodes(const OrtGraph** graphs, const OrtNode** fused, size_t count,
                      OrtNodeComputeInfo** infos);

  const Api api_;
  const OrtLogger* const logger_;
  Device device_;
  FeatureLevel feature_level_ = 0;
  std::map<std::string, bool> searched_files_;  // see IsInFunction
};

}  // namespace anydml::ort
