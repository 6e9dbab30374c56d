// LinearAttention on the host: a recurrence over the tokens, whose state is a matrix per head.
#include <cmath>

#include "onnx/host/host_numbers.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

struct LinearHeads {
  int64_t batch = 0, tokens = 0, queries = 0, keys = 0;  // the last two: numbers of heads
  int64_t key_size = 0, value_size = 0;
  bool gated = false, corrected = false;
  int64_t decays = 0, betas = 0;  // numbers per token
};

// query, key, value {batch, tokens, heads * size}, past_state, decay, beta
Status ResolveLinearHeads(const HostCall& call, LinearHeads* out) {
  LinearHeads& h = *out;
  const std::string rule = call.Text("update_rule", "gated_delta");
  h.gated = rule == "gated" || rule == "gated_delta";
  h.corrected = rule == "delta" || rule == "gated_delta";
  if (!h.gated && !h.corrected && rule != "linear") return Unsupported("update_rule ", rule.substr(0, 40));
  if (call.Has(4) != h.gated || call.Has(5) != h.corrected)
    return InvalidArgument("update_rule ", rule, " with decay or beta left out, or too many");
  for (size_t i = 0; i < call.inputs(); ++i) {
    if (call.Has(i) && (!IsFloat(call.In(i).type) || call.In(i).count() > host::kMostHostNumbers))
      return Unsupported(Name(call.In(i).type), " of such a size on the host");
  }
  const Shape &q = call.In(0).shape, &k = call.In(1).shape, &v = call.In(2).shape;
  h.queries = call.Int("q_num_heads", 0);
  h.keys = call.Int("kv_num_heads", 0);
  if (q.size() != 3 || k.size() != 3 || v.size() != 3 || h.keys < 1 || h.queries < 1 ||
      h.queries % h.keys != 0 || q[2] % h.queries != 0 || v[2] % h.keys != 0) {
    return InvalidArgument(h.queries, " and ", h.keys, " heads for query ", ShapeToString(q), ", key ",
                           ShapeToString(k), " and value ", ShapeToString(v));
  }
  h.batch = q[0];
  h.tokens = q[1];
  h.key_size = q[2] / h.queries;
  h.value_size = v[2] / h.keys;
  if (k != Shape{q[0], q[1], h.keys * h.key_size} || v[0] != q[0] || v[1] != q[1])
    return InvalidArgument("query ", ShapeToString(q), ", key ", ShapeToString(k), " and value ",
                           ShapeToString(v));
  const auto numbers = [&](size_t input, int64_t most, int64_t* count) {
    if (!call.Has(input)) return true;
    const Shape& shape = call.In(input).shape;
    if (shape.size() != 3 || shape[0] != q[0] || shape[1] != q[1]) return false;
    *count = shape[2];
    return *count == h.keys || *count == most;
  };
  if (!numbers(4, h.keys * h.key_size, &h.decays) || !numbers(5, 1, &h.betas))
    return InvalidArgument("decay or beta of another shape than query ", ShapeToString(q));
  const Shape state = {h.batch, h.keys, h.key_size, h.value_size};
  if (call.Has(3) && call.In(3).shape != state)
    return InvalidArgument("past_state ", ShapeToString(call.In(3).shape), "; it must be ",
                           ShapeToString(state));
  const std::optional<int64_t> count = ElementCount(state),
                               result = ElementCount(Shape{h.batch, h.tokens, h.queries, h.value_size});
  if (!count || !result || *count > host::kMostHostNumbers || *result > host::kMostHostNumbers)
    return Unsupported("a large result on the host");
  return {};
}

// One token of one head: the state decays, its value for the key is corrected, and the new value is added.
void Update(const LinearHeads& h, const double* key, const double* value, const double* decay, double beta,
            double* state, std::vector<double>* written) {
  if (h.gated) {
    const bool each = h.decays != h.keys;
    for (int64_t d = 0; d < h.key_size; ++d) {
      const double kept = std::exp(decay[each ? d : 0]);
      for (int64_t m = 0; m < h.value_size; ++m) state[d * h.value_size + m] *= kept;
    }
  }
  written->assign(value, value + h.value_size);
  if (h.corrected) {
    for (int64_t d = 0; d < h.key_size; ++d) {
      for (int64_t m = 0; m < h.value_size; ++m)
        (*written)[static_cast<size_t>(m)] -= state[d * h.value_size + m] * key[d];
    }
    for (double& x : *written) x *= beta;
  }
  for (int64_t d = 0; d < h.key_size; ++d) {
    for (int64_t m = 0; m < h.value_size; ++m)
      state[d * h.value_size + m] += key[d] * (*written)[static_cast<size_t>(m)];
  }
}

Status LinearAttention(HostCall& call) {
  LinearHeads h;
  ANYDML_RETURN_IF_ERROR(ResolveLinearHeads(call, &h));
  const std::vector<double> q = ToDoubles(call.In(0)), k = ToDoubles(call.In(1)), v = ToDoubles(call.In(2));
  std::vector<double> decay, beta, written;
  if (h.gated) decay = ToDoubles(call.In(4));
  if (h.corrected) beta = ToDoubles(call.In(5));
  std::vector<double> states(static_cast<size_t>(h.batch * h.keys * h.key_size * h.value_size));
  if (call.Has(3)) states = ToDoubles(call.In(3));
  const float given = call.Float("scale", 0);
  const double scale = given == 0 ? 1 / std::sqrt(static_cast<double>(h.key_size)) : given;
  const Shape shape = {h.batch, h.tokens, h.queries * h.value_size};
  std::vector<double> result(static_cast<size_t>(h.batch * h.tokens * h.queries * h.value_size));
  const int64_t group = h.queries / h.keys;
  const bool each = h.gated && h.decays != h.keys;
  // Without a state there may be any number of heads and tokens, and there is nothing to do.
  const int64_t rows = states.empty() ? 0 : h.batch * h.tokens;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t head = 0; head < h.keys; ++head) {
      double* const state = states.data() + (row / h.tokens * h.keys + head) * h.key_size * h.value_size;
      const double* const forget =
          h.gated ? decay.data() + row * h.decays + head * (each ? h.key_size : 1) : nullptr;
      const double rate =
          h.corrected ? beta[static_cast<size_t>(row * h.betas + (h.betas > 1 ? head : 0))] : 1;
      Update(h, k.data() + (row * h.keys + head) * h.key_size,
             v.data() + (row * h.keys + head) * h.value_size, forget, rate, state, &written);
      for (int64_t i = head * group; i < (head + 1) * group; ++i) {
        const double* const query = q.data() + (row * h.queries + i) * h.key_size;
        double* const out = result.data() + (row * h.queries + i) * h.value_size;
        for (int64_t d = 0; d < h.key_size; ++d) {
          for (int64_t m = 0; m < h.value_size; ++m) out[m] += scale * query[d] * state[d * h.value_size + m];
        }
      }
    }
  }
  call.outputs[0] = FromDoubles(call.In(0).type, shape, result);
  if (call.outputs.size() > 1)
    call.outputs[1] =
        FromDoubles(call.In(call.Has(3) ? 3 : 0).type, {h.batch, h.keys, h.key_size, h.value_size}, states);
  return {};
}

constexpr OperatorRow kLinearAttentionRows[] = {
    HostRow("LinearAttention", 3, 6, LinearAttention),
};

}  // namespace

std::span<const OperatorRow> LinearAttentionOperators() { return kLinearAttentionRows; }

}  // namespace anydml::onnx
