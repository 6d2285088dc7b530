"""scaling.py LIBRARY [NAME...]: whatever a file can make long costs in proportion to it.

Each row of GROWTH makes an input of n parts and says what is done with it; the same with 2n parts may take
2.6 times the processor time and the memory (peak bytes of the context, less what an empty one has) and no more.
Times are the least of several runs, and are measured again where they seem too long, once more after all other
rows: noise only adds. Each row runs in a process of its own, that a bad one cannot take the others with it. The
last line counts."""
import ctypes
import os
import struct
import subprocess
import sys
import tempfile
import time

from archives import HEAD, TRAINING, archive, forward, int_op, object_op, program, tensor_op, text_op

LIBRARY = sys.argv[1] if len(sys.argv) > 1 else ''
MOST = 2.6
ENOUGH = 0.004  # seconds: below it only memory is compared
# The C library's allocator keeps what is freed: else each large size faults pages in that the small one gave back.
KEEPS_PAGES = {'MALLOC_TRIM_THRESHOLD_': str(1 << 30), 'MALLOC_MMAP_THRESHOLD_': str(1 << 30)}
TRIES = 6
TIMEOUT = 300


# -- The library --

class Kiln:
    def __init__(self):
        self.library = ctypes.CDLL(LIBRARY)
        for name in ('status_report',):
            getattr(self.library, 'kiln_' + name).restype = ctypes.c_char_p
        self.library.kiln_context_peak_bytes.restype = ctypes.c_size_t

    def do(self, name, *arguments):
        function = getattr(self.library, 'kiln_' + name)
        function.restype = ctypes.c_void_p
        status = function(*arguments)
        if status:
            raise RuntimeError(self.library.kiln_status_report(ctypes.c_void_p(status)).decode())

    def make(self, name, *arguments):
        """Calls a function that fills its last parameter."""
        out = ctypes.c_void_p()
        self.do(name, *arguments, ctypes.byref(out))
        return out

    def drop(self, name, value):
        function = getattr(self.library, 'kiln_' + name)
        function.restype = None
        function(value)

    def context(self, **options):
        made = self.make('options_create')
        self.drop('options_ignore_environment', made)
        options = dict({'codegen': 'eval', 'compile': 'sync', 'hash_seed': '1', 'alloc': 'system'}, **options)
        for name, value in options.items():
            self.do('options_set', made, name.encode(), value.encode())
        context = self.make('context_create', made)
        self.drop('options_destroy', made)
        return context

    def peak(self, context):
        return self.library.kiln_context_peak_bytes(context)

    def load(self, context, data):
        return self.make('model_load_memory', context, data, ctypes.c_size_t(len(data)), None)

    def ones(self, context, *sizes):
        count = 1
        for size in sizes:
            count *= size
        return self.make('value_tensor', context, ctypes.c_int(DTYPE_F32), ctypes.c_int(len(sizes)),
                         (ctypes.c_int64 * len(sizes))(*sizes), (ctypes.c_float * count)(*[1.0] * count))

    def call(self, instance, argument, method=b'forward'):
        self.drop('value_destroy', self.make('instance_call', instance, method,
                                             (ctypes.c_void_p * 1)(argument), ctypes.c_int(1), None))


class Limits(ctypes.Structure):
    _fields_ = [('bytes', ctypes.c_uint64), ('operations', ctypes.c_uint64), ('recursion', ctypes.c_uint32),
                ('time_ms', ctypes.c_uint32), ('cancel', ctypes.c_void_p)]


class CallOptions(ctypes.Structure):
    _fields_ = [('limits', Limits), ('grad', ctypes.c_int), ('struct_size', ctypes.c_size_t)]


class FreezeOptions(ctypes.Structure):
    _fields_ = [('preserve', ctypes.c_void_p), ('preserve_count', ctypes.c_int), ('eval', ctypes.c_int),
                ('limits', Limits), ('struct_size', ctypes.c_size_t)]


