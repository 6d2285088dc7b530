"""stack.py LIBRARY [KIB]: the deepest programs and files that Kiln takes, on threads of little stack.

Each row of DEEP is loaded, called, printed, saved and frozen in a thread of KIB KiB and must end in a value or a
status. docs/safety.md asks hosts for twice what is tested; a build with sanitizers needs more. Rows run in processes
of their own: what has too little stack dies. With `least` instead of KIB the least power of two that does is told.
The last line counts."""
import ctypes
import subprocess
import sys
import threading

from archives import HEAD, TRAINING, archive, forward, object_op, program, text_op
from scaling import FreezeOptions, Kiln

LIBRARY = sys.argv[1]
TESTED = 512
TREE = 390  # of 400: what stands around it counts too
DEEP = {}


def deep(make):
    DEEP[make.__name__] = make
    return make


# -- Source --

def nested(open_, inner, close, n=TREE):
    return open_ * n + inner + close * n


@deep
def calls_of_operators():
    return program(['x = ' + nested('torch.neg(', 'x', ')')])


@deep
def calls_of_views():
    return program(['x = ' + nested('torch.reshape(torch.reshape(torch.neg(', 'x', '), [6]), [2, 3])', TREE // 3)])


@deep
def lists():
    return program(['l = ' + nested('[', 'x', ']')])


@deep
def tuples():
    return program(['t = ' + nested('(', 'x', ',)')])


@deep
def choices():
    return program(['x = ' + nested('(x if True else ', 'x', ')', 190)])


@deep
def choices_of_data():
    return program(['n = torch.size(x, 0)', 'n = ' + nested('(1 if torch.gt(n, 1) else ', '2', ')', 190)])


@deep
def conditions():
    return program(['b = ' + nested('not (', 'True', ')', 190), 'assert torch.eq(b, True)'])


@deep
def annotations():
    return program(['l = annotate(%s, [])' % nested('List[', 'int', ']', 150)])


def blocks(n, *lines):
    return [('  ' * i + line).replace('#', str(i)) for i in range(n) for line in lines]


@deep
def ifs():
    return program(blocks(130, 'if torch.gt(torch.size(x, 0), #):', '  x = torch.neg(x)') +
                   ['  ' * 130 + 'x = torch.neg(x)'])


@deep
def loops():
    return program(blocks(190, 'for i# in range(1):', '  x = torch.neg(x)') + ['  ' * 190 + 'x = torch.neg(x)'])


@deep
def early_returns():
    return program([line for i in range(130)
                    for line in ('if torch.eq(torch.size(x, 0), %d):' % (i + 1000), '  return x')])


def chain(n, body):
    return 'def f0(x: Tensor) -> Tensor:\n  return torch.neg(x)\n' + ''.join(
        'def f%d(x: Tensor) -> Tensor:\n  %s\n  return x\n' % (i, body % (i - 1)) for i in range(1, n))


@deep
def a_chain_of_calls():
    return program(['x = __torch__.f989(x)'], before=chain(990, 'x = torch.add(__torch__.f%d(x), 1)'))


@deep
def a_longer_chain_of_calls():
    return program(['x = __torch__.f4999(x)'], before=chain(5000, 'x = torch.add(__torch__.f%d(x), 1)'))


@deep
def calls_in_blocks():
    """Inlined, each would stand deeper than the one before."""
    lines = [''.join('  ' * i + line + '\n  ' for i in range(40) for line in ('if torch.gt(torch.size(x, 0), 0):',
                                                                             '  x = torch.neg(x)'))]
    return program(['x = __torch__.f49(x)'], before=chain(50, lines[0] + '  ' * 40 + 'x = __torch__.f%d(x)'))


@deep
def casts_in_a_row():
    return program(['x = unchecked_cast(Tensor, x)'] * 20000)


def linked(n, lines, **more):
    """n objects, each in the next one, by an interface: a type that holds itself is refused."""
    before = 'class I(Interface):\n  def go(self, x: Tensor) -> Tensor:\n    pass\n'
    for name, of, body in ('End', 'Tensor', 'torch.neg(self.of)'), ('Link', '__torch__.I', '(self.of).go(x, )'):
        before += ('class {0}:\n  of : {1}\n  def __init__(self: __torch__.{0}, of: {1}) -> NoneType:\n    self.of = of\n'
                   '    return None\n  def go(self: __torch__.{0}, x: Tensor) -> Tensor:\n    return {2}\n'
                   ).format(name, of, body)
    return program(['c = unchecked_cast(__torch__.I, __torch__.End(x, ))', 'for i in range(%d):' % n,
                    '  c = unchecked_cast(__torch__.I, __torch__.Link(c, ))'] + lines, before=before, **more)


@deep
def a_chain_of_methods():
    return linked(990, ['x = (c).go(x, )'])


@deep
def a_chain_of_objects():
    return linked(100000, [], returns='__torch__.I', result='c')


@deep
def a_chain_of_values():
    return program(['x = torch.add(x, 1)'] * 20000)


@deep
def a_chain_of_classes():
    source = ''
    n = 150
    for i in range(n):
        source += HEAD.replace('M(', 'C%d(' % i).replace('  training : bool\n', '')
        source += '  next : __torch__.C%d\n' % (i - 1) if i else '  n : int\n'
    root = object_op('__torch__.C0', [('n', b'K\x01')])
    for i in range(1, n):
        root = object_op('__torch__.C%d' % i, [('next', root)])
    path = 'self' + '.next' * n + '.n'
    return archive(source + forward(['x = torch.add(x, %s)' % path], attributes='  next : __torch__.C%d\n' % (n - 1)),
                   object_op('__torch__.M', TRAINING + [('next', root)]))


# -- Values --

@deep
def pickled_lists():
    return archive(forward([], attributes='  l : %s\n' % nested('List[', 'int', ']', 150)),
                   object_op('__torch__.M', TRAINING + [('l', b']' * 150 + b'a' * 149)]))


@deep
def pickled_constants():
    return archive(forward(['c = CONSTANTS.c0']), object_op('__torch__.M', TRAINING), constants=b'(' * 490 + b't' * 490)


# -- What is done with them --

WRITE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def use(kiln, data, seen, **options):
    """All of it; statuses are noted, by their first words."""
    def attempt(name, *arguments):
        try:
            return kiln.make(name, *arguments)
        except RuntimeError as error:
            seen.add(str(error).partition('\n')[0][:60])
            return None

    context = kiln.context(**options)
    model = attempt('model_load_memory', context, data, ctypes.c_size_t(len(data)), None)
    if model:
        instance = kiln.make('instance_create', model)
        x = kiln.ones(context, 2, 3)
        for _ in range(3):
            y = attempt('instance_call', instance, b'forward', (ctypes.c_void_p * 1)(x), ctypes.c_int(1), None)
            if y:
                text = attempt('value_print', y, ctypes.c_int(10))
                kiln.drop('text_free', text)
                kiln.drop('value_destroy', attempt('value_clone', y))
                kiln.drop('value_destroy', y)
        for stage in (b'frontend', b'optimized', b'bytecode'):
            kiln.drop('text_free', attempt('debug_graph', model, b'forward', stage, b'', ctypes.c_int(0)))
        sink = WRITE(lambda user, data, size: 0)
        kiln.do('instance_save_to', instance, sink, None, None)
        frozen = attempt('instance_freeze', instance, ctypes.byref(FreezeOptions(eval=1)))
        kiln.drop('model_release', frozen)
        kiln.drop('value_destroy', x)
        kiln.drop('instance_release', instance)
        kiln.drop('model_release', model)
    kiln.drop('context_release', context)


def run_one(name, kib):
    data, seen = DEEP[name](), set()
    kiln = Kiln()

    def body():
        for options in {'codegen': 'llvm'}, {}, {'jit': 'off'}:
            use(kiln, data, seen, **options)
    threading.stack_size(kib << 10)
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    print('; '.join(sorted(seen)))


def fits(name, kib):
    done = subprocess.run([sys.executable, __file__, LIBRARY, '--one', name, str(kib)], capture_output=True, text=True,
                          timeout=300, check=False)
    return done.returncode == 0 and not done.stderr, done.stdout.strip(), done.stderr[-500:]


def main():
    if sys.argv[2:3] == ['--one']:
        run_one(sys.argv[3], int(sys.argv[4]))
        return 0
    failed = 0
    for name in DEEP:
        if sys.argv[2:3] == ['least']:
            kib = 8192
            while kib >= 64 and fits(name, kib)[0]:
                kib //= 2
            print('%s: %d KiB (%s)' % (name, 2 * kib, fits(name, 2 * kib)[1]), flush=True)
            continue
        good, said, error = fits(name, int(sys.argv[2]) if sys.argv[2:] else TESTED)
        failed += not good
        print('%s %s: %s%s' % ('PASS' if good else 'FAIL', name, said, error), flush=True)
    print('%d passed, %d failed' % (len(DEEP) - failed, failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
