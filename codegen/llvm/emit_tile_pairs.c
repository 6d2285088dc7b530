/* emit_tile_pairs.c: contractions whose factors are pairs of bf16 (schedule.h): a lane of 32 bits
 * has two iterations of a column, or of a row in all lanes. Where the CPU multiplies pairs, that is
 * one instruction; elsewhere each half is widened, the second one first, as that instruction sums.
 */
#include "codegen/llvm/emit_tile.h"

/* Its lanes: of a panel, or of one row. */
static LLVMValueRef load_pair(const tile *x, int i, int row, int vector) {
  kiln__llvm_emitter *e = x->t->e;
  LLVMValueRef at = kiln__llvm_iteration_at(x, i, row, vector);
  const int align = kiln_loop_size(KILN_DTYPE_BF16);
  if (e->tile_moves[i] & VECTORS)
    return load_aligned(e, kiln__llvm_emit_vector_of(e, e->i32), at, align);
  return kiln__llvm_emit_splat(e, load_aligned(e, e->i32, at, align), e->width);
}

/* One half of each lane, as f32. */
static LLVMValueRef half_of(kiln__llvm_emitter *e, LLVMValueRef pair, bool second) {
  LLVMValueRef by = LL->ConstInt(e->i32, second ? 0xffff0000u : 16, 0);
  by = kiln__llvm_emit_splat(e, by, e->width);
  return LL->BuildCast(BUILD, LLVMBitCast, binary(e, second ? LLVMAnd : LLVMShl, pair, by),
                       kiln__llvm_emit_vector_type(e, KILN_DTYPE_F32), "");
}

/* Its instruction for vectors of the emitter's width; NULL: there is none. */
static const char *instruction_of(const kiln__llvm_emitter *e) {
  if (!e->target->pairs) return NULL;
  return e->width == 16  ? "llvm.x86.avx512bf16.dpbf16ps.512"
         : e->width == 8 ? "llvm.x86.avx512bf16.dpbf16ps.256"
         : e->width == 4 ? "llvm.x86.avx512bf16.dpbf16ps.128"
                         : NULL;
}

static LLVMValueRef product(kiln__llvm_emitter *e, LLVMValueRef a, LLVMValueRef b,
                            LLVMValueRef sum) {
  const char *instruction = instruction_of(e);
  if (instruction) {
    LLVMTypeRef type = LL->VectorType(LL->BFloatTypeInContext(e->context), 2 * (unsigned)e->width);
    LLVMValueRef args[3] = {sum, LL->BuildCast(BUILD, LLVMBitCast, a, type, ""),
                            LL->BuildCast(BUILD, LLVMBitCast, b, type, "")};
    return kiln__llvm_emit_intrinsic(e, instruction, NULL, 0, args, 3);
  }
  for (int second = 1; second >= 0; second--)
    sum = kiln__llvm_emit_product(e, half_of(e, a, second), half_of(e, b, second), sum);
  return sum;
}

/* The load of a factor, behind its cast. */
static int load_of(const tile *x, const kiln_loop_inst *contract, int factor) {
  return x->t->nest->body.data[contract->args[factor]].args[0];
}

void kiln__llvm_emit_pairs(const tile *x, int chain) {
  kiln__llvm_emitter *e = x->t->e;
  for (int row = 0; row < x->rows; row++) {
    for (int vector = 0; vector < x->vectors; vector++) {
      LLVMValueRef *values = values_at(x, e->tile_values, row, vector);
      for (int i = x->c.inner_open + 1; i < x->c.end; i++) {
        const kiln_loop_inst *inst = &x->t->nest->body.data[i];
        if (inst->op == KILN_LOOP_load) {
          if (!kiln__llvm_take_known(x, e->tile_values, i, row, vector))
            values[i] = load_pair(x, i, row, vector);
        } else if (inst->op == KILN_LOOP_contract) {
          const int align = kiln_loop_size(inst->dtype);
          LLVMValueRef at = kiln__llvm_sum_at(x, i, row, vector, chain);
          LLVMValueRef sum =
              load_aligned(e, kiln__llvm_emit_vector_type(e, inst->dtype), at, align);
          sum = product(e, values[load_of(x, inst, 0)], values[load_of(x, inst, 1)], sum);
          store_aligned(e, sum, at, align);
        }
      }
    }
  }
}