DTYPE_F32 = 6


# -- What is done --

def measure(kiln, body):
    """Seconds of body and the bytes that it took."""
    context = kiln.context(**getattr(body, 'options', {}))
    empty = kiln.peak(context)
    start = time.process_time()
    body(kiln, context)
    seconds = time.process_time() - start
    taken = kiln.peak(context) - empty
    kiln.drop('context_release', context)
    return seconds, taken


def loads(data):
    def body(kiln, context):
        kiln.drop('model_release', kiln.load(context, data))
    return body


def looks(data):
    """A model at rest, of a file."""
    def body(kiln, context):
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            kiln.drop('model_release', kiln.make('debug_model_open', context, file.name.encode(), None))
    return body


def calls(data, count=3, then=None, **options):
    """Loads and calls: profiled, compiled, compiled."""
    def body(kiln, context):
        model = kiln.load(context, data)
        instance = kiln.make('instance_create', model)
        x = kiln.ones(context, 2, 3)
        for _ in range(count):
            kiln.call(instance, x)
        if then:
            then(kiln, model, instance)
        kiln.drop('value_destroy', x)
        kiln.drop('instance_release', instance)
        kiln.drop('model_release', model)
    body.options = options
    return body


def passes(text, names):
    data = text.encode()

    def body(kiln, context):
        kiln.drop('text_free', kiln.make('debug_opt', context, data, ctypes.c_size_t(len(data)), names.encode(),
                                         ctypes.c_int(3)))
    return body


def stage(name, site=b'', dot=0):
    def then(kiln, model, instance):
        kiln.drop('text_free', kiln.make('debug_graph', model, b'forward', name, site, ctypes.c_int(dot)))
    return then


def explains(kiln, model, instance):
    info = (ctypes.c_char * 256)()
    function = kiln.library.kiln_debug_refusal
    function.restype = ctypes.c_void_p
    index = 0
    while True:
        status = function(model, ctypes.c_int(index), info)
        if status:
            kiln.drop('status_destroy', ctypes.c_void_p(status))
            return
        index += 1


WRITE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def saves(kiln, model, instance):
    kiln.do('instance_save_to', instance, WRITE(lambda user, data, size: 0), None, None)


def freezes(kiln, model, instance):
    kiln.drop('model_release', kiln.make('instance_freeze', instance, None))


GROWTH = {}


def grows(n):
    def add(make):
        GROWTH[make.__name__] = (make, n)
        return make
    return add


# -- Programs --

def repeat(n, *lines):
    return [line.replace('#', str(i)) for i in range(n) for line in lines]



@grows(1500)
def straight_line(n):
    return calls(program(repeat(n, 'x = torch.add(x, 1)')))


@grows(1500)
def straight_line_interpreted(n):
    return calls(program(repeat(n, 'x = torch.add(x, 1)')), count=1, jit='off')


@grows(200)
def groups_that_share_a_guard(n):
    return calls(program(repeat(n, 'x = torch.relu(torch.add(x, 1))', 'x = torch.cumsum(x, 0)')))


@grows(200)
def groups_apart(n):
    return calls(program(repeat(n, 'x = torch.relu(torch.add(x, 1))', 'x = torch.bernoulli(torch.sigmoid(x))')))


@grows(200)
def groups_and_writes(n):
    return calls(program(repeat(n, 'x = torch.relu(torch.add(x, 1))', 'y# = torch.sub_(torch.neg(x), 1)',
                                'x = torch.cumsum(y#, 0)')))


@grows(300)
def groups_side_by_side(n):
    return calls(program(['ys = annotate(List[Tensor], [])'] +
                         repeat(n, 'y# = torch.relu(torch.add(torch.cumsum(x, 0), #))', '_ = torch.append(ys, y#)'),
                         result='ys', returns='List[Tensor]'))


