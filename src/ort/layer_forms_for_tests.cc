// Other layers of language models.
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

}  // namespace

Forms AttentionForms() {
  Forms forms;
  const Attribute heads = IntAttribute("num_heads", 4);
  const Shape x = {2, 3, 32}, w = {32, 96}, past = {2, 2, 4, 5, 8};
  const char* const name = "Attention";
  forms.push_back(FormMaker("plain").In(x).Weight(w).Weight({96}).Out({kF32}).Microsoft(name, heads));
  forms.push_back(FormMaker("mask of lengths")
                      .In(x)
                      .Weight(w)
                      .Weight({96})
                      .In(Typed(kI32, {2}, {2, 3}))
                      .Out({kF32})
                      .Microsoft(name, heads));
  forms.push_back(FormMaker("mask of ends and begins")
                      .In(x)
                      .Weight(w)
                      .Weight({96})
                      .In(Typed(kI32, {4}, {2, 3, 0, 1}))
                      .Out({kF32})
                      .Microsoft(name, heads));
  forms.push_back(FormMaker("mask of keys")
                      .In(x)
                      .Weight(w)
                      .Weight({96})
                      .In(Typed(kI32, {2, 3}, {1, 1, 0, 1, 1, 1}))
                      .Out({kF32})
                      .Microsoft(name, heads));
  forms.push_back(FormMaker("unidirectional")
                      .In(x)
                      .Weight(w)
                      .Weight({96})
                      .Out({kF32})
                      .Microsoft(name, heads, IntAttribute("unidirectional", 1)));
  forms.push_back(FormMaker("past")
                      .In(x)
                      .Weight(w)
                      .Weight({96})
                      .None()
                      .In(past)
                      .Out({kF32, kF32})
                      .Microsoft(name, heads));
  forms.push_back(
      FormMaker("present alone").In(x).Weight(w).Weight({96}).Out({kF32, kF32}).Microsoft(name, heads));
  forms.push_back(FormMaker("attention_bias")
                      .In(x)
                      .Weight(w)
                      .Weight({96})
                      .None(2)
                      .In({2, 4, 3, 3})
                      .Out({kF32})
                      .Microsoft(name, heads));
  forms.push_back(FormMaker("do_rotary")
                      .In(x)
                      .Weight(w)
                      .Weight({96})
                      .Out({kF32})
                      .Microsoft(name, heads, IntAttribute("do_rotary", 1)));
  for (const ElementType type : {kF32, kF16}) {
    forms.push_back(FormMaker("opset 23", 23)
                        .In(type, {2, 4, 3, 8})
                        .In(type, {2, 2, 5, 8})
                        .In(type, {2, 2, 5, 8})
                        .Out({type})
                        .Onnx(name));
    forms.push_back(FormMaker("opset 23, qk", 23)
                        .In(type, {2, 4, 3, 8})
                        .In(type, {2, 4, 3, 8})
                        .In(type, {2, 4, 3, 8})
                        .Out({type, kNone, kNone, type})
                        .Onnx(name, IntAttribute("qk_matmul_output_mode", 2)));
    forms.push_back(FormMaker("opset 23, past", 23)
                        .In(type, {2, 4, 1, 8})
                        .In(type, {2, 4, 1, 8})
                        .In(type, {2, 4, 1, 8})
                        .None()
                        .In(type, {2, 4, 5, 8})
                        .In(type, {2, 4, 5, 8})
                        .Out({type, type, type})
                        .Onnx(name, IntAttribute("is_causal", 1)));
    forms.push_back(FormMaker("opset 23, softcap", 23)
                        .In(type, {2, 4, 3, 8})
                        .In(type, {2, 4, 3, 8})
                        .In(type, {2, 4, 3, 8})
                        .In(type, {3, 3})
                        .Out({type})
                        .Onnx(name, FloatAttribute("softcap", 2)));
  }
  forms.push_back(FormMaker("opset 24, nonpad_kv_seqlen", 24)
                      .In({2, 4, 3, 8})
                      .In({2, 4, 5, 8})
                      .In({2, 4, 5, 8})
                      .None(3)
                      .In(Ints({2}, {3, 5}))
                      .Out({kF32})
                      .Onnx(name));
  return forms;
}

