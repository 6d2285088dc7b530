/* formats_test.c: files that are no TorchScript archives are called by their names. */
#include "frontend/formats.h"

#include "test/unit/unit.h"

/* The first bytes of real files. */
static const struct {
  size_t size;
  const char *bytes, *message;
} samples[] = {
#define SAMPLE(bytes, message) {sizeof bytes - 1, bytes, message}
    SAMPLE("", "an empty file, not a TorchScript archive"),
    SAMPLE("\x08\x08\x12\x07pytorch\x1a\x05"
           "2.1.0:",
           "an ONNX model"),
    SAMPLE("\x08\x07:\x9a\x01\n", "an ONNX model"),
    SAMPLE("\x08\x05\x12\x0f\x0a\x0dimage", "a Core ML model"),
    SAMPLE("\x08\x01\x12\xf4\x8f\x01\n", "a TensorFlow SavedModel"),
    SAMPLE("\x1c\0\0\0TFL3\x14\0", "a TensorFlow Lite model"),
    SAMPLE("\x98\x02\0\0\0\0\0\0{\"__metadata__\"", "a safetensors file"),
    SAMPLE("GGUF\x03\0\0\0\x23\x01", "a GGUF file"),
    SAMPLE("\x89HDF\r\n\x1a\n\0\0", "an HDF5 file"),
    SAMPLE("\x1f\x8b\x08\0\0\0\0\0", "a gzip file"),
    SAMPLE("\x28\xb5\x2f\xfd\x04\x58", "a zstd file"),
    SAMPLE("\n\n  <!DOCTYPE html>\n<html lang=en>", "a web page"),
    SAMPLE("\xef\xbb\xbf<HTML><HEAD>", "a web page"),
    SAMPLE("version https://git-lfs.github.com/spec/v1\noid sha256:", "a pointer of git-lfs"),
    SAMPLE("{\"error\": \"Entry not found\"}", "a JSON file"),
    SAMPLE("\x93NUMPY\x01\0v\0{'descr'", "an array of numpy"),
    SAMPLE("\x7f"
           "ELF\x02\x01\x01\0",
           "a program or shared object"),
    SAMPLE("\x80\x02\x8a\nl\xfc\x9c"
           "F\xf9 j\xa8P\x19.",
           "a bare pickle (torch.save before 1.6)"),
    SAMPLE("\x80\x04\x95\x0b\0\0\0", "a bare pickle"),
    SAMPLE("(dp0\nVa\np1\nI1\ns.", "a bare pickle of protocol 0"),
    SAMPLE("ccollections\nOrderedDict\np0\n(", "a bare pickle of protocol 0"),
    SAMPLE("\0\0\0\0PTMF\0\0", "a flatbuffer file of the mobile interpreter"),
    SAMPLE("\0\0\0\0\0\0\0\0\0\0\0\0", "a file that begins with zeros"),
    SAMPLE("graph(%x : Tensor):\n  return (%x)", "a graph as text"),
    SAMPLE("what is th\xc3\xaes?\n", "a text file"),
#undef SAMPLE
};

static void names_foreign_files(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
    kiln_status *status = kiln_format_refuse_model(samples[i].bytes, samples[i].size);
    assert_non_null(status);
    assert_int_equal(kiln_status_code(status), KILN_INVALID_FILE);
    const char *message = kiln_status_message(status);
    if (strncmp(message, samples[i].message, strlen(samples[i].message)) != 0) {
      fail_msg("%s: %s", samples[i].message, message);
    }
    kiln_status_destroy(status);
    status = kiln_format_refuse_values(samples[i].bytes, samples[i].size);
    assert_non_null(status);
    kiln_status_destroy(status);
  }
  assert_null(kiln_format_refuse_model("PK\x03\x04", 4));
  assert_null(kiln_format_refuse_model("what is\x01this", 12));
}

/* No row stands behind one that takes everything of it. */
static void rows_are_reached(void **state) {
  (void)state;
  static const struct {
    const char *kind, *magic, *name;
    size_t offset, size;
  } rows[] = {
#define KILN_FORMAT(kind, offset, magic, name, advice) \
  {#kind, magic, name, offset, sizeof magic - 1},
#include "frontend/formats.def"
#undef KILN_FORMAT
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char bytes[512];
    memset(bytes, 'z', sizeof bytes);
    memcpy(bytes + rows[i].offset, rows[i].magic, rows[i].size);
    for (size_t k = 0; k < rows[i].size; k++) {
      if (rows[i].magic[k] == '?' && *rows[i].kind == 'B') bytes[rows[i].offset + k] = 9;
    }
    kiln_status *status = strcmp(rows[i].kind, "RECORD") == 0
                              ? kiln_format_refuse_row(kiln_format_of_entry(
                                    kiln_str_make(rows[i].magic, rows[i].size)))
                              : kiln_format_refuse_model(bytes, sizeof bytes);
    if (!status) fail_msg("%s: not found", rows[i].name);
    const char *message = kiln_status_message(status);
    if (strncmp(message, rows[i].name, strlen(rows[i].name)) != 0) {
      fail_msg("%s: %s", rows[i].name, message);
    }
    kiln_status_destroy(status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_foreign_files),
      cmocka_unit_test(rows_are_reached),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