@grows(300)
def wide_fan_out(n):
    return calls(program(repeat(n, 'y# = torch.tanh(torch.add(x, #))') +
                         ['x = torch.cat([%s], 0)' % ', '.join('y%d' % i for i in range(n))]))


@grows(400)
def wide_fan_in(n):
    return calls(program(repeat(n, 'y# = torch.cumsum(torch.add(x, #), 0)') + ['z = torch.mul(y0, y0)'] +
                         repeat(n, 'z = torch.add(z, y#)'), result='z'))


@grows(1000)
def many_views(n):
    return calls(program(repeat(n, 'x = torch.transpose(torch.add(x, 1), 0, 1)')))


@grows(1000)
def many_writes(n):
    return calls(program(['x = torch.clone(x)'] + repeat(n, 'x = torch.add_(x, 1)')))


@grows(400)
def writes_through_views(n):
    return calls(program(['x = torch.clone(x)'] +
                         repeat(n, 'y# = torch.select(x, 0, 0)', 'z# = torch.add_(y#, 1)')))


@grows(1000)
def equal_computations(n):
    return calls(program(['ys = annotate(List[Tensor], [])'] + repeat(n, '_ = torch.append(ys, torch.cumsum(x, 0))'),
                         result='ys', returns='List[Tensor]'))


@grows(2000)
def unused_results(n):
    return calls(program(repeat(n, 'y# = torch.cumsum(x, 0)')))


@grows(4000)
def assignments_of_one_name(n):
    return loads(program(repeat(n, 'a = #')))


@grows(4000)
def assignments_of_many_names(n):
    return loads(program(repeat(n, 'a# = #')))


@grows(1000)
def constants_of_all_kinds(n):
    return calls(program(['s = ""'] + repeat(n, 's = torch.add("s", "t#")', 'f = torch.mul(#.5, 2.)')))


@grows(500)
def tuples_of_constants(n):
    return calls(program(['t = (0, "x", 0.5)'] + repeat(n, 't = (#, "t#", #.5)')))


@grows(400)
def ifs_in_a_row(n):
    return calls(program(repeat(n, 'if torch.gt(torch.size(x, 0), #):', '  x0 = torch.add(x, 1)', 'else:',
                                '  x0 = torch.sub(x, 1)', 'x = x0')))


@grows(1000)
def ifs_on_constants(n):
    return calls(program(repeat(n, 'if torch.gt(2, 1):', '  x0 = torch.neg(x)', 'else:', '  x0 = torch.abs(x)',
                                'x = x0')))


@grows(300)
def loops_in_a_row(n):
    return calls(program(repeat(n, 'x0 = x', 'for i# in range(2):', '  x0 = torch.add(x0, i#)', 'x = x0')))


@grows(300)
def loops_that_carry_all(n):
    return calls(program(repeat(n, 'a# = #') + ['for i in range(2):'] + repeat(n, '  a# = torch.add(a#, 1)') +
                         ['s = 0'] + repeat(n, 's = torch.add(s, a#)')))


# 400 levels are what the loader takes: 8n stay far below it, where depth itself costs little.
@grows(10)
def nested_ifs(n):
    lines = []
    for i in range(n):
        lines += [' ' * i + 'if torch.gt(torch.size(x, 0), %d):' % (i - 1000)]
        lines += [' ' * (i + 1) + 'x = torch.add(x, %d)' % i]
    for i in reversed(range(n)):
        lines += [' ' * i + 'else:', ' ' * i + ' x = torch.neg(x)']
    return calls(program(lines * 10))


# What many branches use lives through them all.
@grows(25)
def values_in_nested_ifs(n):
    lines = repeat(100, 'a# = torch.add(x, #)')
    for i in range(n):
        lines += [' ' * i + 'if torch.gt(torch.sum(x), 0):']
        lines += [' ' * (i + 1) + 'x = torch.add(x, a%d)' % k for k in range(60)]
    for i in reversed(range(n)):
        lines += [' ' * i + 'else:', ' ' * i + ' x = torch.neg(x)']
    return calls(program(lines), jit='off')


