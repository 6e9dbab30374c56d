// All of ONNX's node tests in onnxruntime, with and without the plugin: every model that ran without it runs
// with it and gives the same results.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "onnx/host/random.h"
#include "onnx/run/session.h"
#include "ort/compare_for_tests.h"

namespace anydml::ort {
namespace {

namespace fs = std::filesystem;
constexpr char kFolder[] = "/usr/share/libonnx-testdata/data";

// False if the model draws random numbers, has values that are not tensors of numbers, or has graphs that the
// test cannot write again.
bool IsPlain(const onnx::Model& model) {
  if (!model.functions.empty() || onnx::DrawsNumbers(model.graph)) return false;
  for (const auto* const values : {&model.graph.inputs, &model.graph.outputs}) {
    for (const onnx::ValueProto& value : *values) {
      if (value.kind != onnx::ValueKind::kTensor || onnx::BitsOf(value.type) == 0) return false;
    }
  }
  return true;
}

// Models for which AnyDML matches the test's expectations and onnxruntime does not (whether sizes are rounded
// before they become a scale; in which shape indices count), and models that draw random numbers.
bool DiffersFromOnnx(const std::string& name) {
  return name == "test_resize_downsample_scales_cubic_align_corners" ||
         name == "test_resize_downsample_scales_linear_align_corners" ||
         name == "test_maxunpool_export_with_output_shape" || name.starts_with("test_training_dropout");
}

// False if the folder has no such data set.
bool ReadInputs(const fs::path& data, const onnx::GraphProto& graph, Inputs* out) {
  if (!fs::is_directory(data)) return false;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const fs::path file = data / StrCat("input_", i, ".pb");
    if (!fs::exists(file)) break;
    onnx::Blob blob;
    onnx::Tensor tensor;
    if (!onnx::MapFile(file.string(), &blob).ok() || !onnx::ReadTensor(blob, &tensor).ok()) return false;
    (*out)[graph.inputs[i].name] = onnx::MakeTensor(
        tensor.type, tensor.shape, std::vector<std::byte>(tensor.data.begin(), tensor.data.end()));
  }
  return true;
}

std::vector<fs::path> Folders(const char* kind) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(kFolder) / kind, error)) {
    if (fs::exists(entry.path() / "model.onnx")) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

// Folders, and the minimum number of their models that AnyDML claims.
struct Suite {
  const char* folder;
  size_t claimed;
};
void PrintTo(const Suite& suite, std::ostream* out) { *out << suite.folder; }

class OrtNodeTests : public testing::TestWithParam<Suite> {};

TEST_P(OrtNodeTests, GiveTheSameWithThePlugin) {
  std::string why_not;
  const std::unique_ptr<Comparison> comparison = Comparison::Create(&why_not);
  if (comparison == nullptr) GTEST_SKIP() << why_not;
  const std::vector<fs::path> folders = Folders(GetParam().folder);
  if (folders.empty()) GTEST_SKIP() << "libonnx-testdata is not installed";
  size_t claimed = 0;
  for (const fs::path& folder : folders) {
    const std::string name = folder.filename().string();
    onnx::Model model;
    if (!onnx::LoadModel((folder / "model.onnx").string(), &model).ok() || !IsPlain(model)) continue;
    Inputs inputs;
    if (!ReadInputs(folder / "test_data_set_0", model.graph, &inputs)) continue;
    using Known = Comparison::Known;
    for (const Known known : {Known::kSizes, Known::kRanks, Known::kTypes}) {
      const Comparison::Outcome outcome = comparison->Run(Comparison::With(model, known), inputs);
      EXPECT_TRUE(outcome.difference.empty() || DiffersFromOnnx(name))
          << name << " " << Comparison::Name(known) << ": " << outcome.difference;
      claimed += outcome.claimed ? 1 : 0;
    }
  }
  EXPECT_GE(claimed, GetParam().claimed);
}

INSTANTIATE_TEST_SUITE_P(, OrtNodeTests,
                         testing::Values(Suite{"node", 1990}, Suite{"simple", 21},
                                         Suite{"pytorch-converted", 172}, Suite{"pytorch-operator", 64}),
                         [](const auto& info) {
                           std::string name = info.param.folder;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace anydml::ort
