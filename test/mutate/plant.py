"""plant.py: single faults for C sources, by rule. A fault is a replacement of one piece of text; what it
replaces stays beside it: `if (a)` becomes `if (!KILN_MUTANT(3) && (a))`."""
import hashlib
import re

# What a rule makes of a piece of code: its name in reports and in survivors.txt.
RULES = {
    'never': 'a branch is never taken',
    'always': 'a branch is always taken',
    'drop': 'one side of && or || is not asked',
    'border': '< for <= and > for >=, or the other way round; a loop ends a round early',
    'answer': 'true for false, or the other way round',
    'leave': 'a call is left out',
    'step': '+ 1 and - 1 are 2',
}
# A call that only gives back, locks, counts or tells: other tools (leaks, races) see that it is missing.
QUIET = re.compile(r'^va_|/\*|free|release|destroy|close|lock|drop|print|log|assert|prefetch|reset|poison|step|munmap')


class Fault:
    def __init__(self, path, rule, start, end, text, shown):
        self.path, self.rule, self.start, self.end, self.text = path, rule, start, end, text
        self.shown = ' '.join(shown.split())

    def key(self):
        return '%s: %s: %s' % (self.path, self.rule, self.shown)

    def rank(self):
        return hashlib.sha256(self.key().encode()).hexdigest()


def masked(source):
    """The source with blanks for comments, literals and directives: all positions stay."""
    def blank(match):
        return re.sub(r'[^\n]', ' ', match.group())
    token = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
    source = re.sub(token, blank, source, flags=re.S)
    return re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', blank, source, flags=re.M)


def closing(text, at):
    """Where the parenthesis at `at` is closed."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in '([{') - (text[i] in ')]}')
        if depth == 0:
            return i
    return -1


def top_level(text, start, end, pattern):
    """Matches of pattern within start..end that stand in no bracket."""
    depth = 0
    i = start
    while i < end:
        depth += (text[i] in '([{') - (text[i] in ')]}')
        match = depth == 0 and pattern.match(text, i, end)
        if match:
            yield match
            i = match.end()
        else:
            i += 1


def bodies(text):
    """The spans of functions' bodies."""
    depth = start = 0
    for match in re.finditer('[{}]', text):
        if match.group() == '{':
            if depth == 0:
                start = match.start()
            depth += 1
        else:
            depth -= 1
            if depth == 0 and text[:start].rstrip().endswith(')'):
                yield start, match.start()


# Conditions that tell fast from slow, or a check that release builds leave out; the instant of a deadline.
IDLE = re.compile(r'__builtin_expect|KILN_ASSERT')
INSTANT = re.compile(r'now_ns\(\)')
# `if (a < b) a = b`: the same for <=.
BOUNDS = re.compile(r'\) ([^=;]*\S) = ([^;]*);')


def in_condition(path, source, text, start, end, loops=False):
    """Faults within the condition start..end. A loop never does a round too many: what stands behind the end of an
    array is up to chance."""
    whole = source[start:end]
    if '=' in re.sub(r'[=!<>]=', '', text[start:end]) or re.search(r'\+\+|--', text[start:end]):
        return  # it does something
    for sign, neutral in (('&&', '%s ||'), ('||', '!%s &&')):
        parts = [start] + [m.end() for m in top_level(text, start, end, re.compile(re.escape(sign)))]
        if len(parts) == 1 or (sign == '&&' and any(top_level(text, start, end, re.compile(r'\|\|')))):
            continue
        if any(top_level(text, start, end, re.compile(r'\?'))):
            continue
        for k, at in enumerate(parts):
            stop = parts[k + 1] - len(sign) if k + 1 < len(parts) else end
            piece = source[at:stop].strip()
            yield Fault(path, 'drop', at, stop, ' (%s (%s)) ' % (neutral % '@', piece), piece + ' of ' + whole)
    bounds = BOUNDS.match(source, end)
    for match in re.finditer(r'(?<=[^<>=!-])([<>])(=?)(?= )', text[start:end]):
        if INSTANT.search(whole) or (bounds and '%s %s %s' % (bounds[1], match.group(), bounds[2]) == whole):
            continue
        other = match.group(1) + ('' if match.group(2) else ' 1 +' if loops else '=')
        if loops and match.group() == '<':
            other = '+ 1 <'
        changed = whole[:match.start()] + other + whole[match.end():]
        yield Fault(path, 'border', start, end, '(@ ? (%s) : (%s))' % (changed, whole),
                    changed + ' for ' + whole)


