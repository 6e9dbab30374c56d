// Calls of onnxruntime's functions, and conversion of its errors to ours and back.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <vector>

#include "base/status.h"
#include "onnx/file/model.h"
#include "ort/abi.h"

namespace anydml::ort {

class Api {
 public:
  // `table` is that of kApiVersion; null if onnxruntime is older.
  explicit Api(Table table) : api_(table), ep_api_(table == nullptr ? nullptr : Call(kGetEpApi)) {}
  // For statuses only, which every version has.
  static Api Old(Table table) { return Api(table, nullptr); }
  bool exists() const { return api_ != nullptr; }

  template <In kTable, typename Result, typename... Parameters, typename... Arguments>
  Result Call(Entry<kTable, Result(Parameters...)> entry, Arguments... arguments) const {
    const Table table = kTable == In::kApi ? api_ : ep_api_;
    return reinterpret_cast<Result (*)(Parameters...)>(table[entry.position])(arguments...);
  }

  template <In kTable, typename... Parameters, typename... Arguments>
  Status Try(Entry<kTable, OrtStatus*(Parameters...)> entry, Arguments... arguments) const {
    return FromOrt(Call(entry, arguments...));
  }

  // Allocates as many as `count` returns; `get` fills them in.
  template <typename Item, typename Object>
  Status List(ApiEntry<OrtStatus*(const Object*, size_t*)> count,
              ApiEntry<OrtStatus*(const Object*, const Item**, size_t)> get, const Object* object,
              std::vector<const Item*>* out) const {
    size_t number = 0;
    ANYDML_RETURN_IF_ERROR(Try(count, object, &number));
    out->resize(number);
    return number == 0 ? Status() : Try(get, object, out->data(), number);
  }

  Status FromOrt(OrtStatus* status) const;  // releases it
  OrtStatus* ToOrt(const Status& status) const;

  // A tensor over the value's own memory.
  Status TensorOf(const OrtValue* value, onnx::Tensor* out) const;

  void Log(const OrtLogger* logger, OrtLoggingLevel level, const std::string& sentence) const;

 private:
  Api(Table api, Table ep_api) : api_(api), ep_api_(ep_api) {}

  Table api_;
  Table ep_api_;
};

// onnxruntime's objects for inputs and outputs, which are released with it.
class Values {
 public:
  explicit Values(const Api& api) : api_(api) {}
  ~Values();
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

  // A value over the tensor's own memory, which has to outlive it.
  Status AddOver(const onnx::Tensor& tensor);

  std::vector<OrtValue*> values;

 private:
  const Api& api_;
};

// No exception crosses the border.
template <typename Body>
OrtStatus* Guarded(const Api& api, Body&& body) noexcept {
  try {
    return api.ToOrt(body());
  } catch (const std::bad_alloc&) {
    return api.Call(kCreateStatus, kOrtEpFail, "AnyDML: out of memory");
  } catch (const std::exception& error) {
    return api.Call(kCreateStatus, kOrtEpFail, error.what());
  } catch (...) {
    return api.Call(kCreateStatus, kOrtEpFail, "AnyDML: an unknown failure");
  }
}

}  // namespace anydml::ort
