// Two passes over a block of columns: the maxima of groups of elements give every lane its own bound, then
// the elements that reach it are appended to the lane's hits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/top_k/cpu/column_select.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>

#include "ops/top_k/cpu/column_select.h"
#include "ops/top_k/cpu/lanes-inl.h"
#include "ops/top_k/cpu/row_types.h"
#include "ops/top_k/cpu/select-inl.h"

#ifndef ANYDML_COLUMN_SCRATCH  // this file is included once per target
#define ANYDML_COLUMN_SCRATCH
namespace anydml {

inline uint32_t ColumnGroups(const RowQuery& query) { return GroupsFor(query.k); }

template <typename T>
struct ColumnScratch {
  ColumnScratch(const RowQuery& query, std::byte* memory) {
    const uint64_t hits = uint64_t{kMaxColumnBlock} * ColumnHits(query) + 64;
    const auto take = [&](uint64_t size) {
      std::byte* const taken = memory == nullptr ? nullptr : memory + bytes;
      bytes += (size + 63) / 64 * 64;
      return taken;
    };
    keys = reinterpret_cast<KeyOf<T>*>(take(hits * sizeof(KeyOf<T>)));
    indices = reinterpret_cast<uint32_t*>(take(hits * sizeof(uint32_t)));
    maxima = reinterpret_cast<T*>(take(uint64_t{kMaxColumnBlock} * ColumnGroups(query) * sizeof(T)));
  }

  KeyOf<T>* keys;     // ColumnHits(query) for every column
  uint32_t* indices;  // the same
  T* maxima;          // of every group, columns together
  uint64_t bytes = 0;
};

}  // namespace anydml
#endif

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Four vectors side by side (kWide), or one.
template <typename T, bool kLargest, bool kWide>
struct Columns {
  using Bits = UnsignedOf<sizeof(T)>;
  using Lane = LaneOf<T>;
  using Key = KeyOf<T>;
  using D = TagOf<T>;
  using V = hn::Vec<D>;

  Columns(const Bits* block, uint64_t row_stride, const RowQuery& row_query, std::byte* memory)
      : data(LanesOf<T>(block)),
        stride(row_stride),
        query(row_query),
        row_scratch(row_query, memory),
        scratch(row_query, memory + row_scratch.bytes),
        lanes(static_cast<uint32_t>(hn::Lanes(D()))),
        columns(kWide ? 4 * lanes : lanes),
        places(ColumnHits(row_query)) {}

  static HWY_INLINE V Load(const Lane* at) {
    const D d;
    return Ordered<T>(d, hn::LoadU(d, at));
  }

  // maxima[g * columns + c]
  HWY_INLINE void GroupMaxima() const {
    const D d;
    const uint32_t groups = ColumnGroups(query);
    Lane* best = reinterpret_cast<Lane*>(scratch.maxima);
    for (uint32_t g = 0; g < groups; ++g, best += columns) {
      const uint64_t begin = uint64_t{query.n} * g / groups;
      const uint64_t end = uint64_t{query.n} * (g + 1) / groups;
      const Lane* at = data + begin * stride;
      V a = Load(at);
      V b = kWide ? Load(at + lanes) : a;
      V c = kWide ? Load(at + 2 * lanes) : a;
      V e = kWide ? Load(at + 3 * lanes) : a;
      for (uint64_t i = begin + 1; i < end; ++i) {
        at += stride;
        a = BetterOf<kLargest>(Load(at), a);
        if constexpr (kWide) {
          b = BetterOf<kLargest>(Load(at + lanes), b);
          c = BetterOf<kLargest>(Load(at + 2 * lanes), c);
          e = BetterOf<kLargest>(Load(at + 3 * lanes), e);
        }
      }
      hn::StoreU(a, d, best);
      if constexpr (kWide) {
        hn::StoreU(b, d, best + lanes);
        hn::StoreU(c, d, best + 2 * lanes);
        hn::StoreU(e, d, best + 3 * lanes);
      }
    }
  }

  // A limit for every column; false if elements cannot be compared with it.
  HWY_INLINE bool Limits(Lane* limits) const {
    const uint32_t groups = ColumnGroups(query);
    const Lane* const maxima = reinterpret_cast<const Lane*>(scratch.maxima);
    Key keys[2 * kMaxMaximaPlaces + kKeyPadding];
    for (uint32_t c = 0; c < columns; ++c) {
      for (uint32_t g = 0; g < groups; ++g) keys[g] = KeyOfOrdered<T, kLargest>(maxima[g * columns + c]);
      const Key bound = KthOfFew(keys, groups, query.k);
      const Limit<T> limit = LimitOfKey<T, kLargest>(bound);
      if (limit.pass != Pass::kCompare) return false;
      limits[c] = limit.lane;
    }
    return true;
  }

  static HWY_INLINE uint64_t Reaching(const Lane* at, V limit) {
    const D d;
    using Compared = std::conditional_t<std::is_same_v<T, Half>, int16_t, T>;
    return MaskBits(d, Reaches<Compared, kLargest, Pass::kCompare>(d, Load(at), limit));
  }

