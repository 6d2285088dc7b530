/* emit_gather.c: loads at places that data tells, and the check that these are in bounds; stores of
 * elements that lie apart.
 *
 * An index that does not move with the vectors' loop moves the address of the whole vector, as in
 * an embedding's row; else each lane has an address. A check gives all lanes an index in bounds,
 * those too that do not exist, and reports a fault for those that do. */
#include "codegen/llvm/emit_state.h"

LLVMValueRef kiln__llvm_emit_check(kiln__llvm_emitter *e, const kiln_loop_inst *inst,
                                   LLVMValueRef mask) {
  LLVMValueRef index = e->values[inst->args[0]];
  LLVMValueRef extent = kiln__llvm_emit_splat(e, kiln__llvm_emit_dim(e, inst->offset), e->width);
  LLVMValueRef beyond = LL->BuildICmp(BUILD, LLVMIntUGE, index, extent, "");
  LLVMValueRef any = mask ? binary(e, LLVMAnd, beyond, mask) : beyond;
  if (e->width > 1) {
    LLVMTypeRef bits = LL->IntTypeInContext(e->context, (unsigned)e->width);
    any = LL->BuildCast(BUILD, LLVMBitCast, any, bits, "");
    any = LL->BuildICmp(BUILD, LLVMIntNE, any, LL->ConstNull(bits), "");
  }
  LLVMBasicBlockRef behind = begin_if(e, any);
  LL->BuildStore(BUILD, LL->ConstInt(e->i32, 1, 0), e->fault);
  end_if(e, behind);
  return LL->BuildSelect(BUILD, beyond, LL->ConstNull(LL->TypeOf(index)), index, "");
}

static LLVMValueRef moved_by(const kiln__llvm_emitter *e, const kiln_loop_inst *inst, int lane,
                             LLVMValueRef at) {
  LLVMValueRef index = lane_of(e, e->values[inst->args[0]], lane);
  index = binary(e, LLVMMul, index, kiln__llvm_emit_dim(e, inst->imm.step));
  return offset_by(e, inst->dtype, at, index);
}

LLVMValueRef kiln__llvm_emit_row(const kiln__llvm_emitter *e, const kiln_loop_inst *inst,
                                 LLVMValueRef at) {
  return moved_by(e, inst, 0, at);
}

LLVMValueRef kiln__llvm_emit_gather(const kiln__llvm_emitter *e, const kiln_loop_inst *inst,
                                    LLVMValueRef at, kiln_dim step, LLVMValueRef last) {
  LLVMTypeRef scalar = kiln__llvm_emit_memory_type(e, inst->dtype);
  LLVMValueRef value = LL->GetPoison(memory_vector(e, inst->dtype));
  for (int i = 0; i < e->width; i++) {
    LLVMValueRef lane = kiln__llvm_emit_index(e, i);
    if (last && i > 0) lane = least(e, lane, last);
    LLVMValueRef way = binary(e, LLVMMul, lane, kiln__llvm_emit_dim(e, step));
    LLVMValueRef at_row = moved_by(e, inst, i, offset_by(e, inst->dtype, at, way));
    LLVMValueRef element = LL->BuildLoad2(BUILD, scalar, at_row, "");
    if (e->width == 1) return element;
    value = LL->BuildInsertElement(BUILD, value, element, LL->ConstInt(e->i32, (unsigned)i, 0), "");
  }
  return value;
}

/* -- Stores apart -- */

/* Of lanes 0, 1, .. in steps of 2: lanes 0, none, 1, none, .. of a vector twice as wide, the mask
 * of which has every second one of the first 2 * left. */
void kiln__llvm_emit_spread(kiln__llvm_emitter *e, LLVMValueRef value, LLVMValueRef address,
                            int align, int step, LLVMValueRef left) {
  const int width = e->width * step;
  LLVMValueRef from[KILN_LOOP_LANES], is[KILN_LOOP_LANES];
  for (int i = 0; i < width; i++) {
    from[i] = LL->ConstInt(e->i32, (unsigned)(i / step), 0);
    is[i] = LL->ConstInt(e->i1, i % step == 0, 0);
  }
  LLVMValueRef wide =
      LL->BuildShuffleVector(BUILD, value, value, LL->ConstVector(from, (unsigned)width), "");
  LLVMValueRef few = LL->BuildCast(BUILD, LLVMTrunc, left, e->i32, "");
  few = binary(e, LLVMMul, few, LL->ConstInt(e->i32, (unsigned)step, 0));
  LLVMValueRef there = LL->BuildICmp(BUILD, LLVMIntSGT, kiln__llvm_emit_splat(e, few, width),
                                     kiln__llvm_emit_iota(e, 0, width), "");
  store_masked(e, wide, address, align,
               binary(e, LLVMAnd, there, LL->ConstVector(is, (unsigned)width)));
}