@grows(4000)
def casts_in_a_row(n):
    return calls(program(repeat(n, 'x = unchecked_cast(Tensor, x)')), jit='off')


# Each condition is twice the one before.
@grows(13)
def conditions_that_share(n):
    lines = ['y = annotate(Optional[Tensor], None)', 'c0 = torch.gt(torch.size(x, 0), 0)', 'if c0:', '  y = x',
             'else:', '  pass']
    for i in range(n):
        lines += ['if c%d:' % i, '  c%d = c%d' % (i + 1, i), 'else:', '  c%d = False' % (i + 1)]
    return calls(program(lines + ['if c%d:' % n, '  x = unchecked_cast(Tensor, y)', 'else:', '  pass']), jit='off')


# What is not initialised goes on from one carried value to the next.
@grows(1000)
def carried_values_in_a_row(n):
    lines = ['a# = x'.replace('#', str(i)) for i in range(n)]
    body = ['  a%d = a%d' % (i, i + 1) for i in range(n - 1)]
    return calls(program(lines + ['for i in range(2):'] + body +
                         ['  if torch.gt(i, 5):', '    return x', '  else:', '    a%d = x' % (n - 1)],
                         result='a0'), jit='off')


@grows(45)
def nested_expressions(n):
    return calls(program(['x = ' + 'torch.neg(' * n + 'x' + ')' * n] * 60))


@grows(3000)
def a_long_list(n):
    return calls(program(['l = [%s]' % ', '.join(map(str, range(n))), 'x = torch.add(x, l[1])']))


@grows(3000)
def a_long_dict(n):
    return calls(program(['d = {%s}' % ', '.join('%d: 1' % i for i in range(n)), 'x = torch.add(x, d[1])']))


@grows(1000)
def a_long_tuple(n):
    return calls(program(['t = (%s,)' % ', '.join(map(str, range(n))), 'x = torch.add(x, t[1])']))


@grows(1000)
def a_long_tuple_of_tensors(n):
    return calls(program(['t = (%s,)' % ', '.join(['torch.neg(x)'] * n), 'x = torch.add(t[0], t[1])']))


@grows(1000)
def a_tuple_unpacked(n):
    names = ', '.join('a%d' % i for i in range(n))
    return calls(program(['t = (%s,)' % ', '.join(['x'] * n), names + ', = t', 'x = torch.add(a0, a1)']))


@grows(3000)
def a_list_appended_to(n):
    return calls(program(['l = annotate(List[int], [])'] + repeat(n, '_ = torch.append(l, #)')))


@grows(300)
def lists_that_branches_append_to(n):
    return calls(program(['c = bool(torch.sum(x))'] +
                         repeat(n, 'l# = annotate(List[Tensor], [x])', 'if c:', '  _ = torch.append(l#, x)', 'else:',
                                '  pass', 'x = torch.sub(torch.stack(l#)[0], 1)')))


@grows(1000)
def a_dict_written(n):
    return calls(program(['d = annotate(Dict[str, int], {})'] + repeat(n, 'd["k#"] = #')))


@grows(20000)
def a_key_set_and_deleted(n):
    return calls(program(['d = annotate(Dict[int, int], {})', 'for i in range(%d):' % n, '  d[i] = i',
                          'for i0 in range(%d):' % n, '  d[-1] = 1', '  _0 = torch.pop(d, -1)']), count=1, jit='off')


@grows(1000)
def strings_concatenated(n):
    return calls(program(['s = ""'] + repeat(n, 's = torch.add(s, "")')))


@grows(20000)
def a_long_string(n):
    return calls(program(['s = "%s"' % ('\\n\\377ab' * n)]))


@grows(1000)
def a_long_sum(n):
    return calls(program(['a = 1'] + repeat(n, 'a = torch.add(torch.mul(a, 3), torch.size(x, 0))')))


