// Memory use of a model with large weights; graphs that are compiled in pieces give the same results.
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "base/sanitizers.h"
#include "onnx/file/write_model.h"
#include "support/onnx_run.h"

namespace anydml::onnx {
namespace {

constexpr int64_t kSize = 1792;
constexpr int kLayers = 16;
constexpr uint64_t kWeightBytes = kLayers * kSize * kSize * sizeof(float);  // 206 MB

// "VmHWM" or "VmRSS", in bytes.
uint64_t ReadMemory(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return std::stoull(line.substr(field.size() + 1)) << 10;
  }
  return 0;
}

// Resets the peak to the present value; false if the system does not support it.
bool ForgetPeak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5";
  file.close();
  return file.good() && ReadMemory("VmHWM") < ReadMemory("VmRSS") + (uint64_t{1} << 20);
}

// Matrices that move element r to r + shift.
Tensor Rotation(int64_t shift) {
  std::byte* data = nullptr;
  Tensor tensor = MakeTensor(ElementType::kFloat, {kSize, kSize}, &data);
  auto* const numbers = reinterpret_cast<float*>(data);
  for (int64_t row = 0; row < kSize; ++row) numbers[row * kSize + (row + shift) % kSize] = 1;
  return tensor;
}

// Layers, each pair with a residual connection: x + rotate(rotate(x)).
void WriteLargeModel(const std::string& path) {
  ModelMaker maker(13);
  maker.Input("x0", ElementType::kFloat, {2, kSize});
  for (int i = 0; i < kLayers; ++i) {
    const std::string number = std::to_string(i);
    maker.Weight("w" + number, Rotation(i % 3));
    maker.Node("MatMul", {(i % 2 == 0 ? "x" : "y") + std::to_string(i / 2), "w" + number},
               {(i % 2 == 0 ? "y" : "z") + std::to_string(i / 2)});
    if (i % 2 == 0) continue;
    const std::string block = std::to_string(i / 2);
    maker.Node("Add", {"x" + block, "z" + block}, {"x" + std::to_string(i / 2 + 1)});
  }
  maker.Output("x" + std::to_string(kLayers / 2));
  std::ofstream(path, std::ios::binary) << WriteModel(maker.model);
}

std::vector<double> Expected(std::vector<double> x) {
  for (int i = 0; i < kLayers; i += 2) {
    const size_t shift = static_cast<size_t>(i % 3 + (i + 1) % 3);
    std::vector<double> next = x;
    for (size_t at = 0; at < x.size(); ++at) {
      const size_t row = at / kSize * kSize;
      next[row + (at - row + shift) % kSize] += x[at];
    }
    x = std::move(next);
  }
  return x;
}

TEST_F(OnnxRun, WeightsAreInMemoryOnce) {
  const std::string path = testing::TempDir() + "/anydml_large_" + std::to_string(getpid()) + ".onnx";
  WriteLargeModel(path);
  std::vector<double> x(2 * kSize);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 7);
  const std::vector<double> expected = Expected(x);
  const bool measured = ForgetPeak() && !kAddressSanitizer && !kThreadSanitizer;
  const uint64_t before = ReadMemory("VmRSS");

  auto model = std::make_unique<Model>();
  ASSERT_EQ(LoadModel(path, model.get()).message(), "");
  std::remove(path.c_str());  // the mapping stays
  ASSERT_EQ(ModelSession::Create(std::move(model), device_.get(), &session_).message(), "");
  EXPECT_EQ(Run({{"x0", Floats({2, kSize}, x)}}), expected);
  EXPECT_EQ(Run({{"x0", Floats({2, kSize}, x)}}), expected);
  if (!measured) GTEST_SKIP() << "the peak cannot be measured here";
  EXPECT_LE(ReadMemory("VmHWM") - before, kWeightBytes + kWeightBytes * 3 / 10 + (uint64_t{50} << 20));
}

}  // namespace
}  // namespace anydml::onnx
