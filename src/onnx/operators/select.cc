// Operators that select data, so that sizes depend on it; the host computes them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include "onnx/host/host.h"
#include "onnx/host/host_numbers.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

Status Compress(HostCall& call) {
  Tensor x = call.In(0);
  const std::vector<int64_t> condition = ToInts(call.In(1));
  if (BitsOf(x.type) < 8) return Unsupported(Name(x.type));
  uint32_t axis = 0;
  if (call.HasAttribute("axis")) {
    ANYDML_RETURN_IF_ERROR(ResolveAxis(call.Int("axis", 0), x.shape.size(), &axis));
  } else {
    x.shape = {x.count()};
  }
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < std::min<int64_t>(x.shape[axis], static_cast<int64_t>(condition.size())); ++i) {
    if (condition[static_cast<size_t>(i)] != 0) chosen.push_back(i);
  }
  Shape shape = x.shape;
  shape[axis] = static_cast<int64_t>(chosen.size());
  std::byte* target = nullptr;
  call.outputs[0] = MakeTensor(x.type, shape, &target);
  const int64_t rows = ElementCount(std::span(x.shape).first(axis)).value_or(0);
  const size_t bytes = static_cast<size_t>(ElementCount(std::span(x.shape).subspan(axis + 1)).value_or(0)) *
                       (BitsOf(x.type) / 8);
  for (int64_t row = 0; row < rows && bytes > 0; ++row) {
    for (const int64_t at : chosen) {
      std::memcpy(target, x.data.data() + static_cast<size_t>(row * x.shape[axis] + at) * bytes, bytes);
      target += bytes;
    }
  }
  return {};
}

// Integers with the order of the elements: NaNs come last, zeros are equal.
std::vector<int64_t> Keys(const Tensor& x) {
  std::vector<int64_t> keys = ToInts(x);
  if (x.type == ElementType::kUInt64) {
    for (int64_t& key : keys) key ^= INT64_MIN;
  }
  for (const double number : IsFloat(x.type) ? ToDoubles(x) : std::vector<double>()) {
    const int64_t bits = number == 0 ? 0 : std::bit_cast<int64_t>(number);
    keys.push_back(std::isnan(number) ? INT64_MAX : bits < 0 ? bits ^ INT64_MAX : bits);
  }
  return keys;
}

// Slices along an axis, or elements: the distinct ones, where each occurred first, which one each is, and how
// often.
Status Unique(HostCall& call) {
  Tensor x = call.In(0);
  const bool sorted = call.Int("sorted", 1) != 0;
  uint32_t axis = 0;
  if (call.HasAttribute("axis")) {
    ANYDML_RETURN_IF_ERROR(ResolveAxis(call.Int("axis", 0), x.shape.size(), &axis));
  } else {
    x.shape = {x.count()};
  }
  const std::vector<int64_t> values = Keys(x);
  if (values.size() != static_cast<size_t>(x.count())) return Unsupported(Name(x.type));
  if (x.shape[axis] > host::kMostHostNumbers) return Unsupported("a large input on the host");
  const auto size = static_cast<size_t>(x.shape[axis]);
  const auto rows = static_cast<size_t>(ElementCount(std::span(x.shape).first(axis)).value_or(0));
  const auto inner = static_cast<size_t>(ElementCount(std::span(x.shape).subspan(axis + 1)).value_or(0));
  std::map<std::vector<int64_t>, size_t> numbers;
  std::vector<size_t> first, inverse(size);
  std::vector<int64_t> counts;
  for (size_t i = 0; i < size; ++i) {
    std::vector<int64_t> slice;
    for (size_t row = 0; row < rows; ++row) {
      const auto at = values.begin() + static_cast<ptrdiff_t>((row * size + i) * inner);
      slice.insert(slice.end(), at, at + static_cast<ptrdiff_t>(inner));
    }
    const auto [found, added] = numbers.try_emplace(std::move(slice), first.size());
    if (added) first.push_back(i), counts.push_back(0);
    inverse[i] = found->second;
    ++counts[found->second];
  }
  std::vector<size_t> order(first.size());
  size_t next = 0;
  for (const auto& [slice, number] : numbers) order[next++] = number;
  if (!sorted) {
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  }
  std::vector<size_t> place(order.size());
  std::vector<int64_t> indices, inverses, ordered_counts;
  for (size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    indices.push_back(static_cast<int64_t>(first[order[i]]));
    ordered_counts.push_back(counts[order[i]]);
  }
  for (const size_t number : inverse) inverses.push_back(static_cast<int64_t>(place[number]));
  Shape shape = x.shape;
  shape[axis] = static_cast<int64_t>(order.size());
  const size_t bytes = inner * (BitsOf(x.type) / 8);
  std::byte* target = nullptr;
  Tensor different = MakeTensor(x.type, shape, &target);
  for (size_t row = 0; row < rows && bytes > 0; ++row) {
    for (const int64_t at : indices) {
      std::memcpy(target, x.data.data() + (row * size + static_cast<size_t>(at)) * bytes, bytes);
      target += bytes;
    }
  }
  const auto count = static_cast<int64_t>(order.size());
  const Tensor results[] = {different, Int64Tensor({count}, indices),
                            Int64Tensor({static_cast<int64_t>(size)}, inverses),
                            Int64Tensor({count}, ordered_counts)};
  for (size_t i = 0; i < call.outputs.size() && i < 4; ++i) call.outputs[i] = results[i];
  return {};
}

