"""ptx_c.py: PTX, as LLVM writes it for Kiln's kernels, as C that does the same on this machine (for ptx.py).

Registers are variables of their width, labels are labels, a launch is a loop over its threads. What it does not know it
refuses: an instruction, a rounding, a space of memory. NaN's bits are not promised."""
import re

HEAD = '''
#include <math.h>
#include <stdint.h>
#include <string.h>
typedef struct { uint32_t tid, ntid, ctaid, nctaid; } place;
static inline float f32_of(uint32_t b) { float f; memcpy(&f, &b, 4); return f; }
static inline double f64_of(uint64_t b) { double f; memcpy(&f, &b, 8); return f; }
static inline uint32_t b32_of(float f) { uint32_t b; memcpy(&b, &f, 4); return b; }
static inline uint64_t b64_of(double f) { uint64_t b; memcpy(&b, &f, 8); return b; }
static inline int64_t clamped(double x, double low, double beyond, int64_t least, int64_t most) {
  return x != x ? 0 : x < low ? least : x >= beyond ? most : (int64_t)x;
}
'''
REGISTERS = {'pred': 'int', 'b16': 'uint16_t', 'b32': 'uint32_t', 'b64': 'uint64_t', 'f32': 'float', 'f64': 'double'}
COMPARE = {'eq': '==', 'ne': '!=', 'lt': '<', 'le': '<=', 'gt': '>', 'ge': '>='}
ARITHMETIC = {'add': '+', 'sub': '-', 'and': '&', 'or': '|', 'xor': '^', 'div': '/', 'rem': '%', 'mul': '*'}
ROUND = {'rni': 'rint', 'rmi': 'floor', 'rpi': 'ceil', 'rzi': 'trunc'}


def is_float(t):
    return t[0] == 'f'


def c_type(t):
    if t in ('f32', 'f64'):
        return REGISTERS[t]
    return 'int' if t == 'pred' else '%sint%s_t' % ('' if t[0] == 's' else 'u', t[1:])


