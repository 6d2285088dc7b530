/* emit_ops.c: the values of loop IR as LLVM instructions on vectors; opcodes.def says which. */
#include "codegen/llvm/emit.h"

#include <stdio.h>

/* -- Types and helpers -- */

LLVMTypeRef kiln__llvm_emit_scalar_type(const kiln__llvm_emitter *e, kiln_dtype dtype) {
  switch (dtype) {
    case KILN_DTYPE_F32: return LL->FloatTypeInContext(e->context);
    case KILN_DTYPE_F64: return LL->DoubleTypeInContext(e->context);
    case KILN_DTYPE_BOOL: return e->i1;
    default: return LL->IntTypeInContext(e->context, (unsigned)kiln_loop_size(dtype) * 8);
  }
}

LLVMTypeRef kiln__llvm_emit_memory_type(const kiln__llvm_emitter *e, kiln_dtype dtype) {
  return dtype == KILN_DTYPE_BOOL ? e->i8 : kiln__llvm_emit_scalar_type(e, dtype);
}

LLVMTypeRef kiln__llvm_emit_argument_type(const kiln__llvm_emitter *e, kiln_dtype dtype) {
  return dtype == KILN_DTYPE_F64 ? kiln__llvm_emit_scalar_type(e, dtype) : e->i64;
}

LLVMTypeRef kiln__llvm_emit_vector_of(const kiln__llvm_emitter *e, LLVMTypeRef scalar) {
  return e->width == 1 ? scalar : LL->VectorType(scalar, (unsigned)e->width);
}

LLVMTypeRef kiln__llvm_emit_vector_type(const kiln__llvm_emitter *e, kiln_dtype dtype) {
  return kiln__llvm_emit_vector_of(e, kiln__llvm_emit_scalar_type(e, dtype));
}

LLVMValueRef kiln__llvm_emit_index(const kiln__llvm_emitter *e, int64_t value) {
  return LL->ConstInt(e->i64, (unsigned long long)value, 1);
}

LLVMValueRef kiln__llvm_emit_iota(const kiln__llvm_emitter *e, int first, int width) {
  LLVMValueRef lanes[64];
  for (int i = 0; i < width; i++) lanes[i] = LL->ConstInt(e->i32, (unsigned)(first + i), 0);
  if (width == 1) return lanes[0];
  return LL->ConstVector(lanes, (unsigned)width);
}

LLVMValueRef kiln__llvm_emit_splat(const kiln__llvm_emitter *e, LLVMValueRef scalar, int width) {
  if (width == 1) return scalar;
  LLVMTypeRef type = LL->VectorType(LL->TypeOf(scalar), (unsigned)width);
  LLVMValueRef poison = LL->GetPoison(type);
  LLVMValueRef zeros = LL->ConstNull(LL->VectorType(e->i32, (unsigned)width));
  LLVMValueRef one = LL->BuildInsertElement(BUILD, poison, scalar, LL->ConstInt(e->i32, 0, 0), "");
  return LL->BuildShuffleVector(BUILD, one, poison, zeros, "");
}

void kiln__llvm_emit_turns(const kiln__llvm_emitter *e, LLVMValueRef branch, LLVMValueRef first,
                           LLVMValueRef step, LLVMValueRef last) {
  if (!LL->IsAConstantInt(first) || !LL->IsAConstantInt(step) || !LL->IsAConstantInt(last)) return;
  const int64_t by = LL->ConstIntGetSExtValue(step);
  const int64_t way = LL->ConstIntGetSExtValue(last) - LL->ConstIntGetSExtValue(first);
  const int64_t back = way > by ? (way - 1) / by : 0;
  const uint32_t weights[2] = {back < INT32_MAX ? (uint32_t)back : INT32_MAX, 1};
  LLVMMetadataRef parts[3] = {LL->MDStringInContext2(e->context, "branch_weights", 14)};
  for (int i = 0; i < 2; i++)
    parts[i + 1] = LL->ValueAsMetadata(LL->ConstInt(e->i32, weights[i], 0));
  LLVMMetadataRef node = LL->MDNodeInContext2(e->context, parts, 3);
  const unsigned kind = LL->GetMDKindIDInContext(e->context, "prof", 4);
  LL->SetMetadata(branch, kind, LL->MetadataAsValue(e->context, node));
}

