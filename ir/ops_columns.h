/* ops_columns.h: defines every column of ir/ops/<family>.def as nothing. A layer includes it, then
 * redefines its own columns, then KILN_OP, then includes ir/ops.def. No include guard: a file may
 * do so twice. */
#undef SHAPE
#undef KERNEL
#undef LOWER
#undef DERIV
#undef COST
#undef FLAGS
#undef VARIANTS
#undef DTYPES
#undef SPARSE
#undef NESTED
#define SHAPE(fn)
#define KERNEL(fn)
#define LOWER(fn)
#define DERIV(fn)
#define COST(cost_class)
#define FLAGS(flags)
#define VARIANTS(...)
#define DTYPES(class)
#define SPARSE(fn)
#define NESTED(way)