@grows(300)
def many_functions(n):
    functions = ''.join('def f%d(x: Tensor) -> Tensor:\n  return torch.add(x, %d)\n' % (i, i) for i in range(n))
    return calls(program(repeat(n, 'x = __torch__.f#(x)'), before=functions))


@grows(150)
def a_chain_of_functions(n):
    functions = 'def f0(x: Tensor) -> Tensor:\n  return torch.neg(x)\n'
    functions += ''.join('def f%d(x: Tensor) -> Tensor:\n  return torch.add(__torch__.f%d(x), 1)\n' % (i, i - 1)
                         for i in range(1, n))
    return calls(program(['x = __torch__.f%d(x)' % (n - 1)], before=functions))


@grows(1000)
def many_methods(n):
    methods = ''.join('  def m%d(self: __torch__.M,\n    x: Tensor) -> Tensor:\n    return torch.add(x, %d)\n' % (i, i)
                      for i in range(n))
    return loads(archive(forward([]) + methods, object_op('__torch__.M', TRAINING)))


@grows(3000)
def many_attributes(n):
    names = ['a%d' % i for i in range(n)]
    source = forward([], attributes=''.join('  %s : int\n' % name for name in names))
    return loads(archive(source, object_op('__torch__.M', TRAINING + [(name, int_op(1)) for name in names])))


def parameters(n, values, records):
    names = ['p%d' % i for i in range(n)]
    source = forward(repeat(n, 'x = torch.add(x, self.p#)'),
                     attributes=''.join('  %s : Tensor\n' % name for name in names))
    listed = '__parameters__ = [%s]' % ''.join('"%s", ' % name for name in names)
    return archive(source.replace('__parameters__ = []', listed),
                   object_op('__torch__.M', TRAINING + list(zip(names, values))), records)


@grows(1500)
def parameters_of_one_storage(n):
    return loads(parameters(n, [tensor_op('0', n, i) for i in range(n)], [('0', bytes(4 * n))]))


@grows(1000)
def parameters_of_many_storages(n):
    return loads(parameters(n, [tensor_op(str(i), 1) for i in range(n)], [(str(i), bytes(4)) for i in range(n)]))


@grows(400)
def saved_parameters(n):
    return calls(parameters(n, [tensor_op(str(i), 1) for i in range(n)], [(str(i), bytes(4)) for i in range(n)]),
                 count=0, then=saves)


def submodules(n):
    cls = (HEAD.replace('M(', 'S(') + '  w : Tensor\n  def forward(self: __torch__.S,\n    x: Tensor) -> Tensor:\n'
           '    return torch.cumsum(torch.add(x, self.w), 0)\n')
    source = forward(repeat(n, 'x = (self.s#).forward(x, )'), before=cls,
                     attributes=''.join('  s%d : __torch__.S\n' % i for i in range(n)))
    parts = [('s%d' % i, object_op('__torch__.S', TRAINING + [('w', tensor_op('0', n, i))])) for i in range(n)]
    return archive(source, object_op('__torch__.M', TRAINING + parts), [('0', bytes(4 * n))])


@grows(150)
def many_submodules(n):
    return calls(submodules(n))


@grows(150)
def a_frozen_module(n):
    return calls(submodules(n), count=0, then=freezes)


# Each attribute is written once: none becomes a constant.
@grows(1000)
def a_frozen_module_that_writes(n):
    source = forward(repeat(n, '_# = torch.add_(self.p#, x)'),
                     attributes=''.join('  p%d : Tensor\n' % i for i in range(n)))
    parts = [('p%d' % i, tensor_op(str(i), 1)) for i in range(n)]
    return calls(archive(source, object_op('__torch__.M', TRAINING + parts),
                         [(str(i), bytes(4)) for i in range(n)]), count=0, then=freezes)


