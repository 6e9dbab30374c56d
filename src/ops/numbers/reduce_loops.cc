// The loops for every kind and class, vectorised by the compiler; reduce_vector_loops.cc has the important
// ones.
#include "ops/numbers/reduce_loops.h"

#include "ops/reduce/accumulate.h"

namespace anydml {
namespace {

template <typename A>
A Get(const Accumulators& all, uint64_t i) {
  A a{};
  a.value = static_cast<const typename A::Value*>(all.values)[all.at + i];
  if constexpr (reduce::kHasSecond<A>) {
    a.second = static_cast<const decltype(a.second)*>(all.seconds)[all.at + i];
  }
  return a;
}

template <typename A>
void Put(const Accumulators& all, uint64_t i, A a) {
  static_cast<typename A::Value*>(all.values)[all.at + i] = a.value;
  if constexpr (reduce::kHasSecond<A>) static_cast<decltype(a.second)*>(all.seconds)[all.at + i] = a.second;
}

template <typename A>
void Start(const Accumulators& all, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) Put(all, i, A::Start());
}

template <typename A, typename T>
void AddRow(const void* elements, uint64_t count, uint32_t position, const Accumulators& one) {
  const auto* const x = static_cast<const T*>(elements);
  A a = Get<A>(one, 0);
  for (uint64_t i = 0; i < count; ++i) a.Add(x[i], position + static_cast<uint32_t>(i));
  Put(one, 0, a);
}

template <typename A, typename T>
void AddColumns(const ReduceTile& tile, const Accumulators& all) {
  for (uint32_t r = 0; r < tile.rows; ++r) {
    const T* const x = static_cast<const T*>(tile.elements) + r * tile.row_stride;
    for (uint32_t i = 0; i < tile.columns; ++i) {
      A a = Get<A>(all, i);
      a.Add(x[i], tile.position + r);
      Put(all, i, a);
    }
  }
}

template <typename A>
void Merge(const Accumulators& into, const Accumulators& from, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    A a = Get<A>(into, i);
    a.Merge(Get<A>(from, i));
    Put(into, i, a);
  }
}

template <typename A>
void Finish(const Accumulators& all, uint32_t count, ReduceFunction function, float n, void* results) {
  using Result = decltype(reduce::FinishNumber(A{}, function, n));
  for (uint32_t i = 0; i < count; ++i) {
    static_cast<Result*>(results)[i] = reduce::FinishNumber(Get<A>(all, i), function, n);
  }
}

template <typename T>
ReduceLoops LoopsOf(Accumulation kind, bool last) {
  return reduce::ForAccumulation<T, double>(kind, last, []<typename A>() {
    return ReduceLoops{&Start<A>, &AddRow<A, T>, &AddColumns<A, T>, &Merge<A>, &Finish<A>};
  });
}

}  // namespace

ReduceLoops FindReduceLoops(Accumulation kind, bool last, Class elements) {
  switch (elements) {
    case Class::kI32:
      return LoopsOf<int32_t>(kind, last);
    case Class::kU32:
      return LoopsOf<uint32_t>(kind, last);
    case Class::kI64:
      return LoopsOf<int64_t>(kind, last);
    case Class::kU64:
      return LoopsOf<uint64_t>(kind, last);
    default: {
      ReduceLoops loops = LoopsOf<float>(kind, last);
#if ANYDML_HAVE_HIGHWAY
      UseVectors(kind, last, false, &loops);
#endif
      return loops;
    }
  }
}

bool FindHalfReduceLoops(Accumulation kind, bool last, ReduceLoops* loops) {
#if ANYDML_HAVE_HIGHWAY
  *loops = LoopsOf<float>(kind, last);
  return UseVectors(kind, last, true, loops);
#else
  (void)kind, (void)last, (void)loops;
  return false;
#endif
}

}  // namespace anydml