class Function:
    """One .entry or .func. Registers are variables, labels are labels; whatever it does not know raises."""

    def __init__(self, name, returns, parameters, body, prefix):
        self.name, self.returns, self.parameters, self.prefix = name, returns, parameters, prefix
        self.declared, self.lines = [], []
        for line in body:
            self.statement(line)

    def operand(self, text, t):
        """A value of that type."""
        text = text.strip()
        if text.startswith('0f'):
            return 'f32_of(0x%su)' % text[2:]
        if text.startswith('0d'):
            return 'f64_of(0x%sull)' % text[2:]
        if text.startswith('{'):
            low, high = text.strip('{}').split(',')
            half = c_type('u%d' % (int(t[1:]) // 2))
            whole = c_type('u' + t[1:])
            return '((%s)(%s)%s | (%s)(%s)%s << %d)' % (whole, half, self.variable(low), whole, half,
                                                        self.variable(high), int(t[1:]) // 2)
        if text.startswith('%'):
            value = self.variable(text)
        elif re.match(r'-?\d', text):
            value = text + ('ull' if not text.startswith('-') else 'll')
        else:
            value = '(uint64_t)(uintptr_t)%s' % self.symbol(text)
        kind = self.kind(text)
        if kind and is_float(kind) and not is_float(t):
            return 'b%s_of(%s)' % (kind[1:], value)
        if is_float(t):
            return value if kind is None or is_float(kind) else 'f%s_of(%s)' % (t[1:], value)
        return '((%s)%s)' % (c_type(t), value)

    def kind(self, text):
        found = re.match(r'%(fd|f|rs|rd|r|p)\d+$', text.strip())
        return found and {'fd': 'f64', 'f': 'f32', 'rs': 'b16', 'rd': 'b64', 'r': 'b32', 'p': 'pred'}[found.group(1)]

    def symbol(self, text):
        return text if text.startswith('__local') else self.prefix + text

    def variable(self, text):
        text = text.strip()
        if text in ('%tid.x', '%ntid.x', '%ctaid.x', '%nctaid.x'):
            return 'where.' + text[1:-2]
        return text.replace('%', 'v_').replace('.', '_')

    def assign(self, to, value, t):
        kind = self.kind(to)
        if kind and is_float(kind) and not is_float(t):
            value = 'f%s_of(%s)' % (kind[1:], value)
        elif kind and not is_float(kind) and is_float(t):
            value = 'b%s_of(%s)' % (t[1:], value)
        self.lines.append('%s = %s;' % (self.variable(to), value))

    def statement(self, line):
        declared = re.match(r'\.reg \.(\w+) \s*%(\w+)(?:<(\d+)>)?$', line)
        if declared:
            t, name, count = declared.groups()
            names = ['v_%s%d' % (name, i) for i in range(int(count))] if count else ['v_' + name]
            self.declared.append('%s %s;' % (REGISTERS[t], ', '.join('%s = 0' % n for n in names)))
            return
        local = re.match(r'\.local \.align (\d+) \.b8 \s*(\w+)\[(\d+)\]$', line)
        if local:
            self.declared.append('_Alignas(%s) uint8_t %s[%s];' % (local.group(1), local.group(2), local.group(3)))
        elif re.match(r'\.param \.\w+ \w+$', line):
            slot = 'uint64_t %s = 0;' % self.symbol(line.split()[-1]) # of a call; the next has the same
            if slot not in self.declared:
                self.declared.append(slot)
        elif line.endswith(':'):
            self.lines.append(self.label(line[:-1]) + ':;')
        else:
            self.instruction(line)

    def label(self, text):
        return 'L_' + text.replace('$', '').strip()

    def instruction(self, line):
        guard = re.match(r'@(!?)(%p\d+) (.*)', line)
        if guard:
            self.lines.append('if (%s%s)' % (guard.group(1), self.variable(guard.group(2))))
            line = guard.group(3)
            if not line.startswith('bra'):
                raise ValueError('no C for a guarded ' + line)
        opcode, _, rest = line.partition(' ') if ' ' in line else line.partition('\t')
        parts = opcode.split('.')
        args = [a.strip() for a in re.findall(r'\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|[^,\s][^,]*', rest) if a.strip()]
        handler = getattr(self, 'do_' + parts[0], None)
        if handler:
            handler(parts[1:], args)
        elif parts[0] in ARITHMETIC:
            self.arithmetic(parts[0], parts[1:], args)
        else:
            raise ValueError('no C for ' + line)

    def arithmetic(self, op, how, args):
        t = how[-1]
        unknown = set(how[:-1]) - {'rn', 'lo', 'hi', 'wide', 'cc'}
        if unknown or (is_float(t) and 'rn' not in how):
            raise ValueError('no C for %s.%s' % (op, '.'.join(how)))
        a, b = (self.operand(x, t) for x in args[1:])
        if 'wide' in how:
            wide = t[0] + str(2 * int(t[1:]))
            value = '(%s)%s * (%s)%s' % (c_type(wide), a, c_type(wide), b)
        elif 'hi' in how:
            value = '((%s__int128)%s * %s) >> %s' % ('unsigned ' if t[0] == 'u' else '', a, b, t[1:])
        elif op == 'mul' and not is_float(t):
            value = '(uint64_t)%s * (uint64_t)%s' % (a, b)
        else:
            value = '%s %s %s' % (a, ARITHMETIC[op], b)
        cut = not is_float(t) and 'wide' not in how
        self.assign(args[0], '(%s)(%s)' % (c_type(t), value) if cut else value, t)
        if 'cc' in how:
            unsigned = 'u' + t[1:]
            self.lines.append('carry = %s < %s;' % (self.operand(args[0], unsigned), self.operand(args[1], unsigned)))

    def do_addc(self, how, args):
        t = 'u' + how[-1][1:]
        a, b = (self.operand(x, t) for x in args[1:])
        sum_ = '((unsigned __int128)%s + %s + carry)' % (a, b)
        self.lines.append('{ unsigned __int128 sum = %s; carry = sum >> %s & 1; %s = (%s)sum; }' % (
            sum_, t[1:], self.variable(args[0]), c_type(t)))

    def do_mad(self, how, args):
        if how[0] != 'lo':
            raise ValueError('mad')
        a, b, c = (self.operand(x, 'u' + how[-1][1:]) for x in args[1:])
        self.assign(args[0], '(uint64_t)%s * %s + %s' % (a, b, c), how[-1])

    def do_fma(self, how, args):
        t = how[-1]
        if how[0] != 'rn':
            raise ValueError('fma')
        function = 'fmaf' if t == 'f32' else 'fma'
        self.assign(args[0], '%s(%s)' % (function, ', '.join(self.operand(x, t) for x in args[1:])), t)

    def do_sqrt(self, how, args):
        if how[0] != 'rn':
            raise ValueError('sqrt')
        function = 'sqrtf' if how[-1] == 'f32' else 'sqrt'
        self.assign(args[0], '%s(%s)' % (function, self.operand(args[1], how[-1])), how[-1])

    def do_rcp(self, how, args):
        if how[0] != 'rn':
            raise ValueError('rcp')
        self.assign(args[0], '1 / %s' % self.operand(args[1], how[-1]), how[-1])

    def do_abs(self, how, args):
        t, x = how[-1], self.operand(args[1], how[-1])
        value = '%s < 0 ? 0 - (uint64_t)%s : %s' % (x, x, x)
        if is_float(t):
            value = '%s(%s)' % ('fabsf' if t == 'f32' else 'fabs', x)
        self.assign(args[0], value, t)

    def do_neg(self, how, args):
        x = self.operand(args[1], how[-1])
        self.assign(args[0], '-%s' % x if is_float(how[-1]) else '0 - (uint64_t)%s' % x, how[-1])

    def do_not(self, how, args):
        self.assign(args[0], '%s%s' % ('!' if how[-1] == 'pred' else '~', self.operand(args[1], how[-1])), how[-1])

    def extreme(self, sign, how, args):
        if is_float(how[-1]):
            raise ValueError('min and max of floats')
        a, b = (self.operand(x, how[-1]) for x in args[1:])
        self.assign(args[0], '%s %s %s ? %s : %s' % (a, sign, b, a, b), how[-1])

    def do_min(self, how, args):
        self.extreme('<', how, args)

    def do_max(self, how, args):
        self.extreme('>', how, args)

    def shift(self, sign, how, args):
        t, bits = how[-1], int(how[-1][1:])
        by, x = self.operand(args[2], 'u32'), self.operand(args[1], t)
        beyond = '(%s < 0 ? -1 : 0)' % x if t[0] == 's' else '0'
        self.assign(args[0], '%s >= %d ? %s : %s %s %s' % (by, bits, beyond, x, sign, by), t)

    def do_shl(self, how, args):
        self.shift('<<', how, args)

    def do_shr(self, how, args):
        self.shift('>>', how, args)

    def do_clz(self, how, args):
        x = self.operand(args[1], how[-1])
        function = '__builtin_clz' + ('ll' if how[-1] == 'b64' else '')
        self.assign(args[0], '%s ? %s(%s) : %s' % (x, function, x, how[-1][1:]), 'b32')

    def do_bfe(self, how, args):
        x, at, count = (self.operand(a, t) for a, t in zip(args[1:], [how[-1], 'u32', 'u32']))
        if how[-1][0] != 'u':
            raise ValueError('bfe')
        self.assign(args[0], '%s >> %s & ((1ull << %s) - 1)' % (x, at, count), how[-1])

    def do_setp(self, how, args):
        test, t = how[0], how[-1]
        a, b = (self.operand(x, t) for x in args[1:])
        unordered = '(%s != %s || %s != %s)' % (a, a, b, b)
        if not is_float(t):
            value = '%s %s %s' % (a, COMPARE[test], b)
        elif test == 'nan':
            value = unordered
        elif test == 'num':
            value = '!' + unordered
        elif test.endswith('u') and test[:-1] in COMPARE:
            value = '%s || %s %s %s' % (unordered, a, COMPARE[test[:-1]], b)
        else:
            value = '!%s && %s %s %s' % (unordered, a, COMPARE[test], b)
        self.assign(args[0], value, 'pred')

    def do_selp(self, how, args):
        a, b = (self.operand(x, how[-1]) for x in args[1:3])
        self.assign(args[0], '%s ? %s : %s' % (self.variable(args[3]), a, b), how[-1])

    def do_mov(self, how, args):
        if args[0].startswith('{'):
            bits = int(how[-1][1:]) // 2
            for i, part in enumerate(args[0].strip('{}').split(',')):
                half = '(%s)(%s >> %d)' % (c_type('u%d' % bits), self.operand(args[1], how[-1]), bits * i)
                self.assign(part.strip(), half, 'u%d' % bits)
        else:
            self.assign(args[0], self.operand(args[1], how[-1]), how[-1])

    def do_cvta(self, how, args):
        self.assign(args[0], self.operand(args[1], 'u64'), 'u64')

    def do_cvt(self, how, args):
        to, source = how[-2:]
        x = self.operand(args[1], source)
        if is_float(to) and is_float(source):
            value = '(%s)%s' % (c_type(to), x)
            if how[0] in ROUND:
                value = '%s(%s)' % (ROUND[how[0]] + ('f' if to == 'f32' else ''), x)
        elif is_float(source):
            if how[0] != 'rzi' or to[0] != 's':
                raise ValueError('cvt.' + '.'.join(how))
            most = (1 << (int(to[1:]) - 1)) - 1
            value = 'clamped(%s, %d.0, %d.0, -%dll - 1, %dll)' % (x, -most - 1, most + 1, most, most)
        else:
            value = '(%s)%s' % (c_type(to), x)
        self.assign(args[0], value, to)

    def address(self, text):
        base, _, offset = text.strip('[]').partition('+')
        return '(uintptr_t)(%s + %s)' % (self.operand(base, 'u64'), offset or '0')

    def do_ld(self, how, args):
        t = how[-1]
        if how[0] == 'param':
            value = self.symbol(args[1].strip('[]').partition('+')[0])
            self.assign(args[0], value if not is_float(t) else 'f%s_of(%s)' % (t[1:], value), t)
            return
        if set(how[:-1]) - {'global', 'local', 'nc'}:
            raise ValueError('ld.' + '.'.join(how))
        self.assign(args[0], '*(const %s *)%s' % (c_type(t), self.address(args[1])), t)

    def do_st(self, how, args):
        t, value = how[-1], self.operand(args[1], how[-1])
        if how[0] == 'param':
            to = self.symbol(args[0].strip('[]').partition('+')[0])
            self.lines.append('%s = %s;' % (to, value if not is_float(t) else 'b%s_of(%s)' % (t[1:], value)))
            return
        if set(how[:-1]) - {'global', 'local'}:
            raise ValueError('st.' + '.'.join(how))
        self.lines.append('*(%s *)%s = %s;' % (c_type(t), self.address(args[0]), value))

    def do_bra(self, _how, args):
        self.lines.append('goto %s;' % self.label(args[0]))

    def do_call(self, _how, args):
        result, name, given = args
        given = ', '.join(self.symbol(x.strip()) for x in given.strip('()').split(','))
        self.lines.append('%s = %s(%s, where);' % (self.symbol(result.strip('()')), self.symbol(name), given))

    def do_ret(self, _how, _args):
        self.lines.append('return %s;' % (self.symbol(self.returns) if self.returns else ''))

    def text(self):
        parameters = ''.join('uint64_t %s, ' % self.symbol(p) for p in self.parameters)
        returned = 'uint64_t' if self.returns else 'void'
        head = 'static %s %s%s(%splace where)' % (returned, self.prefix, self.name, parameters)
        if self.returns:
            self.declared.append('uint64_t %s = 0;' % self.symbol(self.returns))
        return '%s {\n  uint64_t carry = 0;\n  %s\n}\n' % (head, '\n  '.join(self.declared + self.lines))


FUNCTION = r'^(\.visible \.entry|\.func)\s+(?:\(\.param \.\w+ (\w+)\)\s*)?(\w+)\((.*?)\)\n\{\n(.*?)^\}'


def entry_of(ptx):
    """The name of its entry, and how many parameters that has."""
    name, parameters = re.search(r'\.entry (\w+)\(([^)]*)\)', ptx).groups()
    return name, parameters.count('.param')


def as_c(ptx, name):
    """Its functions, and one that launches the entry: launch_NAME(arguments, blocks, threads)."""
    text = re.sub(r'//[^\n]*', '', ptx)
    prefix, out, entry = 'k%s_' % name, [], None
    for data in re.finditer(r'^\.global \.align (\d+) \.b8 (\w+)\[(\d+)\] = (\{[^}]*\});', text, re.M):
        align, symbol, size, value = data.groups()
        out.append('_Alignas(%s) static const uint8_t %s%s[%s] = %s;' % (align, prefix, symbol, size, value))
    functions = []
    for f in re.finditer(FUNCTION, text, re.M | re.S):
        body = [' '.join(line.split()) for line in re.split(r';|(?<=:)\n|(?<=\{)\n', f.group(5).replace('}\n', '}\n;'))]
        parameters = re.findall(r'\.param \.\w+ (\w+)', f.group(4))
        lines = [line.lstrip('{} ') for line in body]
        function = Function(f.group(3), f.group(2), parameters, [x for x in lines if x], prefix)
        if 'entry' in f.group(1):
            entry = function
        functions.append(function)
    functions.sort(key=lambda f: f is entry)
    out += [f.text() for f in functions]
    out.append('''void launch_%s(const uint64_t *args, uint32_t blocks, uint32_t threads) {
  for (uint32_t b = 0; b < blocks; b++)
    for (uint32_t t = 0; t < threads; t++) %s(%s(place){t, threads, b, blocks});
}
''' % (name, prefix + entry.name, ''.join('args[%d], ' % i for i in range(len(entry.parameters)))))
    return '\n'.join(out), len(entry.parameters)
