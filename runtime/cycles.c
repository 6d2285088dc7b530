/* cycles.c: trial deletion (Christopher's, as in Bacon and Rajan, "Concurrent Cycle Collection in
 * Reference Counted Systems", 2001, without the colours: the part that is looked at is small).
 *
 * Everything that the roots reach is walked once, and the references that lie inside of it are
 * counted. Who has more than those is held from outside, and so is all that it reaches; the others
 * hold only one another. Counts that another thread raises meanwhile keep a container alive, which
 * is safe; a container that somebody uses always has one reference that is not inside. */
#include "runtime/cycles.h"

#include "base/budget.h"
#include "base/map.h"

static bool is_container(kiln_ivalue v) {
  return v.tag == KILN_TAG_LIST || v.tag == KILN_TAG_TUPLE || v.tag == KILN_TAG_DICT ||
         v.tag == KILN_TAG_OBJECT || v.tag == KILN_TAG_FUTURE;
}

int64_t kiln_child_count(kiln_ivalue v) {
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_LIST: return v.u.list->count;
    case KILN_TAG_TUPLE: return v.u.tuple->count;
    case KILN_TAG_DICT: return 2 * v.u.dict->count;
    case KILN_TAG_OBJECT: return v.u.object->count;
    case KILN_TAG_FUTURE: return kiln__future_complete(v.u.future) ? 1 : 0;
    default: return 0;
  }
}

kiln_ivalue kiln_child_at(kiln_ivalue v, int64_t i) {
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_LIST: return v.u.list->items[i];
    case KILN_TAG_TUPLE: return v.u.tuple->items[i];
    case KILN_TAG_OBJECT: return v.u.object->slots[i];
    case KILN_TAG_FUTURE: return v.u.future->value;
    default: {
      const kiln_dict_entry *entry = &v.u.dict->entries[i / 2];
      return !entry->live ? kiln_none() : i % 2 ? entry->value : entry->key;
    }
  }
}

/* -- Noting -- */

/* Whether a value of the type may hold a value of any other. Classes do not contain themselves, but
 * by an interface. */
static bool is_open(const kiln_type *type) {
  switch (type->kind) {
    case KILN_TYPE_ANY:
    case KILN_TYPE_CLASS:
    case KILN_TYPE_INTERFACE:
    case KILN_TYPE_ANY_LIST:
    case KILN_TYPE_ANY_TUPLE:
    case KILN_TYPE_ANY_CLASS: return true;
    default: break;
  }
  for (int i = 0; i < type->elem_count; i++) {
    if (is_open(type->elems[i])) return true;
  }
  return false;
}

enum { MAX_STEPS = 256, MAX_STACK = 64 };

static bool may_reach(kiln_ivalue from, const kiln_box *to) {
  kiln_ivalue stack[MAX_STACK];
  int depth = 0, steps = 0;
  if (from.u.box == to) return true;
  stack[depth++] = from;
  while (depth > 0) {
    kiln_ivalue v = stack[--depth];
    int64_t count = kiln_child_count(v);
    for (int64_t i = 0; i < count; i++) {
      kiln_ivalue child = kiln_child_at(v, i);
      if (++steps > MAX_STEPS) return true;
      if (!is_container(child)) continue;
      if (child.u.box == to || depth == MAX_STACK) return true;
      stack[depth++] = child;
    }
  }
  return false;
}

typedef struct kiln_possible_root_block {
  struct kiln_possible_root_block *next;
  int64_t count;
  kiln_ivalue items[31]; /* containers, retained */
} block;
enum { BLOCK_ITEMS = sizeof((block *)NULL)->items / sizeof(kiln_ivalue) };

kiln_status *kiln__cycle_look(kiln_mem *mem, kiln_possible_roots *roots, kiln_box *box,
                              const kiln_type *type, kiln_ivalue v) {
  block *b = roots->first;
  if (!is_container(v) || (type && !is_open(type)) || !may_reach(v, box)) return NULL;
  if (b && b->items[b->count - 1].u.box == box) return NULL;
  if (!b || b->count == BLOCK_ITEMS) {
    b = kiln_mem_alloc(mem, sizeof *b);
    if (!b) return kiln_status_oom();
    b->next = roots->first;
    b->count = 0;
    roots->first = b;
  }
  b->items[b->count++] = kiln_ivalue_retain(kiln_of_box(box));
  return NULL;
}

void kiln_possible_roots_take(kiln_possible_roots *to, kiln_possible_roots *from) {
  block **last = &from->first;
  while (*last) last = &(*last)->next;
  *last = to->first;
  to->first = from->first;
  from->first = NULL;
}

/* -- Collecting -- */

typedef struct node {
  kiln_ivalue v;
  int64_t inside; /* references from other nodes and from the roots */
  bool alive;
} node;

typedef struct collection {
  kiln_mem *mem;
  kiln_arena *arena;
  kiln_possible_roots *roots;
  kiln_map index; /* box -> node */
  KILN_VEC(node *) nodes;
  KILN_VEC(node *) work;
} collection;

