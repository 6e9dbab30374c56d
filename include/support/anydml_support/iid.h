// IIDs of interfaces that DirectX-Headers does not know.
//
// Included after the real dxguids.h. Programs written for plain DirectX-Headers
// declare some of these IIDs themselves with WINADAPTER_IID; a second
// specialisation would not compile, so WINADAPTER_IID is replaced by one that
// expands to nothing for every interface X for which ANYDML_HAS_IID_X is
// defined.
#ifndef ANYDML_SUPPORT_IID_H_
#define ANYDML_SUPPORT_IID_H_

#define ANYDML_DEFINE_IID(name, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8) \
  template <>                                                              \
  constexpr GUID uuidof<name>() {                                          \
    return {l, w1, w2, {b1, b2, b3, b4, b5, b6, b7, b8}};                  \
  }                                                                        \
  __CRT_UUID_DECL(name, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8)

// ANYDML_HAS_IID_X is defined as `~,`. That comma moves SKIP into the second
// place; without it the undefined name is glued to SKIP and DEFINE is second.
#define ANYDML_IID_SECOND(first, second, ...) second
#define ANYDML_IID_CHOOSE(...) ANYDML_IID_SECOND(__VA_ARGS__)
#define ANYDML_IID_SKIP(...) static_assert(true, "")
#define ANYDML_IID_DEFINE(...) ANYDML_DEFINE_IID(__VA_ARGS__) static_assert(true, "")

#undef WINADAPTER_IID
#define WINADAPTER_IID(name, ...) \
  ANYDML_IID_CHOOSE(ANYDML_HAS_IID_##name ANYDML_IID_SKIP, ANYDML_IID_DEFINE, ~)(name, __VA_ARGS__)

#endif  // ANYDML_SUPPORT_IID_H_
