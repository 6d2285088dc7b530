/* status.c: the status object and the report that a person reads.
 *
 * Statuses come from malloc, not from a kiln_mem: they must outlive any context, and reporting that
 * a context is out of memory must not need its memory. What cannot be stored is left out. */
#include "base/status.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct status_line {
  struct status_line *next;
  char *text; /* in the same block */
} status_line;

struct kiln_status {
  kiln_code code;
  const char *c_file; /* static */
  int c_line;
  char *message;
  char *location;  /* "file:line:column", or NULL */
  char *exception; /* or NULL */
  char *report;    /* made when first asked for */
  status_line *notes, **notes_end;
  status_line *frames;    /* the outermost first */
  status_line *originals; /* the same, of the program that the model was made from */
};

static kiln_status oom_status = {
    .code = KILN_OUT_OF_MEMORY,
    .message = "out of memory",
    .report = "out of memory",
};

/* The thread's last request for memory that was refused and not yet reported. */
static _Thread_local struct {
  size_t bytes, limit;
} refused;

void kiln_status_refused(size_t bytes, size_t limit) {
  refused.bytes = bytes;
  refused.limit = limit;
}

/* "9.5 MiB": nobody counts what was asked for. */
static void format_about(size_t bytes, char *buffer) {
  static const char units[] = "KMGT";
  double value = (double)bytes / 1024;
  int unit = 0;
  if (bytes < 10 * 1024) {
    kiln_format_bytes(bytes, buffer);
    return;
  }
  for (; value >= 1024 && unit < 3; unit++) value /= 1024;
  snprintf(buffer, 32, "%.1f %ciB", value, units[unit]);
}

kiln_status *kiln_status_oom(void) {
  const size_t bytes = refused.bytes, limit = refused.limit;
  if (!bytes) return &oom_status;
  kiln_status_refused(0, 0); /* what reports it may need memory, too */
  char wanted[32], most[32];
  format_about(bytes, wanted);
  kiln_format_bytes(limit, most);
  if (!limit) return KILN_ERROR(KILN_OUT_OF_MEMORY, "out of memory: %s were asked for", wanted);
  return KILN_ERROR(KILN_OUT_OF_MEMORY,
                    "the option memory_limit of %s is reached: %s more were asked for", most,
                    wanted);
}

bool kiln_status_ends(const kiln_status *status) {
  kiln_code code = kiln_status_code(status);
  return code == KILN_LIMIT || code == KILN_CANCELLED || code == KILN_OUT_OF_MEMORY;
}

static char *format_v(const char *fmt, va_list args) {
  va_list again;
  va_copy(again, args);
  int len = vsnprintf(NULL, 0, fmt, again);
  va_end(again);
  if (len < 0) return NULL;
  char *text = malloc((size_t)len + 1);
  if (text) vsnprintf(text, (size_t)len + 1, fmt, args);
  return text;
}

static char *format(const char *fmt, ...) KILN_PRINTF(1, 2);
static char *format(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  char *text = format_v(fmt, args);
  va_end(args);
  return text;
}

/* -- Making -- */

kiln_status *kiln_status_create_v(kiln_code code, const char *file, int line, const char *fmt,
                                  va_list args) {
  kiln_status *status = calloc(1, sizeof *status);
  char *message = format_v(fmt, args);
  if (!status || !message) {
    free(status);
    free(message);
    return &oom_status;
  }
  while (strncmp(file, "../", 3) == 0) file += 3; /* as the build folder sees it */
  status->code = code;
  status->c_file = file;
  status->c_line = line;
  status->message = message;
  status->notes_end = &status->notes;
  return status;
}

kiln_status *kiln_status_create(kiln_code code, const char *file, int line, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  kiln_status *status = kiln_status_create_v(code, file, line, fmt, args);
  va_end(args);
  return status;
}

static void free_lines(status_line *line) {
  while (line) {
    status_line *next = line->next;
    free(line->text);
    free(line);
    line = next;
  }
}