LLVMValueRef kiln__llvm_emit_intrinsic(kiln__llvm_emitter *e, const char *name, LLVMTypeRef *types,
                                       int type_count, LLVMValueRef *args, int arg_count) {
  size_t length = strlen(name);
  unsigned id = LL->LookupIntrinsicID(name, length);
  if (id == 0) { /* calling it all the same would crash */
    e->missing = name;
    return args[0];
  }
  LLVMValueRef callee = LL->GetIntrinsicDeclaration(e->module, id, types, (size_t)type_count);
  LLVMTypeRef type = LL->IntrinsicGetType(e->context, id, types, (size_t)type_count);
  return LL->BuildCall2(BUILD, type, callee, args, (unsigned)arg_count, "");
}

LLVMValueRef kiln__llvm_emit_mask(const kiln__llvm_emitter *e, LLVMValueRef left) {
  LLVMValueRef few = LL->BuildCast(BUILD, LLVMTrunc, left, e->i32, "");
  return LL->BuildICmp(BUILD, LLVMIntSGT, kiln__llvm_emit_splat(e, few, e->width),
                       kiln__llvm_emit_iota(e, 0, e->width), "");
}

static LLVMValueRef splat_constant(const kiln__llvm_emitter *e, LLVMValueRef scalar) {
  if (e->width == 1) return scalar;
  LLVMValueRef lanes[64];
  for (int i = 0; i < e->width; i++) lanes[i] = scalar;
  return LL->ConstVector(lanes, (unsigned)e->width);
}

static LLVMValueRef emit_constant(const kiln__llvm_emitter *e, const kiln_loop_inst *inst) {
  LLVMTypeRef type = kiln__llvm_emit_scalar_type(e, inst->dtype);
  bool is_float = kiln_loop_class(inst->dtype) == KILN_LOOP_CLASS_F;
  return splat_constant(e, is_float ? LL->ConstReal(type, inst->imm.f)
                                    : LL->ConstInt(type, (unsigned long long)inst->imm.i, 1));
}

static LLVMValueRef emit_scalar(const kiln__llvm_emitter *e, const kiln_loop_inst *inst) {
  LLVMValueRef value = e->scalars[inst->index];
  if (inst->dtype == KILN_DTYPE_BOOL)
    value = LL->BuildICmp(BUILD, LLVMIntNE, value, kiln__llvm_emit_index(e, 0), "");
  return kiln__llvm_emit_splat(e, value, e->width);
}

/* -- Calls into runtime/math -- */

/* Operands and result are vectors of `lanes` elements of these types. The library's vectors of one
 * element are numbers here. */
static LLVMValueRef call_math(kiln__llvm_emitter *e, const char *name, LLVMTypeRef result_scalar,
                              LLVMTypeRef scalar, int lanes, LLVMValueRef *args, int count) {
  LLVMTypeRef result = LL->VectorType(result_scalar, (unsigned)lanes);
  LLVMTypeRef operand = LL->VectorType(scalar, (unsigned)lanes), params[2] = {operand, operand};
  LLVMTypeRef type = LL->FunctionType(result, params, (unsigned)count, 0);
  LLVMValueRef callee = LL->GetNamedFunction(e->module, name);
  if (!callee) callee = LL->AddFunction(e->module, name, type);
  e->math = true;
  LLVMValueRef vectors[2] = {0};
  for (int a = 0; a < count; a++)
    vectors[a] = LL->BuildCast(BUILD, LLVMBitCast, args[a], operand, "");
  LLVMValueRef value = LL->BuildCall2(BUILD, type, callee, vectors, (unsigned)count, "");
  return lanes == 1 ? LL->BuildCast(BUILD, LLVMBitCast, value, result_scalar, "") : value;
}