@grows(500)
def classes_of_cpp(n):
    objects = b''.join(b'c__torch__.torch.classes.q\nC%d\n)\x81}b' % i for i in range(n))
    held = b'ctorch.jit._pickle\nrestore_type_tag\n](' + objects + b'e' + text_op('List[Any]') + b'\x86R'
    source = forward(repeat(20 * n, 'y# = torch.add(x, 1)'), attributes='  held : List[Any]\n')
    return looks(archive(source, object_op('__torch__.M', TRAINING + [('held', held)])))


@grows(300)
def many_classes(n):
    classes = ''.join(HEAD.replace('M(', 'S%d(' % i) + '  def forward(self: __torch__.S%d,\n    x: Tensor) -> Tensor:\n'
                      '    return torch.add(x, %d)\n' % (i, i) for i in range(n))
    source = forward(repeat(n, 'x = (self.s#).forward(x, )'), before=classes,
                     attributes=''.join('  s%d : __torch__.S%d\n' % (i, i) for i in range(n)))
    parts = [('s%d' % i, object_op('__torch__.S%d' % i, TRAINING)) for i in range(n)]
    return loads(archive(source, object_op('__torch__.M', TRAINING + parts)))


@grows(500)
def many_named_tuples(n):
    classes = ''.join('class T%d(NamedTuple):\n  a : int\n  b%d : Tensor\n' % (i, i) for i in range(n))
    return loads(program(repeat(n, 't# = __torch__.T#(#, x)'), before=classes))


@grows(3000)
def zip_records(n):
    return loads(archive(forward([]), object_op('__torch__.M', TRAINING),
                         extra=[('extra/%d' % i, b'') for i in range(n)]))


def with_value(annotation, value):
    return loads(archive(forward([], attributes='  v : %s\n' % annotation),
                         object_op('__torch__.M', TRAINING + [('v', value)])))


@grows(30000)
def pickled_ints(n):
    return with_value('List[int]', b'](' + b''.join(map(int_op, range(n))) + b'e')


@grows(20000)
def pickled_strings(n):
    return with_value('List[str]', b'](' + b''.join(text_op('s%d' % i) for i in range(n)) + b'e')


@grows(20000)
def pickled_dict(n):
    return with_value('Dict[int, int]', b'}(' + b''.join(int_op(i << 12) + int_op(i) for i in range(n)) + b'u')


@grows(60000)
def pickled_memo(n):
    return with_value('List[str]', b'](' + b''.join(text_op('s') + b'r' + struct.pack('<I', i) for i in range(n)) +
                      b''.join(b'j' + struct.pack('<I', i) for i in range(n)) + b'e')


@grows(5000)
def pickled_lists(n):
    return with_value('List[List[int]]', b'](' + b''.join(b'](' + int_op(i) + b'e' for i in range(n)) + b'e')


@grows(1500)
def tensor_constants(n):
    return loads(archive(forward(repeat(n, 'x = torch.add(x, CONSTANTS.c#)')), object_op('__torch__.M', TRAINING),
                         constants=b'(' + b''.join(tensor_op('0', n, i) for i in range(n)) + b't',
                         extra=[('constants/0', bytes(4 * n))]))


# -- Text --

@grows(1000)
def printed_graph(n):
    return calls(program(repeat(n, 'x = torch.add(x, 1)')), then=stage(b'optimized'))


@grows(1000)
def printed_dot(n):
    return calls(program(repeat(n, 'x = torch.add(x, 1)')), then=stage(b'optimized', dot=1))


@grows(1000)
def printed_plan(n):
    return calls(program(repeat(n, 'x = torch.cumsum(x, 0)')), then=stage(b'bytecode'))


@grows(200)
def printed_loops(n):
    return calls(program(repeat(n, 'x = torch.relu(torch.add(x, 1))', 'x = torch.cumsum(x, 0)')),
                 then=stage(b'loop', b'*'))


@grows(200)
def explained(n):
    return calls(program(repeat(n, 'x = torch.relu(torch.add(x, 1))', 'x = torch.bernoulli(torch.sigmoid(x))')),
                 then=explains)


