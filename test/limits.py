"""limits.py LIBRARY [NAME...]: files and programs that ask for more than they may have, under limits.

Each row of ATTACKS is loaded, called (profiled, compiled, compiled), printed, cloned and frozen in a process of its
own, under one second and 64 MiB (operators that need much: 1 GiB). Whatever comes of a step, a value or a status, it
must come within 1.5 times the limit and half a second, and no more than the limit and 100 MB may become resident.
Times are of the processor: others may use the machine. The last line counts."""
import ctypes
import resource
import subprocess
import sys
import time

from archives import HEAD, TRAINING, archive, forward, int_op, object_op, program, text_op
from scaling import CallOptions, FreezeOptions, Kiln, Limits, repeat

LIBRARY = sys.argv[1]
BYTES = 64 << 20
CALL_MS = 1000
TIMEOUT = 120
ATTACKS = {}


def attack(make):
    ATTACKS[make.__name__] = (make, BYTES)
    return make


USES = {'l': 'torch.len(l)', 's': 'torch.len(s)', 'n': 'n', 'y': 'torch.sum(torch.abs(y))', 'x': '0'}


def programs(limit=BYTES, **lines):
    """What the last line makes is used, or it would be left out."""
    for name, body in lines.items():
        use = USES.get(body[-1].strip()[0]) if '=' in body[-1] else '0'
        ATTACKS[name] = (lambda body=body, use=use: program(body + ['x = torch.add(x, %s)' % use]), limit)


# -- Lists, texts and tensors --

def doubled(name, text, times):
    return ['%s = "%s"' % (name, text), 'for i in range(%d):' % times, '  %s = torch.add(%s, %s)' % (name, name, name)]


EXPANDED = 'torch.expand(torch.zeros([1]), [%s])'
programs(
    chunks_of_nothing=['l = torch.chunk(torch.zeros([0, 3]), 1000000000000)'],
    pieces_of_nothing=['l = torch.tensor_split(torch.zeros([0, 3]), 1000000000000)'],
    many_views=['l = torch.unbind(%s)' % EXPANDED % '200000000'],
    some_views=['l = torch.unbind(%s)' % EXPANDED % '5000000'],
    a_list_times=['l = torch.mul([1, 2], 1000000000)'],
    a_list_doubled=['l = [1]', 'for i in range(40):', '  l = torch.add(l, l)'],
    a_list_emptied=['l = torch.mul([1], 1000000)', 'n = 0', 'while torch.gt(torch.len(l), 0):', '  n = torch.pop(l, 0)', 'n = n'],
    a_print=['print(%s)' % EXPANDED % '1099511627776'],
    a_text_of_a_tensor=['s = str(%s)' % EXPANDED % '1, 1, 1, 1, 1, 3000, 3000'],
    a_text_found=doubled('s', 'a', 21) + doubled('t', 'a', 20) + ['n = torch.find(s, torch.add(t, "b"), 0, -1)'],
    a_text_split=doubled('s', '\\n', 24) + ['l = torch.splitlines(s)'],
    a_text_doubled=doubled('s', 'a', 60),
    an_endless_loop=['while True:', '  x = torch.neg(x)'],
    a_draw_without_end=['x = torch._standard_gamma(torch.full([10], float("inf")))'],
    a_product=['y = torch.mm(%s, torch.t(%s))' % (EXPANDED % '2, 1099511627776', EXPANDED % '2, 1099511627776')],
    a_large_tensor=['x = torch.zeros([100000, 100000])'],
    a_grown_tensor=['y = torch.resize_(torch.zeros([1]), [2147483647])'],
    grown_values=['s = torch.sparse_coo_tensor(torch.ones([1, 3], dtype=4), torch.ones([3]), [3])',
                  'y = torch.resize_(torch._values(s), [2147483647])'],
    a_strided_tensor=['y = torch.empty_strided([40000, 40000], [1, 40000])', 'y = torch.fill_(y, 1.0)'],
    a_broadcast=['y = torch.t(torch.zeros([40000, 1]))', 'y = torch.add(y, torch.zeros([40000, 1]))'],
    a_sum=['y = torch.sum(%s)' % EXPANDED % '1099511627776'],
    a_triangle=['y = torch.tril_(%s)' % EXPANDED % '65536, 65536'],
    triangles=['y = torch.triu_(%s)' % EXPANDED % '1099511627776, 2, 2'],
)
# One operator that takes many seconds.
SQUARE = 'y = torch.rand([%d, %d])'
programs(
    limit=1 << 30,
    sorting=['y = (torch.sort(torch.rand([8000000])))[0]'],
    distinct=['y, z, = torch._unique(torch.rand([12000000]), True, True)'],
    eigenvalues=[SQUARE % (500, 500), 'y, z, = torch.linalg_eig(y)'],
    eigenvalues_of_symmetric=[SQUARE % (900, 900), 'y, z, = torch.linalg_eigh(y, "L")'],
    singular_values=[SQUARE % (1200, 1200), 'y, z, w, = torch.svd(y, True, True)'],
    an_inverse=[SQUARE % (2500, 2500), 'y = torch.inverse(y)'],
    an_exponential=[SQUARE % (700, 700), 'y = torch.matrix_exp(y)'],
    distances=['y = torch.pdist(torch.rand([8000, 2000]), 3.)'],
)


# -- Compiling --

@attack
def functions_twice():
    functions = 'def f0(x: Tensor) -> Tensor:\n  return torch.neg(x)\n'
    functions += ''.join('def f{0}(x: Tensor) -> Tensor:\n  return torch.add(__torch__.f{1}(x), __torch__.f{1}(x))\n'
                         .format(i, i - 1) for i in range(1, 31))
    return program(['x = __torch__.f30(x)'], before=functions)


