#include "digits.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "anydml/cli/quantity.h"
#include "anydml/onnx/onnx_values.h"
#include "client/values/npy.h"
#include "onnx/run/session.h"

namespace anydml::client {
namespace {

constexpr size_t kSize = 16, kDigits = 10;
constexpr size_t kInARow = 5;  // pictures side by side

char Shade(std::byte ink) { return " .:+*#%@"[std::to_integer<unsigned>(ink) / 32]; }

void PrintPictures(std::span<const std::byte> pictures, size_t begin, size_t end) {
  for (size_t row = 0; row < kSize; ++row) {
    std::string line;
    for (size_t i = begin; i < end; ++i) {
      for (size_t column = 0; column < kSize; ++column) {
        line += Shade(pictures[(i * kSize + row) * kSize + column]);
      }
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::printf("  %s\n", line.c_str());
  }
}

// The pictures show the digits in order.
int PrintAnswers(std::span<const double> probabilities, size_t begin, size_t end) {
  int wrong = 0;
  std::string line = "  ";
  for (size_t i = begin; i < end; ++i) {
    const auto first = probabilities.begin() + static_cast<ptrdiff_t>(i * kDigits);
    const auto best = std::max_element(first, first + kDigits);
    const auto digit = static_cast<size_t>(best - first);
    if (digit != i % kDigits) ++wrong;
    char text[kSize + 3];
    std::snprintf(text, sizeof(text), "%-18s",
                  StrCat("     ", digit, " (", FormatNumber(*best * 100), " %)").c_str());
    line += text;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  std::printf("%s\n\n", line.c_str());
  return wrong;
}

}  // namespace

Status RunDigits(Session* session, int* wrong) {
  const std::string folder = ANYDML_DIGITS;
  auto model = std::make_unique<onnx::Model>();
  ANYDML_RETURN_IF_ERROR(onnx::LoadModel(folder + "/digits.onnx", model.get()));
  std::unique_ptr<onnx::ModelSession> digits;
  ANYDML_RETURN_IF_ERROR(onnx::ModelSession::Create(std::move(model), session, &digits));
  NpyArray pictures;
  ANYDML_RETURN_IF_ERROR(ReadNpy(folder + "/pictures.npy", &pictures));
  std::map<std::string, onnx::Tensor> inputs;
  ANYDML_RETURN_IF_ERROR(ToOnnxTensor(pictures, digits->inputs()[0], &inputs["pictures"]));

  std::vector<onnx::NamedResult> results;
  ANYDML_RETURN_IF_ERROR(digits->Run(inputs, &results));  // compiles
  results.clear();
  const auto begin = std::chrono::steady_clock::now();
  ANYDML_RETURN_IF_ERROR(digits->Run(inputs, &results));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  const std::vector<double> probabilities = onnx::ToDoubles(results[0].tensor);
  const size_t count = probabilities.size() / kDigits;
  std::printf("\nA trained model, examples/digits/digits.onnx:\n\n");
  for (size_t i = 0; i < count; i += kInARow) {
    const size_t end = std::min(i + kInARow, count);
    PrintPictures(pictures.data, i, end);
    *wrong += PrintAnswers(probabilities, i, end);
  }
  std::printf("%zu pictures in %s.\n", count, FormatSeconds(seconds).c_str());
  return {};
}

}  // namespace anydml::client
