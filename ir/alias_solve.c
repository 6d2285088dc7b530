/* alias_solve.c: solves the constraints of the alias analysis: inclusion-based points-to sets
 * (Andersen's analysis, "Program Analysis and Specialization for the C Programming Language",
 * 1994).
 *
 * Unification would be simpler, but it makes the two sides of every If, and so most inputs of a
 * model, one. Constraints stand in program order, so straight code needs one pass and a check, each
 * level of loops one more; there are no rules about which variable goes first.
 *
 * What a value may be grows with every branch and loop in a row. Where it is more than MAX_POINTS
 * things, those of one kind become one location: from there on the analysis unifies after all, and
 * stays linear. */
#include "ir/alias_internal.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_POINTS = 64 };

uint8_t kiln__alias_mask(const kiln_type *type) {
  switch (type->kind) {
    case KILN_TYPE_TENSOR: return 1 << BUCKET_TENSOR;
    case KILN_TYPE_LIST:
    case KILN_TYPE_ANY_LIST: return 1 << BUCKET_LIST;
    case KILN_TYPE_DICT: return 1 << BUCKET_DICT;
    case KILN_TYPE_ANY_TUPLE: return 1 << BUCKET_TUPLE;
    case KILN_TYPE_TUPLE:
      for (int i = 0; i < type->elem_count; i++) {
        if (kiln__alias_mask(type->elems[i])) return 1 << BUCKET_TUPLE;
      }
      return 0;
    case KILN_TYPE_CLASS:
    case KILN_TYPE_INTERFACE:
    case KILN_TYPE_ANY_CLASS: return 1 << BUCKET_OBJECT;
    case KILN_TYPE_FUTURE:
    case KILN_TYPE_AWAIT:
    case KILN_TYPE_RREF: return 1 << BUCKET_FUTURE;
    case KILN_TYPE_OPTIONAL: return kiln__alias_mask(type->elems[0]);
    case KILN_TYPE_UNION: {
      uint8_t mask = 0;
      for (int i = 0; i < type->elem_count; i++) mask |= kiln__alias_mask(type->elems[i]);
      return mask;
    }
    case KILN_TYPE_ANY:
    case KILN_TYPE_VAR: return ALL_BUCKETS;
    case KILN_TYPE_GENERATOR:
    case KILN_TYPE_STREAM:
    case KILN_TYPE_STORAGE:
    case KILN_TYPE_CAPSULE: return 1 << BUCKET_OTHER;
    default: return 0;
  }
}

/* -- Escaping -- */

static int rep(kiln_alias *a, int loc) {
  int root = loc;
  while (a->locs.data[root].merged) root = a->locs.data[root].merged - 1;
  while (loc != root) {
    int next = a->locs.data[loc].merged - 1;
    a->locs.data[loc].merged = root + 1;
    loc = next;
  }
  return a->locs.data[root].escaped ? a->locs.data[root].bucket : root;
}

static bool escape(kiln_alias *a, int loc) {
  loc = rep(a, loc);
  if (loc < BUCKET__COUNT || a->locs.data[loc].escaped) return false;
  a->locs.data[loc].escaped = true;
  loc_set contents = a->locs.data[loc].contents;
  for (int i = 0; i < contents.count; i++) escape(a, contents.items[i]);
  return true;
}

static bool escape_all(kiln_alias *a, const loc_set *set) {
  bool changed = false;
  loc_set copy = *set;
  for (int i = 0; i < copy.count; i++) changed |= escape(a, copy.items[i]);
  return changed;
}

/* -- Inclusion -- */

/* dst ⊇ src, those of the buckets in `mask`. */
static bool include(kiln_alias *a, loc_set *dst, uint8_t mask, loc_set *src) {
  bool changed = false, all = true;
  if (dst->items == src->items && dst->count == src->count) return false;
  for (int i = 0; i < src->count && all; i++) {
    int loc = src->items[i];
    all = rep(a, loc) == loc && (mask >> a->locs.data[loc].bucket & 1);
  }
  if (all && dst->count == 0 && src->count) {
    *dst = (loc_set){.items = src->items, .count = src->count};
    src->lent = true;
    return true;
  }
  for (int i = 0; i < src->count; i++) {
    int loc = rep(a, src->items[i]);
    if (mask >> a->locs.data[loc].bucket & 1) changed |= kiln__locs_add(a->arena, dst, loc);
  }
  return changed;
}

/* dst ⊇ contents(loc). */
static bool include_contents(kiln_alias *a, loc_set *dst, uint8_t mask, int loc) {
  loc = rep(a, loc);
  if (loc >= BUCKET__COUNT) return include(a, dst, mask, &a->locs.data[loc].contents);
  /* Anything may be in what came from outside. */
  return kiln__locs_add_wildcards(a->arena, dst, mask);
}

/* contents(loc) ⊇ src: what is put into an escaped container escapes. */
static bool put_into(kiln_alias *a, int loc, loc_set *src) {
  loc = rep(a, loc);
  if (loc < BUCKET__COUNT) return escape_all(a, src);
  return include(a, &a->locs.data[loc].contents, ALL_BUCKETS, src);
}

static bool put_contents_into(kiln_alias *a, int loc, const loc_set *containers) {
  bool changed = false;
  for (int i = 0; i < containers->count; i++) {
    int from = rep(a, containers->items[i]);
    loc = rep(a, loc);
    if (loc < BUCKET__COUNT) {
      if (from >= BUCKET__COUNT) changed |= escape_all(a, &a->locs.data[from].contents);
    } else if (from != loc) {
      loc_set contents = a->locs.data[loc].contents;
      if (include_contents(a, &contents, ALL_BUCKETS, from)) {
        a->locs.data[loc].contents = contents;
        changed = true;
      }
    }
  }
  return changed;
}

