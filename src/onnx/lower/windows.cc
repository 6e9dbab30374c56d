#include "onnx/lower/windows.h"

#include <algorithm>

namespace anydml::onnx {
namespace {

// No model has larger sizes and counts; arithmetic on smaller ones cannot overflow.
constexpr int64_t kMost = int64_t{1} << 31;

Status ReadList(const NodeFacts& node, const char* name, size_t count, int64_t otherwise, int64_t least,
                std::vector<int64_t>* out) {
  *out = node.Ints(name);
  if (out->empty()) out->assign(count, otherwise);
  if (out->size() != count)
    return InvalidArgument(name, " has ", out->size(), " elements; ", count, " are needed");
  for (const int64_t value : *out) {
    if (value < least || value >= kMost) return InvalidArgument(name, " has an element ", value);
  }
  return {};
}

struct Lists {
  std::vector<int64_t> strides, dilations, pads;
  std::string auto_pad;
};

Status ReadLists(const NodeFacts& node, std::span<const int64_t> input, std::span<const int64_t> kernel,
                 Lists* out) {
  for (size_t i = 0; i < input.size(); ++i) {
    if (input[i] >= kMost || kernel[i] < 1 || kernel[i] >= kMost) {
      return InvalidArgument("a window of ", kernel[i], " over ", input[i], " elements");
    }
  }
  ANYDML_RETURN_IF_ERROR(ReadList(node, "strides", input.size(), 1, 1, &out->strides));
  ANYDML_RETURN_IF_ERROR(ReadList(node, "dilations", input.size(), 1, 1, &out->dilations));
  ANYDML_RETURN_IF_ERROR(ReadList(node, "pads", 2 * input.size(), 0, 0, &out->pads));
  ANYDML_RETURN_IF_ERROR(
      node.OneOf("auto_pad", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", ""}, &out->auto_pad));
  for (size_t i = 0; i < input.size(); ++i) {
    if (kernel[i] > kMost / out->dilations[i]) return InvalidArgument("a dilated window is too large");
  }
  return {};
}

void Add(int64_t kernel, int64_t stride, int64_t dilation, int64_t begin, int64_t end, int64_t output,
         Windows* out) {
  out->kernel.push_back(static_cast<UINT>(kernel));
  out->strides.push_back(static_cast<UINT>(stride));
  out->dilations.push_back(static_cast<UINT>(dilation));
  out->begin.push_back(static_cast<UINT>(begin));
  out->end.push_back(static_cast<UINT>(end));
  out->output.push_back(output);
}

}  // namespace

Status ResolveWindows(const NodeFacts& node, std::span<const int64_t> input, std::span<const int64_t> kernel,
                      Windows* out) {
  Lists lists;
  ANYDML_RETURN_IF_ERROR(ReadLists(node, input, kernel, &lists));
  const bool ceil = node.Int("ceil_mode", 0) != 0;
  for (size_t i = 0; i < input.size(); ++i) {
    const int64_t stride = lists.strides[i];
    const int64_t reach = (kernel[i] - 1) * lists.dilations[i] + 1;
    int64_t begin = lists.pads[i], end = lists.pads[i + input.size()], size = 0;
    if (lists.auto_pad == "SAME_UPPER" || lists.auto_pad == "SAME_LOWER") {
      size = (input[i] + stride - 1) / stride;
      const int64_t total = std::max<int64_t>(0, (size - 1) * stride + reach - input[i]);
      begin = lists.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
    } else {
      if (lists.auto_pad == "VALID") begin = end = 0;
      const int64_t room = input[i] + begin + end - reach;
      // With rounding up, there is one window even if less than a stride is missing.
      if (room < 0 && !(ceil && room > -stride))
        return InvalidArgument("a window of ", reach, " over ", input[i] + begin + end, " elements");
      size = (ceil ? room + stride - 1 : room) / stride + 1;
      // A window that would begin in the end padding does not count.
      if (ceil && (size - 1) * stride >= input[i] + begin) --size;
    }
    Add(kernel[i], stride, lists.dilations[i], begin, end, size, out);
  }
  return {};
}

Status ResolveTransposed(const NodeFacts& node, std::span<const int64_t> input,
                         std::span<const int64_t> kernel, Windows* out) {
  Lists lists;
  ANYDML_RETURN_IF_ERROR(ReadLists(node, input, kernel, &lists));
  std::vector<int64_t> output_padding, wanted = node.Ints("output_shape");
  ANYDML_RETURN_IF_ERROR(ReadList(node, "output_padding", input.size(), 0, 0, &output_padding));
  if (wanted.size() == input.size() + 2)
    wanted.erase(wanted.begin(), wanted.begin() + 2);  // including N and
                                                       // C
  if (!wanted.empty() && wanted.size() != input.size())
    return InvalidArgument("output_shape has ", wanted.size(), " elements");
  const bool same = lists.auto_pad == "SAME_UPPER" || lists.auto_pad == "SAME_LOWER";
  for (size_t i = 0; i < input.size(); ++i) {
    const int64_t stride = lists.strides[i];
    const int64_t reach = (kernel[i] - 1) * lists.dilations[i] + 1;
    const int64_t full = (input[i] - 1) * stride + reach + output_padding[i];
    int64_t begin = lists.pads[i], end = lists.pads[i + input.size()];
    if (lists.auto_pad == "VALID") begin = end = 0;
    int64_t size = full - begin - end;
    if (!wanted.empty() || same) {
      size = wanted.empty() ? input[i] * stride : wanted[i];
      const int64_t total = std::max<int64_t>(0, full - size);
      begin = lists.auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
    }
    if (size < 1 || size >= kMost) return InvalidArgument("an output of ", size, " elements");
    Add(kernel[i], stride, lists.dilations[i], begin, end, size, out);
  }
  return {};
}

Windows AtLeastTwo(Windows windows) {
  if (windows.rank() != 1) return windows;
  for (std::vector<UINT>* list : {&windows.kernel, &windows.strides, &windows.dilations})
    list->insert(list->begin(), 1);
  for (std::vector<UINT>* list : {&windows.begin, &windows.end}) list->insert(list->begin(), 0);
  windows.output.insert(windows.output.begin(), 1);
  return windows;
}

View WithHeight(const View& view) {
  if (view.rank() != 3) return view;
  View result = view;
  result.sizes.insert(result.sizes.begin() + 2, 1);
  result.strides.insert(result.strides.begin() + 2, view.strides[2] * view.sizes[2]);
  return result;
}

}  // namespace anydml::onnx
