// Attention of onnxruntime's language models.
#include "ort/forms_for_tests.h"

namespace anydml::ort {
namespace {

using onnx::Attribute;
using onnx::FloatAttribute;
using onnx::Floats;
using onnx::IntAttribute;
using onnx::Ints;
using onnx::TextAttribute;
using onnx::Typed;

constexpr ElementType kNone = ElementType::kUndefined, kF32 = ElementType::kFloat,
                      kF16 = ElementType::kFloat16, kI32 = ElementType::kInt32, kU8 = ElementType::kUInt8,
                      kI8 = ElementType::kInt8;

// A decoder's step: 2 prompts, 4 heads of 16 over 2 of keys, 3 new tokens behind `past`.
struct GroupQuery {
  std::string name;
  int64_t length = 3, past = 0;
  bool packed = false, rotary = false, positions = false, bias = false, sink = false, norm = false;
  ElementType type = kF32;
  ElementType cache = kNone;  // quantised
  std::vector<ElementType> outputs = {kF32, kF32, kF32};
  std::vector<Attribute> attributes = {};

  Form Make() const {
    const int64_t batch = 2, total = past + length;
    const ElementType stored = cache == kNone ? type : cache;
    FormMaker maker(name);
    if (packed) {
      maker.In(type, {batch, length, 8 * 16}).None(2);
    } else {
      maker.In(type, {batch, length, 64}).In(type, {batch, length, 32}).In(type, {batch, length, 32});
    }
    const int64_t width = cache == kU8 ? 8 : 16;  // two numbers of 4 bits in a byte
    for (int i = 0; i < 2; ++i) maker.In(stored, {batch, 2, past, width});
    maker.In(Typed(kI32, {batch}, {total - 1, total - 1})).In(Typed(kI32, {}, {total}));
    rotary ? maker.Weight(type, {32, 8}).Weight(type, {32, 8}) : maker.None(2);
    std::vector<int64_t> at;
    for (int64_t i = 0; i < batch * length; ++i) at.push_back(past + i % length);
    positions ? maker.In(Ints({batch, length}, at)) : maker.None();
    bias ? maker.In(type, {1, 1, length, total}) : maker.None();
    sink ? maker.Weight(type, {4}) : maker.None();
    cache != kNone ? maker.Weight(Floats({1}, {0.02})).Weight(Floats({1}, {0.02})) : maker.None(2);
    if (norm) maker.Weight(type, {16}).Weight(type, {16});
    std::vector<ElementType> types = outputs;
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i] != kNone) types[i] = i == 1 || i == 2 ? stored : type;
    }
    maker.Out(types);
    Form form = maker.Microsoft("GroupQueryAttention", IntAttribute("num_heads", 4),
                                IntAttribute("kv_num_heads", 2), IntAttribute("do_rotary", rotary ? 1 : 0));
    auto& given = form.model.graph.nodes[0].attributes;
    given.insert(given.end(), attributes.begin(), attributes.end());
    return form;
  }
};

}  // namespace