void kiln_status_destroy(kiln_status *status) {
  if (!status || status == &oom_status) return;
  free(status->message);
  free(status->location);
  free(status->exception);
  free(status->report);
  free_lines(status->notes);
  free_lines(status->frames);
  free_lines(status->originals);
  free(status);
}

/* -- Adding -- */

/* Whether there is something to add to; what was reported so far is then out of date. */
static bool can_add(kiln_status *status) {
  KILN_ASSERT(status);
  if (status == &oom_status) return false;
  free(status->report);
  status->report = NULL;
  return true;
}

/* Takes `text`, which may be NULL for lack of memory. */
static status_line *make_line(char *text) {
  status_line *line = text ? calloc(1, sizeof *line) : NULL;
  if (line) {
    line->text = text;
  } else {
    free(text);
  }
  return line;
}

kiln_status *kiln_status_note(kiln_status *status, const char *fmt, ...) {
  if (!can_add(status)) return status;
  va_list args;
  va_start(args, fmt);
  status_line *line = make_line(format_v(fmt, args));
  va_end(args);
  if (line) {
    *status->notes_end = line;
    status->notes_end = &line->next;
  }
  return status;
}

kiln_status *kiln_status_as(kiln_status *status, kiln_code code, const char *prefix) {
  if (!status || kiln_status_code(status) == KILN_OUT_OF_MEMORY) return status;
  kiln_status *as = KILN_ERROR(code, "%s%s", prefix, kiln_status_message(status));
  kiln_status_destroy(status);
  return as;
}

/* Copies a list of lines to *end; stops where memory does. Returns the new end. */
static status_line **copy_lines(status_line **end, const status_line *from) {
  for (; from; from = from->next) {
    status_line *line = make_line(strdup(from->text));
    if (!line) break;
    *end = line;
    end = &line->next;
  }
  return end;
}

kiln_status *kiln_status_copy(const kiln_status *from) {
  if (!from || from == &oom_status) return from ? &oom_status : NULL;
  kiln_status *status =
      kiln_status_create(from->code, from->c_file, from->c_line, "%s", from->message);
  if (status == &oom_status) return status;
  if (from->location) status->location = strdup(from->location);
  if (from->exception) status->exception = strdup(from->exception);
  status->notes_end = copy_lines(&status->notes, from->notes);
  (void)copy_lines(&status->frames, from->frames);
  (void)copy_lines(&status->originals, from->originals);
  return status;
}

static char *format_location(kiln_source_loc loc) {
  const char *file = loc.file ? loc.file : "<unknown>";
  if (loc.line <= 0) return format("%s", file);
  if (loc.column <= 0) return format("%s:%d", file, loc.line);
  return format("%s:%d:%d", file, loc.line, loc.column);
}

kiln_status *kiln_status_at(kiln_status *status, kiln_source_loc loc) {
  if (!can_add(status) || status->location || (!loc.file && loc.line <= 0)) return status;
  status->location = format_location(loc);
  return status;
}

/* "    x = y + z\n        ~~~~~ <--- HERE\n" without the source's own indentation. */
static char *format_marked(const char *source_line, int mark_begin, int mark_end) {
  int skip = (int)strspn(source_line, " \t");
  const char *text = source_line + skip;
  int len = (int)strcspn(text, "\r\n");
  int begin = mark_begin - skip, end = mark_end - skip;
  if (begin < 0) begin = 0;
  if (end > len) end = len;
  if (begin >= end) return format("    %.*s\n", len, text);
  char *marks = malloc((size_t)end + 1);
  if (!marks) return NULL;
  for (int i = 0; i < end; i++) marks[i] = i >= begin ? '~' : text[i] == '\t' ? '\t' : ' ';
  marks[end] = 0;
  char *result = format("    %.*s\n    %s <--- HERE\n", len, text, marks);
  free(marks);
  return result;
}