static void count_reference(collection *c, kiln_ivalue v) {
  if (!is_container(v)) return;
  node *n = kiln_map_find_ptr(&c->index, v.u.box);
  if (!n) {
    n = KILN_NEW(c->arena, node);
    n->v = v;
    kiln_map_set_ptr(&c->index, v.u.box, n);
    kiln_vec_push(c->arena, &c->nodes, n);
  }
  n->inside++;
}

static void keep(collection *c, node *n) {
  if (n->alive) return;
  n->alive = true;
  kiln_vec_push(c->arena, &c->work, n);
}

static void find_garbage(collection *c) {
  c->index = kiln_map_in(c->arena);
  for (const block *b = c->roots->first; b; b = b->next) {
    for (int64_t i = 0; i < b->count; i++) count_reference(c, b->items[i]);
  }
  for (int i = 0; i < c->nodes.count; i++) {
    kiln_ivalue v = c->nodes.data[i]->v;
    int64_t count = kiln_child_count(v);
    for (int64_t k = 0; k < count; k++) count_reference(c, kiln_child_at(v, k));
  }
  for (int i = 0; i < c->nodes.count; i++) {
    node *n = c->nodes.data[i];
    if (__atomic_load_n(&n->v.u.box->refs, __ATOMIC_ACQUIRE) != n->inside) keep(c, n);
  }
  while (c->work.count > 0) {
    kiln_ivalue v = kiln_vec_pop(&c->work)->v;
    int64_t count = kiln_child_count(v);
    for (int64_t k = 0; k < count; k++) {
      kiln_ivalue child = kiln_child_at(v, k);
      if (is_container(child)) keep(c, kiln_map_find_ptr(&c->index, child.u.box));
    }
  }
}

/* Keeps of a block's roots those that live, each once. */
static void keep_living(collection *c, block *b) {
  int64_t left = 0;
  for (int64_t i = 0; i < b->count; i++) {
    kiln_ivalue v = b->items[i];
    node *n = kiln_map_find_ptr(&c->index, v.u.box);
    if (n->alive && n->inside > 0) {
      n->inside = 0;
      b->items[left++] = v;
    } else {
      kiln_ivalue_release(v);
    }
  }
  b->count = left;
}

static void free_garbage(collection *c) {
  for (int i = 0; i < c->nodes.count; i++) {
    if (!c->nodes.data[i]->alive) (void)kiln_ivalue_retain(c->nodes.data[i]->v);
  }
  for (int i = 0; i < c->nodes.count; i++) {
    if (!c->nodes.data[i]->alive) kiln_container_empty(c->nodes.data[i]->v);
  }
  for (block **at = &c->roots->first, *b; (b = *at);) {
    keep_living(c, b);
    if (b->count > 0) {
      at = &b->next;
    } else {
      *at = b->next;
      kiln_mem_free(c->mem, b, sizeof *b);
    }
  }
  for (int i = 0; i < c->nodes.count; i++) {
    if (!c->nodes.data[i]->alive) kiln_ivalue_release(c->nodes.data[i]->v);
  }
}

static kiln_status *collect(kiln_mem *mem, kiln_possible_roots *roots) {
  collection c = {.mem = mem, .arena = kiln_arena_scoped(mem), .roots = roots};
  find_garbage(&c);
  free_garbage(&c);
  return NULL;
}
static kiln_status *try_collect(kiln_mem *mem, kiln_possible_roots *roots) {
  KILN_PROTECT(collect(mem, roots));
}

void kiln_possible_roots_collect(kiln_mem *mem, kiln_possible_roots *roots) {
  if (!roots->first) return;
  kiln_budget *outer = kiln_budget_enter(NULL);
  kiln_mem_exceed_begin();
  kiln_status_destroy(try_collect(mem, roots)); /* the host has no memory: another time */
  kiln_mem_exceed_end();
  kiln_budget_leave(outer);
}

void kiln_possible_roots_deinit(kiln_mem *mem, kiln_possible_roots *roots) {
  kiln_possible_roots_collect(mem, roots);
  while (roots->first) {
    block *b = roots->first;
    roots->first = b->next;
    for (int64_t i = 0; i < b->count; i++) kiln_ivalue_release(b->items[i]);
    kiln_mem_free(mem, b, sizeof *b);
  }
}

void kiln_ivalue_release_cyclic(kiln_mem *mem, kiln_ivalue v) {
  kiln_mem_exceed_begin();
  block *alone = is_container(v) ? kiln_mem_alloc(mem, sizeof *alone) : NULL;
  kiln_mem_exceed_end();
  if (alone) {
    kiln_possible_roots roots = {.first = alone};
    alone->next = NULL;
    alone->count = 1;
    alone->items[0] = v;
    kiln_possible_roots_deinit(mem, &roots);
  } else {
    kiln_ivalue_release(v);
  }
}
