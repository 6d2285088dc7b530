/* type_print.c: types as the IR prints them, and as Python's annotations write them. */
#include "runtime/device.h"
#include "runtime/type_internal.h"

/* Deeper types print as "...": only a program that builds types can make them. */
enum { PRINT_MAX_DEPTH = 300 };

/* X(kind, IR name, annotation) */
#define BASIC_NAMES(X)                         \
  X(TENSOR, "Tensor", "Tensor")                \
  X(INT, "int", "int")                         \
  X(FLOAT, "float", "float")                   \
  X(BOOL, "bool", "bool")                      \
  X(COMPLEX, "complex", "complex")             \
  X(NUMBER, "Scalar", "number")                \
  X(STR, "str", "str")                         \
  X(NONE, "NoneType", "NoneType")              \
  X(DEVICE, "Device", "Device")                \
  X(GENERATOR, "Generator", "Generator")       \
  X(STREAM, "Stream", "Stream")                \
  X(STORAGE, "Storage", "Storage")             \
  X(QSCHEME, "QScheme", "QScheme")             \
  X(ANY, "Any", "Any")                         \
  X(ANY_LIST, "list", "list")                  \
  X(ANY_TUPLE, "tuple", "tuple")               \
  X(ANY_CLASS, "AnyClassType", "AnyClassType") \
  X(ANY_ENUM, "AnyEnumType", "AnyEnumType")    \
  X(FUNCTION, "Function", "Function")          \
  X(CAPSULE, "Capsule", "Capsule")

static const char *const basic_names[][2] = {
#define NAMES(kind, ir, annotation) [KILN_TYPE_##kind] = {ir, annotation},
    BASIC_NAMES(NAMES)
#undef NAMES
};

static const char *basic_name(kiln_type_kind kind, int form) {
  return (size_t)kind < sizeof basic_names / sizeof *basic_names ? basic_names[kind][form] : NULL;
}

const char *kiln__type_basic_name(kiln_type_kind kind) { return basic_name(kind, 0); }

/* -- Tensors -- */

static void print_dims(kiln_text *text, const kiln_tensor_detail *d, const kiln_dim *dims,
                       bool symbols) {
  for (int i = 0; i < d->rank; i++) {
    const bool shown = symbols || kiln_dim_is_number(dims[i]);
    if (i > 0) kiln_text_puts(text, ", ");
    kiln_dim_print(text, d->dims, shown ? dims[i] : KILN_DIM_UNKNOWN);
  }
}

/* "requires_grad=0, device=cpu", whichever are known; `lead` goes before the first. */
static bool print_flags(kiln_text *text, const kiln_tensor_detail *d, const char *lead) {
  bool some = false;
  if (d->requires_grad >= 0) {
    kiln_text_printf(text, "%srequires_grad=%d", lead, d->requires_grad);
    some = true;
  }
  if (d->device >= 0) {
    kiln_text_printf(text, "%sdevice=%s", some ? ", " : lead, kiln_device_kind_name(d->device));
    if (d->device_index >= 0) kiln_text_printf(text, ":%d", d->device_index);
    some = true;
  }
  return some;
}

const char *kiln_physical_name(int physical) {
  static const char *const names[] = {"strided", "rows", "channels_last", "channels_last_border_1",
                                      "channels_last_border_2"};
  return names[physical];
}

void kiln_tensor_detail_print(kiln_text *text, const kiln_tensor_detail *d, int verbosity) {
  bool has_dtype = d->dtype != KILN_DTYPE_NONE;
  if (has_dtype) kiln_text_puts(text, kiln_dtype_ir_name((kiln_dtype)d->dtype));
  if (!has_dtype || d->rank < 0) kiln_text_puts(text, "Tensor");
  if (d->rank >= 0 && verbosity >= 1) {
    const bool bare = d->rank == 0 && !has_dtype; /* "Tensor(…)" alone has any rank */
    kiln_text_puts(text, bare ? "(rank=0" : "(");
    print_dims(text, d, d->sizes, verbosity >= 4);
    if (d->has_strides && d->rank > 0 && verbosity >= 2) {
      kiln_text_puts(text, ", strides=[");
      print_dims(text, d, d->strides, verbosity >= 4);
      kiln_text_putc(text, ']');
    }
    if (d->physical) kiln_text_printf(text, ", layout=%s", kiln_physical_name(d->physical));
    if (verbosity >= 3) print_flags(text, d, d->rank > 0 || bare ? ", " : "");
    kiln_text_putc(text, ')');
  } else if (d->rank < 0 && verbosity >= 3) {
    if (print_flags(text, d, "(")) kiln_text_putc(text, ')');
  }
  if (d->undefined == 1) kiln_text_puts(text, "[Undefined]");
}

/* -- IR form -- */

static void print_ir(kiln_text *text, const kiln_type *type, int verbosity, int depth);

