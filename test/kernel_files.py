"""kernel_files.py: kernels in files (cache_dir): found, damaged, of nobody's trust, too many.

A recorded case is called four times and more, in one process after the other. Its answer must always be the
recorded one, whatever the files hold, and what happened must be what the counters and warnings say.

    kernel_files.py build/kiln [-v]
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODEL = os.path.join(ROOT, "test", "data", "own", "relu_linear")


class Run:
    def __init__(self, kiln, folder, repeat=4, **flags):
        env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
        env.update(KILN_COMPILE="sync", KILN_CACHE_DIR=folder, LD_DEBUG="files")
        env.update({"KILN_" + k.upper(): v for k, v in flags.items()})
        done = subprocess.run([kiln, "run", os.path.join(MODEL, "model.pt"), "--inputs",
                               os.path.join(MODEL, "inputs_0.pt"), "--expect",
                               os.path.join(MODEL, "expected_0.pt"), "--repeat", str(repeat), "--counters"],
                              env=env, capture_output=True, text=True, errors="replace", timeout=120)
        self.good = done.returncode == 0 and "as expected" in done.stdout
        self.warnings = [line for line in done.stderr.split("\n") if line.startswith("kiln warn")]
        counts = re.search(r"(\d+) groups?, (\d+) compiled .* (\d+) compiled run", done.stderr)
        self.groups, self.compiled, self.runs = map(int, counts.groups()) if counts else (-1, -1, -1)
        self.llvm = "libLLVM" in done.stderr
        self.text = "%s\n%s" % (done.stdout, re.sub(r"(?m)^ +\d+:.*\n", "", done.stderr))


def files(folder):
    return sorted(glob.glob(os.path.join(folder, "*.kernel")))


class Test:
    def __init__(self, kiln, verbose):
        self.kiln, self.verbose, self.passed, self.failed = kiln, verbose, 0, 0

    def expect(self, what, run, compiled, warning=None):
        """compiled: how many, or None; warning: a part of the only one there is, or of each."""
        right = (run.good and run.runs > 0 and (compiled is None or run.compiled == compiled)
                 and run.llvm == (run.compiled > 0)
                 and (all(warning in w for w in run.warnings) and run.warnings if warning
                      else not run.warnings))
        self.passed += bool(right)
        self.failed += not right
        if not right or self.verbose:
            print("%s %s\n%s" % ("ok" if right else "FAIL", what, "" if right else run.text))

    def check(self, what, right):
        self.passed += bool(right)
        self.failed += not right
        if not right:
            print("FAIL %s" % what)

    def all(self, folder):
        kept = os.path.join(folder, "a", "b")
        first = Run(self.kiln, kept)
        n = first.groups
        self.expect("the first process compiles", first, n)
        self.check("each kernel has a file", len(files(kept)) == n > 0)
        self.expect("the second finds all, and has no libLLVM", Run(self.kiln, kept), 0)
        self.expect("so it does beside the calls", Run(self.kiln, kept, 50000, compile="async"), 0)
        self.expect("of another instruction set there is none", Run(self.kiln, kept, isa="v2"), n)
        self.expect("compiled by a process of its own, it is the same",
                    Run(self.kiln, kept, compile_process="on"), 0)
        self.damage(kept, n)
        self.trust(kept, n)
        self.nowhere(folder, n)
        self.too_many(os.path.join(folder, "small"), n)
        self.together(os.path.join(folder, "together"), n)
        self.command(os.path.join(folder, "looked_at"), n)

    def damage(self, folder, n):
        def flip(text, at):
            return text[:at] + bytes([text[at] ^ 0x40]) + text[at + 1:]
        kinds = [
            ("a bit of the object", lambda t: flip(t, len(t) - 9), "damaged"),
            ("a bit of the digest", lambda t: flip(t, t.index(b"\n", t.index(b"\n") + 1) + 3), "damaged"),
            ("a bit of the key", lambda t: flip(t, 20), "another kernel"),
            ("a bit of the title", lambda t: flip(t, 3), "no kernel"),
            ("its end", lambda t: t[:-1], "damaged"),
            ("most of it", lambda t: t[:20], "another kernel"),
            ("more than it had", lambda t: t + b"x", "damaged"),
            ("nothing", lambda t: b"", "0 bytes"),
        ]
        for what, change, words in kinds:
            for path in files(folder):
                with open(path, "rb") as f:
                    text = f.read()
                with open(path, "wb") as f:
                    f.write(change(text))
            self.expect("damaged: " + what, Run(self.kiln, folder), None, words)
            self.expect("written anew after: " + what, Run(self.kiln, folder), 0)
        names = files(folder)
        shutil.copy(names[0], names[0] + ".keep")
        os.replace(names[0] + ".keep", os.path.join(folder, "0" * 32 + ".kernel"))
        self.expect("a file under another's name is nobody's", Run(self.kiln, folder), 0)
        for path in files(folder):
            os.remove(path)
        self.expect("removed", Run(self.kiln, folder), n)

    def trust(self, folder, n):
        def with_mode(path, mode, what, words):
            was = os.stat(path).st_mode & 0o777
            os.chmod(path, mode)
            self.expect(what, Run(self.kiln, folder), None, words)
            os.chmod(path, was)
        with_mode(folder, 0o777, "a folder that all may write", "others may write")
        with_mode(folder, 0o770, "a folder that a group may write", "others may write")
        with_mode(files(folder)[0], 0o666, "a file that all may write", "others may write")
        path = files(folder)[0]
        os.rename(path, path + ".elsewhere")
        os.symlink(path + ".elsewhere", path)
        self.expect("a link", Run(self.kiln, folder), None, "symbolic")
        os.remove(path)
        os.mkfifo(path)
        self.expect("a pipe", Run(self.kiln, folder), None, "no file")
        if os.geteuid() == 0:
            os.chown(folder, 4242, -1)
            self.expect("another user's folder", Run(self.kiln, folder), None, "another user's")
            os.chown(folder, 0, -1)
        self.expect("all is well again", Run(self.kiln, folder), 0)

    def nowhere(self, folder, n):
        path = os.path.join(folder, "file")
        with open(path, "w") as f:
            f.write("no folder")
        self.expect("a folder that cannot be", Run(self.kiln, os.path.join(path, "x")), n, "x: ")
        self.expect("a file where the folder should be", Run(self.kiln, path), n, "file: ")
        full = Run(self.kiln, "/proc/self/fdinfo/x")
        self.expect("a folder of the system's", full, n, "/proc/self/fdinfo/x")
        self.check("a failure to write is told once",
                   len([w for w in full.warnings if "not kept" in w]) == 1)

    def too_many(self, folder, n):
        os.makedirs(folder)
        for i in range(40):
            with open(os.path.join(folder, "%032x.kernel" % i), "wb") as f:
                f.write(b"x" * 1000)
            os.utime(os.path.join(folder, "%032x.kernel" % i), (i + 1, i + 1))
        self.expect("room for some", Run(self.kiln, folder, cache_size="20000"), n)
        left = files(folder)
        self.check("the longest unused went", sum(map(os.path.getsize, left)) <= 20000
                   and not os.path.exists(os.path.join(folder, "%032x.kernel" % 0))
                   and os.path.exists(os.path.join(folder, "%032x.kernel" % 39)))
        self.expect("what is new stays", Run(self.kiln, folder, cache_size="20000"), 0)

    def command(self, folder, n):
        """kiln cache: what it tells of the files, and of kernels that are not found."""
        def cache(*words, **flags):
            env = dict(os.environ, KILN_CACHE_DIR=folder, **{"KILN_" + k.upper(): v for k, v in flags.items()})
            done = subprocess.run([self.kiln, "cache", *words], env=env, capture_output=True, text=True, timeout=120)
            return done.returncode, done.stdout

        def misses(**flags):
            return cache("why-miss", os.path.join(MODEL, "model.pt"), "--inputs",
                         os.path.join(MODEL, "inputs_0.pt"), **flags)[1]

        self.check("no folder: none was kept", misses().count("none was kept") == n)
        self.check("looking writes nothing", not os.path.exists(folder))
        Run(self.kiln, folder, isa="v2")
        self.check("of another CPU", misses(isa="avx2").count("for another CPU") == n)
        self.check("which is not used", cache("ls", isa="avx2")[1].count("not used: another CPU's") == n)
        self.check("and yet it is good", cache("ls", isa="v2")[1].endswith("0 of them not used\n"))
        Run(self.kiln, folder, isa="avx2")
        self.check("all found", "%d of %d kernels found" % (n, n) in misses(isa="avx2").replace("kernel ", "kernels "))
        self.check("all good", cache("verify", isa="avx2")[0] == 0)
        path = files(folder)[0]
        with open(path, "ab") as f:
            f.write(b"x")
        code, text = cache("verify", isa="avx2")
        self.check("damage is told", code == 1 and os.path.basename(path) in text and "it is damaged" in text)
        other = files(folder)[1]
        with open(other, "rb") as f:
            text = f.read()
        end = text.index(b"\n", text.index(b"\n") + 1)
        with open(other, "wb") as f:  # the digest is of the object alone
            f.write(text[:14] + b"generator 0, k; v2; a; b" + text[end:])
        self.check("another Kiln's is told", "another Kiln's" in cache("ls")[1])
        text = cache("prune")[1]
        self.check("both are removed", text.startswith("2 files removed") and len(files(folder)) == 2 * n - 2)
        cache("prune", "--bytes", "1")
        self.check("the rest by its bytes", not files(folder))

    def together(self, folder, n):
        """Processes that write the same files: the third one finds whole ones."""
        env = dict(os.environ, KILN_CACHE_DIR=folder, KILN_COMPILE="sync")
        children = [subprocess.Popen([self.kiln, "run", os.path.join(MODEL, "model.pt"), "--inputs",
                                      os.path.join(MODEL, "inputs_0.pt"), "--repeat", "3"], env=env,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    for _ in range(6)]
        self.check("six processes at once", all(child.wait() == 0 for child in children))
        self.check("no file is left half written", len(os.listdir(folder)) == n)
        self.expect("after six at once", Run(self.kiln, folder), 0)


def main():
    test = Test(os.path.abspath(sys.argv[1]), "-v" in sys.argv)
    with tempfile.TemporaryDirectory() as folder:
        test.all(folder)
    print("%d passed, %d failed" % (test.passed, test.failed))
    return test.failed > 0


if __name__ == "__main__":
    sys.exit(main())