/* The first elements of a vector of `to`, where there are `from`; numbers are vectors of one. */
static LLVMValueRef resize(const kiln__llvm_emitter *e, LLVMValueRef value, int from, int to) {
  LLVMValueRef lanes[KILN_LOOP_LANES], zero = LL->ConstInt(e->i32, 0, 0);
  if (from == to) return value;
  if (from == 1) return kiln__llvm_emit_splat(e, value, to);
  if (to == 1) return LL->BuildExtractElement(BUILD, value, zero, "");
  for (int i = 0; i < to; i++) lanes[i] = LL->ConstInt(e->i32, (unsigned)(i % from), 0);
  return LL->BuildShuffleVector(BUILD, value, value, LL->ConstVector(lanes, (unsigned)to), "");
}

/* Elements `first` and following of a vector; one is a number. */
static LLVMValueRef part(const kiln__llvm_emitter *e, LLVMValueRef value, int first, int count) {
  if (count == 1)
    return LL->BuildExtractElement(BUILD, value, LL->ConstInt(e->i32, (unsigned)first, 0), "");
  return LL->BuildShuffleVector(BUILD, value, value, kiln__llvm_emit_iota(e, first, count), "");
}

/* The vector of `width` whose parts are these vectors of `lanes`; of the last one what is needed.
 */
static LLVMValueRef join(const kiln__llvm_emitter *e, const LLVMValueRef *parts, int lanes,
                         int width) {
  if (width <= lanes) return resize(e, parts[0], lanes, width);
  int low = lanes;
  while (2 * low < width) low *= 2;
  LLVMValueRef first = join(e, parts, lanes, low);
  LLVMValueRef rest = join(e, parts + low / lanes, lanes, width - low);
  rest = resize(e, rest, width - low, low);
  return LL->BuildShuffleVector(BUILD, first, rest, kiln__llvm_emit_iota(e, 0, width), "");
}

/* The same of vectors of `width`, which takes several calls where that is more, and fills a vector
 * where it is less: a row of 13 elements is 8 and 5. The calls stand side by side (interleave.c).
 */
static LLVMValueRef call_wide(kiln__llvm_emitter *e, const char *name, LLVMTypeRef result_scalar,
                              LLVMTypeRef scalar, int lanes, int width, LLVMValueRef *args,
                              int count) {
  LLVMValueRef parts[KILN_LOOP_LANES][2], results[KILN_LOOP_LANES];
  const int calls = (width + lanes - 1) / lanes;
  for (int c = 0; c < calls; c++) {
    const int first = c * lanes, size = width - first < lanes ? width - first : lanes;
    for (int a = 0; a < count; a++) {
      parts[c][a] = calls == 1 ? args[a] : part(e, args[a], first, size);
      parts[c][a] = resize(e, parts[c][a], size, lanes);
    }
  }
  for (int c = 0; c < calls; c++)
    results[c] = call_math(e, name, result_scalar, scalar, lanes, parts[c], count);
  return join(e, results, lanes, width);
}

/* LLVM 19 makes one instruction of sign or bit operations with a constant and of a select between
 * their result and an operand of theirs (AVX-512's masked VPTERNLOG with an operand in memory), and
 * gets the operands' order wrong. What stands behind a fence is not merged; it costs nothing. */
static LLVMValueRef fence(kiln__llvm_emitter *e, LLVMValueRef value, kiln_dtype dtype) {
  const int size = kiln_loop_size(dtype);
  if (e->target->isa != KILN_ISA_AVX512 || size < 4) return value;
  const bool is_float = kiln_loop_class(dtype) == KILN_LOOP_CLASS_F;
  LLVMTypeRef type = kiln__llvm_emit_vector_type(e, size == 8 ? KILN_DTYPE_F64 : KILN_DTYPE_F32);
  if (!is_float) value = LL->BuildCast(BUILD, LLVMBitCast, value, type, "");
  value = kiln__llvm_emit_intrinsic(e, "llvm.arithmetic.fence", &type, 1, &value, 1);
  if (is_float) return value;
  return LL->BuildCast(BUILD, LLVMBitCast, value, kiln__llvm_emit_vector_type(e, dtype), "");
}