  // False if a column has more hits than places.
  HWY_INLINE bool Collect(const Lane* limits, uint32_t* counts) const {
    const D d;
    const V limit0 = hn::LoadU(d, limits);
    const V limit1 = kWide ? hn::LoadU(d, limits + lanes) : limit0;
    const V limit2 = kWide ? hn::LoadU(d, limits + 2 * lanes) : limit0;
    const V limit3 = kWide ? hn::LoadU(d, limits + 3 * lanes) : limit0;
    for (uint32_t i = 0; i < query.n; ++i) {
      const Lane* const at = data + i * stride;
      const auto take = [&](uint64_t bits, uint32_t first) HWY_ATTR {
        uint32_t most = 0;
        for (; bits != 0; bits &= bits - 1) {
          const uint32_t c = first + static_cast<uint32_t>(std::countr_zero(bits));
          const uint64_t place = uint64_t{c} * places + counts[c]++;
          scratch.keys[place] = KeyOfBits<T, kLargest>(std::bit_cast<Bits>(at[c]));
          scratch.indices[place] = i;
          most = std::max(most, counts[c]);
        }
        return most < places;
      };
      uint64_t bits = Reaching(at, limit0);
      if constexpr (kWide) {
        const uint64_t bits1 = Reaching(at + lanes, limit1);
        const uint64_t bits2 = Reaching(at + 2 * lanes, limit2);
        const uint64_t bits3 = Reaching(at + 3 * lanes, limit3);
        if (4 * lanes <= 64) {
          bits |= bits1 << lanes % 64 | bits2 << 2 * lanes % 64 | bits3 << 3 * lanes % 64;
        } else if (!take(bits1, lanes) || !take(bits2, 2 * lanes) || !take(bits3, 3 * lanes)) {
          return false;
        }
      }
      if (bits != 0 && !take(bits, 0)) return false;
    }
    return true;
  }

  bool Select(uint32_t* order) {
    HWY_ALIGN Lane limits[kMaxColumnBlock] = {};
    uint32_t counts[kMaxColumnBlock] = {};
    GroupMaxima();
    if (!Limits(limits) || !Collect(limits, counts)) return false;
    // Fewer than K: the input was changed between the two passes.
    if (*std::min_element(counts, counts + columns) < query.k) return false;
    for (uint32_t c = 0; c < columns; ++c) {
      const uint64_t first = uint64_t{c} * places;
      row_scratch.hits = {scratch.keys + first, scratch.indices + first, counts[c]};
      Order(query.k, &row_scratch, order + uint64_t{c} * query.k);
    }
    return true;
  }

  const Lane* data;
  uint64_t stride;
  const RowQuery& query;
  RowScratch<T> row_scratch;
  ColumnScratch<T> scratch;
  uint32_t lanes;
  uint32_t columns;
  uint32_t places;  // for hits, per column
};

template <typename T>
uint32_t BlockTyped() {
  return 4 * static_cast<uint32_t>(hn::Lanes(TagOf<T>()));
}

template <typename T, bool kLargest>
bool SelectDirected(const UnsignedOf<sizeof(T)>* data, uint64_t stride, uint32_t columns,
                    const RowQuery& query, std::byte* scratch, uint32_t* order) {
  return columns == BlockTyped<T>() ? Columns<T, kLargest, true>(data, stride, query, scratch).Select(order)
                                    : Columns<T, kLargest, false>(data, stride, query, scratch).Select(order);
}

#define ANYDML_COLUMNS(name, T)                                                                    \
  uint32_t Block##name() { return BlockTyped<T>(); }                                               \
  bool Columns##name(const UnsignedOf<sizeof(T)>* data, uint64_t stride, uint32_t columns,         \
                     const RowQuery& query, std::byte* scratch, uint32_t* order) {                 \
    return query.largest ? SelectDirected<T, true>(data, stride, columns, query, scratch, order)   \
                         : SelectDirected<T, false>(data, stride, columns, query, scratch, order); \
  }
ANYDML_FOR_EACH_ROW_TYPE(ANYDML_COLUMNS)
#undef ANYDML_COLUMNS

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {

#define ANYDML_COLUMNS(name, T)                                                               \
  HWY_EXPORT(Block##name);                                                                    \
  HWY_EXPORT(Columns##name);                                                                  \
  template <>                                                                                 \
  uint32_t ColumnBlock<T>() {                                                                 \
    return HWY_DYNAMIC_DISPATCH(Block##name)();                                               \
  }                                                                                           \
  template <>                                                                                 \
  uint64_t ColumnScratchBytes<T>(const RowQuery& query) {                                     \
    return ColumnScratch<T>(query, nullptr).bytes;                                            \
  }                                                                                           \
  template <>                                                                                 \
  bool SelectColumns<T>(const UnsignedOf<sizeof(T)>* data, uint64_t stride, uint32_t columns, \
                        const RowQuery& query, std::byte* scratch, uint32_t* order) {         \
    return HWY_DYNAMIC_DISPATCH(Columns##name)(data, stride, columns, query, scratch, order); \
  }
ANYDML_FOR_EACH_ROW_TYPE(ANYDML_COLUMNS)
#undef ANYDML_COLUMNS

}  // namespace anydml
#endif
