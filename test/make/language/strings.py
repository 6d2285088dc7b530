"""Cases of test/make/language.py: strings: methods, formats, prints."""
from typing import Any, Dict, List, Optional, Tuple, Union
import torch

WORDS = (("hello World",), ("",), ("  pad\t\n",), ("ABC123",), ("a,b,,c",), ("x" * 12,), ("_id9",), ("9lives",), ("Title Case Here",), ("it's they're",), ("a\tb\tc",), ("l1\nl2\r\nl3\rl4",), ("ünïcödé",), ("ab" * 5,))


@case(*WORDS)
def predicates(s: str):
    return s.isalpha(), s.isdigit(), s.isalnum(), s.isspace(), s.isupper(), s.islower(), s.istitle(), s.isidentifier(), s.isdecimal(), s.isnumeric(), s.isprintable()


@case(*WORDS)
def letter_case(s: str):
    return s.upper(), s.lower(), s.swapcase(), s.title(), s.capitalize()


@case(*WORDS)
def strips(s: str):
    return s.strip(), s.lstrip(), s.rstrip(), s.strip("aho "), s.lstrip("ab"), s.rstrip("c3e"), s.strip("")


@case(*WORDS)
def splits(s: str):
    return s.split(), s.split(","), s.split("l"), s.split(" ", 1), s.rsplit(","), s.rsplit(" ", 1), s.splitlines(), s.splitlines(True), s.split("\n")


@case(*WORDS)
def partitions(s: str):
    return s.partition(","), s.rpartition(","), s.partition("l"), s.rpartition("l")


@case(*WORDS)
def finds(s: str):
    return s.find("l"), s.rfind("l"), s.find(""), s.rfind(""), s.find("l", 3), s.find("l", 3, 6), s.rfind("l", 0, 3), s.count("l"), s.count("ab"), s.count("l", 3), "l" in s, "zz" not in s, "" in s, s.find("z"), s.find("l", -3), s.find("l", -30, -2)


@case(*WORDS)
def starts(s: str):
    return s.startswith("he"), s.endswith("ld"), s.startswith(""), s.endswith(""), s.startswith("l", 2), s.endswith("l", 0, 4), s.startswith("hello world and more")


@case(*WORDS)
def replaces(s: str):
    return s.replace("l", "LL"), s.replace("ab", ""), s.replace("l", "_", 1), s.replace(" ", "  "), s.replace("aba", "-")


@case(*WORDS)
def pads(s: str):
    return s.center(20), s.center(21, "*"), s.ljust(15), s.ljust(15, "."), s.rjust(15), s.rjust(15, "0"), s.zfill(15), s.zfill(2), s.expandtabs(), s.expandtabs(4)


@case(*WORDS)
def slices(s: str):
    return s[1:], s[:2], s[1:3], s[-3:], s[:-1], s[::2], s[5:2], s[:], s[-100:100], s[2::3]


@case(*WORDS)
def indexing(s: str):
    return s[0], s[-1], s[len(s) - 1]


@case(("abc", 5), ("abc", -4), ("", 0))
def index_errors(s: str, i: int):
    return s[i]


@case(*WORDS)
def iterate(s: str):
    out: List[str] = []
    for c in s:
        out.append(c)
    return out, [c + "!" for c in s], list(s), len(s), [ord(c) for c in s]


@case(("a", 65), ("é", 233), ("", 0), ("ab", 48))
def ordinals(s: str, i: int):
    return chr(i), ord(s)


@case((127,), (128,), (255,), (0,), (256,), (-1,), (1114111,))
def chars(i: int):
    return len(chr(i)), chr(i) == "A"


@case(("abc", "abd"), ("a", "a"), ("", "a"), ("Z", "a"), ("é", "z"))
def compares(a: str, b: str):
    return a < b, a <= b, a > b, a >= b, a == b, a != b, a + b, a is None


@case(("ab", 3), ("", 2), ("x", 0), ("y", -1))
def repeat(s: str, n: int):
    return s + s, [s] * n, ("%s-" % s)


@case(("k", 5, 2.5, True),)
def formats(s: str, i: int, f: float, b: bool):
    return "{} {} {} {}".format(s, i, f, b), f"{s}={i}, {f} {b}", "{}{{}}".format(i), "{}".format([s, s]), "{} {}".format((i, f), {"a": i}), "{}".format(None), f"{[1.5, 2.0]} {i + 1} {s.upper()}"


@case(("k", 5, 2.5),)
def percent(s: str, i: int, f: float):
    return "%s" % s, "%d items" % i, "%f" % f, "%s %d" % (s, i), "%s %s %s" % (s, i, f), "100%%", "%i" % i, "%5d" % i, "%.2f" % f, "%x" % i