static void print_wrapped(kiln_text *text, const char *open, const kiln_type *type,
                          const char *close, int verbosity, int depth) {
  kiln_text_puts(text, open);
  for (int i = 0; i < type->elem_count; i++) {
    if (i > 0) kiln_text_puts(text, ", ");
    if (type->names) {
      kiln_text_put(text, type->names[i]);
      kiln_text_puts(text, " : ");
    }
    print_ir(text, type->elems[i], verbosity, depth);
  }
  kiln_text_puts(text, close);
}

static void print_ir(kiln_text *text, const kiln_type *type, int verbosity, int depth) {
  if (++depth > PRINT_MAX_DEPTH) {
    kiln_text_puts(text, "...");
    return;
  }
  switch (type->kind) {
    case KILN_TYPE_TENSOR:
      if (type->detail) {
        kiln_tensor_detail_print(text, type->detail, verbosity);
      } else {
        kiln_text_puts(text, "Tensor");
      }
      break;
    case KILN_TYPE_LIST: print_wrapped(text, "", type, "[]", verbosity, depth); break;
    case KILN_TYPE_OPTIONAL: print_wrapped(text, "", type, "?", verbosity, depth); break;
    case KILN_TYPE_FUTURE: print_wrapped(text, "Future[", type, "]", verbosity, depth); break;
    case KILN_TYPE_AWAIT: print_wrapped(text, "Await[", type, "]", verbosity, depth); break;
    case KILN_TYPE_RREF: print_wrapped(text, "RRef[", type, "]", verbosity, depth); break;
    case KILN_TYPE_DICT: print_wrapped(text, "Dict(", type, ")", verbosity, depth); break;
    case KILN_TYPE_UNION: print_wrapped(text, "Union(", type, ")", verbosity, depth); break;
    case KILN_TYPE_TUPLE:
      print_wrapped(text, type->names ? "NamedTuple(" : "(", type, ")", verbosity, depth);
      break;
    case KILN_TYPE_CLASS:
    case KILN_TYPE_VAR: kiln_text_put(text, type->name); break;
    case KILN_TYPE_INTERFACE:
    case KILN_TYPE_ENUM: {
      bool interface = type->kind == KILN_TYPE_INTERFACE;
      kiln_text_puts(text, interface ? "InterfaceType<" : "Enum<");
      kiln_text_put(text, interface ? kiln_str_last_part(type->name) : type->name);
      kiln_text_putc(text, '>');
      break;
    }
    default: kiln_text_puts(text, basic_name(type->kind, 0)); break;
  }
}

void kiln_type_print(kiln_text *text, const kiln_type *type, int verbosity) {
  print_ir(text, type, verbosity, 0);
}

/* -- Annotations -- */

static void annotate(kiln_text *text, const kiln_type *type, int depth);

static void annotate_parts(kiln_text *text, const char *name, const kiln_type *type, int depth) {
  kiln_text_puts(text, name);
  kiln_text_putc(text, '[');
  for (int i = 0; i < type->elem_count; i++) {
    if (i > 0) kiln_text_puts(text, ", ");
    annotate(text, type->elems[i], depth);
  }
  if (type->kind == KILN_TYPE_TUPLE && type->elem_count == 0) kiln_text_puts(text, "()");
  kiln_text_putc(text, ']');
}

static void annotate(kiln_text *text, const kiln_type *type, int depth) {
  if (++depth > PRINT_MAX_DEPTH) {
    kiln_text_puts(text, "...");
    return;
  }
  switch (type->kind) {
    case KILN_TYPE_LIST: annotate_parts(text, "List", type, depth); break;
    case KILN_TYPE_OPTIONAL: annotate_parts(text, "Optional", type, depth); break;
    case KILN_TYPE_FUTURE: annotate_parts(text, "Future", type, depth); break;
    case KILN_TYPE_AWAIT: annotate_parts(text, "Await", type, depth); break;
    case KILN_TYPE_RREF: annotate_parts(text, "RRef", type, depth); break;
    case KILN_TYPE_DICT: annotate_parts(text, "Dict", type, depth); break;
    case KILN_TYPE_UNION: annotate_parts(text, "Union", type, depth); break;
    case KILN_TYPE_TUPLE:
      if (type->name.len > 0) {
        kiln_text_put(text, type->name);
      } else {
        annotate_parts(text, "Tuple", type, depth);
      }
      break;
    case KILN_TYPE_CLASS:
    case KILN_TYPE_INTERFACE:
    case KILN_TYPE_ENUM:
    case KILN_TYPE_VAR: kiln_text_put(text, type->name); break;
    default: kiln_text_puts(text, basic_name(type->kind, 1)); break;
  }
}

void kiln_type_print_annotation(kiln_text *text, const kiln_type *type) { annotate(text, type, 0); }
