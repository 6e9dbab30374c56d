// sum += x * b of FLOAT32 vectors. Included inside a namespace of a Highway target where `hn` is defined.

template <class V>
HWY_INLINE void AddProduct(V x, V b, V& sum) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  // In long sequences of steps, compilers choose other instructions and copy the sums around.
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum.raw) : "v"(x.raw), "v"(b.raw));
#else
  sum = hn::MulAdd(x, b, sum);
#endif
}
