// ID3DBlob with a text: the error message of the root signature functions.
#pragma once

#include <string>

#include "com/com_object.h"

namespace anydml::d3d12 {

class TextBlob final : public ComObject<ID3DBlob> {
 public:
  explicit TextBlob(std::string text) : text_(std::move(text)) {}
  LPVOID STDMETHODCALLTYPE GetBufferPointer() override { return text_.data(); }
  SIZE_T STDMETHODCALLTYPE GetBufferSize() override { return text_.size() + 1; }  // with the terminator

 private:
  std::string text_;
};

}  // namespace anydml::d3d12
