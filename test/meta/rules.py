"""rules.py: that the examples of rewrite rules (ir/pass/rule.h) are what their passes do.

An example is "inputs | before => after": inputs are "name: type", separated by ";"; M is a matrix
whose type is known. Before and after are expressions: a name, a number, True, False, None, cpu, or
"type operator(arguments)"; what is said twice is one node. Examples of one rule are separated by
" / ". Each becomes two graphs; the pass must turn the first into the second, which removing dead
nodes alone must not."""
import re
import subprocess

from tree import operator_rows

PASSES = ('peephole', 'simplify')
MATRIX = 'Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)'
CONSTANTS = {'True': ('bool', '[value=1]'), 'False': ('bool', '[value=0]'),
             'None': ('NoneType', ''), 'cpu': ('Device', '[value="cpu"]'),
             'constant': ('str', '[value="constant"]')}


def rules(text):
    """(operator, examples) of each rule of a pass."""
    rule = r'^ +RULE(?:_OF)?\((\w+), \w+(?:, \w+)?,?((?:\s*"[^"]*")*)\)'
    for row in re.findall(rule, text, re.M):
        examples = ''.join(re.findall(r'"([^"]*)"', row[1]))
        yield row[0], [e for e in examples.split(' / ') if e]


class Graph:
    """The text of the graph that an expression stands for."""

    def __init__(self, inputs):
        self.lines, self.count, self.said = [], 0, {}
        self.head = []
        for one in filter(None, (i.strip() for i in inputs.split(';'))):
            name, kind = one.split(': ', 1)
            self.head.append('%%%s : %s' % (name, MATRIX if kind == 'M' else kind))

    def node(self, kind, text):
        self.count += 1
        self.lines.append('  %%v%d : %s = %s' % (self.count, kind, text))
        return '%%v%d' % self.count

    def expression(self, text):
        """The value of the expression that `text` begins with, and what follows it."""
        text = text.lstrip()
        call = re.match(r'(\S+) (\w+::\w+)\(', text)
        if not call:
            word = re.match(r'[\w.-]+', text).group()
            rest = text[len(word):]
            if word in CONSTANTS:
                return self.node(CONSTANTS[word][0],
                                 'prim::Constant%s()' % CONSTANTS[word][1]), rest
            if re.match(r'-?\d', word):
                kind = 'float' if '.' in word else 'int'
                return self.node(kind, 'prim::Constant[value=%s]()' % word), rest
            return '%' + word, rest
        arguments, rest = [], text[call.end():]
        while not rest.startswith(')'):
            value, rest = self.expression(rest.lstrip(', '))
            arguments.append(value)
        said = text[:len(text) - len(rest) + 1]
        if said not in self.said:
            self.said[said] = self.node(call.group(1),
                                        '%s(%s)' % (call.group(2), ', '.join(arguments)))
        return self.said[said], rest[1:]

    def text(self, expression):
        value, rest = self.expression(expression)
        if rest.strip():
            raise ValueError(rest)
        return 'graph(%s):\n%s\n  return (%s)\n' % (', '.join(self.head), '\n'.join(self.lines),
                                                   value)


def passed(kiln, graph, passes):
    """The graph after the passes, its values numbered in their order; or what was complained of."""
    done = subprocess.run([kiln, 'opt', '-', '-p', passes], input=graph, capture_output=True,
                          text=True)
    if done.returncode:
        return done.stderr
    names = {}
    return re.sub(r'%[\w.]+', lambda m: names.setdefault(m.group(), '%%%d' % len(names)),
                  done.stdout)


def faults(kiln, text, pass_name, names):
    found = list(rules(text))
    if len(found) != len(re.findall(r'^ +RULE(?:_OF)?\(', text, re.M)) or not found:
        yield 'some rows of the table cannot be read'
    for op, examples in found:
        if not examples:
            yield '%s has no example' % op
        for example in examples:
            inputs, before, after = re.fullmatch(r'(.*?) \| (.*) => (.*)', example).groups()
            if names.get(op, op) + '(' not in before:
                yield '%s: "%s" does not show it' % (op, example)
            given, wanted = Graph(inputs).text(before), Graph(inputs).text(after)
            wanted = passed(kiln, wanted, 'dce')
            made = passed(kiln, given, pass_name + ',dce')
            if made != wanted:
                yield '%s: "%s" becomes\n%s' % (op, example, made)
            if passed(kiln, given, 'dce') == wanted:
                yield '%s: "%s" needs no rule' % (op, example)


def check_examples_of_rules(tree):
    """passes of rewrite rules do what the examples of their rules say"""
    kiln = tree.artefact('kiln')
    names = dict(re.findall(r'^KILN_OP\((\w+),\s*"(\w+::\w+)', operator_rows(tree.text), re.M))
    for pass_name in PASSES:
        file = 'ir/pass/%s.c' % pass_name
        for fault in faults(kiln, tree.text(file), pass_name, names):
            yield '%s: %s' % (file, fault)