@attack
def functions_in_a_chain():
    functions = 'def f0(x: Tensor) -> Tensor:\n  return torch.neg(x)\n'
    functions += ''.join('def f%d(x: Tensor) -> Tensor:\n  return torch.add(__torch__.f%d(x), 1)\n' % (i, i - 1)
                         for i in range(1, 20000))
    return program(['x = __torch__.f19999(x)'], before=functions)


@attack
def a_straight_line():
    return program(['x = torch.add(x, 1)'] * 10000)


@attack
def many_groups():
    return program(repeat(1500, 'x = (torch.sort(x))[0]', 'x = torch.relu(torch.add(torch.mul(x, #.5), #))'))


@attack
def folded_constants():
    return program(['if torch.eq(torch.dim(x), 7):'] +
                   repeat(3000, '  x = torch.add(x, torch.full([255, 257], #, dtype=7))') + ['else:', '  x = torch.neg(x)'])


# -- Files --

@attack
def a_shared_constant():
    shared = b']q\x00' + b''.join(b'](h' + bytes([i]) + b'h' + bytes([i]) + b'eq' + bytes([i + 1]) for i in range(60))
    return archive(forward(['a = CONSTANTS.c0']), object_op('__torch__.M', TRAINING), constants=b'(' + shared + b't')


@attack
def an_attribute_in_itself():
    tagged = b'ctorch.jit._pickle\nrestore_type_tag\n(]' + text_op('List[Any]') + b'tR'
    return archive(forward(['a = self.a', '_0 = torch.append(a, a)', '_1 = torch.append(a, a)'],
                           attributes='  a : List[Any]\n'), object_op('__torch__.M', TRAINING + [('a', tagged)]))


@attack
def many_attributes():
    names = ['a%d' % i for i in range(60000)]
    source = HEAD.replace('[]', '[%s]' % ''.join('"%s", ' % name for name in names), 1)
    source = forward([], attributes=''.join('  %s : int\n' % name for name in names)).replace(HEAD, source)
    return archive(source, object_op('__torch__.M', TRAINING + [(name, int_op(1)) for name in names]))


@attack
def a_large_dict():
    pairs = b''.join(int_op(i * 65536 % 2147483647) + int_op(1) for i in range(200000))
    tagged = b'ctorch.jit._pickle\nrestore_type_tag\n(}(' + pairs + b'u' + text_op('Dict[int, int]') + b'tR'
    return archive(forward([], attributes='  d : Dict[int, int]\n'), object_op('__torch__.M', TRAINING + [('d', tagged)]))


# -- What is done with them --

WRITE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
PRINT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


class Attack:
    def __init__(self, limit):
        self.kiln, self.limit, self.ms, self.faults, self.seen = Kiln(), limit, CALL_MS, [], []

    def attempt(self, step, name, *arguments):
        """What it makes, or None; longer than it may is a fault."""
        start = time.process_time()
        try:
            made = self.kiln.make(name, *arguments)
        except RuntimeError as error:
            made = None
            self.seen.append('%s: %.70s' % (step, str(error).partition('\n')[0]))
        seconds = time.process_time() - start
        if seconds > self.ms * 1.5e-3 + 0.5:
            self.faults.append('%s took %.2f s' % (step, seconds))
        return made

    def run(self, data):
        kiln, limits = self.kiln, Limits(self.limit, 0, 0, self.ms, None)
        quiet = PRINT(lambda user, text, size: None)
        context = kiln.context(codegen='llvm', alloc='default')
        kiln.library.kiln_context_set_print(context, quiet, None)
        x = kiln.ones(context, 2, 3)
        before = resident()
        model = self.attempt('load', 'model_load_memory', context, data, ctypes.c_size_t(len(data)),
                             ctypes.byref(limits))
        instance = self.attempt('instance', 'instance_create', model) if model else None
        for i in range(3 if instance else 0):
            y = self.attempt('call %d' % i, 'instance_call', instance, b'forward', (ctypes.c_void_p * 1)(x),
                             ctypes.c_int(1), ctypes.byref(CallOptions(limits, 0, 0)))
            if y:
                kiln.drop('text_free', self.attempt('print', 'value_print', y, ctypes.c_int(10)))
                kiln.drop('value_destroy', self.attempt('clone', 'value_clone', y))
                kiln.drop('value_destroy', y)
        if instance:
            kiln.drop('model_release', self.attempt('freeze', 'instance_freeze', instance,
                                                    ctypes.byref(FreezeOptions(None, 0, 1, limits, 0))))
        taken = resident() - before
        if taken > self.limit + (100 << 20):
            self.faults.append('%d MB became resident' % (taken >> 20))
        kiln.drop('instance_release', instance)
        kiln.drop('model_release', model)
        kiln.drop('value_destroy', x)
        kiln.drop('context_release', context)


def run_apart(name):
    try:
        done = subprocess.run([sys.executable, __file__, LIBRARY, '--one', name], capture_output=True, text=True,
                              timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return 'FAIL %s: no end' % name
    return done.stdout.strip() if done.returncode == 0 else 'FAIL %s: ended with %d: %s' % (
        name, done.returncode, done.stderr[-1000:])


def main():
    if sys.argv[2:3] == ['--one']:
        make, limit = ATTACKS[sys.argv[3]]
        attack_ = Attack(limit)
        attack_.run(make())
        print('%s %s: %s' % ('FAIL' if attack_.faults else 'PASS', sys.argv[3], '; '.join(attack_.faults + attack_.seen)))
        return 0
    failed = count = 0
    for name in sys.argv[2:] or ATTACKS:
        line = run_apart(name)
        print(line, flush=True)
        count += 1
        failed += not line.startswith('PASS')
    print('%d passed, %d failed' % (count - failed, failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
