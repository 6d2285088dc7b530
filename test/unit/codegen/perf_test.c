/* perf_test.c: what Linux's profiler is told of kernels: lines of a map, records of a jitdump,
 * and that nobody else's file is written. */
#include "codegen/perf.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/flags.h"
#include "test/unit/files.h"

static const unsigned char code[] = {0x90, 0x90, 0x31, 0xc0, 0xc3};

static void map_path(char path[64]) { snprintf(path, 64, "/tmp/perf-%d.map", (int)getpid()); }

static void tell_two(kiln_mem *mem, int kind) {
  kiln__perf *s = NULL;
  assert_ok(kiln__perf_open(mem, kind, &s));
  kiln__perf_tell(s, "kiln_one", code, sizeof code);
  kiln__perf_tell(s, "kiln_two", code + 2, 3);
  kiln__perf_close(s);
}

static void map_has_lines(void **state) {
  (void)state;
  char path[64], want[256], got[256];
  kiln_mem *mem;
  assert_ok(kiln_mem_create(KILN_MEM_SYSTEM, &mem));
  map_path(path);
  (void)remove(path);
  tell_two(mem, KILN_PERF_MAP);
  const size_t size = read_file(path, got, sizeof got - 1);
  got[size] = 0;
  snprintf(want, sizeof want, "%llx 5 kiln_one\n%llx 3 kiln_two\n",
           (unsigned long long)(uintptr_t)code, (unsigned long long)(uintptr_t)(code + 2));
  assert_string_equal(got, want);
  (void)remove(path);
  kiln_mem_release(mem);
}

/* A link that somebody left there leads nowhere. */
static void links_are_refused(void **state) {
  (void)state;
  char path[64];
  kiln_mem *mem;
  kiln__perf *s = NULL;
  assert_ok(kiln_mem_create(KILN_MEM_SYSTEM, &mem));
  map_path(path);
  (void)remove(path);
  assert_int_equal(symlink("/tmp/kiln-perf-test-target", path), 0);
  assert_error(kiln__perf_open(mem, KILN_PERF_MAP, &s), KILN_INVALID_FILE, "perf");
  assert_null(s);
  assert_int_not_equal(access("/tmp/kiln-perf-test-target", F_OK), 0);
  (void)remove(path);
  kiln_mem_release(mem);
}

/* Where the process has mapped its jitdump. */
static bool find_dump(char path[256]) {
  char line[512];
  FILE *maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  bool found = false;
  while (!found && fgets(line, sizeof line, maps)) {
    const char *at = strstr(line, "/tmp/kiln-jitdump-");
    if (!at) continue;
    found = sscanf(at, "%255s", path) == 1;
  }
  (void)fclose(maps);
  return found;
}

static uint32_t word_at(const unsigned char *bytes, size_t at) {
  uint32_t word;
  memcpy(&word, bytes + at, sizeof word);
  return word;
}

static void dump_has_code(void **state) {
  (void)state;
  enum { HEADER = 40, RECORD = 56, NAME = 9 };
  unsigned char got[512];
  char path[256], folder[256];
  kiln_mem *mem;
  kiln__perf *s = NULL;
  assert_ok(kiln_mem_create(KILN_MEM_SYSTEM, &mem));
  assert_ok(kiln__perf_open(mem, KILN_PERF_JITDUMP, &s));
  kiln__perf_tell(s, "kiln_one", code, sizeof code);
  const pid_t child = fork();
  if (child == 0) {
    kiln__perf_tell(s, "kiln_two", code, sizeof code);
    _exit(0);
  }
  assert_int_equal(waitpid(child, NULL, 0), child);
  assert_true(find_dump(path));
  const size_t size = read_file(path, got, sizeof got);
  assert_int_equal(size, HEADER + RECORD + NAME + sizeof code); /* the child told nothing */
  assert_int_equal(word_at(got, 0), 0x4A695444);
  assert_int_equal(word_at(got, 8), HEADER);
  assert_int_equal(word_at(got, HEADER), 0); /* JIT_CODE_LOAD */
  assert_int_equal(word_at(got, HEADER + 4), size - HEADER);
  assert_string_equal((const char *)got + HEADER + RECORD, "kiln_one");
  assert_memory_equal(got + HEADER + RECORD + NAME, code, sizeof code);
  kiln__perf_close(s);
  (void)remove(path);
  snprintf(folder, sizeof folder, "%s", path);
  *strrchr(folder, '/') = 0;
  assert_int_equal(rmdir(folder), 0);
  kiln_mem_release(mem);
}

static void off_is_nothing(void **state) {
  (void)state;
  kiln__perf *s = (kiln__perf *)(uintptr_t)1;
  assert_ok(kiln__perf_open(NULL, KILN_PERF_OFF, &s));
  assert_null(s);
  kiln__perf_tell(s, "kiln_one", code, sizeof code);
  kiln__perf_close(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(map_has_lines),
      cmocka_unit_test(links_are_refused),
      cmocka_unit_test(dump_has_code),
      cmocka_unit_test(off_is_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
