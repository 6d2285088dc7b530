/* interleave.c: a function of runtime/math of a vector of several registers is a call for each of
 * them. These calls become the function's instructions in turns, the first one for all registers,
 * then the second. As LLVM inlines calls, one behind the other, each instruction waits for the one
 * before it, and a CPU does not look far enough ahead to begin with the next register meanwhile. */
#include "codegen/llvm/interleave.h"

enum {
  CALLS = 4,     /* in turns: more would not stay in registers */
  LENGTH = 128,  /* instructions of a function; longer ones keep registers full alone */
  NO_MAKER = -1, /* of a constant */
};

/* A function of one block. */
typedef struct body {
  LLVMValueRef params[2], insts[LENGTH + 1]; /* the return is the last one */
  int param_count, count;
} body;

static bool read_body(const kiln__llvm *ll, LLVMValueRef function, int param_count, body *out) {
  if (ll->CountBasicBlocks(function) != 1 || param_count > 2) return false;
  *out = (body){.param_count = param_count};
  for (int i = 0; i < param_count; i++) out->params[i] = ll->GetParam(function, (unsigned)i);
  LLVMValueRef inst = ll->GetFirstInstruction(ll->GetFirstBasicBlock(function));
  for (; inst && out->count <= LENGTH; inst = ll->GetNextInstruction(inst))
    out->insts[out->count++] = inst;
  return !inst && ll->IsAReturnInst(out->insts[out->count - 1]);
}

/* Which instruction of the body, or behind them which parameter, makes a value. */
static int maker_of(const body *b, LLVMValueRef value) {
  for (int i = 0; i < b->count; i++)
    if (b->insts[i] == value) return i;
  for (int i = 0; i < b->param_count; i++)
    if (b->params[i] == value) return b->count + i;
  return NO_MAKER;
}

static void inline_in_turns(const kiln__llvm *ll, LLVMBuilderRef builder, const body *b,
                            LLVMValueRef *calls, int count) {
  LLVMValueRef made[LENGTH + 1 + 2][CALLS], result = ll->GetOperand(b->insts[b->count - 1], 0);
  for (int p = 0; p < b->param_count; p++)
    for (int c = 0; c < count; c++) made[b->count + p][c] = ll->GetOperand(calls[c], (unsigned)p);
  ll->PositionBuilderBefore(builder, calls[0]);
  for (int i = 0; i < b->count - 1; i++) {
    for (int c = 0; c < count; c++) {
      made[i][c] = ll->InstructionClone(b->insts[i]);
      ll->InsertIntoBuilder(builder, made[i][c]);
    }
    const int operands = ll->GetNumOperands(b->insts[i]);
    for (int k = 0; k < operands; k++) {
      const int maker = maker_of(b, ll->GetOperand(b->insts[i], (unsigned)k));
      for (int c = 0; c < count && maker != NO_MAKER; c++)
        ll->SetOperand(made[i][c], (unsigned)k, made[maker][c]);
    }
  }
  const int maker = maker_of(b, result);
  for (int c = 0; c < count; c++) {
    ll->ReplaceAllUsesWith(calls[c], maker == NO_MAKER ? result : made[maker][c]);
    ll->InstructionEraseFromParent(calls[c]);
  }
}

static bool takes(const kiln__llvm *ll, LLVMValueRef call, LLVMValueRef value) {
  const int count = ll->GetNumOperands(call);
  for (int i = 0; i < count; i++)
    if (ll->GetOperand(call, (unsigned)i) == value) return true;
  return false;
}

/* Calls of one function from `inst` on, of which none takes another's result. */
static int find_calls(const kiln__llvm *ll, LLVMValueRef inst, LLVMValueRef *out_calls) {
  int count = 0;
  for (; inst && count < CALLS && ll->IsACallInst(inst); inst = ll->GetNextInstruction(inst)) {
    if (count && ll->GetCalledValue(inst) != ll->GetCalledValue(out_calls[0])) break;
    for (int i = 0; i < count; i++)
      if (takes(ll, inst, out_calls[i])) return count;
    out_calls[count++] = inst;
  }
  return count;
}

void kiln__llvm_interleave(const kiln__llvm *ll, LLVMContextRef context, LLVMValueRef function) {
  LLVMBuilderRef builder = ll->CreateBuilderInContext(context);
  LLVMBasicBlockRef block = ll->GetFirstBasicBlock(function);
  for (; block; block = ll->GetNextBasicBlock(block)) {
    for (LLVMValueRef inst = ll->GetFirstInstruction(block), next; inst; inst = next) {
      LLVMValueRef calls[CALLS];
      const int count = find_calls(ll, inst, calls);
      body b;
      next = ll->GetNextInstruction(count ? calls[count - 1] : inst);
      if (count > 1 && read_body(ll, ll->GetCalledValue(inst), ll->GetNumOperands(inst) - 1, &b))
        inline_in_turns(ll, builder, &b, calls, count);
    }
  }
  ll->DisposeBuilder(builder);
}