@case(("k", 5, 2.5),)
def percent_simple(s: str, i: int, f: float):
    return "%s" % s, "%d items" % i, "%f" % f, "%s %d" % (s, i), "%s %s %s" % (s, i, f), "%i" % i


@case(("k", 5, 2.5),)
def percent_errors(s: str, i: int, f: float):
    return "%d" % s


@case(("k", 5, 2.5),)
def percent_few(s: str, i: int, f: float):
    return "%s %s" % s


@case(("k", 5, 2.5),)
def percent_many(s: str, i: int, f: float):
    return "%s" % (s, i)


@case(("k", 5, 2.5),)
def percent_gexg(s: str, i: int, f: float):
    return "%g" % f, "%e" % f, "%c" % s, "%o" % i


@case(("k",),)
def format_few(s: str):
    return "{} {}".format(s)


@case(("k",),)
def format_many(s: str):
    return "{}".format(s, s)


@case(("k",),)
def format_number(s: str):
    return "{0} {1} {0}".format(s, 3)


@case((["a", "b"],), ([],), (["x"],), (["é", "", "z"],))
def joins(l: List[str]):
    return ",".join(l), "".join(l), " - ".join(l), "é".join(l)


@case(("x",),)
def literals(s: str):
    return "tab\tnl\nq\"q'b\\s", 'single "double"', "é ü ñ 日本 😀", "\x41\u00e9\101", "a" "b" 'c', r"raw\n", """multi
line""", "\a\b\f\v\0", "%", "{}", "nul\0in"


@case(("x",),)
def docs(s: str):
    """a doc string"""
    "another"
    return s


@case(("x", 1, [1.5], {"k": [1, 2]}), ("é\n\"", -1, [], {}))
def prints(s: str, i: int, l: List[float], d: Dict[str, List[int]]):
    print(s, i, l, d)
    print()
    print("")
    print([s], (s, i), (i,), (), None, True, 1.0, 2 + 3j, [[i], [i, i]], {1: 2.5}, {"a": "b"}, [(i, s)], torch.device("cpu"))
    print("a", "b")
    return str([s]), str((s, i)), str({"a": s}), str([True]), str([[1.0, 0.1]]), str({1: {2: s}})


@case((torch.tensor([1.0, 2.5]),), (torch.tensor(3),), (torch.zeros(0),), (torch.tensor([[True, False]]),), (torch.arange(6).view(2, 3),), (torch.tensor([1e10, 1e-10]),), (torch.tensor([1.0, float("nan"), float("inf")]),))
def print_tensor(x: torch.Tensor):
    print(x)
    print("t", x, [x])
    return str(x), "{}".format(x), f"<{x}>"


@case((3,),)
def dtype_text(x: int):
    t = torch.zeros(2, dtype=torch.float64)
    return str(t.dtype), str(t.device), str(t.size()), str(t.shape), "{}".format(t.layout), str(torch.float32), f"{t.device}"


@case(("a-b_c",), ("",))
def chains(s: str):
    t = s.replace("-", " ").replace("_", " ").title().split(" ")
    return "/".join([w.lower() for w in t]), len(t), [len(w) for w in t]


@case(("abc", "b"), ("abc", "z"))
def str_index(s: str, t: str):
    return s.index(t)


@case(("abcb", "b"), ("abc", "z"))
def str_rindex(s: str, t: str):
    return s.rindex(t), s.rindex(t, 0, 3)


@case(("a",), )
def split_empty(s: str):
    return s.split("")


@case(("12", "x3"), )
def conversions(s: str, t: str):
    return int(s) + 1, float(s) / 8, bool(s), bool(""), str(s) + str(1) + str(2.0) + str(True) + str(None), len(str(12345))


@case(("hello",))
def str_truth(s: str):
    if s:
        return "full"
    if not s:
        return "empty"
    return "never"


@case(("zebra apple Mango",))
def sort_words(s: str):
    w = s.split(" ")
    w.sort()
    v = sorted(s.split(" "))
    return w, v


@case(("a b a c b a",))
def count_words(s: str):
    d: Dict[str, int] = {}
    for w in s.split():
        if w in d:
            d[w] += 1
        else:
            d[w] = 1
    return d, list(d.keys()), list(d.values()), list(d.items())


@case(("racecar",), ("ab",))
def palindrome(s: str):
    i, j = 0, len(s) - 1
    while i < j:
        if s[i] != s[j]:
            return False
        i += 1
        j -= 1
    return True


@case((5,),)
def augmented(n: int):
    s = ""
    for i in range(n):
        s += str(i) + ("," if i < n - 1 else "")
    return s
