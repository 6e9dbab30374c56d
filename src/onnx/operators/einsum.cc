// Sums of products, by labels of dimensions.
#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>

#include "onnx/host/host_numbers.h"
#include "onnx/lower/compose.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

using Labels = std::vector<int>;  // letters, and numbers from kEllipsis on for dimensions of "..."
constexpr int kEllipsis = 1000;

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
  std::map<int, int64_t> sizes;
};

Status ParseTerm(std::string_view text, size_t ellipsis_rank, Labels* out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text.substr(i).starts_with("...")) {
      for (size_t d = 0; d < ellipsis_rank; ++d) out->push_back(kEllipsis + static_cast<int>(d));
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[i])) != 0) {
      out->push_back(text[i]);
    } else {
      return InvalidArgument("equation: '", text.substr(0, 80), "'");
    }
  }
  return {};
}

size_t LetterCount(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return std::isalpha(c) != 0; }));
}

// Labels that occur once, in alphabetical order, after those of the ellipsis.
Labels ImpliedOutput(const std::vector<Labels>& inputs) {
  std::map<int, int> counts;
  for (const Labels& labels : inputs) {
    for (const int label : labels) ++counts[label];
  }
  Labels output;
  for (const auto& [label, count] : counts) {
    if (label >= kEllipsis) output.push_back(label);
  }
  for (const auto& [label, count] : counts) {
    if (label < kEllipsis && count == 1) output.push_back(label);
  }
  return output;
}

Status Parse(const std::string& text, const std::vector<Shape>& shapes, Equation* out) {
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (const char c : left) c == ',' ? (void)terms.emplace_back() : (void)(terms.back() += c);
  if (terms.size() != shapes.size())
    return InvalidArgument("equation: ", terms.size(), " terms for ", shapes.size(), " inputs");
  size_t ellipsis = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].find("...") == std::string::npos) continue;
    const size_t letters = LetterCount(terms[i]);
    if (letters > shapes[i].size())
      return InvalidArgument("equation: '", terms[i].substr(0, 80), "' for ", ShapeToString(shapes[i]));
    const size_t rank = shapes[i].size() - letters;
    if (ellipsis != 0 && rank != ellipsis) return Unsupported("ellipses of different ranks");
    ellipsis = rank;
  }
  for (size_t i = 0; i < terms.size(); ++i) {
    Labels& labels = out->inputs.emplace_back();
    ANYDML_RETURN_IF_ERROR(ParseTerm(terms[i], ellipsis, &labels));
    if (labels.size() != shapes[i].size())
      return InvalidArgument("equation: '", terms[i].substr(0, 80), "' for ", ShapeToString(shapes[i]));
    for (size_t d = 0; d < labels.size(); ++d) {
      const auto [found, added] = out->sizes.try_emplace(labels[d], shapes[i][d]);
      if (!added && found->second == 1) found->second = shapes[i][d];
      if (shapes[i][d] != 1 && found->second != shapes[i][d])
        return InvalidArgument("equation: sizes ", found->second, " and ", shapes[i][d], " of one label");
    }
  }
  if (arrow == std::string::npos) {
    out->output = ImpliedOutput(out->inputs);
  } else {
    ANYDML_RETURN_IF_ERROR(ParseTerm(std::string_view(text).substr(arrow + 2), ellipsis, &out->output));
  }
  for (size_t i = 0; i < out->output.size(); ++i) {
    const int label = out->output[i];
    const bool twice = std::count(out->output.begin(), out->output.end(), label) > 1;
    if (twice || !out->sizes.contains(label))
      return InvalidArgument("equation: the output has a label twice, or one of no input");
  }
  return {};
}

// All labels: those of the output first.
Labels AllLabels(const Equation& equation) {
  Labels all = equation.output;
  for (const auto& [label, size] : equation.sizes) {
    if (std::find(all.begin(), all.end(), label) == all.end()) all.push_back(label);
  }
  return all;
}

