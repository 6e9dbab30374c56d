#include "client/values/npy.h"

#include <bit>
#include <limits>
#include <optional>

#include "client/packed_elements.h"
#include "client/text.h"
#include "client/values/element_number.h"
#include "client/values/input_file.h"

namespace anydml::client {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are used as they are in the file");

constexpr std::string_view kMagic = "\x93NUMPY";
// NumPy writes a few hundred bytes; the field allows 4 GiB.
constexpr size_t kMaxHeaderBytes = 64 * 1024;

struct TypeName {
  const char* code;  // without the byte order
  DataType type;
};
constexpr TypeName kTypes[] = {
    {"f2", DataType::kFloat16}, {"f4", DataType::kFloat32}, {"f8", DataType::kFloat64},
    {"i1", DataType::kInt8},    {"i2", DataType::kInt16},   {"i4", DataType::kInt32},
    {"i8", DataType::kInt64},   {"u1", DataType::kUInt8},   {"u2", DataType::kUInt16},
    {"u4", DataType::kUInt32},  {"u8", DataType::kUInt64},  {"b1", DataType::kUInt8},
};

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<uint64_t>> shape;
};

// The subset of Python's literal syntax that a header uses. Every step checks the remaining length first, so
// that no input can lead it outside the text.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  // Null on success, otherwise what is wrong.
  const char* Parse(Header* header) {
    if (!Take('{')) return "does not start with '{'";
    while (!Take('}')) {
      const std::optional<std::string> key = String();
      if (!key || !Take(':')) return "is not a dictionary of quoted keys";
      if (const char* problem = Value(*key, header)) return problem;
      if (!Take(',') && !Next('}')) return "lacks a ',' or '}'";
    }
    SkipSpace();
    if (!rest_.empty()) return "goes on after the dictionary";
    if (!header->descr) return "has no 'descr'";
    if (!header->fortran_order) return "has no 'fortran_order'";
    if (!header->shape) return "has no 'shape'";
    return nullptr;
  }

 private:
  const char* Value(const std::string& key, Header* header) {
    if (key == "descr") {
      if (Next('[') || Next('(')) return "describes a structured dtype, which has no tensor data type";
      header->descr = String();
      return header->descr ? nullptr : "has a 'descr' that is not a string";
    }
    if (key == "fortran_order") {
      if (Take("True")) {
        header->fortran_order = true;
      } else if (Take("False")) {
        header->fortran_order = false;
      } else {
        return "has a 'fortran_order' that is neither True nor False";
      }
      return nullptr;
    }
    if (key == "shape") return Shape(header);
    return "has a key other than 'descr', 'fortran_order' and 'shape'";
  }

  const char* Shape(Header* header) {
    constexpr const char* kProblem = "has a 'shape' that is not a tuple of sizes";
    if (!Take('(')) return kProblem;
    std::vector<uint64_t> shape;
    while (!Take(')')) {
      const std::optional<uint64_t> size = Number();
      if (!size || (!Take(',') && !Next(')'))) return kProblem;
      shape.push_back(*size);
    }
    header->shape = std::move(shape);
    return nullptr;
  }

  // Digits; a number too large for 64 bits saturates, and fails as a size later.
  std::optional<uint64_t> Number() {
    SkipSpace();
    uint64_t value = 0;
    size_t digits = 0;
    for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits) {
      const uint64_t digit = static_cast<uint64_t>(rest_[digits] - '0');
      if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
          __builtin_add_overflow(value, digit, &value)) {
        value = std::numeric_limits<uint64_t>::max();
      }
    }
    if (digits == 0) return std::nullopt;
    rest_.remove_prefix(digits);
    Take('L');  // Python 2 wrote long integers this way
    return value;
  }

  std::optional<std::string> String() {
    SkipSpace();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return std::nullopt;
    const size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  void SkipSpace() {
    const size_t first = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(first == std::string_view::npos ? rest_.size() : first);
  }

  bool Next(char c) {
    SkipSpace();
    return !rest_.empty() && rest_[0] == c;
  }

  bool Take(char c) {
    if (!Next(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool Take(std::string_view word) {
    SkipSpace();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::string_view rest_;
};

Status FindType(std::string_view name, const std::string& descr, DataType* type) {
  const std::string quoted = Printable(descr);
  if (descr.size() < 2) return InvalidArgument(name, ": '", quoted, "' is not a dtype");
  const char order = descr[0];
  const std::string_view code = std::string_view(descr).substr(1);
  if (order == '>')
    return InvalidArgument(name, ": dtype '", quoted, "' is big-endian; store it as little-endian");
  if (code.starts_with('O'))
    return InvalidArgument(name, ": dtype '", quoted, "' holds Python objects, not numbers");
  if (order == '<' || order == '=' || order == '|') {
    for (const TypeName& candidate : kTypes) {
      if (code != candidate.code) continue;
      *type = candidate.type;
      return {};
    }
  }
  return InvalidArgument(name, ": dtype '", quoted,
                         "' has no tensor data type; f2, f4, f8, i1 to i8, u1 to u8 and b1 have one");
}

std::string ShapeToString(const std::vector<uint64_t>& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size() && i < 16; ++i) text += StrCat(i > 0 ? ", " : "", shape[i]);
  return text + (shape.size() > 16 ? ", ...)" : ")");
}

Status FillTensor(std::string_view name, const Header& header, Emptiness emptiness, TensorDesc* tensor) {
  ANYDML_RETURN_IF_ERROR(FindType(name, *header.descr, &tensor->type));
  const std::vector<uint64_t>& shape = *header.shape;
  if (shape.size() > kMaxDimensions) {
    return InvalidArgument(name, ": shape ", ShapeToString(shape), " has ", shape.size(),
                           " dimensions; tensors have at most ", kMaxDimensions);
  }
  uint64_t count = 1;
  for (uint64_t size : shape) {
    if (size == 0 && emptiness == Emptiness::kRefused) {
      return InvalidArgument(name, ": shape ", ShapeToString(shape),
                             " has a dimension of size 0; tensors cannot be empty");
    }
    if (__builtin_mul_overflow(count, size, &count) || count > std::numeric_limits<uint32_t>::max()) {
      return InvalidArgument(name, ": shape ", ShapeToString(shape),
                             " is too large; tensors have fewer than 2^32 elements");
    }
  }
  tensor->rank = shape.empty() ? 1 : static_cast<uint32_t>(shape.size());
  tensor->sizes[0] = 1;  // a 0-d array is the tensor {1}
  for (size_t i = 0; i < shape.size(); ++i) tensor->sizes[i] = static_cast<uint32_t>(shape[i]);
  SetPackedStrides(tensor);
  if (*header.fortran_order) {
    uint32_t stride = 1;
    for (uint32_t i = 0; i < tensor->rank; ++i) {
      tensor->strides[i] = stride;
      stride *= tensor->sizes[i];
    }
  }
  tensor->total_bytes = MinimumTotalBytes(*tensor);
  return {};
}

// Finds the dictionary; `data_start` is the offset of the elements.
Status FindHeader(std::string_view name, std::string_view file, std::string_view* text, size_t* data_start) {
  if (!file.starts_with(kMagic))
    return InvalidArgument(name, ": not a .npy file (it does not start with \\x93NUMPY)");
  const size_t version_end = kMagic.size() + 2;
  if (file.size() < version_end) return InvalidArgument(name, ": truncated: it ends inside the header");
  const unsigned major = static_cast<uint8_t>(file[kMagic.size()]);
  const unsigned minor = static_cast<uint8_t>(file[kMagic.size() + 1]);
  if (major < 1 || major > 3 || minor != 0) {
    return InvalidArgument(name, ": .npy version ", major, ".", minor, " is unknown; 1.0, 2.0 and 3.0 are");
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (file.size() < version_end + length_bytes)
    return InvalidArgument(name, ": truncated: it ends inside the header");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i)
    length |= size_t{static_cast<uint8_t>(file[version_end + i])} << (8 * i);
  if (length > kMaxHeaderBytes) {
    return InvalidArgument(name, ": the header claims ", length, " bytes; at most ", kMaxHeaderBytes,
                           " are read");
  }
  const size_t text_start = version_end + length_bytes;
  if (file.size() - text_start < length)
    return InvalidArgument(name, ": truncated: it ends inside the header");
  *text = file.substr(text_start, length);
  *data_start = text_start + length;
  return {};
}

}  // namespace

Status ParseNpy(std::string_view name, std::vector<std::byte> bytes, NpyArray* out, Emptiness emptiness) {
  std::string_view text;
  size_t data_start = 0;
  const std::string_view file(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  ANYDML_RETURN_IF_ERROR(FindHeader(name, file, &text, &data_start));
  Header header;
  if (const char* problem = HeaderParser(text).Parse(&header)) {
    return InvalidArgument(name, ": wrong header: it ", problem);
  }
  TensorDesc tensor;
  ANYDML_RETURN_IF_ERROR(FillTensor(name, header, emptiness, &tensor));
  out->scalar = header.shape->empty();

  const uint64_t expected = ElementCount(tensor) * (BitSize(tensor.type) / 8);
  const uint64_t present = bytes.size() - data_start;
  if (present < expected) {
    return InvalidArgument(name, ": truncated: ", ShapeToString(*header.shape), " of '",
                           Printable(*header.descr), "' needs ", expected, " bytes of data, the file has ",
                           present);
  }
  if (present > expected) {
    return InvalidArgument(name, ": ", present - expected, " bytes follow the data of ",
                           ShapeToString(*header.shape), " of '", Printable(*header.descr), "'");
  }
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(data_start));
  bytes.resize(tensor.total_bytes);
  out->tensor = tensor;
  out->data = std::move(bytes);
  return {};
}

Status ReadNpy(const InputPath& path, NpyArray* out, Emptiness emptiness) {
  std::vector<std::byte> bytes;
  ANYDML_RETURN_IF_ERROR(ReadFile(path, LargestBuffer(), &bytes));
  return ParseNpy(path.path, std::move(bytes), out, emptiness);
}

Status PackFourBits(std::string_view name, DataType type, std::vector<std::byte>* elements) {
  for (size_t i = 0; i < elements->size(); ++i) {
    const double number = ElementToDouble(Unpacked(type), elements->data(), i);
    if (number == ScalarToDouble(type, ScalarFromDouble(type, number))) continue;
    return InvalidArgument(name, ": element ", i, " is ", number, ", which ", Name(type), " cannot hold");
  }
  Pack(type, elements);
  return {};
}

Status ReadNpyAs(const std::string& path, DataType type, NpyArray* out, Emptiness emptiness) {
  ANYDML_RETURN_IF_ERROR(ReadNpy(path, out, emptiness));
  TensorDesc& tensor = out->tensor;
  if (tensor.type != Unpacked(type)) {
    return InvalidArgument(path, ": has ", Name(tensor.type), " elements; ", Name(type), " needs ",
                           Name(Unpacked(type)));
  }
  if (!IsFourBits(type)) return {};
  out->data.resize(ElementCount(tensor));  // without padding
  ANYDML_RETURN_IF_ERROR(PackFourBits(path, type, &out->data));
  tensor.type = type;
  tensor.total_bytes = MinimumTotalBytes(tensor);
  out->data.resize(tensor.total_bytes);
  return {};
}

std::string NpyHeader(const TensorDesc& tensor) {
  return NpyHeader(tensor.type, {tensor.sizes.begin(), tensor.sizes.begin() + tensor.rank});
}

std::string NpyHeader(DataType element_type, const std::vector<int64_t>& sizes) {
  const DataType type = Unpacked(element_type);
  const char* code = "";
  for (const TypeName& candidate : kTypes) {
    if (candidate.type != type) continue;
    code = candidate.code;
    break;
  }
  std::string text =
      StrCat("{'descr': '", BitSize(type) == 8 ? '|' : '<', code, "', 'fortran_order': False, 'shape': (");
  for (size_t i = 0; i < sizes.size(); ++i) text += StrCat(i > 0 ? ", " : "", sizes[i]);
  text += sizes.size() == 1 ? ",), }" : "), }";
  // The elements begin at a multiple of 64, as in NumPy's own files, for memory-mapped reading.
  const size_t prefix = kMagic.size() + 4;
  while ((prefix + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  return header + text;
}

}  // namespace anydml::client
