// Partitioning: which nodes run together, on graphs made without onnxruntime.
#include "ort/capability.h"

#include <gtest/gtest.h>

#include "support/onnx_models.h"

namespace anydml::ort {
namespace {

using Groups = std::vector<std::vector<size_t>>;

// Values are FLOAT unless declared otherwise.
class GraphMaker {
 public:
  GraphMaker& Node(const std::string& type, std::vector<std::string> inputs, std::vector<std::string> outputs,
                   bool refused = false) {
    GraphNode& node = graph.nodes.emplace_back();
    node.proto.type = type;
    for (const std::vector<std::string>& names : {inputs, outputs}) {
      for (const std::string& name : names) {
        if (!graph.values.contains(name)) Declare(name, onnx::ElementType::kFloat);
      }
    }
    node.proto.inputs = std::move(inputs);
    node.proto.outputs = std::move(outputs);
    why.emplace_back(refused ? "why not" : "");
    return *this;
  }
  GraphMaker& Declare(const std::string& name, onnx::ElementType type) {
    graph.values[name].facts.type = type;
    return *this;
  }
  Groups Group() const { return GroupNodes(graph, why); }

  Graph graph;
  std::vector<std::string> why;
};

TEST(GroupNodes, EverythingIsOneGroup) {
  EXPECT_EQ(GraphMaker().Node("Relu", {"x"}, {"a"}).Node("Neg", {"a"}, {"b"}).Group(), (Groups{{0, 1}}));
}

TEST(GroupNodes, ANodeOfOthersDividesWhatIsBeforeAndAfterIt) {
  // 0 -> 1 (not claimed) -> 2, and 0 -> 3 -> 2: 3 could run with 0 and not after 1.
  EXPECT_EQ(GraphMaker()
                .Node("Relu", {"x"}, {"a"})
                .Node("Strange", {"a"}, {"b"}, true)
                .Node("Neg", {"a"}, {"c"})
                .Node("Add", {"b", "c"}, {"d"})
                .Group(),
            (Groups{{0, 2}, {3}}));
}

TEST(GroupNodes, NodesThatHaveNothingInCommonAreTogether) {
  EXPECT_EQ(GraphMaker()
                .Node("Strange", {"x"}, {"a"}, true)
                .Node("Relu", {"a"}, {"b"})
                .Node("Relu", {"y"}, {"c"})
                .Group(),
            (Groups{{1, 2}}));
}

TEST(GroupNodes, WhatGraphsInsideReadCounts) {
  GraphMaker maker;
  maker.Node("Relu", {"x"}, {"a"}).Node("If", {"c"}, {"b"}, true).Node("Add", {"a", "b"}, {"d"});
  maker.graph.nodes[1].captures = {"a"};
  EXPECT_EQ(maker.Group(), (Groups{{0}, {2}}));
}

TEST(GroupNodes, SizesAreLeftToOthersWhoNeedThem) {
  GraphMaker maker;
  maker.Declare("shape", onnx::ElementType::kInt64).Declare("size", onnx::ElementType::kInt64);
  maker.Node("Relu", {"x"}, {"a"}).Node("Shape", {"x"}, {"shape"}).Node("Strange", {"shape"}, {"b"}, true);
  EXPECT_EQ(maker.Group(), (Groups{{0}}));
  maker.Node("Reshape", {"a", "shape"}, {"c"});
  EXPECT_EQ(maker.Group(), (Groups{{0, 1, 3}}));
}

TEST(GroupNodes, MovesAndCountsAloneAreNotWorthIt) {
  EXPECT_TRUE(GraphMaker().Node("Identity", {"x"}, {"a"}).Node("Flatten", {"a"}, {"b"}).Group().empty());
  GraphMaker maker;
  for (const char* const name : {"x", "a"}) maker.Declare(name, onnx::ElementType::kInt64);
  EXPECT_TRUE(maker.Node("Neg", {"x"}, {"a"}).Group().empty());
}

}  // namespace
}  // namespace anydml::ort
