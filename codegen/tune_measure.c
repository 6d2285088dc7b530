/* tune_measure.c: a kernel's arguments, made of its loop IR alone, and what running it takes. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codegen/tune.h"
#include "runtime/pack.h"

enum {
  MOST_BYTES = 1 << 28,  /* of a kernel's tensors */
  MOST_PACKED = 1 << 26, /* of all copies of what is packed */
  SAMPLE_NS = 150000,    /* that a turn takes at least */
  SLOW_NS = 2000000,     /* of a call: fewer turns do */
  MOST_CALLS = 1 << 14,  /* of a turn */
  ROUNDS = 32,           /* at most */
  FEW_ROUNDS = 3,        /* after which one that is far slower is given up */
  INDEX = 16             /* below which integers are that nobody checks */
};
static const double NOISE = 0.97, HOPELESS = 1.03;

/* -- Arguments -- */

/* The same numbers for each schedule. */
static uint32_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*state >> 32);
}

/* Floats of 0.5 to 1 with either sign, bools, and integers below `below`: no NaN comes of the
 * first, nor what a CPU is slow with. */
static void fill(kiln_dtype dtype, void *to, size_t count, uint64_t below) {
  uint64_t state = 1;
  for (size_t i = 0; i < count; i++) {
    const uint32_t r = next_random(&state);
    switch (dtype) {
      case KILN_DTYPE_F32: ((uint32_t *)to)[i] = 0x3f000000 | (r & 0x807fffff); break;
      case KILN_DTYPE_F64:
        ((uint64_t *)to)[i] = UINT64_C(0x3fe0000000000000) | (uint64_t)(r & 0x800fffff) << 32;
        break;
      case KILN_DTYPE_F16: ((uint16_t *)to)[i] = (uint16_t)(0x3800 | (r & 0x83ff)); break;
      case KILN_DTYPE_BF16: ((uint16_t *)to)[i] = (uint16_t)(0x3f00 | (r & 0x807f)); break;
      case KILN_DTYPE_BOOL: ((uint8_t *)to)[i] = r & 1; break;
      case KILN_DTYPE_I64: ((uint64_t *)to)[i] = r % below; break;
      case KILN_DTYPE_I32: ((uint32_t *)to)[i] = (uint32_t)(r % below); break;
      case KILN_DTYPE_I16: ((uint16_t *)to)[i] = (uint16_t)(r % (below < 128 ? below : 128)); break;
      default: ((uint8_t *)to)[i] = (uint8_t)(r % (below < 128 ? below : 128)); break;
    }
  }
}

static void fill_all(kiln__probe *p) {
  const kiln_loop_fn *fn = p->fn;
  for (int i = 0; i < fn->input_count; i++) {
    const kiln_dtype dtype = fn->buffers.data[i].dtype;
    if (p->data[i]) fill(dtype, p->data[i], p->bytes[i] / (size_t)kiln_loop_size(dtype), p->below);
  }
  for (int i = 0; i < fn->scalars.count; i++) {
    if (fn->scalars.data[i] == KILN_DTYPE_F64)
      p->scalars[i].f = 0.5;
    else
      p->scalars[i].i = p->below > 1;
  }
}

/* Of dimensions, for the symbols that there are. */
static kiln_status *work_out(const kiln__probe *p, const kiln_dim *dims, int count,
                             kiln_arena *scratch, int64_t *out) {
  const kiln_dim_program *program = kiln_dim_program_create(scratch, p->fn->dims, dims, count);
  int64_t *room = KILN_NEW_ARRAY(scratch, int64_t, kiln_dim_program_room(program) + 1);
  if (!kiln_dim_program_run(program, p->symbols, room, out))
    return KILN_ERROR(KILN_UNSUPPORTED, "sizes of more than 2^63");
  return NULL;
}