// The strides of an operand in the space of all labels: 0 for labels that it does not have, the sum for one
// that it has twice.
std::vector<int64_t> StridesIn(const Labels& all, const Labels& labels, const Shape& shape) {
  std::vector<int64_t> strides(all.size(), 0);
  int64_t stride = 1;
  for (size_t d = labels.size(); d-- > 0;) {
    const auto at = std::find(all.begin(), all.end(), labels[d]) - all.begin();
    if (shape[d] != 1) strides[static_cast<size_t>(at)] += stride;
    stride *= shape[d];
  }
  return strides;
}

std::vector<Shape> ShapesOf(const Lowering& n) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < n.inputs(); ++i) shapes.push_back(n.shape(i));
  return shapes;
}

// An operand in the space of some labels.
View ViewIn(const View& x, const Labels& space, const Labels& labels, const Shape& shape,
            const std::map<int, int64_t>& sizes) {
  const std::vector<int64_t> strides = StridesIn(space, labels, shape);
  View view = x;
  view.sizes.clear();
  view.strides.clear();
  for (size_t i = 0; i < space.size(); ++i) {
    view.sizes.push_back(static_cast<uint32_t>(sizes.at(space[i])));
    view.strides.push_back(static_cast<uint32_t>(strides[i]));
  }
  if (view.sizes.empty()) {
    view.sizes = {1};
    view.strides = {1};
  }
  return view;
}

bool Contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// {batch, rows, inner} x {batch, inner, columns}, each of them any number of labels.
Status AsProduct(Lowering& n, const Equation& e, View* y, Labels* order) {
  Labels batch, rows, columns, inner;
  for (const auto& [label, size] : e.sizes) {
    const bool a = Contains(e.inputs[0], label), b = Contains(e.inputs[1], label);
    (a && b ? (Contains(e.output, label) ? batch : inner) : a ? rows : columns).push_back(label);
  }
  for (const Labels* side : {&rows, &columns}) {
    for (const int label : *side) {
      if (!Contains(e.output, label)) return Unsupported("a label of one input alone that is summed up");
    }
  }
  const auto count = [&](const Labels& labels) {
    int64_t product = 1;
    for (const int label : labels) product *= e.sizes.at(label);
    return product;
  };
  const auto operand = [&](size_t input, const Labels& second, const Labels& third, View* out) -> Status {
    Labels space = batch;
    space.insert(space.end(), second.begin(), second.end());
    space.insert(space.end(), third.begin(), third.end());
    View packed;
    ANYDML_RETURN_IF_ERROR(
        Pack(n, ViewIn(n.In(input), space, e.inputs[input], n.shape(input), e.sizes), &packed));
    *out = Reshaped(packed, Shape{count(batch), count(second), count(third)});
    return {};
  };
  View a, b;
  ANYDML_RETURN_IF_ERROR(operand(0, rows, inner, &a));
  ANYDML_RETURN_IF_ERROR(operand(1, inner, columns, &b));
  *y = n.New(a.type, Shape{count(batch), count(rows), count(columns)});
  const DML_GEMM_OPERATOR_DESC desc{n.graph().In(a),
                                    n.graph().In(b),
                                    n.graph().In(nullptr),
                                    n.graph().Out(y),
                                    DML_MATRIX_TRANSFORM_NONE,
                                    DML_MATRIX_TRANSFORM_NONE,
                                    1,
                                    0,
                                    nullptr};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_GEMM, desc));
  *order = batch;
  order->insert(order->end(), rows.begin(), rows.end());
  order->insert(order->end(), columns.begin(), columns.end());
  return {};
}

// Products in the space of all labels, summed over those that the output does not have.
Status AsSum(Lowering& n, const Equation& e, View* y, Labels* order) {
  const Labels all = AllLabels(e);
  View product = ViewIn(n.In(0), all, e.inputs[0], n.shape(0), e.sizes);
  for (size_t i = 1; i < e.inputs.size(); ++i) {
    View next;
    ANYDML_RETURN_IF_ERROR(Binary(n, DML_OPERATOR_ELEMENT_WISE_MULTIPLY, product,
                                  ViewIn(n.In(i), all, e.inputs[i], n.shape(i), e.sizes), &next));
    product = next;
  }
  *order = e.output;
  if (all.size() == e.output.size()) return Pack(n, product, y);
  std::vector<uint32_t> axes(all.size() - e.output.size());
  std::iota(axes.begin(), axes.end(), static_cast<uint32_t>(e.output.size()));
  return Reduce(n, DML_REDUCE_FUNCTION_SUM, product, axes, y);
}

