// The fixture of the DirectML tests, and small operators for them.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <anydml.h>
#include <gtest/gtest.h>

#include "support/dml_harness.h"
#include "support/tensor.h"

namespace anydml::test {

// Sets an environment variable and restores it.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) {
    const char* old = std::getenv(name);
    if (old != nullptr) old_ = std::make_unique<std::string>(old);
    setenv(name, value, 1);
  }
  ~ScopedEnv() {
    if (old_ != nullptr) {
      setenv(name_, old_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::unique_ptr<std::string> old_;
};

// Every test must release all COM objects.
class DmlTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(AnyDmlGetLiveObjectCount(), 0u); }
  void TearDown() override {
    harness_.reset();
    EXPECT_EQ(AnyDmlGetLiveObjectCount(), 0u);
  }

  DmlHarness& h() {
    if (harness_ == nullptr) harness_ = std::make_unique<DmlHarness>();
    return *harness_;
  }
  DmlHarness& MakeHarness(DML_CREATE_DEVICE_FLAGS flags) {
    harness_ = std::make_unique<DmlHarness>(flags);
    return *harness_;
  }
  void DropHarness() { harness_.reset(); }

 private:
  std::unique_ptr<DmlHarness> harness_;
};

// There is one Direct3D device per adapter; a new one can be created only if the old one is removed.
inline void RemoveDirect3d(ID3D12Device* d3d) {
  ComPtr<ID3D12Device5> device;
  Check(d3d->QueryInterface(IID_PPV_ARGS(&device)), "QueryInterface(ID3D12Device5)");
  device->RemoveDevice();
}

// Expects that the device was removed with `reason`, and that the message contains `text`.
inline void ExpectRemoved(IDMLDevice* device, HRESULT reason, const std::string& text) {
  EXPECT_EQ(device->GetDeviceRemovedReason(), reason) << LastError();
  EXPECT_NE(LastError().find(text), std::string::npos) << LastError();
}

inline void ExpectFailure(HRESULT result, HRESULT expected, const std::string& text) {
  EXPECT_EQ(result, expected) << LastError();
  EXPECT_NE(LastError().find(text), std::string::npos) << LastError();
}

struct TopK {
  Tensor input;
  Tensor values;
  Tensor indices;
  DML_TOP_K1_OPERATOR_DESC desc;

  TopK(std::vector<uint32_t> sizes, UINT axis, UINT k,
       DML_AXIS_DIRECTION direction = DML_AXIS_DIRECTION_DECREASING,
       DML_TENSOR_FLAGS input_flags = DML_TENSOR_FLAG_NONE)
      : input(DML_TENSOR_DATA_TYPE_FLOAT32, sizes, input_flags),
        values(DML_TENSOR_DATA_TYPE_FLOAT32, WithAxis(sizes, axis, k)),
        indices(DML_TENSOR_DATA_TYPE_UINT32, WithAxis(sizes, axis, k)),
        desc{input.desc(), values.desc(), indices.desc(), axis, k, direction} {}

  static std::vector<uint32_t> WithAxis(std::vector<uint32_t> sizes, UINT axis, UINT k) {
    if (axis < sizes.size()) sizes[axis] = k;
    return sizes;
  }
};

struct ScatterNd {
  Tensor input;
  Tensor indices;
  Tensor updates;
  Tensor output;
  DML_SCATTER_ND_OPERATOR_DESC desc;

  ScatterNd(std::vector<uint32_t> input_sizes, std::vector<uint32_t> indices_sizes,
            std::vector<uint32_t> updates_sizes, UINT input_dimensions, UINT indices_dimensions,
            std::vector<DML_TENSOR_FLAGS> flags = {DML_TENSOR_FLAG_NONE, DML_TENSOR_FLAG_NONE,
                                                   DML_TENSOR_FLAG_NONE})
      : input(DML_TENSOR_DATA_TYPE_FLOAT32, input_sizes, flags[0]),
        indices(DML_TENSOR_DATA_TYPE_UINT32, indices_sizes, flags[1]),
        updates(DML_TENSOR_DATA_TYPE_FLOAT32, updates_sizes, flags[2]),
        output(DML_TENSOR_DATA_TYPE_FLOAT32, input_sizes),
        desc{input.desc(),  indices.desc(),   updates.desc(),
             output.desc(), input_dimensions, indices_dimensions} {}

  // The page's example, in its legal form.
  static ScatterNd Page(std::vector<DML_TENSOR_FLAGS> flags = {DML_TENSOR_FLAG_NONE, DML_TENSOR_FLAG_NONE,
                                                               DML_TENSOR_FLAG_NONE}) {
    return ScatterNd({1, 8}, {4, 1}, {1, 4}, 1, 2, std::move(flags));
  }
};

inline const std::vector<float> kPageInput = {1, 2, 3, 4, 5, 6, 7, 8};
inline const std::vector<uint32_t> kPageIndices = {4, 3, 1, 7};
inline const std::vector<float> kPageUpdates = {9, 10, 11, 12};
inline const std::vector<float> kPageOutput = {1, 11, 3, 10, 9, 6, 7, 12};

struct Identity {
  Tensor input;
  Tensor output;
  DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC desc;

  explicit Identity(std::vector<uint32_t> sizes, DML_TENSOR_FLAGS input_flags = DML_TENSOR_FLAG_NONE)
      : input(DML_TENSOR_DATA_TYPE_FLOAT32, sizes, input_flags),
        output(DML_TENSOR_DATA_TYPE_FLOAT32, sizes),
        desc{input.desc(), output.desc(), nullptr} {}
};

}  // namespace anydml::test
