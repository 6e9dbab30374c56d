// sum += x * b of FLOAT32 vectors of AVX-512, rounded once. Text inside a namespace of a Highway target. As
// an instruction: where steps follow each other, compilers make others, and copy sums around.

template <class V>
HWY_INLINE void AddProduct(V x, V b, V& sum) {
  asm("vfmadd231ps %2, %1, %0" : "+v"(sum.raw) : "v"(x.raw), "v"(b.raw));
}
