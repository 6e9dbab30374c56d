// The .npy reader: any bytes must give an array or an error; an array must survive being written again.
#include "fuzz.h"

#include <cstring>

#include "client/values/npy.h"

namespace anydml::fuzz {
namespace {

using client::NpyArray;

Status Parse(std::span<const uint8_t> file, NpyArray* array) {
  const auto* bytes = reinterpret_cast<const std::byte*>(file.data());
  return client::ParseNpy("fuzz.npy", std::vector<std::byte>(bytes, bytes + file.size()), array);
}

void Run(std::span<const uint8_t> file) {
  NpyArray array;
  const Status status = Parse(file, &array);
  if (!status.ok()) {
    Require(status.message().starts_with("fuzz.npy: "), "an error without the file's name");
    return;
  }
  const TensorDesc& tensor = array.tensor;
  Require(tensor.rank >= 1 && tensor.rank <= kMaxDimensions, "a rank that no tensor has");
  Require(array.data.size() == tensor.total_bytes, "the data is not as long as the tensor");
  Require(tensor.total_bytes >= MinimumTotalBytes(tensor), "strides that lead outside the data");

  TensorDesc packed = tensor;
  SetPackedStrides(&packed);
  const std::string header = client::NpyHeader(packed);
  std::vector<uint8_t> written(header.begin(), header.end());
  const auto* elements = reinterpret_cast<const uint8_t*>(array.data.data());
  written.insert(written.end(), elements, elements + ElementCount(tensor) * (BitSize(tensor.type) / 8));
  NpyArray again;
  const Status read = Parse(written, &again);
  Require(read.ok(), "what was written cannot be read: " + read.message());
  Require(again.tensor.type == tensor.type && again.tensor.rank == tensor.rank &&
              again.tensor.sizes == packed.sizes && again.tensor.strides == packed.strides,
          "what was written has another type or shape");
  Require(again.data == array.data, "what was written has other data");
}

}  // namespace
}  // namespace anydml::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  anydml::fuzz::Run({data, size});
  return 0;
}
