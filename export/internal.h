/* internal.h: what the files of export/ share. All memory is of one arena; functions without a
 * status leave the scope where there is none left. What is put has an address of the image
 * (image.h); numbers are those in the program's arrays. */
#pragma once

#include "aot/image.h"
#include "export/export.h"
#include "export/image.h"
#include "jit/executor.h"
#include "runtime/cycles.h"

/* Numbers are kept in maps, by addresses of the model. -1: there is none. */
static inline int kiln__number_of(const kiln_map *map, const void *key) {
  return (int)(uintptr_t)kiln_map_find_ptr(map, key) - 1;
}
static inline void kiln__set_number(kiln_map *map, const void *key, int number) {
  kiln_map_set_ptr(map, key, (void *)(uintptr_t)(number + 1));
}

/* The field has in `to` what it has in `from`. */
#define KILN__SAME(to, from, field) memcpy(&(to)->field, &(from)->field, sizeof(to)->field)

typedef struct kiln__out_storage {
  kiln_storage *storage;
  bool is_needed; /* its elements are read */
  kiln_aot_storage image;
} kiln__out_storage;

typedef struct kiln__out_callable {
  const kiln_callable *callable;
  kiln_aot_callable image;
  const kiln_plan **plans; /* [image.variant_count] */
  const kiln_guard_desc **guards;
  kiln_ivalue *args; /* [image.arg_count]: what is known of them: */
  uint8_t *known;    /* kiln__known of each */
  const char *words; /* for image.words; NULL: none yet */
  bool is_open;      /* called by what does not name it: with anything */
} kiln__out_callable;

typedef struct kiln__out_plan {
  const kiln_plan *plan;
  kiln__out_callable *of;
  KILN_VEC(kiln_aot_pack) packs;
  KILN_VEC(const void *) copies; /* of each pack */
  KILN_VEC(kiln_aot_kept) kept;
  KILN_VEC(int32_t) kept_values; /* arguments and results of each in turn */
} kiln__out_plan;

/* A name by which methods are called, and up to which type its methods were looked for. */
typedef struct kiln__method_name {
  kiln_str name;
  const kiln_method_lookup *lookup;
  int asked;
} kiln__method_name;
typedef struct kiln__out_method {
  kiln_str name;
  int32_t type, callable;
} kiln__out_method;

/* Bytes of the weights' file, borrowed from the model. */
typedef struct kiln__out_bytes {
  const void *bytes;
  size_t size;
  int64_t at;
} kiln__out_bytes;

typedef enum kiln__known { KILN__UNSEEN, KILN__KNOWN, KILN__UNKNOWN } kiln__known;

typedef struct kiln__exporter {
  const kiln_export *request;
  kiln_arena *arena;
  kiln__image image;
  KILN_VEC(kiln_aot_value) values;
  KILN_VEC(const kiln_type *) types;
  KILN_VEC(kiln_aot_type) type_images; /* of each */
  KILN_VEC(kiln__out_storage) storages;
  KILN_VEC(kiln__out_callable *) callables;
  KILN_VEC(kiln__out_plan *) plans;
  kiln_map value_at, type_at, storage_at, callable_at, plan_at; /* address -> number + 1 */
  kiln_map kernel_at, code_at, source_at, range_at;             /* real address -> the image's */
  kiln_map method_at;
  kiln_map needed;   /* boxes from which all is needed */
  kiln_map written;  /* slots that a plan sets, + 1 */
  kiln_map compiled; /* function -> kiln_compiled */
  KILN_VEC(kiln__method_name) method_names;
  KILN_VEC(kiln__out_method) methods;
  KILN_VEC(kiln_aot_input) inputs;
  KILN_VEC(const char *) input_words; /* "Float(2, 3)" */
  KILN_VEC(const char *) output_words;
  KILN_VEC(size_t) output_bytes; /* of the result that was seen */
  KILN_VEC(int32_t) args;
  bool needs_all; /* not all that reads a weight is known */
  int64_t absent_bytes;
  KILN_VEC(kiln__out_bytes) pieces; /* of the weights' file, in order */
  int64_t weights_end;
  kiln_aot_head head;
  const void *begin; /* of the image */
  const struct kiln_aot_program *program;
} kiln__exporter;

/* -- values.c -- */
kiln_status *kiln__export_value(kiln__exporter *x, kiln_ivalue v, int32_t *out_index) KILN_MUST_USE;
kiln_status *kiln__export_type(kiln__exporter *x, const kiln_type *type,
                               int32_t *out_index) KILN_MUST_USE;
/* The arguments, with inputs for tensors and numbers, and the words of the outputs. */
kiln_status *kiln__export_arguments(kiln__exporter *x) KILN_MUST_USE;
/* Put the arrays, when they are complete. */
const kiln_aot_type *kiln__export_types_at(kiln__exporter *x);
const kiln_aot_value *kiln__export_values_at(kiln__exporter *x);

/* -- known.c -- */
/* What plans read of weights, and what they keep: fills the plans' packs and results, and says
 * which storages are needed. */
kiln_status *kiln__export_known(kiln__exporter *x) KILN_MUST_USE;

/* -- plans.c -- */
/* The callable, and all that it calls. */
kiln_status *kiln__export_callables(kiln__exporter *x) KILN_MUST_USE;
int kiln__export_callable_number(const kiln__exporter *x, const kiln_callable *callable);
kiln_status *kiln__export_plans_at(kiln__exporter *x, const kiln_aot_plan **out_at) KILN_MUST_USE;
const kiln_aot_callable *kiln__export_callables_at(kiln__exporter *x);
const kiln_aot_method *kiln__export_methods_at(kiln__exporter *x);

/* -- structs.c -- */
kiln_status *kiln__export_kernel(kiln__exporter *x, const kiln_kernel *kernel,
                                 const kiln_kernel **out_at) KILN_MUST_USE;
/* "(Float(2, 3), Float(s0, 4))": its entries that are `shown`. */
void kiln__guard_words(kiln_text *text, const kiln_guard_desc *guard, const bool *shown);
const kiln_guard_desc *kiln__guard_images(kiln__exporter *x, const kiln_guard_desc *guards,
                                          int count);
kiln_status *kiln__export_groups(kiln__exporter *x, const kiln_plan *plan,
                                 const kiln_group **out_at) KILN_MUST_USE;
const kiln_source_range *const *kiln__export_ranges(kiln__exporter *x, const kiln_plan *plan);

/* -- header.c -- */
kiln_str kiln__export_header(const kiln__exporter *x);