Forms RotaryForms() {
  Forms forms;
  const char* const name = "RotaryEmbedding";
  const onnx::Tensor one = Ints({1}, {2}), each = Ints({2, 3}, {0, 1, 2, 4, 5, 6});
  for (const ElementType type : {kF32, kF16}) {
    forms.push_back(FormMaker("one position")
                        .In(type, {2, 3, 32})
                        .In(one)
                        .Weight(type, {16, 4})
                        .Weight(type, {16, 4})
                        .Out({type})
                        .Microsoft(name, IntAttribute("num_heads", 4)));
    forms.push_back(FormMaker("positions")
                        .In(type, {2, 4, 3, 8})
                        .In(each)
                        .Weight(type, {16, 4})
                        .Weight(type, {16, 4})
                        .Out({type})
                        .Microsoft(name));
    forms.push_back(FormMaker("interleaved")
                        .In(type, {2, 4, 3, 8})
                        .In(each)
                        .Weight(type, {16, 4})
                        .Weight(type, {16, 4})
                        .Out({type})
                        .Microsoft(name, IntAttribute("interleaved", 1)));
  }
  forms.push_back(
      FormMaker("a part")
          .In({2, 3, 64})
          .In(each)
          .Weight({16, 4})
          .Weight({16, 4})
          .Out({kF32})
          .Microsoft(name, IntAttribute("num_heads", 4), IntAttribute("rotary_embedding_dim", 8)));
  forms.push_back(FormMaker("packed batching")
                      .In({2, 3, 32})
                      .In(each)
                      .Weight({16, 4})
                      .Weight({16, 4})
                      .Out({kF32})
                      .Microsoft(name, IntAttribute("num_heads", 4), IntAttribute("is_packed_batching", 1)));
  forms.push_back(FormMaker("scale")
                      .In({2, 3, 32})
                      .In(each)
                      .Weight({16, 4})
                      .Weight({16, 4})
                      .Out({kF32})
                      .Microsoft(name, IntAttribute("num_heads", 4), FloatAttribute("scale", 2)));
  forms.push_back(FormMaker("opset 23", 23)
                      .In({2, 4, 3, 8})
                      .Weight({16, 4})
                      .Weight({16, 4})
                      .In(each)
                      .Out({kF32})
                      .Onnx(name));
  forms.push_back(FormMaker("opset 23, no positions", 23)
                      .In({2, 4, 3, 8})
                      .In({2, 3, 4})
                      .In({2, 3, 4})
                      .Out({kF32})
                      .Onnx(name));
  forms.push_back(FormMaker("opset 23, a part", 23)
                      .In({2, 3, 32})
                      .In({2, 3, 2})
                      .In({2, 3, 2})
                      .Out({kF32})
                      .Onnx(name, IntAttribute("num_heads", 4), IntAttribute("rotary_embedding_dim", 4)));
  return forms;
}

Forms NormalizationForms() {
  Forms forms;
  const Shape x = {2, 3, 32}, w = {32};
  const ElementType mean = kF32;
  for (const ElementType type : {kF32, kF16}) {
    for (const char* const name : {"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"}) {
      const bool simple = name[4] == 'S';
      const auto start = [&](const std::string& form) {
        FormMaker maker(form);
        maker.In(type, x).In(type, x).Weight(type, w);
        return maker;
      };
      forms.push_back(start("plain").Out({type}).Microsoft(name, FloatAttribute("epsilon", 1e-5f)));
      forms.push_back(start("the sum").Out({type, kNone, kNone, type}).Microsoft(name));
      forms.push_back(start("mean and deviation").Out({type, mean, mean, type}).Microsoft(name));
      FormMaker biased = start("bias");
      if (!simple) biased.Weight(type, w);
      forms.push_back(biased.Weight(type, w).Out({type, kNone, kNone, type}).Microsoft(name));
      forms.push_back(FormMaker("skip is broadcast")
                          .In(type, x)
                          .In(type, {1, 3, 32})
                          .Weight(type, w)
                          .Out({type})
                          .Microsoft(name));
      forms.push_back(FormMaker("skip of rank 2")
                          .In(type, x)
                          .In(type, {3, 32})
                          .Weight(type, w)
                          .Out({type})
                          .Microsoft(name));
    }
    forms.push_back(
        FormMaker("plain").In(type, x).Weight(type, w).Out({type}).Onnx("SimplifiedLayerNormalization"));
    forms.push_back(FormMaker("plain", 23).In(type, x).Weight(type, w).Out({type}).Onnx("RMSNormalization"));
    forms.push_back(FormMaker("axis 1", 23)
                        .In(type, x)
                        .Weight(type, {3, 32})
                        .Out({type})
                        .Onnx("RMSNormalization", IntAttribute("axis", 1)));
    forms.push_back(FormMaker("all outputs")
                        .In(type, x)
                        .Weight(type, w)
                        .Weight(type, w)
                        .Out({type, kF32, kF32})
                        .Onnx("LayerNormalization"));
  }
  const auto embed = [](const std::string& form) {
    FormMaker maker(form);
    maker.In(Typed(kI32, {2, 3}, {1, 4, 2, 0, 3, 1})).In(Typed(kI32, {2, 3}, {0, 1, 1, 0, 0, 1}));
    maker.Weight({5, 16}).Weight({8, 16}).Weight({2, 16}).Weight({16}).Weight({16});
    return maker;
  };
  const char* const name = "EmbedLayerNormalization";
  forms.push_back(embed("plain").Out({kF32, kI32}).Microsoft(name));
  forms.push_back(
      embed("mask").In(Typed(kI32, {2, 3}, {1, 1, 0, 1, 1, 1})).Out({kF32, kI32}).Microsoft(name));
  forms.push_back(embed("the sum").Out({kF32, kI32, kF32}).Microsoft(name));
  forms.push_back(
      embed("positions").None().In(Typed(kI32, {1, 3}, {2, 1, 0})).Out({kF32, kI32}).Microsoft(name));
  forms.push_back(FormMaker("channels last")
                      .In({2, 4, 4, 8})
                      .Weight({8})
                      .Weight({8})
                      .Out({kF32})
                      .Microsoft("GroupNorm", IntAttribute("groups", 2), IntAttribute("channels_last", 1),
                                 IntAttribute("activation", 1)));
  forms.push_back(FormMaker("plain")
                      .In({2, 4, 4, 8})
                      .Weight({8})
                      .Weight({8})
                      .In({2, 4, 4, 8})
                      .Out({kF32})
                      .Microsoft("SkipGroupNorm", IntAttribute("groups", 2), IntAttribute("activation", 0)));
  return forms;
}