Forms GroupQueryForms() {
  const std::vector<GroupQuery> all = {
      {.name = "a prompt"},
      {.name = "a token", .length = 1, .past = 5},
      {.name = "in float16", .length = 1, .past = 5, .type = kF16},
      {.name = "packed", .packed = true},
      {.name = "rotary", .length = 1, .past = 5, .rotary = true},
      {.name = "packed, rotary", .length = 1, .past = 5, .packed = true, .rotary = true},
      {.name = "interleaved", .rotary = true, .attributes = {IntAttribute("rotary_interleaved", 1)}},
      {.name = "position_ids", .rotary = true, .positions = true},
      {.name = "attention_bias", .length = 1, .past = 5, .bias = true},
      {.name = "softcap", .attributes = {FloatAttribute("softcap", 5)}},
      {.name = "scale", .attributes = {FloatAttribute("scale", 0.5)}},
      {.name = "a window", .length = 1, .past = 5, .attributes = {IntAttribute("local_window_size", 3)}},
      {.name = "smooth_softmax", .attributes = {IntAttribute("smooth_softmax", 1)}},
      {.name = "smooth_softmax, a token",
       .length = 1,
       .past = 5,
       .attributes = {IntAttribute("smooth_softmax", 1)}},
      {.name = "head_sink", .sink = true},
      {.name = "head_sink in float16", .length = 1, .past = 5, .sink = true, .type = kF16},
      {.name = "output_qk before softmax",
       .outputs = {kF32, kF32, kF32, kF32},
       .attributes = {IntAttribute("qk_output", 1)}},
      {.name = "output_qk behind softmax",
       .outputs = {kF32, kF32, kF32, kF32},
       .attributes = {IntAttribute("qk_output", 2)}},
      {.name = "q_norm and k_norm", .norm = true},
      {.name = "q_norm and k_norm, rotary", .length = 1, .past = 5, .rotary = true, .norm = true},
      {.name = "a cache of INT8",
       .length = 1,
       .past = 4,
       .cache = kI8,
       .attributes = {TextAttribute("k_quant_type", "PER_TENSOR"),
                      TextAttribute("v_quant_type", "PER_TENSOR"), IntAttribute("kv_cache_bit_width", 8)}},
      {.name = "a cache of INT4",
       .length = 1,
       .past = 4,
       .cache = kU8,
       .attributes = {TextAttribute("k_quant_type", "PER_TENSOR"),
                      TextAttribute("v_quant_type", "PER_TENSOR"), IntAttribute("kv_cache_bit_width", 4)}},
  };
  Forms forms;
  for (const GroupQuery& each : all) forms.push_back(each.Make());
  return forms;
}

