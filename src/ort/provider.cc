#include "ort/provider.h"

#include "ort/capability.h"

namespace anydml::ort {
Provider::Provider(const Api& api, const OrtLogger* logger) : api_(api), logger_(logger) {
  get_name = [](const OrtEp*) -> const char* { return kProviderName; };
  get_capability = [](OrtEp* self, const OrtGraph* graph, OrtEpGraphSupportInfo* info) -> OrtStatus* {
    auto* const provider = static_cast<Provider*>(self);
    return Guarded(provider->api_, [&] { return provider->Claim(graph, info); });
  };
  compile = [](OrtEp* self, const OrtGraph** graphs, const OrtNode** fused, size_t count,
               OrtNodeComputeInfo** infos, OrtNode**) -> OrtStatus* {
    auto* const provider = static_cast<Provider*>(self);
    return Guarded(provider->api_, [&] { return provider->CompileNodes(graphs, fused, count, infos); });
  };
  release_node_compute_infos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
    for (size_t i = 0; i < count; ++i) delete static_cast<CompiledNode*>(infos[i]);
  };
}

Status Provider::Create(const Api& api, const OrtLogger* logger, const ProviderOptions& options,
                        std::unique_ptr<Provider>* out) {
  std::unique_ptr<Provider> provider(new Provider(api, logger));
  client::SessionOptions session;
  session.adapter = options.adapter;
  session.debug = false;
  ANYDML_RETURN_IF_ERROR(client::Session::Create(session, &provider->device_.session));
  const std::string& adapter = provider->device_.session->adapter().id;
  provider->device_.has_memory = !options.memory_of.empty();
  if (provider->device_.has_memory && adapter != options.memory_of)
    return InvalidArgument("the option adapter is ", adapter, ", and the session's device is ",
                           options.memory_of, ": the device of another adapter is to be chosen");
  provider->feature_level_ = provider->device_.session->feature_level();
  if (!options.feature_level.empty()) {
    const FeatureLevel given = ParseFeatureLevel(options.feature_level);
    if (given == 0 || given > provider->feature_level_)
      return InvalidArgument("the option feature_level is \"", options.feature_level, "\"; levels up to ",
                             FeatureLevelName(provider->feature_level_), " are allowed");
    provider->feature_level_ = given;
  }
  if (options.half_precision == "1") {
    provider->device_.flags = DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION;
  } else if (!options.half_precision.empty() && options.half_precision != "0") {
    return InvalidArgument("the option half_precision is \"", options.half_precision,
                           "\"; 0 and 1 are allowed");
  }
  if (!options.fallback.empty() && options.fallback != "0" && options.fallback != "1")
    return InvalidArgument("the option fallback is \"", options.fallback, "\"; 0 and 1 are allowed");
  provider->device_.has_fallback = options.fallback != "0";
  provider->device_.logger = logger;
  *out = std::move(provider);
  return {};
}

void Provider::LogClaim(const Graph& graph, const std::vector<std::string>& refused,
                        const std::vector<std::vector<size_t>>& groups) const {
  size_t claimed = 0;
  for (const std::vector<size_t>& group : groups) claimed += group.size();
  for (size_t i = 0; i < refused.size(); ++i) {
    const onnx::NodeProto& node = graph.nodes[i].proto;
    if (!refused[i].empty())
      api_.Log(logger_, kOrtVerbose,
               StrCat("AnyDML leaves ", node.type, " \"", node.name, "\" to others: ", refused[i]));
  }
  api_.Log(logger_, kOrtInfo,
           StrCat("AnyDML runs ", claimed, " of ", graph.nodes.size(), " nodes on ",
                  device_.session->adapter().id, ", in ", groups.size(), " groups"));
}

Status Provider::Claim(const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
  bool leave = false;
  ANYDML_RETURN_IF_ERROR(IsInFunction(api_, graph, &searched_files_, &leave));
  if (leave) return {};
  Graph given;
  ANYDML_RETURN_IF_ERROR(ReadGraph(api_, graph, &given));
  const std::vector<std::string> refused = RefusedNodes(api_, given, feature_level_);
  const std::vector<std::vector<size_t>> groups = GroupNodes(given, refused);
  LogClaim(given, refused, groups);
  OrtNodeFusionOptions options;
  options.drop_constant_initializers = true;
  for (const std::vector<size_t>& group : groups) {
    std::vector<const OrtNode*> nodes;
    for (const size_t i : group) nodes.push_back(given.nodes[i].node);
    ANYDML_RETURN_IF_ERROR(api_.Try(kAddNodesToFuse, info, nodes.data(), nodes.size(), &options));
  }
  return {};
}

Status Provider::CompileNodes(const OrtGraph** graphs, const OrtNode** fused, size_t count,
                              OrtNodeComputeInfo** infos) {
  for (size_t i = 0; i < count; ++i) {
    std::unique_ptr<CompiledNode> node;
    ANYDML_RETURN_IF_ERROR(CompiledNode::Create(api_, graphs[i], fused[i], &device_, &node));
    infos[i] = node.release();  // onnxruntime returns it, also after a failure
  }
  return {};
}

}  // namespace anydml::ort
