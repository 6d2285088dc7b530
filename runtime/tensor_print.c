/* tensor_print.c: tensors in the form of PyTorch's C++ printer, which is what a TorchScript program
 * prints: a common format for all numbers of a matrix, pages of 80 characters, slices of higher
 * ranks one after the other, and a last line with type and sizes.
 *
 * It keeps the original's oddities, because printed text is output that people compare: the width
 * follows the largest signed value, a page's first row stands on its heading's line, the precision
 * of one slice stays in force for the next, complex numbers show their real part. */
#include <math.h>
#include <stdio.h>

#include "runtime/quant.h"
#include "runtime/structure.h"
#include "runtime/tensor_internal.h"
#include "runtime/value.h"

enum { LINE_SIZE = 80 };

typedef enum notation { GENERAL, FIXED, SCIENTIFIC } notation;

typedef struct printer {
  kiln_text *text;
  const kiln_tensor *t;
  notation style;
  int precision;
} printer;

/* A matrix (or a vector, as one column) inside the tensor: offsets in elements. */
typedef struct matrix {
  int64_t rows, columns, row_stride, column_stride, offset;
} matrix;

static double element(const printer *p, const matrix *m, int64_t row, int64_t column) {
  int64_t at = m->offset + row * m->row_stride + column * m->column_stride;
  const char *data = (const char *)kiln_tensor_data(p->t);
  return kiln_element_f64(kiln_tensor_dtype(p->t), data + at * (int64_t)kiln_tensor_item_size(p->t),
                          NULL);
}

void kiln__text_number(kiln_text *text, const char *fmt, int width, int precision, double value) {
  char buffer[400];
  int len = snprintf(buffer, sizeof buffer, fmt, width, precision, value);
  /* The decimal point of the host's locale, one or more bytes, becomes a dot. */
  for (int i = 0; i < len && i < (int)sizeof buffer - 1; i++) {
    unsigned char c = (unsigned char)buffer[i];
    bool point = c >= 0x80 || c == ',' || c == '\'';
    if (point && i > 0 && buffer[i - 1] == '.') continue;
    kiln_text_putc(text, point ? '.' : buffer[i]);
  }
}

static void put_number(const printer *p, double value, int width) {
  static const char *const formats[] = {"%*.*g", "%*.*f", "%*.*e"};
  kiln__text_number(p->text, formats[p->style], width, p->precision, value);
}

/* Decimal exponent of the leading digit, counted from 1; 1 for zero. */
static double digits_of(double x) { return x != 0 ? floor(log10(x)) + 1 : 1; }

typedef struct range {
  bool integral;
  double lowest, highest; /* digits of the smallest magnitude and of the largest value */
} range;

/* What an expanded view repeats is looked at once. */
static range find_range(const printer *p, const matrix *m) {
  const int64_t rows = m->row_stride || m->rows == 0 ? m->rows : 1;
  const int64_t columns = m->column_stride || m->columns == 0 ? m->columns : 1;
  range r = {true, 1, 1};
  bool started = false;
  double lowest = 0, highest = 0;
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < columns; j++) {
      double x = element(p, m, i, j), magnitude = fabs(x);
      kiln_arena_step(p->text->arena);
      if (!isfinite(x)) continue;
      if (x != ceil(x)) r.integral = false;
      if (!started) lowest = highest = magnitude, started = true;
      if (magnitude < lowest) lowest = magnitude;
      if (x > highest) highest = x;
    }
  }
  if (started) r.lowest = digits_of(lowest), r.highest = digits_of(highest);
  return r;
}

/* Chooses notation and width for a matrix; returns what its numbers are divided by. */
static double choose_format(printer *p, const matrix *m, int *out_width) {
  range r = find_range(p, m);
  if (r.integral) {
    if (r.highest > 9) {
      p->style = SCIENTIFIC, p->precision = 4, *out_width = 11;
    } else {
      p->style = GENERAL, *out_width = (int)r.highest + 1;
    }
    return 1;
  }
  p->precision = 4;
  if (r.highest - r.lowest > 4) {
    p->style = SCIENTIFIC;
    *out_width = fabs(r.highest) > 99 || fabs(r.lowest) > 99 ? 12 : 11;
    return 1;
  }
  p->style = FIXED;
  *out_width = 7;
  if (r.highest > 5 || r.highest < 0) return pow(10, r.highest - 1);
  if (r.highest != 0) *out_width = (int)r.highest + 6;
  return 1;
}

static void put_scale(const printer *p, double scale) {
  kiln__text_number(p->text, "%*.*g", 0, p->precision, scale);
  kiln_text_puts(p->text, " *\n");
}

static void print_vector(printer *p, const matrix *m) {
  int width;
  double scale = choose_format(p, m, &width);
  if (scale != 1) put_scale(p, scale);
  for (int64_t i = 0; i < m->rows; i++) {
    put_number(p, element(p, m, i, 0) / scale, width);
    kiln_text_putc(p->text, '\n');
  }
}

static void print_page(const printer *p, const matrix *m, int64_t first, int64_t last, int width,
                       double scale, int indent) {
  for (int64_t i = 0; i < m->rows; i++) {
    if (i > 0) kiln_text_indent(p->text, scale != 1 ? indent + 1 : indent);
    for (int64_t j = first; j <= last; j++) {
      put_number(p, element(p, m, i, j) / scale, width);
      kiln_text_putc(p->text, j < last ? ' ' : '\n');
    }
  }
}