# -- Graphs that a host builds or traces --

class Argument(ctypes.Structure):  # kiln_builder_arg
    _fields_ = [('name', ctypes.c_char_p), ('var', ctypes.c_int), ('value', ctypes.c_void_p)]


class TraceArgument(ctypes.Structure):  # kiln_call_arg
    _fields_ = [('name', ctypes.c_char_p), ('value', ctypes.c_void_p)]


def ends(kiln, builder):
    """Prints, saves and finishes what was built."""
    kiln.drop('text_free', kiln.make('builder_print', builder, ctypes.c_int(3)))
    kiln.do('builder_save_to', builder, WRITE(lambda user, data, size: 0), None, None)
    kiln.drop('model_release', kiln.make('builder_finish', builder))
    kiln.drop('builder_destroy', builder)


@grows(1500)
def built(n):
    def body(kiln, context):
        builder = kiln.make('builder_create', context)
        one = kiln.make('value_int', context, ctypes.c_int64(1))
        var = ctypes.c_int()
        kiln.do('builder_input', builder, b'x', b'Tensor', ctypes.byref(var))
        for i in range(n):
            arguments = (Argument * 2)(Argument(None, var.value, None), Argument(None, 0, one))
            kiln.do('builder_call', builder, b'aten::add', arguments, ctypes.c_int(2), ctypes.byref(var),
                    ctypes.c_int(1), None)
        kiln.do('builder_return', builder, ctypes.byref(var), ctypes.c_int(1))
        ends(kiln, builder)
        kiln.drop('value_destroy', one)
    return body


@grows(1500)
def traced(n):
    def body(kiln, context):
        values = [kiln.ones(context, 2, 3)]
        trace = kiln.make('trace_begin', context, (ctypes.c_void_p * 1)(values[0]), None, ctypes.c_int(1))
        for i in range(n):
            out = ctypes.c_void_p()
            arguments = (TraceArgument * 2)(TraceArgument(None, values[-1]), TraceArgument(None, values[0]))
            kiln.do('operator_call', context, trace, b'aten::mul', arguments, ctypes.c_int(2), ctypes.byref(out),
                    ctypes.c_int(1), None)
            values.append(out)
        ends(kiln, kiln.make('trace_end', trace, (ctypes.c_void_p * 1)(values[-1]), ctypes.c_int(1)))
        for value in values:
            kiln.drop('value_destroy', value)
    return body


# -- Graphs as text --

FLOAT = 'Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)'
IR_HEAD = '''graph(%x : {F}, %c : bool, %k : int):
  %one : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %t0 : {F} = aten::clone(%x, %none)
'''
IR_PART = '''  %n{i} : int = prim::Constant[value={i}]()
  %a{i} : {F} = aten::add(%t{i}, %x, %n{i})
  %b{i} : {F} = aten::relu(%a{i})
  %p{i} : {F} = prim::profile[profiled_type={F}, seen_none=0](%b{i})
  %d{i} : {F} = aten::cumsum(%p{i}, %one, %none)
  %u{i} : ({F}, int) = prim::TupleConstruct(%d{i}, %k)
  %v{i} : {F}, %w{i} : int = prim::TupleUnpack(%u{i})
  %e{i} : {F} = aten::neg(%v{i})
  %f{i} : {F} = aten::sub_(%e{i}, %x, %one)
  %y{i} : Tensor, %z{i} : Tensor = aten::_native_multi_head_attention(%v{i}, %v{i}, %v{i}, %k, %k, %x, %x, %x, %x, %none, %no, %no, %none)
  %l{i} : Tensor[] = prim::ListConstruct(%v{i}, %f{i}, %y{i})
  %m{i} : Tensor = aten::cat(%l{i}, %one)
  %q{i} : {F} = prim::If(%c)
    block0():
      %r{i} : {F} = aten::tanh(%f{i})
      -> (%r{i})
    block1():
      -> (%f{i})
  %t{j} : {F} = aten::mul(%q{i}, %v{i})
'''