def faults(path, source):
    text = masked(source)
    for begin, finish in bodies(text):
        for match in re.finditer(r'\b(if|while|for) \(', text[begin:finish]):
            at = begin + match.end() - 1
            stop = closing(text, at)
            start = at + 1
            if match.group(1) == 'for':
                cuts = [m.start() for m in top_level(text, start, stop, re.compile(';'))]
                if len(cuts) != 2 or not text[cuts[0] + 1:cuts[1]].strip():
                    continue
                start, stop = cuts[0] + 1, cuts[1]
            condition = source[start:stop].strip()
            if IDLE.search(source, start, source.find('\n', stop)):
                continue
            if match.group(1) == 'if':
                yield Fault(path, 'never', start, stop, '!@ && (%s)' % condition, condition)
                yield Fault(path, 'always', start, stop, '@ || (%s)' % condition, condition)
            yield from in_condition(path, source, text, start, stop, match.group(1) == 'for')
        for match in re.finditer(r'\breturn ([^;{}]*?);', text[begin:finish]):
            start, stop = begin + match.start(1), begin + match.end(1)
            value = source[start:stop]
            if value in ('true', 'false'):
                line = source.rfind('\n', 0, start)
                around = source[source.rfind('\n', 0, line) + 1:stop]
                yield Fault(path, 'answer', start, stop, ('!@' if value == 'true' else '@'), around)
            elif re.search(r'&&|\|\|| [<>]=? ', text[start:stop]) and '?' not in value:
                yield from in_condition(path, source, text, start, stop)
        for match in re.finditer(r'(?<=[;{}])\s+(?:KILN_TRY\(.*\)|[a-z_0-9]+\(.*\));(?=\n)', text[begin:finish]):
            start, stop = begin + match.start(), begin + match.end()
            call = source[start:stop].strip()
            if not QUIET.search(call):
                yield Fault(path, 'leave', start, stop, source[start:stop].replace(call, 'if (!@) ' + call), call)
        for match in re.finditer(r'(?<=[\w\])] )[+-] 1(?= ?[;,)\]]|$)', text[begin:finish], re.M):
            start, stop = begin + match.start(), begin + match.end()
            line = source[source.rfind('\n', 0, start) + 1:source.find('\n', stop)]
            if not re.search('NEW_ARRAY|alloc', line):  # room for one more
                yield Fault(path, 'step', start, stop, '%s (1 + @)' % source[start], line)


def planted(source, chosen):
    """The source with the chosen faults in it: (number, fault) pairs, none within another. The 3 of the line marker
    makes it a system's header, of which the compiler tells errors but no warnings."""
    for number, fault in sorted(chosen, key=lambda pair: -pair[1].start):
        text = fault.text.replace('@', 'KILN_MUTANT(%d)' % number)
        source = source[:fault.start] + text + source[fault.end:]
    return '#include "mutant.h"\n# 1 "%s" 3\n' % chosen[0][1].path + source


def choose(path, source, count):
    """`count` faults that do not overlap, the rules in turn, always the same ones for the same source."""
    by_rule = {}
    for fault in sorted(faults(path, source), key=Fault.rank):
        by_rule.setdefault(fault.rule, []).append(fault)
    taken, keys = [], set()
    while len(taken) < count and any(by_rule.values()):
        for rule in RULES:
            while by_rule.get(rule):
                fault = by_rule[rule].pop(0)
                if fault.key() not in keys and all(fault.end <= t.start or t.end <= fault.start for t in taken):
                    taken.append(fault)
                    keys.add(fault.key())
                    break
    return taken[:count]
