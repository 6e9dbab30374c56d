// Files: what is a model, and the sentences about what is none.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "onnx/program.h"
#include "onnx/write_model.h"
#include "support/onnx_models.h"

namespace anydml::onnx {
namespace {

Blob BlobOf(const std::string& text) {
  auto owner = std::make_shared<const std::string>(text);
  return {std::as_bytes(std::span(*owner)), owner};
}

Status Read(const std::string& text, Model* out) { return ReadModel(BlobOf(text), nullptr, out); }

std::string Sentence(const std::string& text) {
  Model model;
  return Read(text, &model).message();
}

ModelMaker Small() {
  ModelMaker maker(13);
  maker.Input("x", ElementType::kFloat, {-1, 2}).Weight("w", Floats({2, 1}, {1, 2}));
  maker.Node("MatMul", {"x", "w"}, {"y"}).Node("Relu", {"y"}, {"z"}).Output("z");
  return maker;
}

TEST(OnnxRead, SurvivesBeingWritten) {
  const ModelMaker maker = Small();
  Model model;
  ASSERT_EQ(Read(WriteModel(maker.model), &model).message(), "");
  EXPECT_EQ(model.opsets.at(""), 13);
  ASSERT_EQ(model.graph.nodes.size(), 2u);
  EXPECT_EQ(model.graph.nodes[0].type, "MatMul");
  EXPECT_EQ(model.graph.nodes[0].inputs, (std::vector<std::string>{"x", "w"}));
  EXPECT_EQ(model.graph.inputs[0].shape, (Shape{-1, 2}));
  EXPECT_EQ(ToDoubles(model.graph.initializers.at("w")), (std::vector<double>{1, 2}));
  EXPECT_EQ(model.weight_bytes, 8u);
}

TEST(OnnxRead, EveryTruncationIsAnErrorOrAModel) {
  const std::string file = WriteModel(Small().model);
  for (size_t size = 0; size < file.size(); ++size) {
    Model model;
    const Status status = Read(file.substr(0, size), &model);
    EXPECT_EQ(status.ok(), status.message().empty()) << size;
  }
}

TEST(OnnxRead, SaysWhatIsWrong) {
  EXPECT_EQ(Sentence(""), "it is no ONNX model: it has no graph");
  EXPECT_EQ(Sentence("\x0b"), "the model: field 1: a wire type that ONNX does not use");
  EXPECT_EQ(Sentence("\x0a\x01x"), "the model: field 1: another wire type than the field has");
  EXPECT_EQ(Sentence("\x3a\x7f"), "the model: field 7: it is longer than what contains it");
  ModelMaker short_tensor = Small();
  short_tensor.model.graph.initializers["w"].shape = {3, 1};
  EXPECT_EQ(Sentence(WriteModel(short_tensor.model)),
            "initializer \"w\": it has 8 bytes; 3x1 elements of float need 12");
  ModelMaker absurd = Small();
  absurd.model.graph.initializers["w"].shape = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_EQ(Sentence(WriteModel(absurd.model)),
            "initializer \"w\": its sizes are 1099511627776x1099511627776, which no tensor has");
}

TEST(OnnxRead, DeepNestingEnds) {
  GraphProto graph;
  for (int i = 0; i < 100; ++i) {
    GraphProto outer;
    NodeProto& node = outer.nodes.emplace_back();
    node.type = "If";
    node.attributes.push_back(GraphAttribute("then_branch", std::move(graph)));
    graph = std::move(outer);
  }
  Model model;
  model.opsets[""] = 13;
  model.graph = std::move(graph);
  EXPECT_NE(Sentence(WriteModel(model)).find("graphs are nested more than 32 deep"), std::string::npos);
}

std::string ProgramSentence(const ModelMaker& maker) {
  std::unique_ptr<Program> program;
  return Program::Create(maker.model, &program).message();
}

TEST(OnnxProgram, NamesAreResolvedAndOrdered) {
  ModelMaker maker(13);
  maker.Input("x", ElementType::kFloat, {2}).Node("Relu", {"y"}, {"z"}).Node("Abs", {"x"}, {"y"}).Output("z");
  std::unique_ptr<Program> program;
  ASSERT_EQ(Program::Create(maker.model, &program).message(), "");
  EXPECT_EQ(program->nodes()[0].proto->type, "Abs");
}

TEST(OnnxProgram, SaysWhatIsWrong) {
  ModelMaker missing(13);
  missing.Node("Relu", {"y"}, {"z"}).Output("z");
  EXPECT_EQ(ProgramSentence(missing), "node 0 (Relu) reads \"y\", which nothing writes");
  ModelMaker cycle(13);
  cycle.Node("Relu", {"y"}, {"z"}).Node("Abs", {"z"}, {"y"}).Output("z");
  EXPECT_EQ(ProgramSentence(cycle), "node 0 (Relu) waits for its own result");
  ModelMaker twice(13);
  twice.Input("x", ElementType::kFloat, {2}).Node("Relu", {"x"}, {"z"}).Node("Abs", {"x"}, {"z"}).Output("z");
  EXPECT_EQ(ProgramSentence(twice), "\"z\" is written twice");
}

class OnnxExternal : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("anydml_onnx_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_ / "model");
    std::ofstream(folder_ / "outside.bin") << "12345678";
    std::ofstream(folder_ / "model" / "inside.bin") << "1234567812345678";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A file with one initializer of two floats in another file.
  std::string Load(const std::string& location, const std::string& offset) {
    const auto entry = [](const std::string& key, const std::string& value) {
      std::string text = "\x0a";
      text += static_cast<char>(key.size());
      text += key + "\x12";
      text += static_cast<char>(value.size());
      return text + value;
    };
    const auto field = [](char tag, const std::string& value) {
      std::string text(1, tag);
      text += static_cast<char>(value.size());
      return text + value;
    };
    const std::string tensor = std::string("\x08\x02\x10\x01") + field(0x42, "w") +
                               field(0x6a, entry("location", location)) +
                               field(0x6a, entry("offset", offset)) + std::string("\x70\x01");
    const std::string file = field(0x3a, field(0x2a, tensor)) + field(0x42, std::string("\x10\x0d"));
    const std::filesystem::path path = folder_ / "model" / "m.onnx";
    std::ofstream(path, std::ios::binary) << file;
    Model model;
    const std::string sentence = LoadModel(path.string(), &model).message();
    return sentence.substr(std::min(sentence.size(), path.string().size()));
  }

  std::filesystem::path folder_;
};

TEST_F(OnnxExternal, StaysInTheFolder) {
  EXPECT_EQ(Load("inside.bin", "8"), "");
  EXPECT_EQ(Load("inside.bin", "12"),
            ": initializer \"w\": its data ends after byte 16, the last of inside.bin");
  EXPECT_EQ(Load("inside.bin", "20"),
            ": initializer \"w\": its data begins at byte 20 of inside.bin, which has 16");
  EXPECT_EQ(
      Load("../outside.bin", "0"),
      ": initializer \"w\": external data in \"../outside.bin\", which is outside of the model's folder");
  std::filesystem::create_symlink(folder_ / "outside.bin", folder_ / "model" / "link.bin");
  EXPECT_EQ(Load("link.bin", "0"),
            ": initializer \"w\": external data in \"link.bin\", which is outside of the model's folder");
  EXPECT_EQ(
      Load("/etc/hostname", "0"),
      ": initializer \"w\": external data in \"/etc/hostname\"; a path relative to the model is allowed");
}

}  // namespace
}  // namespace anydml::onnx