Forms ExpertForms() {
  Forms forms;
  forms.push_back(FormMaker("plain")
                      .In({4, 16})
                      .In({4, 3})
                      .Weight({3, 16, 32})
                      .Weight({3, 32})
                      .Weight({3, 32, 16})
                      .Weight({3, 16})
                      .Out({kF32})
                      .Microsoft("MoE", TextAttribute("activation_type", "relu"), IntAttribute("k", 2)));
  forms.push_back(FormMaker("turned")
                      .In({4, 16})
                      .In({4, 3})
                      .Weight({3, 32, 16})
                      .Weight({3, 32})
                      .Weight({3, 16, 32})
                      .Weight({3, 16})
                      .Out({kF32})
                      .Microsoft("MoE", TextAttribute("activation_type", "silu"), IntAttribute("k", 1)));
  forms.push_back(FormMaker("plain")
                      .In({4, 32})
                      .In({4, 3})
                      .Weight(kU8, {3, 64, 16})
                      .Weight({3, 64})
                      .None()
                      .Weight(kU8, {3, 32, 32})
                      .Weight({3, 32})
                      .Out({kF32})
                      .Microsoft("QMoE", IntAttribute("k", 1), IntAttribute("expert_weight_bits", 4)));
  forms.push_back(FormMaker("plain")
                      .In({1, 3, 32})
                      .In({1, 3, 32})
                      .In({1, 3, 32})
                      .In({1, 4, 64, 8})
                      .In({1, 4, 64, 8})
                      .Weight(Typed(kI32, {1, 5}, {0, 1, 3, 5, 6}))
                      .Weight(Typed(kI32, {1, 6}, {0, 0, 1, 0, 1, 2}))
                      .In(Typed(kI32, {1}, {3}))
                      .In(Typed(kI32, {1}, {3}))
                      .Out({kF32, kF32, kF32})
                      .Microsoft("SparseAttention", IntAttribute("num_heads", 4),
                                 IntAttribute("kv_num_heads", 4), IntAttribute("sparse_block_size", 16)));
  forms.push_back(FormMaker("linear")
                      .In({1, 3, 32})
                      .In({1, 3, 32})
                      .In({1, 3, 32})
                      .Out({kF32, kF32})
                      .Microsoft("LinearAttention", TextAttribute("update_rule", "linear"),
                                 IntAttribute("q_num_heads", 4), IntAttribute("kv_num_heads", 4)));
  forms.push_back(FormMaker("plain")
                      .In({1, 8, 5})
                      .Weight({8, 1, 4})
                      .Weight({8})
                      .In({1, 8, 3})
                      .Out({kF32, kF32})
                      .Microsoft("CausalConvWithState", IntAttribute("ndim", 1)));
  for (const char* const name : {"Gelu", "QuickGelu"})
    forms.push_back(FormMaker("plain").In({2, 3, 32}).Out({kF32}).Microsoft(name));
  forms.push_back(FormMaker("plain").In({2, 3, 32}).Weight({32}).Out({kF32}).Microsoft("BiasGelu"));
  forms.push_back(FormMaker("plain").In({2, 3, 32}).Weight({32}).Out({kF32}).Microsoft("FastGelu"));
  return forms;
}

}  // namespace anydml::ort
