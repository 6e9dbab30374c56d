// Reading model files: which files are models, and the errors for those that are not.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/open_in_folder.h"
#include "onnx/file/write_model.h"
#include "onnx/model/program.h"
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

std::string ProgramSentence(const ModelMaker& maker) {
  std::unique_ptr<Program> program;
  return Program::Create(maker.model, &program).message();
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

TEST(OnnxRead, KindsOfValuesSurviveBeingWritten) {
  ModelMaker maker(13);
  const ValueKind kinds[] = {ValueKind::kTensor, ValueKind::kSequence, ValueKind::kOptional,
                             ValueKind::kOther};
  for (const ValueKind kind : kinds) {
    maker.Input("x", ElementType::kFloat, {2});
    maker.model.graph.inputs.back().kind = kind;
  }
  Model model;
  ASSERT_EQ(Read(WriteModel(maker.model), &model).message(), "");
  for (size_t i = 0; i < std::size(kinds); ++i) EXPECT_EQ(model.graph.inputs[i].kind, kinds[i]) << i;
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

TEST(OnnxRead, VersionsThatThereAreNot) {
  for (const int64_t version : {int64_t{-1}, int64_t{0}, int64_t{1} << 62}) {
    EXPECT_EQ(Sentence(WriteModel(ModelMaker(version).model)),
              StrCat("opset_import: version ", version, " of ai.onnx; 1 to 1000 are allowed"));
  }
  ModelMaker other = Small();
  other.model.opsets["com.example"] = 20260101;
  EXPECT_EQ(Sentence(WriteModel(other.model)), "");
  other.model.opsets["com.example"] = -2;
  EXPECT_EQ(Sentence(WriteModel(other.model)),
            "opset_import: version -2 of com.example; 0 to 2147483647 are allowed");
  ModelMaker format = Small();
  format.model.ir_version = int64_t{1} << 62;
  EXPECT_EQ(Sentence(WriteModel(format.model)), "ir_version is 4611686018427387904; 1 to 1000 are allowed");
}

// Used as a graph input, as an output, as an initializer and in a Constant.
TEST(OnnxRead, ElementTypesThatThereAreNot) {
  // A model may leave the type of an output open, but not that of a tensor.
  const Tensor untyped{ElementType::kUndefined, {0}, {}, nullptr};
  EXPECT_EQ(Sentence(WriteModel(ModelMaker(13).Weight("w", untyped).model)),
            "initializer \"w\": it has no element type");
  for (const int number : {99, -1}) {
    const auto type = static_cast<ElementType>(number);
    const std::string words = StrCat("element type ", number, ", which ONNX does not have");
    EXPECT_EQ(Sentence(WriteModel(ModelMaker(13).Input("x", type, {2}).model)), "x: " + words);
    EXPECT_EQ(Sentence(WriteModel(ModelMaker(13).Output("y", type).model)), "y: " + words);
    const Tensor tensor{type, {0}, {}, nullptr};
    EXPECT_EQ(Sentence(WriteModel(ModelMaker(13).Weight("w", tensor).model)), "initializer \"w\": " + words);
    EXPECT_EQ(Sentence(WriteModel(
                  ModelMaker(13).Node("Constant", {}, {"c"}, TensorAttribute("value", tensor)).model)),
              "node 0 (Constant): attribute value: " + words);
  }
  // A result may omit its type; an input must have one.
  EXPECT_EQ(Sentence(WriteModel(ModelMaker(13).Output("y", ElementType::kUndefined).model)), "");
  EXPECT_EQ(Sentence(WriteModel(ModelMaker(13).Input("x", ElementType::kUndefined, {2}).model)),
            "input \"x\" has no element type");
}

TEST(OnnxRead, FunctionsOfOneName) {
  const auto function = [](const std::string& domain, const std::string& overload) {
    std::string text =
        "\x0a\x01"
        "F\x52";
    text += static_cast<char>(domain.size());
    text += domain;
    if (!overload.empty()) text += StrCat('\x6a', static_cast<char>(overload.size()), overload);
    return StrCat("\xca\x01", static_cast<char>(text.size()), text);
  };
  const std::string file = WriteModel(Small().model) + function("a", "");
  EXPECT_EQ(Sentence(file + function("a", "")), "function F of the domain \"a\" is given twice");
  EXPECT_EQ(Sentence(file + function("b", "")), "");
  EXPECT_EQ(Sentence(file + function("a", "o")), "");
  EXPECT_EQ(Sentence(file + function("a", "o") + function("a", "o")),
            "function F of the domain \"a\" is given twice");
}

TEST(OnnxRead, InitializersAreWhatTheirInputsAre) {
  const auto sentence = [](ElementType type, const Shape& shape) {
    ModelMaker maker = Small();
    return Sentence(WriteModel(maker.Input("w", type, shape).model));
  };
  EXPECT_EQ(sentence(ElementType::kFloat, {2, 1}), "");
  EXPECT_EQ(sentence(ElementType::kFloat, {-1, 1}), "");
  EXPECT_EQ(sentence(ElementType::kFloat, {3, 1}),
            "initializer \"w\" is 2x1 of float; the input of its name is declared as 3x1 of float");
  EXPECT_EQ(sentence(ElementType::kFloat, {2}),
            "initializer \"w\" is 2x1 of float; the input of its name is declared as 2 of float");
  EXPECT_EQ(sentence(ElementType::kInt32, {2, 1}),
            "initializer \"w\" is 2x1 of float; the input of its name is declared as 2x1 of int32");
}

// As in onnxruntime: initializers first, then nodes, and the last definition counts.
TEST(OnnxRead, ConstantsOfOneName) {
  const auto constant = [](float value) { return TensorAttribute("value", Floats({1}, {value})); };
  ModelMaker maker(13);
  for (const char* const name : {"a", "b", "c", "d"}) maker.Weight(name, Floats({1}, {1}));
  for (const char* const name : {"a", "b", "c", "e"})
    maker.Node("Constant", {}, {name}, constant(2)).Node("Constant", {}, {name}, constant(3));
  maker.Node("Concat", {"a", "b", "c", "d", "e"}, {"y"}, IntAttribute("axis", 0)).Output("y");
  Model model;
  ASSERT_EQ(Read(WriteModel(maker.model), &model).message(), "");
  ASSERT_EQ(model.warnings.size(), 1u);
  EXPECT_EQ(model.warnings[0],
            "several constants are called \"a\", \"b\", \"c\" and 1 more; the last of a name counts, as in "
            "onnxruntime");
  std::unique_ptr<Program> program;
  ASSERT_EQ(Program::Create(model, &program).message(), "");
  std::vector<double> values;
  for (const ValueId id : program->nodes()[0].inputs)
    values.push_back(ToDoubles(*program->values()[id].initializer)[0]);
  EXPECT_EQ(values, (std::vector<double>{3, 3, 3, 1, 3}));
  // Only one of the other nodes' results exists.
  EXPECT_EQ(ProgramSentence(ModelMaker(13)
                                .Node("Constant", {}, {"c"}, constant(2))
                                .Node("RandomNormal", {}, {"c"})
                                .Output("c")),
            "\"c\" is written twice");
}

TEST(OnnxProgram, DirectionsOfScan) {
  for (const char* const name : {"scan_input_directions", "scan_output_directions"}) {
    ModelMaker maker(13);
    maker.Input("x", ElementType::kFloat, {2})
        .Node("Scan", {"x"}, {"y"}, GraphAttribute("body", GraphProto()), IntAttribute("num_scan_inputs", 1),
              IntsAttribute(name, {0, 7}))
        .Output("y");
    maker.model.graph.nodes[0].name = "steps";
    EXPECT_EQ(ProgramSentence(maker), StrCat("Scan-13 (\"steps\"): ", name, "[1] is 7; 0 and 1 are allowed"));
  }
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

// Another thread keeps replacing a file by a link that leads outside.
TEST_F(OnnxExternal, StaysInTheFolderWhileItChanges) {
  const std::filesystem::path file = folder_ / "model" / "inside.bin", link = folder_ / "model" / "link.bin";
  std::filesystem::create_symlink(folder_ / "outside.bin", link);
  ASSERT_EQ(Load("inside.bin", "8"), "");
  std::atomic<bool> done{false};
  std::thread swapper([&] {
    while (!done) renameat2(AT_FDCWD, file.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
  });
  int read = 0, refused = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < end) {
    Model model;
    const Status status = LoadModel((folder_ / "model" / "m.onnx").string(), &model);
    ++(status.ok() ? read : refused);
    // The file outside has 8 bytes: if it were opened, the error would be about its end.
    EXPECT_EQ(status.message().find("byte 8, the last"), std::string::npos) << status.message();
  }
  done = true;
  swapper.join();
  EXPECT_GT(read, 0);
  EXPECT_GT(refused, 0);
}

TEST(OpenInFolder, FollowsNothing) {
  const std::filesystem::path folder =
      std::filesystem::canonical(std::filesystem::temp_directory_path()) / StrCat("anydml_open_", ::getpid());
  std::filesystem::create_directories(folder / "a" / "b");
  std::ofstream(folder / "a" / "b" / "file") << "1";
  std::filesystem::create_symlink("file", folder / "a" / "b" / "link");
  std::filesystem::create_directory_symlink("b", folder / "a" / "c");
  const auto opens = [&](const char* file) {
    const int descriptor = OpenInFolder(folder / "a", folder / file, O_RDONLY | O_CLOEXEC);
    if (descriptor >= 0) close(descriptor);
    return descriptor >= 0;
  };
  EXPECT_TRUE(opens("a/b/file"));
  EXPECT_TRUE(opens("a"));
  EXPECT_FALSE(opens("a/b/link"));
  EXPECT_FALSE(opens("a/c/file"));
  EXPECT_FALSE(opens("a/b/none"));
  EXPECT_FALSE(opens("b"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace anydml::onnx
