/* dim_order.c: relations of order between dimensions: those that are taken for granted, those that
 * somebody asks for, and their text. */
#include <string.h>

#include "base/cursor.h"
#include "runtime/dim_node.h"

/* -- For granted -- */

static kiln_sum room_of(const kiln_dims *dims, kiln_dim_order order) {
  return kiln_sum_minus(kiln_sum_of(dims, order.more), kiln_sum_of(dims, order.less));
}

int kiln_dims_weaker(const kiln_dims *dims, kiln_dim_order order) {
  const kiln_sum room = room_of(dims, order);
  for (int i = 0; i < dims->assumed.count; i++) {
    const kiln_sum apart = kiln_sum_minus(room_of(dims, dims->assumed.data[i]), room);
    if (apart.known && apart.count == 0 && apart.constant >= 0) return i;
  }
  return -1;
}
void kiln_dims_assume_at(kiln_dims *dims, int index, kiln_dim_order order) {
  dims->assumed.data[index] = order;
}
bool kiln_dims_assume(kiln_dims *dims, kiln_dim_order order) {
  if (dims->assumed.count == KILN_DIMS_ASSUMED) return false;
  kiln_vec_push(dims->arena, &dims->assumed, order);
  return true;
}
int kiln_dims_drop_implied(kiln_dims *dims, int first) {
  for (int i = dims->assumed.count - 1; i >= first; i--) {
    kiln_dim_order *at = &dims->assumed.data[i];
    const kiln_dim_order order = *at;
    const size_t behind = sizeof order * (size_t)(--dims->assumed.count - i);
    memmove(at, at + 1, behind);
    if (kiln_sum_is_natural(dims, room_of(dims, order))) continue;
    memmove(at + 1, at, behind);
    *at = order;
    dims->assumed.count++;
  }
  return dims->assumed.count;
}
int kiln_dims_assumed(const kiln_dims *dims) { return dims->assumed.count; }
kiln_dim_order kiln_dims_assumed_at(const kiln_dims *dims, int index) {
  return dims->assumed.data[index];
}
void kiln_dims_forget(kiln_dims *dims, int count) {
  if (count < dims->assumed.count) dims->assumed.count = count;
}

/* -- Wishes -- */

void kiln_dims_listen(kiln_dims *dims, kiln_dim_wishes *needed, kiln_dim_wishes *liked) {
  dims->needed = needed;
  dims->liked = liked;
}

void kiln_dims_begin_question(kiln_dims *dims) {
  if (dims->needed) dims->needed->first = dims->needed->count;
  if (dims->liked) dims->liked->first = dims->liked->count;
}

/* Whether it is proved; else whoever listens is told. */
static bool ask(kiln_dims *dims, kiln_sum less, kiln_sum more, kiln_dim_wishes *wishes) {
  if (kiln_sum_is_natural(dims, kiln_sum_minus(more, less))) return true;
  const kiln_dim_order order = {kiln_sum_dim(dims, less), kiln_sum_dim(dims, more)};
  const bool can_be = kiln_dim_is_known(order.less) && kiln_dim_is_known(order.more) &&
                      !(kiln_dim_is_number(order.less) && kiln_dim_is_number(order.more));
  if (can_be && wishes && wishes->count < KILN_DIMS_WISHES) wishes->all[wishes->count++] = order;
  return false;
}
bool kiln_dims_prove(kiln_dims *dims, kiln_sum less, kiln_sum more) {
  return ask(dims, less, more, dims->needed);
}
void kiln_dims_like(kiln_dims *dims, kiln_sum less, kiln_sum more) {
  if (dims->liked) (void)ask(dims, less, more, dims->liked);
}

uint64_t kiln_dim_symbols(const kiln_dims *dims, kiln_dim d) {
  uint64_t symbols = 0;
  if (kiln_dim_is_symbol(d)) {
    const int number = kiln_dim_symbol_number(d);
    return number < 64 ? UINT64_C(1) << number : 0;
  }
  if (!kiln_dim_is_expression(d)) return 0;
  const kiln__dim_node *n = kiln__dim_node_of(dims, d);
  for (int i = 0; i < n->factor_count; i++) symbols |= kiln_dim_symbols(dims, n->factors[i]);
  for (int i = 0; i < n->sum.count; i++) symbols |= kiln_dim_symbols(dims, n->sum.terms[i].atom);
  return symbols;
}

/* -- Text -- */

void kiln_dim_order_print(kiln_text *text, const kiln_dims *dims, kiln_dim_order order) {
  kiln_dim_print(text, dims, order.less);
  kiln_text_puts(text, " <= ");
  kiln_dim_print(text, dims, order.more);
}

bool kiln_dim_order_parse(kiln_dims *dims, kiln_str *text, kiln_dim_order *out) {
  if (!kiln_dim_parse(dims, text, &out->less)) return false;
  kiln_cursor c = kiln_cursor_of(*text);
  if (!kiln_cursor_accept(&c, "<=")) return false;
  *text = kiln_cursor_rest(&c);
  return kiln_dim_parse(dims, text, &out->more) && kiln_dim_is_known(out->less) &&
         kiln_dim_is_known(out->more);
}

void kiln_dim_orders_print(kiln_text *text, const kiln_dims *dims, const kiln_dim_order *orders,
                           int count) {
  for (int i = 0; i < count; i++) {
    if (i) kiln_text_puts(text, ", ");
    kiln_dim_order_print(text, dims, orders[i]);
  }
}

bool kiln_dim_orders_parse(kiln_dims *dims, kiln_str text, kiln_dim_order *out, int *out_count) {
  *out_count = 0;
  if (text.len == 0) return true;
  for (;;) {
    if (*out_count == KILN_DIMS_ASSUMED || !kiln_dim_order_parse(dims, &text, &out[*out_count]))
      return false;
    ++*out_count;
    kiln_cursor c = kiln_cursor_of(text);
    kiln_cursor_skip(&c);
    if (c.at == c.end) return true;
    if (!kiln_cursor_accept(&c, ",")) return false;
    text = kiln_cursor_rest(&c);
  }
}
