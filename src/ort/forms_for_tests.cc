#include "ort/forms_for_tests.h"

#include <random>

namespace anydml::ort {

onnx::Tensor Random(ElementType type, const Shape& shape, uint32_t seed) {
  std::minstd_rand engine(seed + 1);
  const auto next = [&engine] { return static_cast<int64_t>(engine() >> 8); };
  const auto count = static_cast<size_t>(onnx::ElementCount(shape).value_or(0));
  if (onnx::IsFloat(type)) {
    std::vector<double> values(count);
    for (double& value : values) value = static_cast<double>(next() % 2001 - 1000) / 1000;
    return onnx::FromDoubles(type, shape, values);
  }
  if (onnx::BitsOf(type) < 8) {
    std::vector<std::byte> bytes(onnx::PackedBytes(type, shape).value_or(0));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(next() & 255);
    return onnx::MakeTensor(type, shape, bytes);
  }
  std::vector<int64_t> values(count);
  for (int64_t& value : values) value = type == ElementType::kBool ? next() & 1 : next();
  return onnx::FromInts(type, shape, values);
}

FormMaker& FormMaker::In(onnx::Tensor tensor) {
  const std::string name = StrCat("in", inputs_.size());
  maker_.Input(name, tensor.type, tensor.shape);
  form_.inputs[name] = std::move(tensor);
  inputs_.push_back(name);
  return *this;
}

FormMaker& FormMaker::Weight(onnx::Tensor tensor) {
  inputs_.push_back(StrCat("weight", inputs_.size()));
  maker_.Weight(inputs_.back(), std::move(tensor));
  return *this;
}

FormMaker& FormMaker::None(size_t count) {
  inputs_.insert(inputs_.end(), count, "");
  return *this;
}

FormMaker& FormMaker::Out(std::vector<ElementType> types) {
  for (const ElementType type : types) {
    outputs_.push_back(type == ElementType::kUndefined ? "" : StrCat("out", outputs_.size()));
    if (type != ElementType::kUndefined) maker_.Output(outputs_.back(), type);
  }
  return *this;
}

Form FormMaker::Take(const std::string& type) {
  form_.name = StrCat(type, ": ", form_.name);
  form_.model = std::move(maker_.model);
  return std::move(form_);
}

}  // namespace anydml::ort