Status Lower(Lowering& n) {
  Equation e;
  ANYDML_RETURN_IF_ERROR(Parse(n.Text("equation", ""), ShapesOf(n), &e));
  View y;
  Labels order;
  const bool two = e.inputs.size() == 2 && IsFloat(n.type(0));
  const bool product = two && std::any_of(e.sizes.begin(), e.sizes.end(), [&](const auto& item) {
                         return Contains(e.inputs[0], item.first) && Contains(e.inputs[1], item.first) &&
                                !Contains(e.output, item.first);
                       });
  Status status = product ? AsProduct(n, e, &y, &order) : Unsupported("no product");
  if (!status.ok()) status = AsSum(n, e, &y, &order);
  ANYDML_RETURN_IF_ERROR(status);
  Shape made, wanted;
  for (const int label : order) made.push_back(e.sizes.at(label));
  for (const int label : e.output) wanted.push_back(e.sizes.at(label));
  View result;
  ANYDML_RETURN_IF_ERROR(Pack(n, ViewIn(Reshaped(y, made), e.output, order, made, e.sizes), &result));
  n.Return(0, result, n.type(0), wanted);
  return {};
}

// All combinations of labels, on the host: for types that DirectML does not multiply.
Status Evaluate(HostCall& call) {
  std::vector<Shape> shapes;
  std::vector<std::vector<double>> values;
  for (size_t i = 0; i < call.inputs(); ++i) {
    if (!call.Has(i) || !IsFloat(call.In(i).type)) return Unsupported("this type on the host");
    shapes.push_back(call.In(i).shape);
    values.push_back(ToDoubles(call.In(i)));
  }
  Equation e;
  ANYDML_RETURN_IF_ERROR(Parse(call.Text("equation", ""), shapes, &e));
  const Labels all = AllLabels(e);
  Shape space, shape;
  for (const int label : all) space.push_back(e.sizes.at(label));
  for (const int label : e.output) shape.push_back(e.sizes.at(label));
  const std::optional<int64_t> count = ElementCount(space);
  if (!count || *count > 64 * kMaxHostElements || ElementCount(shape).value_or(0) > host::kMostHostNumbers)
    return Unsupported("a large result on the host");
  std::vector<std::vector<int64_t>> strides;
  for (size_t i = 0; i < shapes.size(); ++i) strides.push_back(StridesIn(all, e.inputs[i], shapes[i]));
  const std::vector<int64_t> output_strides = StridesIn(all, e.output, shape);
  std::vector<double> sums(static_cast<size_t>(ElementCount(shape).value_or(0)), 0);
  std::vector<int64_t> at(all.size(), 0);
  const auto offset = [&at](const std::vector<int64_t>& by) {
    return static_cast<size_t>(std::inner_product(at.begin(), at.end(), by.begin(), int64_t{0}));
  };
  for (int64_t i = 0; i < *count; ++i) {
    double product = 1;
    for (size_t j = 0; j < values.size(); ++j) product *= values[j][offset(strides[j])];
    sums[offset(output_strides)] += product;
    for (size_t d = at.size(); d-- > 0 && ++at[d] == space[d];) at[d] = 0;
  }
  call.outputs[0] = FromDoubles(call.In(0).type, shape, sums);
  return {};
}

constexpr OperatorRow kEinsumRows[] = {
    {kOnnx, "Einsum", 1, 255, 0, Lower, Evaluate},
};

}  // namespace

std::span<const OperatorRow> EinsumOperators() { return kEinsumRows; }

}  // namespace anydml::onnx