static kiln_status *span_of(const kiln__probe *p, const kiln_loop_buffer *b, kiln_arena *scratch,
                            size_t *out_bytes) {
  kiln_dim dims[2 * KILN_LOOP_MAX_RANK];
  int64_t values[2 * KILN_LOOP_MAX_RANK], span = 1, part;
  for (int d = 0; d < b->rank; d++) {
    dims[d] = b->sizes[d];
    dims[b->rank + d] = b->strides[d];
  }
  KILN_TRY(work_out(p, dims, 2 * b->rank, scratch, values));
  for (int d = 0; d < b->rank; d++) {
    if (values[d] < 1) return KILN_ERROR(KILN_UNSUPPORTED, "a tensor without elements");
    if (__builtin_mul_overflow(values[d] - 1, values[b->rank + d], &part) ||
        __builtin_add_overflow(span, part, &span) || span > MOST_BYTES)
      return KILN_ERROR(KILN_UNSUPPORTED, "a tensor of too many bytes");
  }
  *out_bytes = (size_t)span * (size_t)kiln_loop_size(b->dtype);
  return NULL;
}

/* What all checked indices are below. */
static kiln_status *find_below(kiln__probe *p, kiln_arena *scratch) {
  bool any = false;
  for (int n = 0; n < p->fn->nests.count; n++) {
    const kiln_loop_nest *nest = p->fn->nests.data[n];
    for (int i = 0; i < nest->body.count; i++) {
      int64_t extent;
      if (nest->body.data[i].op != KILN_LOOP_check) continue;
      KILN_TRY(work_out(p, &nest->body.data[i].offset, 1, scratch, &extent));
      if (extent < 1) return KILN_ERROR(KILN_UNSUPPORTED, "no index is good");
      if (!any || (uint64_t)extent < p->below) p->below = (uint64_t)extent;
      any = true;
    }
  }
  return NULL;
}

static bool is_packed(const kiln_compiled *code, int input) {
  for (int i = 0; i < code->info.pack_count; i++)
    if (code->info.packs[i].input == input) return true;
  return false;
}

kiln_status *kiln__probe_open(kiln__probe *p, const kiln_compiled *code, kiln_arena *scratch) {
  const kiln_loop_fn *fn = p->fn;
  size_t all = 0;
  p->below = INDEX;
  p->tensor_count = fn->input_count + fn->output_count;
  if (p->tensor_count > KILN__PROBE_TENSORS || fn->scalars.count > KILN__PROBE_TENSORS)
    return KILN_ERROR(KILN_UNSUPPORTED, "too many tensors");
  KILN_TRY(find_below(p, scratch));
  for (int i = 0; i < p->tensor_count; i++) {
    size_t bytes;
    if (i < fn->input_count && is_packed(code, i)) continue;
    KILN_TRY(span_of(p, &fn->buffers.data[i], scratch, &bytes));
    all += bytes;
    if (all > MOST_BYTES) return KILN_ERROR(KILN_UNSUPPORTED, "tensors of too many bytes");
    KILN_TRY(kiln_budget_check(kiln_budget_current(), bytes));
    p->data[i] = kiln_mem_alloc(p->env->mem, bytes);
    if (!p->data[i]) return kiln_status_oom();
    p->bytes[i] = bytes;
  }
  fill_all(p);
  return NULL;
}

void kiln__probe_close(kiln__probe *p) {
  for (int i = 0; i < p->tensor_count; i++)
    if (p->data[i]) kiln_mem_free(p->env->mem, p->data[i], p->bytes[i]);
  *p = (kiln__probe){0};
}

/* -- A kernel -- */

/* As the device runs it (runtime/device.c). */
typedef struct range_run {
  const kiln__runner *r;
  const kiln_kernel_args *args;
} range_run;

static void run_range(void *data, int64_t begin, int64_t end, int worker) {
  const range_run *run = data;
  kiln_kernel_args args = *run->args;
  if (args.scratch) args.scratch = (char *)args.scratch + (size_t)worker * run->r->scratch_each;
  while (begin < end) {
    kiln_kernel_box box;
    begin += kiln_kernel_next_box(&run->r->work, begin, end, &box);
    run->r->code->fn(&args, &box);
  }
}

