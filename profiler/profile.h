/* profile.h: what profiling runs saw: where it is recorded, how it is merged over runs, and how it
 * gets into a graph.
 *
 * Sites. A profile site is one prim::profile node with an input. Sites are numbered by their place
 * in the graph (kiln_profile_each), so the number is the same in every copy. A site's lasting name
 * is its method, the digest of the graph before instrumentation, and that number.
 * Records are plain data of a fixed size, one for each site: bounded whatever runs. A run that
 * fails never commits. Merging over runs forgets what differs. */
#pragma once

#include <pthread.h>

#include "ir/pass.h"
#include "runtime/plan.h"

/* -- Passes -- */

/* Puts prim::profile nodes before the uses that specialisation needs. */
kiln_status *kiln_pass_insert_profile_nodes(kiln_pass *pass);
/* Removes them, and every tensor detail (PyTorch's ClearProfilingInformation). */
kiln_status *kiln_pass_remove_profile_nodes(kiln_pass *pass);
/* Moves what they saw onto the values' types, and removes them. */
kiln_status *kiln_pass_specialize_types(kiln_pass *pass);

/* -- Sites -- */

/* Calls visit(user, node, number) for each site in order; returns how many there are. `visit` may
 * be NULL, and may remove the node. */
int kiln_profile_each(kiln_block *block, void (*visit)(void *user, kiln_node *node, int number),
                      void *user);
/* The digest of a graph's print without sizes and strides of tensors and without source places.
 * `scratch` takes the text. */
kiln_digest kiln_profile_digest(const kiln_graph *graph, kiln_arena *scratch);

/* -- Profiles -- */

typedef struct kiln_profile {
  kiln_profile_sink sink; /* of the profiling plan */
  kiln_mem *mem;
  pthread_mutex_t lock; /* the records and runs */
  int count;            /* sites */
  kiln_type_record *records;
  int runs; /* atomic; written under the lock */
  int wanted_runs;
} kiln_profile;

kiln_status *kiln_profile_create(kiln_mem *mem, int sites, int wanted_runs,
                                 kiln_profile **out_profile) KILN_MUST_USE;
void kiln_profile_destroy(kiln_profile *profile);
/* Enough runs ended well. */
bool kiln_profile_is_ready(kiln_profile *profile);
int kiln_profile_runs(kiln_profile *profile);
/* Makes it ready by what an earlier process saw; nothing where it is. */
void kiln_profile_fill(kiln_profile *profile, const kiln_type_record *records, int count);
/* Writes what was seen to the sites of a copy of the instrumented graph: the attributes
 * profiled_type and seen_none. */
void kiln_profile_annotate(kiln_profile *profile, kiln_graph *graph);
