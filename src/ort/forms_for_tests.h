// Small models of one node, in all the forms that an operator has.
#pragma once

#include <string>
#include <vector>

#include "ort/runtime_for_tests.h"
#include "support/onnx_models.h"

namespace anydml::ort {

using onnx::ElementType;
using onnx::Shape;

struct Form {
  std::string name;
  onnx::Model model;
  Inputs inputs;
};
using Forms = std::vector<Form>;

// Numbers that are the same in every run; integers use the whole type, floats lie between -1 and 1.
onnx::Tensor Random(ElementType type, const Shape& shape, uint32_t seed);

// The names of a node's inputs and outputs are those that were given last: "" for one that is left out.
class FormMaker {
 public:
  explicit FormMaker(std::string name, int64_t opset = 17) : maker_(opset) { form_.name = std::move(name); }

  // Inputs of the model and the node: random floats, or the elements.
  FormMaker& In(const Shape& shape) { return In(ElementType::kFloat, shape); }
  FormMaker& In(ElementType type, const Shape& shape) { return In(Random(type, shape, Seed())); }
  FormMaker& In(onnx::Tensor tensor);
  // Constants.
  FormMaker& Weight(const Shape& shape) { return Weight(ElementType::kFloat, shape); }
  FormMaker& Weight(ElementType type, const Shape& shape) { return Weight(Random(type, shape, Seed())); }
  FormMaker& Weight(onnx::Tensor tensor);
  FormMaker& None(size_t count = 1);
  // Outputs; kUndefined is one that is left out.
  FormMaker& Out(std::vector<ElementType> types);

  template <typename... Attributes>
  Form Onnx(const std::string& type, Attributes... attributes) {
    maker_.Node(type, inputs_, outputs_, std::move(attributes)...);
    return Take(type);
  }
  template <typename... Attributes>
  Form Microsoft(const std::string& type, Attributes... attributes) {
    maker_.Microsoft(type, inputs_, outputs_, std::move(attributes)...);
    return Take(type);
  }

 private:
  uint32_t Seed() const { return static_cast<uint32_t>(inputs_.size()); }
  Form Take(const std::string& type);

  onnx::ModelMaker maker_;
  Form form_;
  std::vector<std::string> inputs_, outputs_;
};

// By what they compute.
Forms GroupQueryForms();
Forms MultiHeadForms();
Forms AttentionForms();
Forms RotaryForms();
Forms NormalizationForms();
Forms ExpertForms();
Forms MatrixForms();
Forms QuantizedForms();

// GroupQueryAttention whose batches, lengths and caches have names instead of sizes.
Form DecoderLayer();
// A decoder's cache, of which most is known, and rows for it, of which only the rank is.
Form DecoderCache();

}  // namespace anydml::ort