struct Box {
  double y1, x1, y2, x2;
};

double Overlap(const Box& a, const Box& b) {
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1),
               width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (!(height > 0) || !(width > 0)) return 0;
  const double both = height * width;
  const double all = (a.y2 - a.y1) * (a.x2 - a.x1) + (b.y2 - b.y1) * (b.x2 - b.x1) - both;
  return all > 0 ? both / all : 0;
}

// boxes {N, B, 4}, scores {N, C, B}, max_output_boxes_per_class, iou_threshold, score_threshold
Status NonMaxSuppression(HostCall& call) {
  const Shape &boxes_shape = call.In(0).shape, &scores_shape = call.In(1).shape;
  if (boxes_shape.size() != 3 || scores_shape.size() != 3 || boxes_shape[2] != 4 ||
      boxes_shape[1] != scores_shape[2] || boxes_shape[0] != scores_shape[0]) {
    return InvalidArgument("boxes ", ShapeToString(boxes_shape), " and scores ", ShapeToString(scores_shape));
  }
  const std::vector<double> boxes = ToDoubles(call.In(0)), scores = ToDoubles(call.In(1));
  if (boxes.size() != static_cast<size_t>(call.In(0).count()) ||
      scores.size() != static_cast<size_t>(call.In(1).count()))
    return Unsupported(Name(call.In(0).type), " and ", Name(call.In(1).type));
  const auto number = [&](size_t i, double otherwise) {
    const std::vector<double> values = call.Has(i) ? ToDoubles(call.In(i)) : std::vector<double>();
    return values.size() == 1 ? values[0] : otherwise;
  };
  const double most = number(2, 0), overlap = number(3, 0), least = number(4, -HUGE_VAL);
  const bool centers = call.Int("center_point_box", 0) != 0;
  const auto count = static_cast<size_t>(boxes_shape[1]), classes = static_cast<size_t>(scores_shape[1]);
  const auto box = [&](size_t batch, size_t i) -> Box {
    const double* const b = &boxes[(batch * count + i) * 4];
    if (centers) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
    return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
  };
  std::vector<int64_t> result;
  for (size_t batch = 0; batch < static_cast<size_t>(boxes_shape[0]); ++batch) {
    for (size_t c = 0; c < classes; ++c) {
      const double* const score = scores.data() + (batch * classes + c) * count;
      std::vector<size_t> order, kept;
      for (size_t i = 0; i < count; ++i) {
        if (score[i] > least) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(),
                       [score](size_t a, size_t b) { return score[a] > score[b]; });
      for (const size_t i : order) {
        if (static_cast<double>(kept.size()) >= most) break;
        const bool free = std::none_of(kept.begin(), kept.end(), [&](size_t k) {
          return Overlap(box(batch, i), box(batch, k)) > overlap;
        });
        if (!free) continue;
        kept.push_back(i);
        result.insert(result.end(),
                      {static_cast<int64_t>(batch), static_cast<int64_t>(c), static_cast<int64_t>(i)});
      }
    }
  }
  call.outputs[0] = Int64Tensor({static_cast<int64_t>(result.size() / 3), 3}, result);
  return {};
}

constexpr OperatorRow kSelectRows[] = {
    HostRow("Compress", 2, 2, Compress),
    HostRow("Unique", 1, 1, Unique),
    HostRow("NonMaxSuppression", 2, 5, NonMaxSuppression),
};

}  // namespace

std::span<const OperatorRow> SelectOperators() { return kSelectRows; }

}  // namespace anydml::onnx