/* An operand of a select. */
static LLVMValueRef select_operand(kiln__llvm_emitter *e, int value) {
  const kiln_loop_inst *inst = &e->nest->body.data[value];
  switch (inst->op) {
    case KILN_LOOP_and:
    case KILN_LOOP_or:
    case KILN_LOOP_xor:
    case KILN_LOOP_not: return fence(e, e->values[value], inst->dtype);
    default: return e->values[value];
  }
}

/* A function of functions.def. f64 in a vector as wide as f32's takes two calls. */
static LLVMValueRef emit_math(kiln__llvm_emitter *e, const kiln_loop_inst *inst, const char *name) {
  char symbol[64];
  const bool is_f64 = inst->dtype == KILN_DTYPE_F64;
  const int lanes = is_f64 && !e->target->gpu ? e->target->lanes / 2 : e->target->lanes;
  const int count = kiln_loop_ops[inst->op].arity;
  LLVMTypeRef type = kiln__llvm_emit_scalar_type(e, inst->dtype);
  LLVMValueRef args[2];
  snprintf(symbol, sizeof symbol, "kiln_math_%s_%s", name, is_f64 ? "f64v" : "f32v");
  for (int a = 0; a < count; a++) args[a] = e->values[inst->args[a]];
  return call_wide(e, symbol, type, type, lanes, e->width, args, count);
}

/* -- Casts -- */

static LLVMValueRef cast_to(kiln__llvm_emitter *e, LLVMOpcode op, LLVMValueRef value,
                            LLVMTypeRef scalar) {
  return LL->BuildCast(BUILD, op, value, kiln__llvm_emit_vector_of(e, scalar), "");
}

static LLVMValueRef cast_half(kiln__llvm_emitter *e, LLVMValueRef value, kiln_dtype from,
                              kiln_dtype to) {
  LLVMTypeRef f32 = LL->FloatTypeInContext(e->context), i32 = e->i32;
  bool widen = kiln_loop_class(from) == KILN_LOOP_CLASS_H;
  bool bf16 = from == KILN_DTYPE_BF16 || to == KILN_DTYPE_BF16;
  if (widen) {
    value = cast_to(e, LLVMZExt, value, e->i32);
    return call_wide(e, bf16 ? "kiln_math_from_bf16_f32v" : "kiln_math_from_f16_f32v", f32, i32,
                     e->target->lanes, e->width, &value, 1);
  }
  value = call_wide(e, bf16 ? "kiln_math_to_bf16_f32v" : "kiln_math_to_f16_f32v", i32, f32,
                    e->target->lanes, e->width, &value, 1);
  return cast_to(e, LLVMTrunc, value, kiln__llvm_emit_scalar_type(e, to));
}

static bool is_unsigned(kiln_dtype dtype) {
  return dtype == KILN_DTYPE_U8 || dtype == KILN_DTYPE_BOOL;
}

/* A float as i32 or i64, of which the least number stands for what is out of range and for NaN. On
 * x86 the machine's instruction does so; on a GPU it would give the nearest, and 0. */
static LLVMValueRef to_integer(kiln__llvm_emitter *e, LLVMValueRef value, kiln_dtype from,
                               LLVMTypeRef to, int bits) {
  LLVMValueRef whole = cast_to(e, LLVMFPToSI, value, to);
  if (!e->target->gpu) return whole;
  LLVMTypeRef type = kiln__llvm_emit_scalar_type(e, from);
  const double beyond = bits == 64 ? 0x1p63 : 0x1p31;
  /* Below the least number of i32 some numbers of f64 still round to it. */
  const bool exact = bits == 64 || from == KILN_DTYPE_F32;
  LLVMValueRef least_number = LL->ConstReal(type, exact ? -beyond : -beyond - 1);
  LLVMValueRef below = LL->BuildFCmp(BUILD, LLVMRealOLT, value, LL->ConstReal(type, beyond), "");
  LLVMValueRef above =
      LL->BuildFCmp(BUILD, exact ? LLVMRealOGE : LLVMRealOGT, value, least_number, "");
  LLVMValueRef fits = LL->BuildBinOp(BUILD, LLVMAnd, below, above, "");
  LLVMValueRef minimum = LL->ConstInt(to, 1ull << (bits - 1), 0);
  return LL->BuildSelect(BUILD, fits, whole, minimum, "");
}

