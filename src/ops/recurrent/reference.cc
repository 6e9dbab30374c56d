// The equations: one direction of one element of the batch after the other.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/half.h"
#include "kernel/scratch_layout.h"
#include "ops/common/coordinates.h"
#include "ops/numbers/bounded.h"
#include "ops/recurrent/problem.h"

namespace anydml {
namespace {

double ValueOf(double number) { return number; }
double ValueOf(const Bounded& number) { return number.value; }

// What a share of a softmax may be off, relatively: every power by a factor of e^error, and their sum.
[[maybe_unused]] double SoftmaxError(const Bounded* row, uint64_t count) {
  double most = 0;
  for (uint64_t i = 0; i < count; ++i) {
    most = std::max(most, row[i].error() + 0x1p-22 * std::fabs(row[i].value));
  }
  constexpr double kUlps = 8;  // of the powers and the quotient
  return std::expm1(2 * most) + 0x1p-24 * (static_cast<double>(count) + kUlps);
}

template <typename Number>
void Softmax(Number* row, uint64_t count) {
  const auto less = [](const Number& a, const Number& b) { return ValueOf(a) < ValueOf(b); };
  const double max = ValueOf(*std::max_element(row, row + count, less));
  double sum = 0;
  for (uint64_t i = 0; i < count; ++i) sum += std::exp(ValueOf(row[i]) - max);
  [[maybe_unused]] double relative = 0;
  if constexpr (std::is_same_v<Number, Bounded>) relative = SoftmaxError(row, count);
  for (uint64_t i = 0; i < count; ++i) {
    const double share = std::exp(ValueOf(row[i]) - max) / sum;
    if constexpr (std::is_same_v<Number, Bounded>) {
      row[i] = {share, std::min(1.0, relative * share + 0x1p-146), 1};
    } else {
      row[i] = share;
    }
  }
}

// NaN is the largest. Bounded numbers that may be the largest are 0 or 1.
template <typename Number>
void Hardmax(Number* row, uint64_t count) {
  uint64_t first = 0;
  for (uint64_t i = 1; i < count; ++i) {
    if (!std::isnan(ValueOf(row[first])) && !(ValueOf(row[i]) <= ValueOf(row[first]))) first = i;
  }
  if constexpr (std::is_same_v<Number, Bounded>) {
    const Bounded largest = row[first];
    const auto may_be = [&](const Bounded& x) {
      return x.value + x.error() >= largest.value - largest.error() && x.error() + largest.error() > 0;
    };
    const auto candidates = std::count_if(row, row + count, may_be);
    for (uint64_t i = 0; i < count; ++i) {
      const double error = candidates > 1 && may_be(row[i]) ? 1 : 0;
      row[i] = {i == first ? 1.0 : 0.0, error, 0};
    }
  } else {
    for (uint64_t i = 0; i < count; ++i) row[i] = i == first ? 1 : 0;
  }
}

// Number: double, or Bounded, where it stores how far results may be off.
template <typename Number>
class RecurrentReference final : public Kernel {
 public:
  explicit RecurrentReference(const RecurrentProblem& problem) : problem_(problem) {
    const uint64_t bytes = problem.units * sizeof(Number);
    hidden_ = layout_.Add("hidden state", bytes);
    cell_ = layout_.Add("cell state", bytes);
    sums_ = layout_.Add("sums", problem.gates() * bytes);
    reset_ = layout_.Add("reset state", bytes);
  }

  uint64_t temporary_bytes() const override { return layout_.bytes(); }

  Status Run(const KernelArguments& arguments) const override {
    for (uint32_t direction = 0; direction < problem_.directions; ++direction) {
      for (uint32_t element = 0; element < problem_.batch; ++element) {
        const Row row = {direction,
                         element,
                         arguments,
                         hidden_.template In<Number>(arguments.temporary),
                         cell_.template In<Number>(arguments.temporary),
                         sums_.template In<Number>(arguments.temporary),
                         reset_.template In<Number>(arguments.temporary)};
        RunRow(row);
      }
    }
    return {};
  }