/* A frame before those that are there. */
static void add_frame(status_line **frames, const char *function, kiln_source_loc loc,
                      const char *source_line, int mark_begin, int mark_end) {
  char *marked = source_line ? format_marked(source_line, mark_begin, mark_end) : NULL;
  const char *file = loc.file ? loc.file : "<unknown>";
  char *text = loc.line > 0
                   ? format("  File \"%s\", line %d, in %s\n%s", file, loc.line, function,
                            marked ? marked : "")
                   : format("  File \"%s\", in %s\n%s", file, function, marked ? marked : "");
  free(marked);
  status_line *line = make_line(text);
  if (line) {
    line->next = *frames;
    *frames = line;
  }
}

kiln_status *kiln_status_trace(kiln_status *status, const char *function, kiln_source_loc loc,
                               const char *source_line, int mark_begin, int mark_end) {
  if (!can_add(status)) return status;
  add_frame(&status->frames, function, loc, source_line, mark_begin, mark_end);
  return status;
}

kiln_status *kiln_status_trace_original(kiln_status *status, const char *function,
                                        kiln_source_loc loc, const char *source_line,
                                        int mark_begin, int mark_end) {
  if (!can_add(status)) return status;
  add_frame(&status->originals, function, loc, source_line, mark_begin, mark_end);
  return status;
}

kiln_status *kiln_status_set_exception(kiln_status *status, const char *class_name) {
  if (!can_add(status)) return status;
  char *copy = strdup(class_name);
  if (copy) {
    free(status->exception);
    status->exception = copy;
  }
  return status;
}

/* -- Reading -- */

kiln_code kiln_status_code(const kiln_status *status) { return status ? status->code : KILN_OK; }

const char *kiln_code_name(kiln_code code) {
  static const char *const names[] = {
#define CODE_NAME(name, exit_status, meaning) #name,
      KILN_CODE_LIST(CODE_NAME)
#undef CODE_NAME
  };
  return (unsigned)code < KILN_CODE__COUNT ? names[code] : "UNKNOWN";
}

const char *kiln_status_message(const kiln_status *status) {
  return status ? status->message : "no error";
}

const char *kiln_status_location(const kiln_status *status) {
  return status ? status->location : NULL;
}

const char *kiln_status_exception(const kiln_status *status) {
  return status ? status->exception : NULL;
}

static void print_frames(const status_line *frames, const char *title, FILE *out) {
  if (!frames) return;
  fprintf(out, "\n%s (most recent call last):\n", title);
  for (const status_line *frame = frames; frame; frame = frame->next) {
    size_t len = strlen(frame->text);
    if (!frame->next && len > 0) len--; /* the last newline */
    fwrite(frame->text, 1, len, out);
  }
}

static void print_report(const kiln_status *status, FILE *out) {
  if (status->code == KILN_INTERNAL)
    fprintf(out, "fault in Kiln itself, %s:%d (please report it): ", status->c_file,
            status->c_line);
  if (status->exception) fprintf(out, "%s: ", status->exception);
  fputs(status->message, out);
  if (status->location) fprintf(out, "\n  at %s", status->location);
  const bool both = status->originals;
  print_frames(status->frames,
               both ? "Traceback of TorchScript, serialized code" : "Traceback of the model", out);
  print_frames(status->originals, "Traceback of TorchScript, original code", out);
  for (const status_line *note = status->notes; note; note = note->next)
    fprintf(out, "\n  note: %s", note->text);
}

const char *kiln_status_report(const kiln_status *status) {
  if (!status) return "no error";
  if (!status->report) {
    /* A cache: a status belongs to one thread, and only oom_status is really constant. */
    kiln_status *owner = (kiln_status *)(uintptr_t)status;
    size_t size;
    char *text = NULL;
    FILE *out = open_memstream(&text, &size);
    if (!out) return status->message;
    print_report(status, out);
    if (fclose(out) != 0) {
      free(text);
      return status->message;
    }
    owner->report = text;
  }
  return status->report;
}
