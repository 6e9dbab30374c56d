#include "ort/compare_for_tests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace anydml::ort {
namespace {

double Tolerance(onnx::ElementType type) {
  switch (type) {
    case onnx::ElementType::kFloat16:
    case onnx::ElementType::kBFloat16:
      return 1e-2;
    case onnx::ElementType::kFloat:
    case onnx::ElementType::kDouble:
      return 1e-3;
    default:
      return 0;
  }
}

std::string Difference(const onnx::Tensor& ours, const onnx::Tensor& theirs) {
  if (ours.type != theirs.type || ours.shape != theirs.shape)
    return StrCat(Name(ours.type), " ", onnx::ShapeToString(ours.shape), " instead of ", Name(theirs.type),
                  " ", onnx::ShapeToString(theirs.shape));
  const std::vector<double> a = ToDoubles(ours), b = ToDoubles(theirs);
  const double tolerance = Tolerance(ours.type);
  const double rounded = onnx::BitsOf(ours.type) == 8 && ours.type != onnx::ElementType::kBool ? 1 : 0;
  double largest = 0;
  for (const double value : b) largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (!(std::abs(a[i] - b[i]) <= rounded + tolerance * (1e-3 + 0.1 * largest + std::abs(b[i]))))
      return StrCat("element ", i, " is ", a[i], " instead of ", b[i]);
  }
  return "";
}

}  // namespace

std::string Difference(const Results& ours, const Results& theirs) {
  if (ours.size() != theirs.size()) return StrCat(ours.size(), " outputs instead of ", theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    const std::string wrong = Difference(ours[i], theirs[i]);
    if (!wrong.empty()) return StrCat("output ", i, ": ", wrong);
  }
  return "";
}

std::unique_ptr<Comparison> Comparison::Create(std::string* why_not) {
  static std::string why;
  static const Runtime* const runtime = Runtime::Open(&why).release();  // it stays
  *why_not = why;
  if (runtime == nullptr) return nullptr;
  std::unique_ptr<Comparison> comparison(new Comparison(runtime));
  const char* const backend = std::getenv("ANYDML_TEST_BACKEND");
  comparison->device_ = backend == nullptr || std::string(backend) == "cpu" ? "cpu host" : "cuda:0 host";
  EXPECT_EQ(runtime->Register("plugin", ANYDML_ORT_PLUGIN).message(), "");
  return comparison;
}

Comparison::~Comparison() { EXPECT_EQ(runtime_->Unregister("plugin").message(), ""); }

std::string Comparison::Name(Known known) {
  return known == Known::kSizes ? "with sizes" : known == Known::kRanks ? "with ranks" : "with types";
}

onnx::Model Comparison::With(const onnx::Model& model, Known known) {
  onnx::Model changed = model;
  for (onnx::ValueProto& input : changed.graph.inputs) {
    if (known == Known::kRanks) {
      for (int64_t& size : input.shape) size = -1;
      input.symbols.assign(input.shape.size(), "");
    }
    if (known == Known::kTypes) input.has_shape = false;
  }
  for (onnx::ValueProto& output : changed.graph.outputs) output.has_shape = false;
  return changed;
}

Comparison::Outcome Comparison::Run(const onnx::Model& model, const Inputs& inputs) const {
  std::unique_ptr<RuntimeSession> plain, plugged;
  Results expected, results;
  Status theirs = runtime_->Load(model, "", {}, {}, &plain);
  if (theirs.ok()) theirs = plain->Run(inputs, &expected);
  Outcome outcome;
  outcome.refused = theirs.message();
  if (!theirs.ok()) return outcome;  // nothing that could stop working
  outcome.claimed =
      runtime_->Load(model, device_, {}, {{"session.disable_cpu_ep_fallback", "1"}}, &plugged).ok();
  Status ours;
  if (!outcome.claimed) ours = runtime_->Load(model, device_, {{"fallback", "0"}}, {}, &plugged);
  if (ours.ok()) ours = plugged->Run(inputs, &results);
  outcome.difference = ours.ok() ? Difference(results, expected) : ours.message();
  return outcome;
}

}  // namespace anydml::ort
