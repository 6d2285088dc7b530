/* ops_columns.h: defines every column of ir/ops/<family>.def as nothing. A layer includes it, then
 * redefines its own columns, then KILN_OP, then includes ir/ops.def. No include guard: a file may
 * do so twice. */
#undef SHAPE
#undef KERNEL
#undef LOWER
#undef LOWER_EACH
#undef LOWER_NEW
#undef LOWER_ROWS
#undef LACKS
#undef APART
#undef FLOPS
#undef DIMS
#undef RESULT
#undef SIZES
#undef WRITES_STATS
#undef RAISES
#undef COST
#undef FLAGS
#undef VARIANTS
#undef DTYPES
#undef FORMAT
#undef DEVICES
#undef SPARSE
#undef NESTED
#undef QUANT
#define SHAPE(fn)
#define KERNEL(fn)
#define LOWER(fn)
#define LOWER_EACH(fn)
#define LOWER_NEW(fn)
#define LOWER_ROWS(fn, dims)
#define LACKS(form)
#define APART(fn)
#define FLOPS(fn)
#define DIMS(count)
#define RESULT(kind)
#define SIZES(from)
#define WRITES_STATS(mean, variance, training)
#define RAISES(arg)
#define COST(cost_class)
#define FLAGS(flags)
#define VARIANTS(...)
#define DTYPES(class)
#define FORMAT(from)
#define DEVICES(set)
#define SPARSE(fn)
#define NESTED(way)
#define QUANT(way)
