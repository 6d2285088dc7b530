"""Random TorchScript programs: PyTorch runs them and writes down what they give.

    /usr/bin/python3 test/fuzz/programs.py SEED COUNT FOLDER

Writes an archive with COUNT methods, m0 to m<COUNT-1>, and their arguments and results, for
`kiln check FOLDER` (category "language", see tools/check_language.c). Needs torch 1.13. The same
seed gives the same programs. Expressions are typed: int, float, bool, str, List[int], List[str],
Dict[str, int], Tensor; statements assign, branch, loop, leave loops, return early and raise."""
import random
import sys

TYPES = ["int", "float", "bool", "str", "List[int]", "List[str]", "Dict[str, int]", "Tensor"]
WORDS = ["a", "bc", "", "Hello", "x y", "1", "-7", "é", "tab\\t", "b,c,d", "AAA"]


class Program:
    def __init__(self, rng):
        self.r = rng
        self.vars = {t: [] for t in TYPES}
        self.lines = []
        self.count = 0
        self.loop = 0
        self.frozen = set()

    def pick(self, *options):
        return self.r.choice(options)

    # -- Expressions --

    def expr(self, type_, depth=0):
        known = self.vars[type_]
        if known and (depth > 3 or self.r.random() < 0.4):
            return self.r.choice(known)
        maker = {"int": self.int_, "float": self.float_, "bool": self.bool_, "str": self.str_,
                 "List[int]": self.ints, "List[str]": self.strs, "Dict[str, int]": self.dict_,
                 "Tensor": self.tensor}[type_]
        return maker(depth + 1)

    def int_(self, d):
        e = self.expr
        if d > 4 or self.r.random() < 0.2:
            return str(self.pick(0, 1, 2, 3, -1, -5, 7, 10, 100, 2 ** 31, 2 ** 62, -2 ** 63 + 1))
        k = self.r.randrange(24)
        if k < 5:
            return "(%s %s %s)" % (e("int", d), self.pick("+", "-", "*", "&", "|", "^"), e("int", d))
        if k < 7:
            return "(%s %s %s)" % (e("int", d), self.pick("//", "%"), self.pick("3", "-4", e("int", d)))
        return [
            lambda: "len(%s)" % e(self.pick("str", "List[int]", "List[str]", "Dict[str, int]"), d),
            lambda: "-%s" % e("int", d),
            lambda: "abs(%s)" % e("int", d),
            lambda: "int(%s)" % e(self.pick("bool", "float"), d) if self.r.random() < 0.5 else "int(%s)" % e("bool", d),
            lambda: "min(%s, %s)" % (e("int", d), e("int", d)),
            lambda: "max(%s, %s)" % (e("int", d), e("int", d)),
            lambda: "sum(%s)" % e("List[int]", d),
            lambda: "%s[%s]" % (e("List[int]", d), e("int", d)),
            lambda: "%s.get(%s, %s)" % (e("Dict[str, int]", d), e("str", d), e("int", d)),
            lambda: "(%s if %s else %s)" % (e("int", d), e("bool", d), e("int", d)),
            lambda: "%s.find(%s)" % (e("str", d), e("str", d)),
            lambda: "%s.count(%s)" % (e("List[int]", d), e("int", d)),
            lambda: "(%s << %d)" % (e("int", d), self.r.randrange(63)),
            lambda: "(%s >> %d)" % (e("int", d), self.r.randrange(63)),
            lambda: "%s[%s]" % (e("Dict[str, int]", d), e("str", d)),
            lambda: "int(%s.sum())" % e("Tensor", d),
            lambda: "%s.numel()" % e("Tensor", d),
        ][k - 7]()

    def float_(self, d):
        e = self.expr
        if d > 4 or self.r.random() < 0.25:
            return self.pick("0.0", "1.0", "0.5", "-2.5", "3.25", "1e20", "-1e-3", "0.1")
        return self.pick(
            lambda: "(%s %s %s)" % (e("float", d), self.pick("+", "-", "*"), e(self.pick("int", "float"), d)),
            lambda: "(%s %s %s)" % (e("int", d), self.pick("+", "-", "*"), e("float", d)),
            lambda: "(%s / %s)" % (e(self.pick("int", "float"), d), self.pick("2", "0.5", e("float", d), e("int", d))),
            lambda: "(%s %s %s)" % (e("float", d), self.pick("//", "%"), self.pick("3.0", "-0.75", "2", e("float", d))),
            lambda: "float(%s)" % e(self.pick("int", "bool"), d),
            lambda: "-%s" % e("float", d),
            lambda: "abs(%s)" % e("float", d),
            lambda: "round(%s)" % e("float", d),
            lambda: "min(%s, %s)" % (e("float", d), e("float", d)),
            lambda: "max(%s, %s)" % (e("int", d), e("float", d)),
            lambda: "(%s if %s else %s)" % (e("float", d), e("bool", d), e("float", d)),
            lambda: "(%s ** 2)" % e("float", d),
        )()

    def bool_(self, d):
        e = self.expr
        if d > 4:
            return self.pick("True", "False")
        compare = self.pick("<", "<=", ">", ">=", "==", "!=")
        return self.pick(
            lambda: "(%s %s %s)" % (e("int", d), compare, e("int", d)),
            lambda: "(%s %s %s)" % (e("float", d), compare, e(self.pick("float", "int"), d)),
            lambda: "(%s %s %s)" % (e("str", d), compare, e("str", d)),
            lambda: "(%s and %s)" % (e("bool", d), e("bool", d)),
            lambda: "(%s or %s)" % (e("bool", d), e("bool", d)),
            lambda: "(not %s)" % e("bool", d),
            lambda: "(%s in %s)" % (e("int", d), e("List[int]", d)),
            lambda: "(%s not in %s)" % (e("str", d), e("List[str]", d)),
            lambda: "(%s in %s)" % (e("str", d), e("Dict[str, int]", d)),
            lambda: "(%s in %s)" % (e("str", d), e("str", d)),
            lambda: "(%s == %s)" % (e("List[int]", d), e("List[int]", d)),
            lambda: "bool(%s)" % e(self.pick("int", "float"), d),
            lambda: "%s.%s()" % (e("str", d), self.pick("isdigit", "isalpha", "isupper", "islower", "isspace", "isalnum", "istitle")),
            lambda: "%s.%s(%s)" % (e("str", d), self.pick("startswith", "endswith"), e("str", d)),
        )()

    def str_(self, d):
        e = self.expr
        if d > 4 or self.r.random() < 0.25:
            return '"%s"' % self.r.choice(WORDS)
        return self.pick(
            lambda: "(%s + %s)" % (e("str", d), e("str", d)),
            lambda: "str(%s)" % e(self.pick("int", "float", "bool", "List[int]", "List[str]", "Dict[str, int]"), d),
            lambda: "%s.%s()" % (e("str", d), self.pick("upper", "lower", "title", "strip", "swapcase", "capitalize", "lstrip", "rstrip")),
            lambda: "%s.replace(%s, %s)" % (e("str", d), '"%s"' % self.pick("a", "l", "x"), e("str", d)),
            lambda: "%s.join(%s)" % (e("str", d), e("List[str]", d)),
            lambda: '"{}:{}".format(%s, %s)' % (e(self.pick("int", "float", "str", "bool"), d), e("List[int]", d)),
            lambda: 'f"<{%s}>"' % e("int", 4),
            lambda: '("%%s=%%d" %% (%s, %s))' % (e("str", d), e("int", d)),
            lambda: "%s[%s:%s]" % (e("str", d), e("int", d), self.pick("", e("int", d))),
            lambda: "%s.zfill(%d)" % (e("str", d), self.r.randrange(9)),
            lambda: "%s.center(%d)" % (e("str", d), self.r.randrange(9)),
            lambda: "hex(%s)" % e("int", d),
            lambda: "%s[%s]" % (e("List[str]", d), e("int", d)),
            lambda: "(%s if %s else %s)" % (e("str", d), e("bool", d), e("str", d)),
        )()

    def ints(self, d):
        e = self.expr
        if d > 4 or self.r.random() < 0.2:
            return "[%s]" % ", ".join(str(self.r.randrange(-9, 10)) for _ in range(self.r.randrange(1, 5)))
        return self.pick(
            lambda: "[%s, %s]" % (e("int", d), e("int", d)),
            lambda: "(%s + %s)" % (e("List[int]", d), e("List[int]", d)),
            lambda: "%s[%s:%s]" % (e("List[int]", d), self.pick("", str(self.r.randrange(-3, 4))), self.pick("", str(self.r.randrange(-3, 4)))),
            lambda: "%s[::%s]" % (e("List[int]", d), self.pick("1", "2", "-1", "-2")),
            lambda: "sorted(%s)" % e("List[int]", d),
            lambda: "[i%d * %s for i%d in %s]" % ((n := self.fresh()), self.pick("2", "-1", "i%d" % n), n, e("List[int]", d)),
            lambda: "[i%d for i%d in range(%d)]" % ((n := self.fresh()), n, self.r.randrange(5)),
            lambda: "(%s * %d)" % (e("List[int]", d), self.r.randrange(0, 3)),
            lambda: "list(%s.values())" % e("Dict[str, int]", d),
            lambda: "[len(i%d) for i%d in %s]" % ((n := self.fresh()), n, e("List[str]", d)),
            lambda: "list(%s.shape)" % e("Tensor", d),
        )()

    def strs(self, d):
        e = self.expr
        if d > 4 or self.r.random() < 0.2:
            return "[%s]" % ", ".join('"%s"' % self.r.choice(WORDS) for _ in range(self.r.randrange(1, 4)))
        return self.pick(
            lambda: "[%s, %s]" % (e("str", d), e("str", d)),
            lambda: "%s.split(%s)" % (e("str", d), self.pick("", '","', '" "', '"l"')),
            lambda: "(%s + %s)" % (e("List[str]", d), e("List[str]", d)),
            lambda: "list(%s.keys())" % e("Dict[str, int]", d),
            lambda: "%s[%s:]" % (e("List[str]", d), e("int", d)),
            lambda: "[str(i%d) for i%d in %s]" % ((n := self.fresh()), n, e("List[int]", d)),
            lambda: "[i%d.upper() for i%d in %s]" % ((n := self.fresh()), n, e("List[str]", d)),
        )()

    def dict_(self, d):
        e = self.expr
        if d > 4 or self.r.random() < 0.4:
            keys = self.r.sample(["a", "b", "1", "zz", "", "Hello"], self.r.randrange(1, 4))
            return "{%s}" % ", ".join('"%s": %d' % (k, self.r.randrange(-5, 6)) for k in keys)
        return self.pick(
            lambda: "{%s: %s}" % (e("str", d), e("int", d)),
            lambda: "{i%d: len(i%d) for i%d in %s}" % ((n := self.fresh()), n, n, e("List[str]", d)),
            lambda: "{str(i%d): i%d for i%d in %s}" % ((n := self.fresh()), n, n, e("List[int]", d)),
            lambda: "%s.copy()" % e("Dict[str, int]", d),
        )()

    def tensor(self, d):
        e = self.expr
        if d > 4 or self.r.random() < 0.2:
            return self.pick("torch.ones(2, 3)", "torch.zeros(3)", "torch.arange(6).view(2, 3).float()",
                             "torch.arange(3)", "torch.full((2, 1), 1.5)", "torch.tensor(2.5)",
                             "torch.tensor([True, False, True])")
        return self.pick(
            lambda: "(%s %s %s)" % (e("Tensor", d), self.pick("+", "-", "*"), e("Tensor", d)),
            lambda: "(%s %s %s)" % (e("Tensor", d), self.pick("+", "-", "*"), self.pick("2", "0.5", "3")),
            lambda: "(%s %s %s)" % (self.pick("2", "0.5", "-3"), self.pick("+", "-", "*"), e("Tensor", d)),
            lambda: "%s.%s()" % (e("Tensor", d), self.pick("relu", "tanh", "sigmoid", "abs", "neg", "sum", "exp", "t", "float", "clone", "flatten")),
            lambda: "%s.sum(%d)" % (e("Tensor", d), self.r.randrange(-2, 2)),
            lambda: "%s[%d]" % (e("Tensor", d), self.r.randrange(-2, 3)),
            lambda: "%s[..., %s:%s]" % (e("Tensor", d), self.pick("", "1"), self.pick("", "-1", "2")),
            lambda: "%s.unsqueeze(%d)" % (e("Tensor", d), self.r.randrange(-2, 2)),
            lambda: "torch.cat([%s, %s])" % (e("Tensor", d), e("Tensor", d)),
            lambda: "torch.stack([%s, %s])" % (e("Tensor", d), e("Tensor", d)),
            lambda: "torch.where(%s > 0, %s, 0.5 * %s)" % (e("Tensor", d), e("Tensor", d), e("Tensor", d)),
            lambda: "(%s > %s)" % (e("Tensor", d), self.pick("0", "1.5")),
            lambda: "%s.clamp(min=%d)" % (e("Tensor", d), self.r.randrange(-2, 3)),
            lambda: "torch.tensor(%s)" % e(self.pick("List[int]", "float", "int"), d),
            lambda: "%s.to(torch.%s)" % (e("Tensor", d), self.pick("int64", "float64", "float32", "bool")),
        )()

    def fresh(self):
        self.count += 1
        return self.count

    # -- Statements --

    def line(self, indent, text):
        self.lines.append("    " * indent + text)

    def new_var(self, type_):
        name = "%s%d" % (type_[0].lower() + ("s" if "str" in type_ and "List" in type_ else ""), self.fresh())
        return name

    def assign(self, indent):
        type_ = self.r.choice(TYPES)
        mutable = [v for v in self.vars[type_] if v not in self.frozen]
        value = self.expr(type_)
        if mutable and self.r.random() < 0.5:
            self.line(indent, "%s = %s" % (self.r.choice(mutable), value))
        else:
            name = self.new_var(type_)
            self.line(indent, "%s = %s" % (name, value) if type_ != "float" else "%s = float(%s)" % (name, value))
            self.vars[type_].append(name)

    def mutate(self, indent):
        e = self.expr
        lists = [v for v in self.vars["List[int]"] if v not in self.frozen]
        dicts = [v for v in self.vars["Dict[str, int]"] if v not in self.frozen]
        ints = [v for v in self.vars["int"] if v not in self.frozen]
        strs = [v for v in self.vars["str"] if v not in self.frozen]
        tensors = [v for v in self.vars["Tensor"] if v not in self.frozen]
        options = []
        if lists:
            l = self.r.choice(lists)
            options += ["%s.append(%s)" % (l, e("int")), "%s[%s] = %s" % (l, e("int"), e("int")),
                        "%s.sort()" % l, "%s.reverse()" % l, "%s.insert(%s, %s)" % (l, e("int"), e("int")),
                        "%s += %s[:]" % (l, e("List[int]")), "%s.pop()" % l, "del %s[%d]" % (l, self.r.randrange(-2, 3)),
                        "%s.extend(%s[:])" % (l, e("List[int]")), "%s[0] += %s" % (l, e("int"))]
        if dicts:
            d = self.r.choice(dicts)
            options += ["%s[%s] = %s" % (d, e("str"), e("int")), "%s.update(%s)" % (d, e("Dict[str, int]")),
                        "%s.pop(%s)" % (d, e("str")), "%s.setdefault(%s, %s)" % (d, e("str"), e("int")),
                        "del %s[%s]" % (d, e("str"))]
        if ints:
            options += ["%s %s %s" % (self.r.choice(ints), self.pick("+=", "-=", "*="), e("int"))] * 3
        if strs:
            options += ["%s += %s" % (self.r.choice(strs), e("str"))]
        if tensors:
            t = self.r.choice(tensors)
            options += ["%s[0] = %s" % (t, self.pick("1", "0.5")), "%s.add_(%s)" % (t, self.pick("1", e("Tensor"))),
                        "%s *= %s" % (t, self.pick("2", e("Tensor"))), "%s[%s > 0] = 0" % (t, t)]
        options += ["print(%s, %s)" % (e(self.r.choice(TYPES[:7])), e(self.r.choice(TYPES[:7])))]
        self.line(indent, self.r.choice(options))

    def scoped(self, indent, count):
        saved = {t: list(v) for t, v in self.vars.items()}
        self.block(indent, count)
        self.vars = saved

    def branch(self, indent):
        self.line(indent, "if %s:" % self.expr("bool"))
        self.scoped(indent + 1, self.r.randrange(1, 4))
        if self.r.random() < 0.3:
            self.line(indent, "elif %s:" % self.expr("bool"))
            self.scoped(indent + 1, self.r.randrange(1, 3))
        if self.r.random() < 0.6:
            self.line(indent, "else:")
            self.scoped(indent + 1, self.r.randrange(1, 3))

    def loop_(self, indent):
        saved = {t: list(v) for t, v in self.vars.items()}
        n = self.fresh()
        kind = self.r.randrange(5)
        name = "k%d" % n
        self.loop += 1
        if kind == 0:
            self.line(indent, "for %s in range(%d):" % (name, self.r.randrange(5)))
            self.vars["int"].append(name)
        elif kind == 1:
            self.line(indent, "for %s in %s[:4]:" % (name, self.expr("List[int]")))
            self.vars["int"].append(name)
        elif kind == 2:
            self.line(indent, "for %s in %s[:4]:" % (name, self.expr(self.pick("str", "List[str]"))))
            self.vars["str"].append(name)
        elif kind == 3:
            self.line(indent, "for j%d, %s in enumerate(%s[:4]):" % (n, name, self.expr("List[int]")))
            self.vars["int"] += [name, "j%d" % n]
            self.frozen.add("j%d" % n)
        else:
            self.line(indent, "w%d = 0" % n)
            self.line(indent, "while w%d < %d and %s:" % (n, self.r.randrange(1, 5), self.expr("bool", 3)))
            self.line(indent + 1, "w%d += 1" % n)
            self.vars["int"].append("w%d" % n)
            self.frozen.add("w%d" % n)
        self.frozen.add(name)
        self.block(indent + 1, self.r.randrange(1, 4))
        if self.r.random() < 0.4:
            self.line(indent + 1, "if %s:" % self.expr("bool"))
            self.line(indent + 2, self.pick("break", "continue"))
            self.block(indent + 1, 1)
        self.loop -= 1
        self.vars = saved

    def block(self, indent, count):
        for _ in range(count):
            k = self.r.random()
            if k < 0.4 or indent > 3:
                self.assign(indent)
            elif k < 0.65:
                self.mutate(indent)
            elif k < 0.8:
                self.branch(indent)
            elif k < 0.93:
                self.loop_(indent)
            elif k < 0.97:
                self.line(indent, "if %s:" % self.expr("bool"))
                self.line(indent + 1, "return (%s, %s, %s)" % (self.expr("int"), self.expr("str"), self.result()))
            else:
                self.line(indent, "if %s:" % self.expr("bool"))
                self.line(indent + 1, "raise %s(%s)" % (self.pick("ValueError", "KeyError", "RuntimeError"), self.expr("str")))

    def result(self):
        return "[%s, %s]" % (self.expr("Tensor"), self.expr("Tensor"))


def program(name, rng):
    p = Program(rng)
    p.vars["int"] += ["n", "m"]
    p.vars["float"] += ["f"]
    p.vars["str"] += ["s"]
    p.vars["List[int]"] += ["l"]
    p.vars["Tensor"] += ["x"]
    p.block(1, rng.randrange(3, 9))
    rest = [v for t in ("int", "str", "float") for v in p.vars[t]][-3:]
    p.line(1, "print(%s)" % ", ".join(rest))
    p.line(1, "return (%s, %s, %s)" % (p.expr("int"), p.expr("str"), p.result()))
    head = "def %s(n: int, m: int, f: float, s: str, l: List[int], x: Tensor) -> " \
           "Tuple[int, str, List[Tensor]]:" % name
    return "\n".join([head] + p.lines) + "\n"


if __name__ == "__main__":
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    for i in range(count):
        print(program("p%d" % i, random.Random(seed * 100003 + i)))