 private:
  struct Row {
    uint32_t direction, element;
    const KernelArguments& arguments;
    Number *hidden, *cell, *sums, *reset;
  };

  // 0 if the tensor is absent.
  Number Get(const Row& row, uint32_t binding, const std::optional<TensorDesc>& tensor, uint64_t b,
             uint64_t c, uint64_t d) const {
    if (!tensor) return 0;
    const uint64_t at = b * tensor->strides[1] + c * tensor->strides[2] + d * tensor->strides[3];
    const std::byte* const data = row.arguments.inputs[binding].data;
    return double{tensor->type == DataType::kFloat16 ? ToFloat(Load<Half>(data, at)) : Load<float>(data, at)};
  }

  void Put(const Row& row, uint32_t binding, const std::optional<TensorDesc>& tensor, uint64_t time,
           uint64_t unit, const Number& number) const {
    if (!tensor) return;
    const uint64_t at = time * tensor->strides[0] + row.direction * uint64_t{tensor->strides[1]} +
                        row.element * uint64_t{tensor->strides[2]} + unit * tensor->strides[3];
    std::byte* const data = row.arguments.outputs[binding].data;
    if constexpr (std::is_same_v<Number, Bounded>) {
      Store(data, at, StoredError(number, tensor->type));
    } else {
      const float value =
          std::isnan(number) ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(number);
      if (tensor->type == DataType::kFloat16) {
        Store(data, at, ToHalf(value));
      } else {
        Store(data, at, value);
      }
    }
  }

  void RunRow(const Row& row) const {
    const RecurrentProblem& p = problem_;
    for (uint64_t unit = 0; unit < p.units; ++unit) {
      row.hidden[unit] = Get(row, 4, p.hidden_init, row.direction, row.element, unit);
      row.cell[unit] = Get(row, RecurrentProblem::kCellInit, p.cell_init, row.direction, row.element, unit);
    }
    uint64_t length = p.steps;
    if (p.lengths) {
      const std::byte* const lengths = row.arguments.inputs[p.lengths_binding()].data;
      length =
          std::min<uint64_t>(length, Load<uint32_t>(lengths, row.element * uint64_t{p.lengths->strides[3]}));
    }
    for (uint64_t step = 0; step < p.steps; ++step) {
      const bool ended = step >= length;
      const uint64_t time = ended ? step : TimeOf(step, length, p.IsBackward(row.direction));
      if (!ended) RunStep(row, time);
      for (uint64_t unit = 0; unit < p.units; ++unit) {
        Put(row, 0, p.sequence, time, unit, ended ? Number(0) : row.hidden[unit]);
      }
    }
    for (uint64_t unit = 0; unit < p.units; ++unit) {
      Put(row, 1, p.single, 0, unit, row.hidden[unit]);
      Put(row, 2, p.cell_single, 0, unit, row.cell[unit]);
    }
  }

  // The input times its weights, plus their bias.
  Number FromInput(const Row& row, uint64_t time, uint64_t at) const {
    Number sum = Get(row, 3, problem_.bias, 0, row.direction, at);
    for (uint64_t i = 0; i < problem_.inputs; ++i) {
      sum += Get(row, 0, problem_.input, time, row.element, i) *
             Get(row, 1, problem_.weight, row.direction, at, i);
    }
    return sum;
  }

  // A state times its weights, plus their bias.
  Number FromState(const Row& row, const Number* state, uint64_t at) const {
    Number sum = Get(row, 3, problem_.bias, 0, row.direction, problem_.gates() * problem_.units + at);
    for (uint64_t unit = 0; unit < problem_.units; ++unit) {
      sum += state[unit] * Get(row, 2, problem_.recurrence, row.direction, at, unit);
    }
    return sum;
  }