/* What a location contains, at any depth; not itself unless it contains itself. */
static void collect_contents(kiln_alias *a, loc_set *out, int loc) {
  loc = rep(a, loc);
  if (loc < BUCKET__COUNT) {
    if (loc != BUCKET_TENSOR) (void)kiln__locs_add_wildcards(a->arena, out, ALL_BUCKETS);
    return;
  }
  loc_set contents = a->locs.data[loc].contents;
  for (int i = 0; i < contents.count; i++) {
    if (kiln__locs_add(a->arena, out, rep(a, contents.items[i]))) {
      collect_contents(a, out, contents.items[i]);
    }
  }
}

static bool put_deep_into(kiln_alias *a, int loc, const loc_set *containers) {
  loc_set all = {0};
  for (int i = 0; i < containers->count; i++) collect_contents(a, &all, containers->items[i]);
  return put_into(a, loc, &all);
}

static void canonicalise(kiln_alias *a, loc_set *set);

/* Of each bucket all but the wildcard become one. */
static void merge_points(kiln_alias *a, loc_set *points) {
  int first[BUCKET__COUNT] = {0};
  loc_set old = *points;
  for (int i = 0; i < old.count; i++) {
    int loc = rep(a, old.items[i]), *into = &first[a->locs.data[loc].bucket];
    if (loc < BUCKET__COUNT || loc == *into) continue;
    if (*into) {
      loc_set contents = a->locs.data[loc].contents;
      a->locs.data[loc].merged = *into + 1;
      put_into(a, *into, &contents);
    } else {
      *into = loc;
    }
  }
  canonicalise(a, points);
}

static bool apply_to(kiln_alias *a, const constraint *c) {
  bool changed = false;
  switch (c->kind) {
    case COPY: return include(a, &c->dst->points, c->dst->mask, &c->src->points);
    case LOAD:
      for (int i = 0; i < c->src->points.count; i++) {
        changed |= include_contents(a, &c->dst->points, c->dst->mask, c->src->points.items[i]);
      }
      return changed;
    case STORE:
      for (int i = 0; i < c->dst->points.count; i++) {
        changed |= put_into(a, c->dst->points.items[i], &c->src->points);
      }
      return changed;
    case STORE_CONTENTS:
      for (int i = 0; i < c->dst->points.count; i++) {
        changed |= put_contents_into(a, c->dst->points.items[i], &c->src->points);
      }
      return changed;
    case INTO: return put_into(a, c->loc, &c->src->points);
    case INTO_CONTENTS: return put_contents_into(a, c->loc, &c->src->points);
    case INTO_DEEP: return put_deep_into(a, c->loc, &c->src->points);
    case ESCAPE: return escape_all(a, &c->src->points);
  }
  return false;
}

static bool apply(kiln_alias *a, const constraint *c) {
  bool changed = apply_to(a, c);
  if (changed && c->dst && c->dst->points.count > MAX_POINTS) merge_points(a, &c->dst->points);
  return changed;
}

/* -- After the solution -- */

/* Escaped locations become their wildcards, merged ones the one that stands for them. */
static void canonicalise(kiln_alias *a, loc_set *set) {
  bool same = true;
  for (int i = 0; i < set->count && same; i++) same = rep(a, set->items[i]) == set->items[i];
  if (same) return;
  loc_set old = *set;
  *set = (loc_set){0};
  for (int i = 0; i < old.count; i++) kiln__locs_add(a->arena, set, rep(a, old.items[i]));
}

static int by_number(const void *a, const void *b) {
  const int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

/* Each location's `deep`: itself and what it contains, at any depth. */
static void collect_deep(kiln_alias *a) {
  KILN_VEC(int) found = {0};
  int *seen_by = KILN_NEW_ARRAY(a->arena, int, a->locs.count + 1); /* location + 1 */
  for (int i = 0; i < a->locs.count; i++) {
    found.count = 0;
    kiln_vec_push(a->arena, &found, i);
    seen_by[i] = i + 1;
    for (int k = 0; k < found.count; k++) {
      const loc_set *contents = &a->locs.data[found.data[k]].contents;
      for (int c = 0; c < contents->count; c++) {
        if (seen_by[contents->items[c]] == i + 1) continue;
        seen_by[contents->items[c]] = i + 1;
        kiln_vec_push(a->arena, &found, contents->items[c]);
      }
    }
    const size_t size = sizeof(int) * (size_t)found.count;
    int *items = kiln_arena_alloc(a->arena, size);
    memcpy(items, found.data, size);
    qsort(items, (size_t)found.count, sizeof *items, by_number);
    a->locs.data[i].deep = (loc_set){.items = items, .count = found.count, .capacity = found.count};
  }
}

void kiln__alias_solve(kiln_alias *a) {
  bool changed = true;
  while (changed) {
    changed = false;
    for (int i = 0; i < a->constraints.count; i++) changed |= apply(a, &a->constraints.data[i]);
  }
  for (int b = 0; b < BUCKET__COUNT; b++) {
    if (b == BUCKET_TENSOR) continue;
    (void)kiln__locs_add_wildcards(a->arena, &a->locs.data[b].contents, ALL_BUCKETS);
  }
  for (int i = 0; i < a->locs.count; i++) canonicalise(a, &a->locs.data[i].contents);
  for (int i = 0; i < a->vars.count; i++) {
    alias_var *var = a->vars.entries[i].value;
    if (var) canonicalise(a, &var->points);
  }
  collect_deep(a);
}