/* Conversions from float go through i32, or i64 for i64. */
static LLVMValueRef emit_cast(kiln__llvm_emitter *e, const kiln_loop_inst *inst) {
  LLVMValueRef value = e->values[inst->args[0]];
  kiln_dtype from = e->nest->body.data[inst->args[0]].dtype, to = inst->dtype;
  int class = kiln_loop_class(from), to_class = kiln_loop_class(to);
  LLVMTypeRef type = kiln__llvm_emit_scalar_type(e, to);
  if (from == to) return value;
  if ((class | to_class) & KILN_LOOP_CLASS_H) return cast_half(e, value, from, to);
  if (to == KILN_DTYPE_BOOL) {
    LLVMValueRef zero = LL->ConstNull(LL->TypeOf(value));
    return class == KILN_LOOP_CLASS_F ? LL->BuildFCmp(BUILD, LLVMRealUNE, value, zero, "")
                                      : LL->BuildICmp(BUILD, LLVMIntNE, value, zero, "");
  }
  if (class == KILN_LOOP_CLASS_F) {
    if (to_class == KILN_LOOP_CLASS_F)
      return cast_to(e, to == KILN_DTYPE_F64 ? LLVMFPExt : LLVMFPTrunc, value, type);
    if (to == KILN_DTYPE_I64) return to_integer(e, value, from, type, 64);
    value = to_integer(e, value, from, e->i32, 32);
    return to == KILN_DTYPE_I32 ? value : cast_to(e, LLVMTrunc, value, type);
  }
  if (to_class == KILN_LOOP_CLASS_F)
    return cast_to(e, is_unsigned(from) ? LLVMUIToFP : LLVMSIToFP, value, type);
  int from_bits = from == KILN_DTYPE_BOOL ? 1 : kiln_loop_size(from) * 8;
  int to_bits = kiln_loop_size(to) * 8;
  if (from_bits == to_bits) return value; /* i8 and u8 */
  if (from_bits > to_bits) return cast_to(e, LLVMTrunc, value, type);
  return cast_to(e, is_unsigned(from) ? LLVMZExt : LLVMSExt, value, type);
}

/* -- Opcodes -- */

static LLVMValueRef emit_compare(kiln__llvm_emitter *e, const kiln_loop_inst *inst,
                                 LLVMRealPredicate f, LLVMIntPredicate i, LLVMIntPredicate u) {
  LLVMValueRef a = e->values[inst->args[0]], b = e->values[inst->args[1]];
  kiln_dtype dtype = e->nest->body.data[inst->args[0]].dtype;
  if (kiln_loop_class(dtype) == KILN_LOOP_CLASS_F) return LL->BuildFCmp(BUILD, f, a, b, "");
  return LL->BuildICmp(BUILD, is_unsigned(dtype) ? u : i, a, b, "");
}

/* Neither NaN nor a zero, for which it matters which of two equal numbers is taken. */
static bool is_plain_number(const kiln__llvm_emitter *e, int value) {
  const kiln_loop_inst *inst = &e->nest->body.data[value];
  return inst->op == KILN_LOOP_const && inst->imm.f == inst->imm.f && inst->imm.f != 0;
}

/* The first where it is beyond the second or NaN. */
static LLVMValueRef min_max_of(const kiln__llvm_emitter *e, bool is_min, kiln_dtype dtype,
                               LLVMValueRef a, LLVMValueRef b) {
  if (kiln_loop_class(dtype) != KILN_LOOP_CLASS_F) {
    bool u = is_unsigned(dtype);
    LLVMIntPredicate p = is_min ? (u ? LLVMIntULT : LLVMIntSLT) : (u ? LLVMIntUGT : LLVMIntSGT);
    return LL->BuildSelect(BUILD, LL->BuildICmp(BUILD, p, a, b, ""), a, b, "");
  }
  LLVMValueRef take_a = LL->BuildFCmp(BUILD, is_min ? LLVMRealOLT : LLVMRealOGT, a, b, "");
  LLVMValueRef r = LL->BuildSelect(BUILD, take_a, a, b, "");
  return LL->BuildSelect(BUILD, LL->BuildFCmp(BUILD, LLVMRealUNO, a, a, ""), a, r, "");
}

