/* dump.h: between dump.c (what is printed) and dump_files.c (the same as files). */
#pragma once

#include "jit/compile_job.h"

/* Where to, and the graph that was made again last, which several prints may want. */
typedef struct kiln__printer {
  kiln_jit *jit;
  kiln_text *text;
  bool dot;
  const kiln_variant *variant; /* whose graph it is; NULL: there is none */
  kiln_pipeline_id id;         /* that ends with it */
  kiln_program program;
  const kiln_graph *graph; /* the program's; NULL: limits came in between, it is another one */
  KILN_VEC(kiln_graph *) groups; /* in it, in order */
  kiln_pass_runner runner;
  kiln_cleanup forgetting;
} kiln__printer;

/* Whether the stage is one of the groups, not of the variant around them. */
static inline bool kiln__is_of_groups(kiln_jit_stage stage) { return stage >= KILN_JIT_STAGE_LOOP; }

/* In the scope that they are called in. */
void kiln__printer_begin(kiln__printer *printer);
void kiln__printer_end(kiln__printer *printer);
/* A stage that is a variant's: profiled, optimized, bytecode. */
kiln_status *kiln__print_variant(kiln__printer *printer, const kiln_executor *executor,
                                 const kiln_variant *variant, kiln_jit_stage stage) KILN_MUST_USE;
/* The others, or its graph. */
kiln_status *kiln__print_group(kiln__printer *printer, const kiln_group_info *group,
                               kiln_jit_stage stage) KILN_MUST_USE;