// 2 sequences of 3 tokens, 4 heads of 8.
Forms MultiHeadForms() {
  const char* const name = "MultiHeadAttention";
  const Attribute heads = IntAttribute("num_heads", 4);
  const Shape x = {2, 3, 32}, past = {2, 4, 5, 8};
  Forms forms;
  forms.push_back(FormMaker("plain").In(x).In(x).In(x).Out({kF32}).Microsoft(name, heads));
  forms.push_back(FormMaker("keys of another length")
                      .In(x)
                      .In({2, 5, 32})
                      .In({2, 5, 32})
                      .Out({kF32})
                      .Microsoft(name, heads));
  forms.push_back(FormMaker("bias").In(x).In(x).In(x).Weight({96}).Out({kF32}).Microsoft(name, heads));
  forms.push_back(FormMaker("packed q, k, v").In({2, 3, 4, 3, 8}).Out({kF32}).Microsoft(name, heads));
  forms.push_back(FormMaker("packed k, v").In(x).In({2, 5, 4, 2, 8}).Out({kF32}).Microsoft(name, heads));
  forms.push_back(FormMaker("keys with heads")
                      .In(x)
                      .In({2, 4, 5, 8})
                      .In({2, 4, 5, 8})
                      .Out({kF32})
                      .Microsoft(name, heads));
  forms.push_back(FormMaker("key_padding_mask")
                      .In(x)
                      .In(x)
                      .In(x)
                      .None()
                      .In(Typed(kI32, {2, 3}, {1, 1, 0, 1, 1, 1}))
                      .Out({kF32})
                      .Microsoft(name, heads));
  forms.push_back(FormMaker("key_padding_mask of lengths")
                      .In(x)
                      .In(x)
                      .In(x)
                      .None()
                      .In(Typed(kI32, {2}, {2, 3}))
                      .Out({kF32})
                      .Microsoft(name, heads));
  forms.push_back(FormMaker("attention_bias")
                      .In(x)
                      .In(x)
                      .In(x)
                      .None(2)
                      .In({1, 4, 3, 3})
                      .Out({kF32})
                      .Microsoft(name, heads));
  forms.push_back(FormMaker("attention_bias for all heads")
                      .In(x)
                      .In(x)
                      .In(x)
                      .None(2)
                      .In({2, 1, 3, 3})
                      .Out({kF32})
                      .Microsoft(name, heads));
  forms.push_back(FormMaker("past and present")
                      .In(x)
                      .In(x)
                      .In(x)
                      .None(3)
                      .In(past)
                      .In(past)
                      .Out({kF32, kF32, kF32})
                      .Microsoft(name, heads));
  forms.push_back(
      FormMaker("present alone").In(x).In(x).In(x).Out({kF32, kF32, kF32}).Microsoft(name, heads));
  forms.push_back(FormMaker("unidirectional")
                      .In(x)
                      .In(x)
                      .In(x)
                      .Out({kF32})
                      .Microsoft(name, heads, IntAttribute("unidirectional", 1)));
  forms.push_back(
      FormMaker("scale").In(x).In(x).In(x).Out({kF32}).Microsoft(name, heads, FloatAttribute("scale", 0.1f)));
  forms.push_back(FormMaker("qk").In(x).In(x).In(x).Out({kF32, kNone, kNone, kF32}).Microsoft(name, heads));
  forms.push_back(FormMaker("all outputs")
                      .In(x)
                      .In(x)
                      .In(x)
                      .None(3)
                      .In(past)
                      .In(past)
                      .Out({kF32, kF32, kF32, kF32})
                      .Microsoft(name, heads));
  const Shape token = {2, 1, 32}, cache = {2, 4, 8, 8};
  const Attribute shared = IntAttribute("past_present_share_buffer", 1);
  const onnx::Tensor length = Typed(kI32, {1}, {5}), beams = Typed(kI32, {1}, {1});
  const onnx::Tensor indirection = Typed(kI32, {2, 1, 8}, std::vector<int64_t>(16));
  forms.push_back(FormMaker("past_sequence_length")
                      .In(token)
                      .In(token)
                      .In(token)
                      .None(2)
                      .In(cache)
                      .In(cache)
                      .In(length)
                      .Out({kF32, kF32, kF32})
                      .Microsoft("DecoderMaskedMultiHeadAttention", heads, shared));
  forms.push_back(FormMaker("cache_indirection")
                      .In(token)
                      .In(token)
                      .In(token)
                      .None(2)
                      .In(cache)
                      .In(cache)
                      .In(length)
                      .In(beams)
                      .In(indirection)
                      .Out({kF32, kF32, kF32})
                      .Microsoft("DecoderMaskedMultiHeadAttention", heads, shared));
  forms.push_back(FormMaker("past_sequence_length")
                      .In(token)
                      .In(token)
                      .In(token)
                      .None(3)
                      .In(cache)
                      .In(cache)
                      .In(length)
                      .Out({kF32, kF32, kF32})
                      .Microsoft(name, heads));
  return forms;
}

Form DecoderLayer() {
  Form form = GroupQuery{.name = "as decoders have it", .length = 1, .past = 5, .rotary = true}.Make();
  const std::vector<std::vector<std::string>> sizes = {{"batch", "length", ""},
                                                       {"batch", "length", ""},
                                                       {"batch", "length", ""},
                                                       {"batch", "", "past", ""},
                                                       {"batch", "", "past", ""},
                                                       {"batch"},
                                                       {}};
  for (size_t i = 0; i < sizes.size(); ++i) {
    onnx::ValueProto& input = form.model.graph.inputs[i];
    input.symbols = sizes[i];
    for (size_t k = 0; k < sizes[i].size(); ++k) {
      if (!sizes[i][k].empty()) input.shape[k] = -1;
    }
  }
  return form;
}

Form DecoderCache() {
  Form form = FormMaker("a cache")
                  .In({2, 8, 5, 36})
                  .In({2, 8, 1, 36})
                  .Out({kF32})
                  .Onnx("Concat", IntAttribute("axis", -2));
  form.model.graph.inputs[0].shape = {-1, 8, -1, 36};
  form.model.graph.inputs[1].shape = {-1, -1, -1, -1};
  return form;
}

}  // namespace anydml::ort
