// Stores pairs of vectors, on request with non-temporal stores. Included inside a namespace of a Highway
// target where `hn` is defined and half_vectors-inl.h is included.

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
// Stores two half vectors as a whole one, non-temporally if it is large enough for that.
template <class D, class V>
HWY_INLINE void StoreTogether(D d, V first, V second, bool streams, hn::TFromD<D>* to) {
  const hn::Twice<D> both;
  if constexpr (hn::MaxLanes(both) * sizeof(hn::TFromD<D>) >= 16) {
    if (streams) return hn::Stream(hn::Combine(both, second, first), both, to);
  }
  hn::StoreU(first, d, to);
  hn::StoreU(second, d, to + hn::Lanes(d));
}
#else
template <class D, class V>
HWY_INLINE void StoreTogether(D d, V first, V second, bool, hn::TFromD<D>* to) {
  hn::StoreU(first, d, to);
  hn::StoreU(second, d, to + hn::Lanes(d));
}
#endif

template <class D, class V>
HWY_INLINE void WriteHalves(D d, V first, V second, bool streams, uint16_t* to) {
  StoreTogether(hn::Rebind<uint16_t, D>(), ToHalves(d, first), ToHalves(d, second), streams, to);
}

template <class D, class V>
HWY_INLINE void StreamPair(D d, V first, V second, hn::TFromD<D>* to) {
  hn::Stream(first, d, to);
  hn::Stream(second, d, to + hn::Lanes(d));
}