/* min and max. Beside a plain constant the form is that of the machine's own instruction, one
 * instead of three. */
static LLVMValueRef emit_min_max(kiln__llvm_emitter *e, const kiln_loop_inst *inst) {
  LLVMValueRef a = e->values[inst->args[0]], b = e->values[inst->args[1]];
  bool is_min = inst->op == KILN_LOOP_min;
  LLVMRealPredicate beyond = is_min ? LLVMRealOLT : LLVMRealOGT;
  if (kiln_loop_class(inst->dtype) != KILN_LOOP_CLASS_F) {
    return min_max_of(e, is_min, inst->dtype, a, b);
  }
  if (is_plain_number(e, inst->args[1])) {
    LLVMValueRef take_b = LL->BuildFCmp(BUILD, beyond, b, a, "");
    return LL->BuildSelect(BUILD, take_b, b, a, "");
  }
  if (is_plain_number(e, inst->args[0]))
    return LL->BuildSelect(BUILD, LL->BuildFCmp(BUILD, beyond, a, b, ""), a, b, "");
  return min_max_of(e, is_min, inst->dtype, a, b);
}

LLVMValueRef kiln__llvm_emit_join(kiln__llvm_emitter *e, kiln_loop_opcode op, kiln_dtype dtype,
                                  LLVMValueRef a, LLVMValueRef b) {
  const bool is_float = kiln_loop_class(dtype) == KILN_LOOP_CLASS_F;
  switch (op) {
    case KILN_LOOP_prod: return LL->BuildBinOp(BUILD, is_float ? LLVMFMul : LLVMMul, a, b, "");
    case KILN_LOOP_amax:
    case KILN_LOOP_amin: return min_max_of(e, op == KILN_LOOP_amin, dtype, a, b);
    case KILN_LOOP_any: return LL->BuildBinOp(BUILD, LLVMOr, a, b, "");
    case KILN_LOOP_all: return LL->BuildBinOp(BUILD, LLVMAnd, a, b, "");
    default: return LL->BuildBinOp(BUILD, is_float ? LLVMFAdd : LLVMAdd, a, b, "");
  }
}

static LLVMValueRef whole(const kiln__llvm_emitter *e, kiln_dtype dtype, int64_t value) {
  LLVMTypeRef type = kiln__llvm_emit_scalar_type(e, dtype);
  return splat_constant(e, LL->ConstInt(type, (unsigned long long)value, 1));
}
/* The machine traps where a divisor is 0, or the quotient is the first that is too large. */
static LLVMValueRef emit_quotient(const kiln__llvm_emitter *e, kiln_dtype dtype, LLVMValueRef a,
                                  LLVMValueRef b) {
  LLVMTypeRef type = LL->TypeOf(a);
  LLVMValueRef zero = LL->ConstNull(type), one = whole(e, dtype, 1);
  LLVMValueRef none = LL->BuildICmp(BUILD, LLVMIntEQ, b, zero, "");
  LLVMValueRef by = LL->BuildSelect(BUILD, none, one, b, "");
  if (is_unsigned(dtype))
    return LL->BuildSelect(BUILD, none, zero, LL->BuildBinOp(BUILD, LLVMUDiv, a, by, ""), "");
  LLVMValueRef back = LL->BuildICmp(BUILD, LLVMIntEQ, b, whole(e, dtype, -1), "");
  by = LL->BuildSelect(BUILD, back, one, by, "");
  LLVMValueRef value = LL->BuildBinOp(BUILD, LLVMSDiv, a, by, "");
  LLVMValueRef minus = LL->BuildBinOp(BUILD, LLVMSub, zero, a, "");
  value = LL->BuildSelect(BUILD, back, minus, value, "");
  return LL->BuildSelect(BUILD, none, zero, value, "");
}

