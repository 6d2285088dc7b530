/* replay_test.c: runs the fuzz targets on what fuzzing has found, test/data/fuzz/TARGET/NAME: each
 * file is one test. What a target must not see ends the process, and so fails the test. */
#include <dirent.h>
#include <stdlib.h>

#include "test/fuzz/fuzz.h"
#include "test/unit/unit.h"

enum { MAX_FILES = 512 };

typedef struct found {
  char path[512], name[256];
  void (*run)(const uint8_t *data, size_t size);
} found;

static found files[MAX_FILES];
static struct CMUnitTest tests[MAX_FILES];
static int count;

static const struct {
  const char *name;
  void (*run)(const uint8_t *data, size_t size);
} targets[] = {
#define REPLAY_TARGET(name, change, meaning) {#name, fuzz_##name},
    FUZZ_TARGETS(REPLAY_TARGET)
#undef REPLAY_TARGET
};

/* In memory of its size, so that a sanitizer sees what reads past its end. */
static void replay(void **state) {
  const found *f = *state;
  FILE *file = fopen(f->path, "rb");
  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  long size = ftell(file);
  assert_true(size >= 0);
  rewind(file);
  uint8_t *data = malloc(size ? (size_t)size : 1);
  assert_non_null(data);
  assert_int_equal(fread(data, 1, (size_t)size, file), size);
  fclose(file);
  f->run(data, (size_t)size);
  free(data);
}

static void add_folder(int target) {
  char path[256];
  snprintf(path, sizeof path, "%s/fuzz/%s", TEST_DATA, targets[target].name);
  DIR *folder = opendir(path);
  for (struct dirent *entry; folder && (entry = readdir(folder)) && count < MAX_FILES;) {
    if (entry->d_name[0] == '.') continue;
    found *f = &files[count];
    snprintf(f->path, sizeof f->path, "%s/%s", path, entry->d_name);
    snprintf(f->name, sizeof f->name, "%s/%.200s", targets[target].name, entry->d_name);
    f->run = targets[target].run;
    tests[count++] = (struct CMUnitTest){f->name, replay, NULL, NULL, f};
  }
  if (folder) closedir(folder);
}

int main(void) {
  for (int i = 0; i < (int)(sizeof targets / sizeof targets[0]); i++) add_folder(i);
  return _cmocka_run_group_tests("fuzz", tests, (size_t)count, NULL, NULL);
}
