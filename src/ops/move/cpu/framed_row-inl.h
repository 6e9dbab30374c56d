// A row of the input with elements before and after it. Included inside a namespace: in framed_rows.h, and
// for every SIMD target.

// An element, repeated to fill a word.
template <typename T>
uint64_t Repeated(T element) {
  return uint64_t{element} * (~uint64_t{0} / static_cast<T>(~T{0}));
}

// Appends the elements at `offsets`, in bytes, of a row of elements T.
template <typename T, class Writer>
inline __attribute__((always_inline)) void AppendElements(const std::byte* row,
                                                          std::span<const uint64_t> offsets, Writer& writer) {
  for (const uint64_t offset : offsets) {
    T element;
    std::memcpy(&element, row + offset, sizeof(T));
    writer.AppendRepeated(Repeated(element), sizeof(T));
  }
}

// For elements T. `from`: the input's row; null: constants only. (Inline, so that the writer is in
// registers.)
template <typename T, class Writer>
inline __attribute__((always_inline)) void AppendFramed(const FramedRow& row, const std::byte* from,
                                                        Writer& writer) {
  if (from == nullptr) {
    writer.AppendRepeated(row.fill, (row.before + row.inner + row.behind) * sizeof(T));
  } else if (row.is_constant) {
    writer.AppendRepeated(row.fill, row.before * sizeof(T));
    writer.Append(from, row.inner * sizeof(T));
    writer.AppendRepeated(row.fill, row.behind * sizeof(T));
  } else {
    AppendElements<T>(from, row.before_from, writer);
    writer.Append(from, row.inner * sizeof(T));
    AppendElements<T>(from, row.behind_from, writer);
  }
}
