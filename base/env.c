/* env.c: makes what a context hands down: memory, threads, log, flags and the instruction set. */
#include "base/env.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* -- Instruction sets -- */

#if defined(__x86_64__)

/* XCR0: which registers the operating system saves. */
static uint64_t read_xcr0(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static bool has_bits(uint64_t word, uint64_t bits) { return (word & bits) == bits; }

/* Exactly the features of -march=x86-64-v3 and -v4, which the kernels are compiled with, and that
 * of AVX512_BF16, which only generated code uses. */
kiln_isa kiln_isa_detect(void) {
  const unsigned v3_leaf1_c = bit_FMA | bit_MOVBE | bit_OSXSAVE | bit_AVX | bit_F16C;
  const unsigned v3_leaf7_b = bit_AVX2 | bit_BMI | bit_BMI2;
  const unsigned v4_leaf7_b =
      bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
  const uint64_t ymm_state = 0x06, zmm_state = 0xe6;

  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !has_bits(c, v3_leaf1_c)) return KILN_ISA_V2;
  uint64_t saved = read_xcr0();
  if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !has_bits(c, bit_LZCNT)) return KILN_ISA_V2;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return KILN_ISA_V2;
  if (!has_bits(saved, ymm_state) || !has_bits(b, v3_leaf7_b)) return KILN_ISA_V2;
  if (!has_bits(saved, zmm_state) || !has_bits(b, v4_leaf7_b)) return KILN_ISA_AVX2;
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !has_bits(a, bit_AVX512BF16))
    return KILN_ISA_AVX512;
  return KILN_ISA_AVX512BF16;
}

#ifdef __linux__
#include <sys/syscall.h>

static bool let_use_tiles(void) {
  enum { ASK = 0x1023 /* ARCH_REQ_XCOMP_PERM */, TILE_DATA = 18 };
  return syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
}
#else
static bool let_use_tiles(void) { return false; }
#endif

bool kiln_isa_take_tiles(void) {
  const unsigned tiles = 1u << 24, bf16 = 1u << 22; /* of leaf 7, d */
  const uint64_t state = UINT64_C(3) << 17;
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && has_bits(c, bit_OSXSAVE) &&
         has_bits(read_xcr0(), state) && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
         has_bits(d, tiles | bf16) && let_use_tiles();
}

#else

kiln_isa kiln_isa_detect(void) { return KILN_ISA_V2; }
bool kiln_isa_take_tiles(void) { return false; }

#endif

const char *kiln_isa_name(kiln_isa isa) {
  static const char *const names[] = {"v2", "avx2", "avx512", "avx512bf16"};
  return (unsigned)isa < KILN_ISA__COUNT ? names[isa] : "unknown";
}

/* -- Life -- */

static void warn_unknown(void *user, const char *name) {
  const kiln_log *log = user;
  KILN_LOG(log, warn, 1, "unknown environment variable %s (kiln list flags shows those that are)",
           name);
}

static kiln_status *make_dump_folder(const char *path) {
  if (mkdir(path, 0777) != 0 && errno != EEXIST) {
    return KILN_ERROR(KILN_INVALID_FILE, "option dump: cannot make the folder '%s': %s", path,
                      strerror(errno));
  }
  struct stat info;
  if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode) || access(path, W_OK | X_OK) != 0) {
    return KILN_ERROR(KILN_INVALID_FILE, "option dump: '%s' is no folder that can be written",
                      path);
  }
  return NULL;
}

kiln_status *kiln_env_check_flags(const kiln_flags *flags) {
  return *flags->dump.text ? make_dump_folder(flags->dump.text) : NULL;
}

kiln_status *kiln_env_create(char *const *environment, kiln_env **out_env) {
  return kiln_env_create_with(environment, NULL, out_env);
}

kiln_status *kiln_env_create_with(char *const *environment, char *const *options,
                                  kiln_env **out_env) {
  *out_env = NULL;
  kiln_env env = {0};
  kiln_log_init(&env.log);
  kiln_flags_init(&env.flags);
  KILN_TRY(
      kiln_flags_read_env(&env.flags, environment, warn_unknown, &env.log, &env.from_environment));
  KILN_TRY(kiln_flags_read_env(&env.flags, options, warn_unknown, &env.log, &env.from_options));
  KILN_TRY(kiln_log_parse(&env.log, env.flags.log.text));
  KILN_TRY(kiln_env_check_flags(&env.flags));

  env.isa = kiln_isa_detect();
  env.caches = kiln_cpu_find_caches();
  int cap = env.flags.isa - 1; /* "native" is -1 */
  if (cap >= 0 && cap < (int)env.isa) env.isa = (kiln_isa)cap;
  env.tiles = env.flags.matmul && env.isa == KILN_ISA_AVX512BF16 && kiln_isa_take_tiles();

  /* Word 1 of the flag is "system". */
  KILN_TRY(kiln_mem_create(
      env.flags.alloc == KILN_ALLOC_SYSTEM ? KILN_MEM_SYSTEM : KILN_MEM_DEFAULT, &env.mem));
  if (env.flags.hash_seed >= 0) kiln_mem_set_hash_seed(env.mem, (uint64_t)env.flags.hash_seed);
  kiln_status *status = NULL;
  if (*env.flags.trace.text || *env.flags.events.text)
    status = kiln_timeline_create(env.flags.trace.text, env.flags.events.text, &env.timeline);
  if (!status && env.flags.threads != 1)
    status = kiln_pool_create((int)env.flags.threads, &env.pool);
  if (!status)
    status = kiln_job_queue_create(env.mem, (int)env.flags.compile_share,
                                   env.pool ? kiln_pool_threads(env.pool) : 1, &env.jobs);
  if (!status) {
    *out_env = kiln_mem_alloc(env.mem, sizeof **out_env);
    if (!*out_env) status = kiln_status_oom();
  }
  if (status) {
    kiln_job_queue_destroy(env.jobs);
    kiln_timeline_destroy(env.timeline);
    kiln_pool_release(env.pool);
    kiln_mem_release(env.mem);
    return status;
  }
  kiln_mem_set_limit(env.mem, (size_t)env.flags.memory_limit);
  env.log.timeline = env.timeline;
  **out_env = env;
  return NULL;
}

void kiln_env_destroy(kiln_env *env) {
  if (!env) return;
  kiln_mem *mem = env->mem;
  kiln_job_queue_destroy(env->jobs);
  kiln_timeline_destroy(env->timeline);
  kiln_pool_release(env->pool);
  kiln_mem_free(mem, env, sizeof *env);
  kiln_mem_release(mem);
}
