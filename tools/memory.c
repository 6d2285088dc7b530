/* memory.c: the memory plan of a call, in words and as a picture. */
#include "tools/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/rows.h"
#include "tools/tool.h"

enum { MAKER, FILE_NAME, LINE, OFFSET, BYTES, FROM, TO }; /* columns */

static double number(const tool_rows *rows, int row, int column) {
  return strtod(tool_rows_cell(rows, row, column), NULL);
}

/* -- Words -- */

const char *tool_memory_words(char text[TOOL_MEMORY_WORDS], const kiln_debug_memory *memory) {
  snprintf(text, TOOL_MEMORY_WORDS,
           "%" PRIu64 " tensors in %.3f MB, at most %.3f MB of them live at once", memory->tensors,
           (double)memory->bytes * 1e-6, (double)memory->least * 1e-6);
  return text;
}

/* -- The picture -- */

enum { WIDTH = 1100, HEIGHT = 560, LEFT = 70, RIGHT = 20, TOP = 48, BOTTOM = 40 };

typedef struct picture {
  FILE *out;
  const tool_rows *rows;
  double bytes, times; /* of the whole: up and along */
} picture;

static double x_of(const picture *p, double time) {
  return (double)LEFT + time / p->times * (double)(WIDTH - LEFT - RIGHT);
}
static double y_of(const picture *p, double bytes) {
  return HEIGHT - BOTTOM - bytes / p->bytes * (HEIGHT - TOP - BOTTOM);
}

static void print_escaped(FILE *out, const char *text) {
  for (; *text; text++) {
    switch (*text) {
      case '&': fputs("&amp;", out); break;
      case '<': fputs("&lt;", out); break;
      case '>': fputs("&gt;", out); break;
      default: fputc((unsigned char)*text < ' ' ? '?' : *text, out);
    }
  }
}

/* Lines at 1, 2 or 5 times a power of ten, four to nine of them. */
static void draw_scale(const picture *p) {
  double step = pow(10, floor(log10(p->bytes / 4)));
  if (p->bytes / step > 20) step *= 5;
  if (p->bytes / step > 8) step *= 2;
  const bool is_small = p->bytes < 1e6;
  for (double at = 0; at <= p->bytes; at += step) {
    const double y = y_of(p, at);
    fprintf(p->out,
            "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>"
            "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g %s</text>\n",
            LEFT, y, WIDTH - RIGHT, y, LEFT - 6, y + 4, at / (is_small ? 1e3 : 1e6),
            is_small ? "KB" : "MB");
  }
}

static const char *colour_of(const char *maker) {
  static const char *const colours[] = {"#8ecae6", "#ffb703", "#a7c957", "#cdb4db",
                                        "#f4a261", "#90be6d", "#bde0fe", "#e5989b"};
  unsigned hash = 5381;
  for (; *maker; maker++) hash = hash * 33 + (unsigned char)*maker;
  return colours[hash % (sizeof colours / sizeof *colours)];
}

static void draw_tensor(const picture *p, int row) {
  const char *maker = tool_rows_cell(p->rows, row, MAKER);
  const char *file = tool_rows_cell(p->rows, row, FILE_NAME);
  const double bytes = number(p->rows, row, BYTES), offset = number(p->rows, row, OFFSET);
  const double x = x_of(p, number(p->rows, row, FROM)), right = x_of(p, number(p->rows, row, TO));
  const double y = y_of(p, offset + bytes), bottom = y_of(p, offset);
  fprintf(p->out, "<g><title>%.0f bytes at %.0f, ", bytes, offset);
  print_escaped(p->out, *maker ? maker : "?");
  if (*file) {
    fputs(", ", p->out);
    print_escaped(p->out, file);
    fprintf(p->out, ":%s", tool_rows_cell(p->rows, row, LINE));
  }
  fprintf(p->out,
          "</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" "
          "stroke=\"#555\" stroke-width=\"0.4\"/>",
          x, y, right - x, bottom - y, colour_of(maker));
  const char *slash = strrchr(maker, '/'), *label = slash ? slash + 1 : maker;
  if (right - x > 6.2 * (double)strlen(label) && bottom - y > 12) {
    fprintf(p->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", (x + right) / 2,
            (y + bottom) / 2 + 4);
    print_escaped(p->out, label);
    fputs("</text>", p->out);
  }
  fputs("</g>\n", p->out);
}

static void draw(picture *p, const kiln_debug_memory *memory) {
  char words[TOOL_MEMORY_WORDS];
  fprintf(p->out,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
          "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"11\">\n"
          "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n"
          "<text x=\"%d\" y=\"24\" font-size=\"15\">Memory of a call: %s</text>\n",
          WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT, tool_memory_words(words, memory));
  draw_scale(p);
  for (int i = 1; i < p->rows->count; i++) draw_tensor(p, i);
  const double y = y_of(p, (double)memory->least);
  fprintf(p->out,
          "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#c1121f\" "
          "stroke-dasharray=\"6 4\"/>\n"
          "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" fill=\"#c1121f\">live at most</text>\n"
          "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">time: tensors made and let go</text>\n"
          "</svg>\n",
          LEFT, y, WIDTH - RIGHT, y, WIDTH - RIGHT - 4, y - 4, (LEFT + WIDTH - RIGHT) / 2,
          HEIGHT - 12);
}

kiln_status *tool_memory_draw(kiln_instance *instance, FILE *out) {
  kiln_debug_memory memory;
  tool_rows rows = {0};
  kiln_status *status = kiln_debug_instance_memory(instance, &memory, tool_rows_add, &rows);
  if (!status) {
    picture p = {.out = out, .rows = &rows, .bytes = (double)memory.bytes};
    for (int i = 1; i < rows.count; i++) p.times = fmax(p.times, number(&rows, i, TO));
    draw(&p, &memory);
  }
  tool_rows_free(&rows);
  return status;
}
