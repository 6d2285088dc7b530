"""null_calls.py: calls of every public function with NULL for each pointer in turn, in C.

It reads the declarations of include/kiln and writes one call for each pointer argument (the others
are as right as their types allow) and one with NULL for all. Each call runs in a child process: it
must return, whatever it returns. test/unit/api/null_test.c includes the result.

    null_calls.py HEADER... > null_calls.h
"""
import re
import sys

# A good value for an argument of each type; what is not here is NULL at best.
VALUES = {
    'kiln_context*': 'the.context', 'kiln_options*': 'the.options', 'kiln_pool*': 'the.pool',
    'kiln_model*': 'the.model', 'kiln_instance*': 'the.instance', 'kiln_value*': 'the.value',
    'kiln_value*const*': '&the.value', 'kiln_builder*': 'the.builder', 'char*': '"forward"',
    'int64_t*': 'the.sizes', 'void*': 'the.room', 'kiln_debug_row_fn': 'on_row',
    'kiln_print_fn': 'on_print', 'kiln_log_fn': 'on_log', 'kiln_write_fn': 'on_write',
    'kiln_done_fn': 'on_done', 'kiln_event_fn': 'on_event',
    'char*const*': 'the.names',
}
# Where a text must be one of a few for a function to go on.
NAMED = {'table': '"flags"', 'stage': '"optimized"', 'op': '"aten::relu"', 'type': '"Tensor"',
         'passes': '"dce"', 'name': '"w"'}
# These never return, or take what only a kernel has.
LEFT_OUT = {'kiln_op_error'}
OPAQUE = {'kiln_op_call*', 'kiln_op_shape*', 'kiln_status*', 'kiln_trace*', 'kiln_pending*'}


def functions(text):
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    text = re.sub(r'^\s*#.*?(?<!\\)$', '', text, flags=re.S | re.M)
    declaration = r'KILN_API\s+([\w\s*]+?)(\w+)\s*\(([^;]*?)\)\s*(?:__attribute__[^;]*)?;'
    for m in re.finditer(declaration, text, re.S):
        yield m.group(1).strip(), m.group(2), split(m.group(3))


def split(text):
    parts, depth, part = [], 0, ''
    for c in text:
        depth += (c == '(') - (c == ')')
        if c == ',' and depth == 0:
            parts.append(part)
            part = ''
        else:
            part += c
    parts.append(part)
    return [p.strip() for p in parts if p.strip() not in ('', 'void')]


def type_of(parameter):
    """Without the name, const and blanks; None for a function pointer written out."""
    if '(*' in parameter:
        return None
    name = re.search(r'(\w+)\s*$', parameter).group(1)
    kind = parameter[:parameter.rindex(name)]
    return re.sub(r'^const\b|\bconst(?=\s*\w)', '', kind).replace(' ', '').replace('struct', '')


def is_pointer(parameter):
    kind = type_of(parameter)
    return kind is None or '*' in kind or kind.endswith('_fn')


def value(parameter):
    kind = type_of(parameter)
    if not is_pointer(parameter):
        return '(%s)the.number' % kind
    if kind is None or kind in OPAQUE:
        return 'NULL'
    name = re.search(r'(\w+)\s*$', parameter).group(1)
    if kind == 'char*' and name in NAMED:
        return NAMED[name]
    if kind in VALUES:
        return VALUES[kind]
    return '(void *)the.room'


def main():
    count = 0
    table = []
    for path in sys.argv[1:]:
        with open(path, encoding='utf-8') as f:
            text = f.read()
        for result, name, parameters in functions(text):
            if name in LEFT_OUT:
                continue
            pointers = [i for i, p in enumerate(parameters) if is_pointer(p)]
            for null in (pointers + [-1] if pointers else []):
                arguments = ['NULL' if is_pointer(p) and null in (i, -1) else value(p)
                             for i, p in enumerate(parameters)]
                end = 'kiln_status_destroy(%s)' if result == 'kiln_status *' else '(void)%s'
                call = '(%s)(%s)' % (name, ', '.join(arguments))
                print('static void call_%d(void) { %s; }' % (count, end % call))
                label = '%s, argument %s' % (name, null + 1 if null >= 0 else 'all')
                table.append('    {"%s", call_%d},' % (label, count))
                count += 1
    print('\nstatic const null_call null_calls[] = {\n%s\n};' % '\n'.join(table))


if __name__ == '__main__':
    main()
