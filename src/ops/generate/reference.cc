#include "base/dispatch.h"
#include "ops/common/coordinates.h"
#include "ops/generate/problem.h"
#include "ops/generate/random.h"

namespace anydml {
namespace {

template <typename Element>
class GenerateReference final : public Kernel {
 public:
  explicit GenerateReference(const GenerateProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const GenerateProblem& p = problem_;
    uint64_t number = 0;
    ForEachCoordinate(p.output.sizes, p.output.rank, [&](const Dimensions& at) {
      auto element = static_cast<Element>(p.value);
      if (p.kind == GenerateProblem::Kind::kSequence) {
        element = InSequence(number);
      } else if (p.kind == GenerateProblem::Kind::kBand && !IsFilled(at)) {
        element =
            p.has_input ? Load<Element>(arguments.inputs[0].data, ElementOffset(p.input, at)) : Element{0};
      }
      Store(arguments.outputs[0].data, ElementOffset(p.output, at), element);
      ++number;
    });
    return {};
  }

 private:
  bool IsFilled(const Dimensions& at) const {
    const int64_t d = int64_t{at[problem_.output.rank - 1]} - int64_t{at[problem_.output.rank - 2]};
    if (problem_.begin <= problem_.end) return d >= problem_.begin && d < problem_.end;
    return d >= problem_.begin || d < problem_.end;
  }

  Element InSequence(uint64_t number) const {
    const auto count = static_cast<float>(number);
    if (problem_.output.type == DataType::kFloat32) {
      const float start = std::bit_cast<float>(static_cast<uint32_t>(problem_.value));
      const float value = start + count * std::bit_cast<float>(static_cast<uint32_t>(problem_.delta));
      return static_cast<Element>(value != value ? 0x7FC00000u : std::bit_cast<uint32_t>(value));
    }
    if (problem_.output.type == DataType::kFloat16) {
      const float start = ToFloat(Half{static_cast<uint16_t>(problem_.value)});
      const float value = start + count * ToFloat(Half{static_cast<uint16_t>(problem_.delta)});
      return static_cast<Element>(value != value ? 0x7E00u : ToHalf(value).bits);
    }
    return static_cast<Element>(problem_.value + number * problem_.delta);
  }

  GenerateProblem problem_;
};

class RandomReference final : public Kernel {
 public:
  explicit RandomReference(const RandomProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const RandomProblem& p = problem_;
    uint32_t state[6], words[4];
    for (uint32_t i = 0; i < 6; ++i) {
      state[i] = Load<uint32_t>(arguments.inputs[0].data, uint64_t{i} * p.state_stride);
    }
    uint64_t number = 0;
    ForEachCoordinate(p.output.sizes, p.output.rank, [&](const Dimensions& at) {
      if (number % 4 == 0) {
        Generate(state, words);
        for (uint32_t i = 0; i < 4 && ++state[i] == 0; ++i) continue;  // carries into the next word
      }
      Store(arguments.outputs[0].data, ElementOffset(p.output, at), words[number % 4]);
      ++number;
    });
    for (uint32_t i = 0; i < 6 && p.has_output_state; ++i) {
      Store(arguments.outputs[1].data, uint64_t{i} * p.output_state_stride, state[i]);
    }
    return {};
  }

 private:
  static void Generate(const uint32_t (&state)[6], uint32_t (&c)[4]) {
    std::copy_n(state, 4, c);
    for (uint32_t round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
      const uint32_t k0 = state[4] + round * 0x9E3779B9u, k1 = state[5] + round * 0xBB67AE85u;
      const uint32_t next[4] = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
                                static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
      std::copy_n(next, 4, c);
    }
  }

  RandomProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateGenerateReference(const GenerateProblem& problem, const LowerContext&,
                                                      std::string*) {
  return DispatchByWidth(problem.output.type, [&]<typename Element>() -> std::unique_ptr<const Kernel> {
    return std::make_unique<GenerateReference<Element>>(problem);
  });
}

std::unique_ptr<const Kernel> CreateRandomReference(const RandomProblem& problem, const LowerContext&,
                                                    std::string*) {
  return std::make_unique<RandomReference>(problem);
}

}  // namespace anydml