  // The cell state's contribution to a gate; 0 without peepholes.
  Number Peephole(const Row& row, uint32_t gate, uint64_t unit) const {
    if (!problem_.peephole) return 0;
    return row.cell[unit] * Get(row, RecurrentProblem::kPeephole, problem_.peephole, 0, row.direction,
                                gate * problem_.units + unit);
  }

  void Activate(const Row& row, uint32_t number, Number* numbers) const {
    const CellActivation& activation = problem_.activations[row.direction][number];
    for (uint64_t unit = 0; unit < problem_.units; ++unit) {
      for (const Instruction& i : activation.program.instructions) {
        numbers[unit] = Applied(i, numbers[unit]);
      }
    }
    if (activation.row == RowFunction::kSoftmax) Softmax(numbers, problem_.units);
    if (activation.row == RowFunction::kHardmax) Hardmax(numbers, problem_.units);
  }

  void RunStep(const Row& row, uint64_t time) const {
    const uint64_t units = problem_.units;
    // GRU's last gate sees the state through the second one.
    for (uint64_t at = 0; at < problem_.gates() * units; ++at) {
      row.sums[at] = FromInput(row, time, at);
      const bool later = problem_.kind == CellKind::kGru && at >= 2 * units;
      if (!later) row.sums[at] += FromState(row, row.hidden, at);
    }
    switch (problem_.kind) {
      case CellKind::kRnn:
        Activate(row, 0, row.sums);
        std::copy_n(row.sums, units, row.hidden);
        return;
      case CellKind::kLstm:
        return RunLstm(row);
      case CellKind::kGru:
        return RunGru(row);
    }
  }

  void RunLstm(const Row& row) const {
    const uint64_t units = problem_.units;
    Number *const i = row.sums, *const o = i + units, *const f = o + units, *const c = f + units;
    for (uint64_t unit = 0; unit < units; ++unit) {
      i[unit] += Peephole(row, 0, unit);
      f[unit] += Peephole(row, 2, unit);
    }
    Activate(row, 0, i);
    Activate(row, 0, f);
    Activate(row, 1, c);
    for (uint64_t unit = 0; unit < units; ++unit) {
      const Number forget = problem_.couples_input_and_forget ? Number(1) - i[unit] : f[unit];
      row.cell[unit] = forget * row.cell[unit] + i[unit] * c[unit];
      o[unit] += Peephole(row, 1, unit);
      row.hidden[unit] = row.cell[unit];
    }
    Activate(row, 0, o);
    Activate(row, 2, row.hidden);
    for (uint64_t unit = 0; unit < units; ++unit) row.hidden[unit] *= o[unit];
  }

  void RunGru(const Row& row) const {
    const uint64_t units = problem_.units;
    Number *const z = row.sums, *const r = z + units, *const h = r + units;
    Activate(row, 0, z);
    Activate(row, 0, r);
    for (uint64_t unit = 0; unit < units; ++unit) row.reset[unit] = r[unit] * row.hidden[unit];
    for (uint64_t unit = 0; unit < units; ++unit) {
      h[unit] += problem_.linear_before_reset ? r[unit] * FromState(row, row.hidden, 2 * units + unit)
                                              : FromState(row, row.reset, 2 * units + unit);
    }
    Activate(row, 1, h);
    for (uint64_t unit = 0; unit < units; ++unit) {
      row.hidden[unit] = (Number(1) - z[unit]) * h[unit] + z[unit] * row.hidden[unit];
    }
  }

  RecurrentProblem problem_;
  ScratchLayout layout_;
  ScratchLayout::Piece hidden_, cell_, sums_, reset_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateRecurrentReference(const RecurrentProblem& problem, const LowerContext&,
                                                       std::string*) {
  return std::make_unique<RecurrentReference<double>>(problem);
}

std::unique_ptr<const Kernel> CreateRecurrentErrors(const RecurrentProblem& problem) {
  return std::make_unique<RecurrentReference<Bounded>>(problem);
}

}  // namespace anydml