static void print_matrix(printer *p, const matrix *m, int indent) {
  int width;
  double scale = choose_format(p, m, &width);
  int64_t columns = (LINE_SIZE - indent) / (width + 1);
  kiln_text_indent(p->text, indent);
  for (int64_t first = 0; first < m->columns; first += columns) {
    int64_t last = first + columns <= m->columns ? first + columns - 1 : m->columns - 1;
    if (columns < m->columns) {
      if (first > 0) kiln_text_putc(p->text, '\n');
      kiln_text_printf(p->text, "Columns %lld to %lld", (long long)first + 1, (long long)last + 1);
      kiln_text_indent(p->text, indent);
    }
    if (scale != 1) {
      put_scale(p, scale);
      kiln_text_indent(p->text, indent);
    }
    print_page(p, m, first, last, width, scale, indent);
  }
}

/* Rank 3 and more: each matrix of the last two dimensions, the first dimension running fastest. */
static void print_slices(printer *p) {
  const int64_t *sizes = kiln_tensor_sizes(p->t), *strides = kiln_tensor_strides(p->t);
  int outer = kiln_tensor_rank(p->t) - 2;
  int64_t index[KILN_MAX_RANK] = {0};
  matrix m = {sizes[outer], sizes[outer + 1], strides[outer], strides[outer + 1], 0};
  for (bool first = true;; first = false) {
    if (!first) kiln_text_putc(p->text, '\n');
    kiln_text_putc(p->text, '(');
    m.offset = 0;
    for (int i = 0; i < outer; i++) {
      kiln_text_printf(p->text, "%lld,", (long long)index[i] + 1);
      m.offset += index[i] * strides[i];
    }
    kiln_text_puts(p->text, ".,.) = \n");
    print_matrix(p, &m, 1);
    int i = 0;
    while (i < outer && ++index[i] == sizes[i]) index[i++] = 0;
    if (i == outer) return;
  }
}

static void print_elements(printer *p) {
  const int64_t *sizes = kiln_tensor_sizes(p->t), *strides = kiln_tensor_strides(p->t);
  switch (kiln_tensor_rank(p->t)) {
    case 0:
      put_number(p, element(p, &(matrix){1, 1, 0, 0, 0}, 0, 0), 0);
      kiln_text_putc(p->text, '\n');
      break;
    case 1: print_vector(p, &(matrix){sizes[0], 1, strides[0], 0, 0}); break;
    case 2: print_matrix(p, &(matrix){sizes[0], sizes[1], strides[0], strides[1], 0}, 0); break;
    default: print_slices(p); break;
  }
}

static void put_sizes(kiln_text *text, const kiln_tensor *t, const char *comma) {
  for (int i = 0; i < kiln_tensor_rank(t); i++) {
    kiln_text_printf(text, "%s%lld", i > 0 ? comma : "", (long long)kiln_tensor_sizes(t)[i]);
  }
}

/* What it stands for, then how; nothing of the elements when memory is short. */
static void print_quantized(kiln_text *text, const kiln_tensor *t) {
  const kiln_quant *quant = kiln_tensor_quant(t);
  kiln_tensor *values = NULL;
  kiln_status_destroy(kiln_tensor_dequantize(t->mem, NULL, t, &values));
  if (values && values->numel > 0) {
    printer p = {text, values, GENERAL, 6};
    print_elements(&p);
  }
  kiln_tensor_release(values);
  kiln_text_printf(text, "[ QuantizedCPU%sType{", kiln_dtype_ir_name(kiln_tensor_dtype(t)));
  put_sizes(text, t, ",");
  kiln_text_puts(text, "}, qscheme: per_");
  if (quant->scheme == KILN_QSCHEME_PER_CHANNEL) {
    kiln_text_printf(text, "channel_affine, axis: %d ]", quant->axis);
    return;
  }
  kiln_text_puts(text, "tensor_affine, scale: ");
  kiln__text_number(text, "%*.*f", 0, 4, quant->scale);
  kiln_text_printf(text, ", zero_point: %lld ]", (long long)quant->zero_point);
}

static void print_sparse(kiln_text *text, const kiln_tensor *t) {
  const kiln_sparse *sparse = kiln_tensor_sparse(t);
  kiln_text_printf(text, "[ SparseCPU%sType{}\nindices:\n",
                   kiln_dtype_ir_name(kiln_tensor_dtype(t)));
  kiln_tensor_print(text, sparse->indices);
  kiln_text_puts(text, "\nvalues:\n");
  kiln_tensor_print(text, sparse->values);
  kiln_text_puts(text, "\nsize:\n[");
  put_sizes(text, t, ", ");
  kiln_text_puts(text, "]\n]");
}

void kiln_tensor_print(kiln_text *text, const kiln_tensor *t) {
  if (kiln_tensor_quant(t)) {
    print_quantized(text, t);
    return;
  }
  if (kiln_tensor_sparse(t)) {
    print_sparse(text, t);
    return;
  }
  if (kiln_tensor_is_undefined(t)) {
    kiln_text_puts(text, "[ Tensor (undefined) ]");
    return;
  }
  printer p = {text, t, GENERAL, 6};
  bool quantized = kiln_dtype_category_of(kiln_tensor_dtype(t)) == KILN_CATEGORY_OTHER &&
                   !kiln_dtype_has_elements(kiln_tensor_dtype(t));
  if (t->numel > 0 && !quantized) print_elements(&p);
  kiln_text_printf(text, "[ CPU%sType{", kiln_dtype_ir_name(kiln_tensor_dtype(t)));
  put_sizes(text, t, ",");
  kiln_text_puts(text, "} ]");
}