/* Gives the fault word. */
static uint32_t run_once(kiln__runner *r) {
  const kiln__probe *p = r->probe;
  const void *data[KILN__PROBE_TENSORS];
  uint32_t fault = 0;
  memcpy(data, p->data, sizeof *data * (size_t)p->tensor_count);
  const char *packed = r->packs;
  if (packed) packed += (size_t)(r->next++ % r->sets) * r->set_bytes;
  for (int i = 0; i < r->code->info.pack_count; i++) {
    size_t bytes = 0;
    (void)kiln_pack_bytes(&r->code->info.packs[i], &bytes);
    data[r->code->info.packs[i].input] = packed;
    packed += (bytes + 63) & ~(size_t)63;
  }
  const kiln_kernel_args args = {.data = (void *const *)data,
                                 .scalars = p->scalars,
                                 .symbols = p->symbols,
                                 .scratch = r->scratch,
                                 .fault = &fault};
  const int64_t extent = kiln_kernel_range(&r->work);
  if (p->env->pool && extent / 2 >= r->work.grain) {
    range_run run = {r, &args};
    kiln_pool_for(p->env->pool, extent, r->work.grain, run_range, &run);
  } else {
    r->code->fn(&args, &r->work.grid);
  }
  return fault;
}

/* Of one thread its own time, in which nobody else has the CPU. */
static uint64_t now_of(const kiln__runner *r) {
  struct timespec t;
  if (r->probe->env->pool || clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return kiln_now_ns();
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Nanoseconds of a call. */
static double turn(kiln__runner *r, int calls) {
  const uint64_t begin = now_of(r);
  for (int i = 0; i < calls; i++) (void)run_once(r);
  return (double)(now_of(r) - begin) / calls;
}

static kiln_status *make_packs(kiln__runner *r) {
  kiln__probe *p = r->probe;
  const kiln_kernel_info *info = &r->code->info;
  for (int i = 0; i < info->pack_count; i++) {
    size_t bytes;
    if (info->packs[i].transform || info->packs[i].of_tensor || info->packs[i].whole ||
        !kiln_pack_bytes(&info->packs[i], &bytes) || bytes > MOST_BYTES)
      return KILN_ERROR(KILN_UNSUPPORTED, "too much is packed");
    r->set_bytes += (bytes + 63) & ~(size_t)63;
  }
  if (r->set_bytes > MOST_BYTES) return KILN_ERROR(KILN_UNSUPPORTED, "too much is packed");
  r->sets = 1;
  while (r->set_bytes && r->sets < KILN__PROBE_SETS &&
         (size_t)r->sets * r->set_bytes < 2 * (size_t)p->machine->l2_bytes &&
         (size_t)(r->sets + 1) * r->set_bytes < MOST_PACKED)
    r->sets++;
  if (!r->set_bytes) return NULL;
  const size_t all = (size_t)r->sets * r->set_bytes;
  KILN_TRY(kiln_budget_check(kiln_budget_current(), all));
  r->packs = kiln_mem_alloc(p->env->mem, all);
  if (!r->packs) return kiln_status_oom();
  r->pack_bytes = all;
  char *at = r->packs;
  for (int i = 0; i < r->sets * info->pack_count; i++) {
    const kiln_kernel_pack *pack = &info->packs[i % info->pack_count];
    const kiln_dtype dtype = p->fn->buffers.data[pack->input].dtype;
    size_t bytes = 0;
    (void)kiln_pack_bytes(pack, &bytes);
    fill(dtype, at, bytes / (size_t)kiln_loop_size(dtype), p->below);
    at += (bytes + 63) & ~(size_t)63;
  }
  return NULL;
}

static kiln_status *prepare(kiln__runner *r) {
  kiln__probe *p = r->probe;
  r->work = r->code->info.work;
  if (r->code->info.shape && !kiln_kernel_shape_work(r->code->info.shape, p->symbols, &r->work))
    return KILN_ERROR(KILN_UNSUPPORTED, "sizes of more than 2^63");
  r->scratch_each = (r->work.scratch_bytes + 63) & ~(size_t)63;
  r->scratch_bytes = r->scratch_each * (size_t)(p->env->pool ? kiln_pool_threads(p->env->pool) : 1);
  if (r->scratch_bytes > MOST_BYTES) return KILN_ERROR(KILN_UNSUPPORTED, "too much scratch");
  if (r->scratch_bytes) {
    r->scratch = kiln_mem_alloc(p->env->mem, r->scratch_bytes);
    if (!r->scratch) return kiln_status_oom();
  }
  return make_packs(r);
}

kiln_status *kiln__runner_open(kiln__runner *r, kiln__probe *probe, kiln_compiled *code) {
  *r = (kiln__runner){.probe = probe, .code = code};
  KILN_TRY(prepare(r));
  if (run_once(r) && probe->below > 1) { /* 0 is an index where any is */
    probe->below = 1;
    fill_all(probe);
    if (r->packs) memset(r->packs, 0, r->pack_bytes);
  }
  if (run_once(r)) return KILN_ERROR(KILN_UNSUPPORTED, "no index is good");
  r->call_ns = turn(r, 1) + 1;
  for (int i = 1; i < FEW_ROUNDS; i++) {
    const double ns = turn(r, 1) + 1;
    if (ns < r->call_ns) r->call_ns = ns;
  }
  return NULL;
}

void kiln__runner_close(kiln__runner *r) {
  if (!r->probe) return;
  kiln_mem *mem = r->probe->env->mem;
  if (r->packs) kiln_mem_free(mem, r->packs, r->pack_bytes);
  if (r->scratch) kiln_mem_free(mem, r->scratch, r->scratch_bytes);
  kiln_compiled_release(r->code);
  *r = (kiln__runner){0};
}

/* -- In turns -- */

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The least, and what half of the numbers and three quarters are at most. */
typedef struct summary {
  double least, middle, high;
} summary;
static summary summarise(const double *numbers, int count) {
  double sorted[ROUNDS];
  memcpy(sorted, numbers, sizeof *sorted * (size_t)count);
  qsort(sorted, (size_t)count, sizeof *sorted, by_size);
  return (summary){sorted[0], sorted[count / 2], sorted[count - 1 - count / 4]};
}

kiln_status *kiln__runner_duel(kiln__runner *a, kiln__runner *b, int rounds, uint64_t until_ns,
                               kiln__duel *out) {
  double as[ROUNDS], bs[ROUNDS], ratios[ROUNDS];
  summary of_a = {0}, of_b = {0}, ratio = {0};
  const double call = a->call_ns < b->call_ns ? a->call_ns : b->call_ns;
  const double most = (double)SAMPLE_NS / call;
  const int calls = most<1 ? 1 : most>(double) MOST_CALLS ? MOST_CALLS : (int)most;
  if (call > (double)SLOW_NS) rounds = rounds / 2 + 1;
  if (rounds > ROUNDS) rounds = ROUNDS;
  for (int i = 0; i < rounds; i++) {
    if (i % 2) bs[i] = turn(b, calls);
    as[i] = turn(a, calls);
    if (i % 2 == 0) bs[i] = turn(b, calls);
    ratios[i] = bs[i] / as[i];
    KILN_TRY(kiln_budget_check(kiln_budget_current(), 0)); /* else something was left out */
    if (i + 1 < FEW_ROUNDS) continue;
    of_a = summarise(as, i + 1);
    of_b = summarise(bs, i + 1);
    ratio = summarise(ratios, i + 1);
    if (kiln_now_ns() > until_ns || ratio.least > HOPELESS) break;
  }
  *out = (kiln__duel){of_a.middle, of_b.middle, ratio.middle < NOISE && ratio.high < 1};
  return NULL;
}
