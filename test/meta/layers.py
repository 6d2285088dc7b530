"""layers.py: who includes whom."""
import re

# Folder: what it stands on. Includes may go to those and to all that they stand on.
BELOW = {
    'include': [],
    'base': ['include'],
    'runtime': ['base'],
    'aot': ['runtime'],
    'ir': ['runtime'],
    'profiler': ['ir'],
    'guards': ['profiler'],
    'codegen': ['ir'],
    'jit': ['guards', 'codegen'],
    'export': ['jit', 'aot'],
    'frontend': ['ir'],
    'api': ['export', 'frontend'],
    'tools': ['include'],
    'examples': ['include'],
}
ANYTHING = ('bench/', 'test/')

# Third parties: the folders that may include them.
THIRD_PARTIES = [
    (r'llvm-c/', ['codegen/llvm/']),
    (r'jemalloc/', ['base/']),
    (r'xxhash\.h$', ['base/']),
    (r'(minizip/)?(unzip|zip|ioapi|mz.*)\.h$|zlib\.h$|libdeflate\.h$', ['frontend/']),
    (r'cjson/', ['tools/', 'test/', 'bench/']),
    (r'cmocka\.h$', ['test/']),
    (r'sanitizer/', ['base/', 'test/']),
    (r'cuda', ['runtime/cuda/']),
]
STANDARD = set('''alloca assert complex cpuid ctype dirent dlfcn endian errno fcntl fenv float
    getopt immintrin inttypes limits locale malloc math poll pthread sched semaphore setjmp signal
    stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings threads
    time uchar unistd wchar x86intrin elf link execinfo glob linux/perf_event sys/auxv sys/file
    sys/ioctl sys/mman sys/prctl
    sys/resource
    sys/random sys/socket sys/stat sys/syscall sys/sysinfo sys/time sys/types sys/uio sys/wait
    linux/futex'''.split())


def reach(folder):
    seen, todo = set(), [folder]
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += BELOW[name]
    return seen


def includes(tree, path):
    for number, line in enumerate(tree.lines(path), 1):
        m = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
        if m:
            yield number, m.group(1) == '<', m.group(2)


def sources(tree):
    return tree.find('.c', '.h', '.def', '.inc')


def check_layers(tree):
    """a folder includes only itself and what stands below it"""
    for path in sources(tree):
        folder = path.split('/')[0]
        if path.startswith(ANYTHING) or folder not in BELOW:
            continue
        allowed = reach(folder)
        for number, system, name in includes(tree, path):
            if system:
                continue
            target = 'include' if name.startswith('kiln/') else name.split('/')[0]
            if '/' not in name and path.startswith('examples/'):
                continue  # what `kiln compile` makes
            if '/' not in name:
                yield '%s:%d: "%s" is not written from the root' % (path, number, name)
            elif target in BELOW and target not in allowed:
                yield '%s:%d: %s may not include "%s"' % (path, number, folder, name)


def check_includes_exist(tree):
    """a quoted include is a file of the tree, written from the root"""
    files = set(tree.files)
    for path in sources(tree):
        for number, system, name in includes(tree, path):
            if not system and '/' in name and name not in files \
                    and 'include/' + name not in files \
                    and not re.search(r'generated|_bitcode|\.gen\.', name):
                yield '%s:%d: there is no "%s"' % (path, number, name)


INSIDERS = ('test/unit/', 'test/fuzz/', 'test/differential/')


def check_internal_headers(tree):
    """internal.h of a folder is for that folder alone, and for tests that look inside"""
    for path in sources(tree):
        for number, _, name in includes(tree, path):
            owner = name[:-len('internal.h')] if name.endswith('/internal.h') else None
            if owner and not path.startswith((owner, *INSIDERS)):
                yield '%s:%d: "%s" belongs to %s' % (path, number, name, owner)


def check_third_parties(tree):
    """a third party's header appears in its folder alone"""
    for path in sources(tree):
        for number, system, name in includes(tree, path):
            for pattern, folders in THIRD_PARTIES:
                if re.match(pattern, name):
                    if not (path.startswith(tuple(folders)) or
                            re.sub('^test/unit/', '', path).startswith(tuple(folders))):
                        yield '%s:%d: <%s> belongs to %s' % (path, number, name,
                                                             ' '.join(folders))
                    break
            else:
                if system and name[:-2] not in STANDARD:
                    yield '%s:%d: <%s> is neither standard nor a known third party' % (
                        path, number, name)


def check_meson_layers(tree):
    """meson.build gives each layer the dependencies of this map"""
    text = tree.text('meson.build')
    table = text[text.index('layers = ['):]
    table = table[:table.index('\n]')]
    found = {m.group(1): set(re.findall(r"'(\w+)'", m.group(2)))
             for m in re.finditer(r"\['(\w+)', \[(.*?)\]\]", table)}
    for folder, below in BELOW.items():
        if folder in ('include', 'tools', 'examples', 'aot'):  # aot is a library of its own
            continue
        if found.get(folder) != set(below) - {'include', 'aot'}:
            yield 'meson.build gives %s: %s' % (folder, sorted(found.get(folder, ['nothing'])))