def ir_text(n):
    """Every kind of thing that passes look at, n times."""
    return (IR_HEAD.format(F=FLOAT) + ''.join(IR_PART.format(F=FLOAT, i=i, j=i + 1) for i in range(n)) +
            '  return (%%t%d)\n' % n)


# Each pass behind those that make what it works on.
PASSES = """inline lower_simple_tuples constant_propagation constant_pooling cse dce peephole canonicalize_ops
    flatten_raises sink_text remove_list_mutation specialize_types,guard_ranks compute_parts
    decompose_composites remove_tensor_mutation insert_profile_nodes remove_profile_nodes specialize_types decompose_ops fuse_groups
    fuse_groups,guard_regions fuse_groups,guard fuse_groups,guard_regions,place_parts
    preoptimize noopt simple optimize""".split()


def grown_list(n):
    """A list that is read as often as it grows."""
    part = '  %a{i} : Tensor[] = aten::append(%l, %x)\n  %n{i} : int = aten::len(%l)\n'
    return ('graph(%x : Tensor):\n  %l : Tensor[] = prim::ListConstruct()\n' +
            ''.join(part.format(i=i) for i in range(n)) + '  return (%l)\n')


GROWTH['passes: a list that grows'] = (lambda n: passes(grown_list(n), 'simple'), 2000)


def add_pass(names):
    GROWTH['passes ' + names] = (lambda n: passes(ir_text(n), names), 300)


for names in [''] + PASSES:
    add_pass(names)


# -- The test --

def compare_at(make, n):
    """Whether 2n cost too much, and a text of both."""
    kiln = Kiln()
    bodies = [make(n), make(2 * n)]
    best = [float('inf')] * 2
    taken = [0, 0]
    for attempt in range(TRIES):
        for k in (0, 1):
            seconds, taken[k] = measure(kiln, bodies[k])
            best[k] = min(best[k], seconds)
        if attempt and (best[1] < ENOUGH or best[1] <= MOST * best[0]):
            break
    bad = best[1] > max(ENOUGH, MOST * best[0]) or taken[1] > MOST * taken[0]
    return bad, '%.1f to %.1f ms (%.2f), %d to %d KiB (%.2f)' % (
        best[0] * 1e3, best[1] * 1e3, best[1] / best[0], taken[0] >> 10, taken[1] >> 10, taken[1] / taken[0])


def compare(name):
    """Where caches end time makes steps; what grows too fast does so ever more, at 4n and 8n as well."""
    make, n = GROWTH[name]
    texts = []
    for size in (n, 2 * n, 4 * n):
        bad, text = compare_at(make, size)
        texts.append(text)
        if not bad:
            break
    return '%s %s: %s' % ('FAIL' if bad else 'PASS', name, '; '.join(texts))


def run_apart(name):
    try:
        done = subprocess.run([sys.executable, __file__, LIBRARY, '--one', name], capture_output=True, text=True,
                              timeout=TIMEOUT, check=False, env={**os.environ, **KEEPS_PAGES})
    except subprocess.TimeoutExpired:
        return 'FAIL %s: took longer than %d s' % (name, TIMEOUT)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return 'FAIL %s: ended with %d: %s' % (name, done.returncode, done.stderr[-2000:])
    return lines[-1]


def main():
    if sys.argv[2:3] == ['--one']:
        print(compare(sys.argv[3]))
        return 0
    names = sys.argv[2:] or list(GROWTH)
    lines = {name: run_apart(name) for name in names}
    for name in names:  # neighbours come and go: the second look counts
        if lines[name].startswith('FAIL'):
            lines[name] = run_apart(name)
        print(lines[name])
    failed = sum(line.startswith('FAIL') for line in lines.values())
    print('%d passed, %d failed' % (len(names) - failed, failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
