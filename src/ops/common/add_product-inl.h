// sum += x * b of FLOAT32 vectors. Text inside a namespace of a Highway target, where `hn` is a name.

template <class V>
HWY_INLINE void AddProduct(V x, V b, V& sum) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  // Where steps follow each other, compilers make other instructions, and copy sums around.
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum.raw) : "v"(x.raw), "v"(b.raw));
#else
  sum = hn::MulAdd(x, b, sum);
#endif
}
