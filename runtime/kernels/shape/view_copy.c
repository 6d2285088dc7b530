/* view_copy.c: the copying twins of views (`permute_copy` and its like): what the view shows, in
 * rows of its own. */
#include "runtime/kernels/composite.h"

#define COPIES(X)    \
  X(alias)           \
  X(as_strided)      \
  X(conj)            \
  X(detach)          \
  X(diagonal)        \
  X(expand)          \
  X(narrow)          \
  X(permute)         \
  X(reshape)         \
  X(select)          \
  X(slice)           \
  X(squeeze)         \
  X(squeeze_dim)     \
  X(squeeze_dims)    \
  X(t)               \
  X(transpose)       \
  X(unfold)          \
  X(unsqueeze)       \
  X(view_as_complex) \
  X(view_as_real)
#define LISTS(X)      \
  X(split)            \
  X(split_with_sizes) \
  X(unbind)

#define COPY(name)                                                                             \
  KILN_COMPOSITE(name##_copy) {                                                                \
    kiln_tensor *view = kiln__composite_step(r, KILN_BODY_OF(name), r->call->arg_count, args); \
    return kiln__composite_copy(r, view);                                                      \
  }
COPIES(COPY)

static kiln_tensor *copy_list(kiln__composite *r, const kiln_list *views, kiln_ivalue *outs) {
  kiln_list *copies;
  if (!views ||
      !kiln__composite_ok(r, kiln__new_list(r->call, KILN_TYPE_TENSOR, views->count, &copies))) {
    return NULL;
  }
  outs[0] = kiln_of_box(copies);
  for (int64_t i = 0; i < views->count; i++) {
    kiln_tensor *copy = kiln__composite_copy(r, views->items[i].u.tensor);
    if (!copy ||
        !kiln__composite_ok(r, kiln_list_push(copies, kiln_of_tensor(kiln_tensor_retain(copy))))) {
      break;
    }
  }
  return NULL;
}
#define COPY_LIST(name)                                                                       \
  KILN_COMPOSITE(name##_copy) {                                                               \
    return copy_list(                                                                         \
        r, kiln__composite_step_list(r, KILN_BODY_OF(name), r->call->arg_count, args), outs); \
  }
LISTS(COPY_LIST)