static LLVMValueRef emit_custom(kiln__llvm_emitter *e, const kiln_loop_inst *inst) {
  LLVMTypeRef type = kiln__llvm_emit_vector_type(e, inst->dtype);
  bool is_float = kiln_loop_class(inst->dtype) == KILN_LOOP_CLASS_F;
  LLVMValueRef args[3] = {0};
  for (int a = 0; a < kiln_loop_ops[inst->op].arity; a++) args[a] = e->values[inst->args[a]];
  switch (inst->op) {
    case KILN_LOOP_const: return emit_constant(e, inst);
    case KILN_LOOP_scalar: return emit_scalar(e, inst);
    case KILN_LOOP_dim:
      return kiln__llvm_emit_splat(e, kiln__llvm_emit_dim(e, inst->offset), e->width);
    case KILN_LOOP_cast: return emit_cast(e, inst);
    case KILN_LOOP_select:
      return LL->BuildSelect(BUILD, args[0], select_operand(e, inst->args[1]),
                             select_operand(e, inst->args[2]), "");
    case KILN_LOOP_min:
    case KILN_LOOP_max: return emit_min_max(e, inst);
    case KILN_LOOP_copysign:
      return fence(e, kiln__llvm_emit_intrinsic(e, "llvm.copysign", &type, 1, args, 2),
                   inst->dtype);
    case KILN_LOOP_quot: return emit_quotient(e, inst->dtype, args[0], args[1]);
    case KILN_LOOP_neg:
      if (is_float) return LL->BuildFNeg(BUILD, args[0], "");
      return LL->BuildBinOp(BUILD, LLVMSub, LL->ConstNull(type), args[0], "");
    case KILN_LOOP_abs: {
      if (is_float) return kiln__llvm_emit_intrinsic(e, "llvm.fabs", &type, 1, args, 1);
      if (is_unsigned(inst->dtype)) return args[0];
      LLVMValueRef zero = LL->ConstNull(type);
      LLVMValueRef below = LL->BuildICmp(BUILD, LLVMIntSLT, args[0], zero, "");
      LLVMValueRef minus = LL->BuildBinOp(BUILD, LLVMSub, zero, args[0], "");
      return LL->BuildSelect(BUILD, below, minus, args[0], "");
    }
    case KILN_LOOP_not: {
      LLVMTypeRef scalar = kiln__llvm_emit_scalar_type(e, inst->dtype);
      LLVMValueRef ones = splat_constant(e, LL->ConstInt(scalar, ~0ull, 1));
      return LL->BuildBinOp(BUILD, LLVMXor, args[0], ones, "");
    }
    default: return args[0];
  }
}

#define EMIT_ARITH(float_op, int_op)                                                            \
  LL->BuildBinOp(                                                                               \
      BUILD, kiln_loop_class(inst->dtype) == KILN_LOOP_CLASS_F ? LLVM##float_op : LLVM##int_op, \
      e->values[inst->args[0]], e->values[inst->args[1]], "")
#define EMIT_COMPARE(float_predicate, signed_predicate, unsigned_predicate)   \
  emit_compare(e, inst, LLVMReal##float_predicate, LLVMInt##signed_predicate, \
               LLVMInt##unsigned_predicate)
#define EMIT_UNARY(name) \
  kiln__llvm_emit_intrinsic(e, "llvm." #name, &type, 1, &e->values[inst->args[0]], 1)
#define EMIT_MATH(name) fence(e, emit_math(e, inst, #name), inst->dtype)
#define EMIT_CUSTOM emit_custom(e, inst)

LLVMValueRef kiln__llvm_emit_value(kiln__llvm_emitter *e, const kiln_loop_inst *inst) {
  LLVMTypeRef type = kiln__llvm_emit_vector_type(e, inst->dtype);
  switch (inst->op) {
#define KILN_LOOP_OP(name, arity, rule, classes, eval, emit) \
  case KILN_LOOP_##name: return EMIT_##emit;
#include "codegen/loop/opcodes.def"
#undef KILN_LOOP_OP
    default: return NULL;
  }
}
