/* classes.h: gives each line of pointwise.def its meaning for the element type at hand
 * (see loops.h): with KILN_PW_TABLE an entry of the table, else a loop; nothing for other
 * types, nor where there is no type at hand (dispatch.h). No include guard. */
#undef ENTRY
#undef ENTRY1
#undef ENTRY2
#undef ENTRY3
#undef ENTRYV1
#undef ENTRYV2
#undef KILN_PW_B1
#undef KILN_PW_B2
#undef KILN_PW_BP1
#undef KILN_PW_BP2
#undef KILN_PW_I1
#undef KILN_PW_I2
#undef KILN_PW_I3
#undef KILN_PW_IP1
#undef KILN_PW_IP2
#undef KILN_PW_F1
#undef KILN_PW_F2
#undef KILN_PW_F3
#undef KILN_PW_FP1
#undef KILN_PW_FP2
#undef KILN_PW_V1
#undef KILN_PW_V2
#undef KILN_PW_C1
#undef KILN_PW_C2
#undef KILN_PW_C3
#undef KILN_PW_CP1
#undef KILN_PW_CP2
#undef KILN_PW_CR1
#undef KILN_PW_W3
#ifdef KILN_PW_TABLE
#define ENTRY(name, ...) [KILN_PW_##name] = LOOP(name),
#define ENTRY1(name, R, expr) ENTRY(name)
#define ENTRY2(name, R, expr) ENTRY(name)
#define ENTRY3(name, X, expr) ENTRY(name)
#define ENTRYV1(name, expr) ENTRY(name)
#define ENTRYV2(name, expr) ENTRY(name)
#else
#define ENTRY1 LOOP1
#define ENTRY2 LOOP2
#define ENTRY3 LOOP3
#define ENTRYV1 LOOPV1
#define ENTRYV2 LOOPV2
#endif
#ifdef KILN_PW_IS_BOOL
#define KILN_PW_B1(name, expr) ENTRY1(name, T, expr)
#define KILN_PW_B2(name, expr) ENTRY2(name, T, expr)
#define KILN_PW_BP1(name, expr) ENTRY1(name, uint8_t, expr)
#define KILN_PW_BP2(name, expr) ENTRY2(name, uint8_t, expr)
#else
#define KILN_PW_B1(name, expr)
#define KILN_PW_B2(name, expr)
#define KILN_PW_BP1(name, expr)
#define KILN_PW_BP2(name, expr)
#endif
#ifdef KILN_PW_IS_INT
#define KILN_PW_I1(name, expr) ENTRY1(name, T, expr)
#define KILN_PW_I2(name, expr) ENTRY2(name, T, expr)
#define KILN_PW_I3(name, expr) ENTRY3(name, T, expr)
#define KILN_PW_IP1(name, expr) ENTRY1(name, uint8_t, expr)
#define KILN_PW_IP2(name, expr) ENTRY2(name, uint8_t, expr)
#else
#define KILN_PW_I1(name, expr)
#define KILN_PW_I2(name, expr)
#define KILN_PW_I3(name, expr)
#define KILN_PW_IP1(name, expr)
#define KILN_PW_IP2(name, expr)
#endif
#ifdef KILN_PW_IS_FLOAT
#define KILN_PW_F1(name, expr) ENTRY1(name, T, expr)
#define KILN_PW_F2(name, expr) ENTRY2(name, T, expr)
#define KILN_PW_F3(name, expr) ENTRY3(name, T, expr)
#define KILN_PW_FP1(name, expr) ENTRY1(name, uint8_t, expr)
#define KILN_PW_FP2(name, expr) ENTRY2(name, uint8_t, expr)
#else
#define KILN_PW_F1(name, expr)
#define KILN_PW_F2(name, expr)
#define KILN_PW_F3(name, expr)
#define KILN_PW_FP1(name, expr)
#define KILN_PW_FP2(name, expr)
#endif
#ifdef KILN_PW_IS_FLOAT
#define KILN_PW_V1(name, expr) ENTRYV1(name, expr)
#define KILN_PW_V2(name, expr) ENTRYV2(name, expr)
#else
#define KILN_PW_V1(name, expr)
#define KILN_PW_V2(name, expr)
#endif
#ifdef KILN_PW_IS_COMPLEX
#define KILN_PW_C1(name, expr) ENTRY1(name, T, expr)
#define KILN_PW_C2(name, expr) ENTRY2(name, T, expr)
#define KILN_PW_C3(name, expr) ENTRY3(name, T, expr)
#define KILN_PW_CP1(name, expr) ENTRY1(name, uint8_t, expr)
#define KILN_PW_CP2(name, expr) ENTRY2(name, uint8_t, expr)
#define KILN_PW_CR1(name, expr) ENTRY1(name, R_OF, expr)
#else
#define KILN_PW_C1(name, expr)
#define KILN_PW_C2(name, expr)
#define KILN_PW_C3(name, expr)
#define KILN_PW_CP1(name, expr)
#define KILN_PW_CP2(name, expr)
#define KILN_PW_CR1(name, expr)
#endif
#ifdef KILN_PW_T
#define KILN_PW_W3(name) ENTRY3(name, uint8_t, x ? y : z)
#else
#define KILN_PW_W3(name)
#endif
