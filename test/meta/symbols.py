"""symbols.py: what the built libraries show to a program that links or loads them."""
import re
import subprocess

from tree import Skip, operator_rows


def defined(path, *options):
    out = subprocess.run(['nm', '--defined-only', *options, path], capture_output=True, text=True,
                         check=True).stdout
    return sorted({line.split()[-1].split('@')[0] for line in out.split('\n')
                   if len(line.split()) == 3})


def declared(tree):
    names = set()
    for path in tree.find('.h', under=['include/kiln/']):
        text = re.sub(r'/\*.*?\*/', '', tree.text(path), flags=re.S)
        names |= set(re.findall(r'KILN_API[^;]*?\b(kiln_\w+)\s*\(', text))
    return names


def check_exports(tree):
    """libkiln.so exports what include/kiln declares and nothing else"""
    exported = set(defined(tree.artefact('libkiln.so'), '-D'))
    for name in sorted(exported - declared(tree)):
        if not re.fullmatch(r'KILN_[0-9.]+', name):  # a version of symbols
            yield 'exported but not declared: %s' % name
    if not exported:
        yield 'nothing is exported'


def check_api_is_complete(tree):
    """every function that include/kiln declares is there"""
    exported = set(defined(tree.artefact('libkiln.so'), '-D'))
    if 'kiln_model_load' not in exported:
        raise Skip('api is not there yet')
    for name in sorted(declared(tree) - exported):
        yield name


def check_global_names(tree):
    """every global symbol of our objects is named kiln_*, so that a static link cannot clash"""
    allowed = re.compile(r'kiln_|__(asan|ubsan|tsan|odr)|_ZTS|\.')
    for name in defined(tree.artefact('libkiln.a'), '-g'):
        if not allowed.match(name):
            yield name


def check_size(tree):
    """libkiln.so of a release build has at most 7 MB that are loaded"""
    path = tree.artefact('libkiln.so')
    rules = tree.text(tree.artefact('build.ninja'))
    if '-O3' not in rules or '-fsanitize' in rules:
        raise Skip('no release build')
    header = subprocess.run(['readelf', '-lW', path], capture_output=True, text=True,
                            check=True).stdout
    taken = sum(int(size, 16) for size in
                re.findall(r'^ *LOAD(?: +0x\w+){3} +0x(\w+)', header, re.M))
    if not 0 < taken <= 7_000_000:
        yield '%d bytes; `python3 build-aux/sizes.py` says what takes them' % taken


def check_aot_kernels(tree):
    """libkiln-aot.a has the kernel of each operator by the name that an object file gives it"""
    names = subprocess.run(['nm', tree.artefact('libkiln-aot.a')], capture_output=True, text=True).stdout
    found = set(re.findall(r' T (kiln__kernel_\w+)', names))
    wanted = set(re.findall(r'\bKERNEL\((\w+)\)', operator_rows(tree.text)))
    for name in sorted(wanted - {n[len('kiln__kernel_'):] for n in found}):
        yield name
    if not wanted:
        yield 'the table has no kernel'


def check_aot_size(tree):
    """a program that `kiln compile` has made takes at most 1.5 MB with all that it runs on"""
    rules = tree.text(tree.artefact('build.ninja'))
    if '-O3' not in rules or '-fsanitize' in rules:
        raise Skip('no release build')
    out = subprocess.run(['size', tree.artefact('examples/aot')], capture_output=True, text=True, check=True).stdout
    taken = sum(map(int, out.split('\n')[1].split()[:2]))
    if not 0 < taken <= 1500000:
        yield '%d bytes' % taken


def check_needed_libraries(tree):
    """libkiln.so needs neither LLVM nor a CUDA driver to be loaded, nor a shared jemalloc"""
    out = subprocess.run(['readelf', '-d', tree.artefact('libkiln.so')], capture_output=True,
                         text=True, check=True).stdout
    needed = re.findall(r'NEEDED.*\[(.*?)\]', out)
    for name in needed:
        if re.match(r'libLLVM|libcuda|libjemalloc|libstdc', name):
            yield name
    if not needed:
        yield 'readelf shows no needed library at all'
    if 'NODELETE' not in out:
        yield 'it may be unloaded (-z nodelete is missing)'


def check_static_tls(tree):
    """libkiln.so has no static TLS, so that it can be loaded at any time"""
    out = subprocess.run(['readelf', '-dr', tree.artefact('libkiln.so')], capture_output=True,
                         text=True, check=True).stdout
    if 'STATIC_TLS' in out or 'TPOFF64' in out:
        yield 'readelf shows static TLS'


def check_no_mutable_state(tree):
    """a library has no process-wide mutable state"""
    allowed = {
        'oom_status',  # written by nobody: the type of a status is not const
        # of base/scope.c: per thread, its budget and its innermost scope, both on its stack
        'kiln__this_thread',
        'refused',  # of base/status.c: per thread, a request for memory until it is reported
        'helping',  # of base/pool.c: per thread, set while a wait runs another's task
        # of codegen/llvm: LLVM reports fatal errors to one handler of the process, without an
        # argument of ours; per thread, set while a call into LLVM lasts
        'guard_target',
        'guard_message',
        # and it keeps targets in a list of the process without a lock: this is the lock, and which
        # libLLVM has been told of its targets
        'registering',
        # of codegen/llvm/exit.c: who is within LLVM when exit() destroys its objects
        'threads_inside',
        'counted_for',
        'process_ends',
        'exit_is_watched',
        'own_depth',
        'is_watched',
        'registered',
        # of codegen/gdb.c: debuggers know one list by its name in each library; and its lock
        '__jit_debug_descriptor',
        'list_lock',
    }
    out = subprocess.run(['objdump', '-t', tree.artefact('libkiln_all.a')], capture_output=True,
                         text=True, check=True).stdout
    for line in out.split('\n'):
        # address, seven flags, section, size, name
        m = re.match(r'[0-9a-f]{16} .{5}.([OC ]) (\S+)\s+[0-9a-f]{16}\s+(?:\.hidden )?(\S+)$', line)
        if not m or m.group(3) == m.group(2):
            continue
        section, name = m.group(2), re.sub(r'\.\d+$', '', m.group(3))
        mutable = re.match(r'\.(data|bss|tbss|tdata)\b|\*COM\*', section)
        if mutable and not section.startswith('.data.rel.ro') and name not in allowed:
            yield '%s in %s' % (name, section)


# Functions that tests alone call, and what for.
HOOKS = {
    'kiln_mem_fail_at': 'the failing allocator',
    'kiln__binding_copied': 'results that a call could not put where the host wants them',
    'kiln_mem_set_fill': 'memory that nobody wrote shows',
    'kiln_cancel_at_look': 'cancels at each place that looks',
    'kiln__pool_started': 'threads that a pool has begun',
    'kiln__pack_store_made': 'copies of weights, and whose work they were',
    'kiln__pool_limit_start': 'threads that cannot be had',
    'kiln__matmul_reference': 'the reference twin of the fast products',
    'kiln_codegen_compile_as': 'a kernel under a schedule of the test, or the bench',
    'kiln_codegen_llvm_is_open': 'that LLVM is opened when it is needed, not before',
    'kiln_env_create': 'an environment without a context',
    'kiln_isa_name': 'benches and tests name what they ran on',
    'kiln_tensor_scalar_f64': 'a tensor of a number',
    'kiln_tensor_scalar_i64': 'a tensor of a number',
}


def members(archive):
    """Object -> (what it defines, what it asks others for)."""
    out = subprocess.run(['nm', '-A', '-P', '-g', archive], capture_output=True, text=True,
                         check=True).stdout
    found = {}
    for line in out.split('\n'):
        match = re.match(r'.*?\[(.*?)\]: (\S+) (\w)', line)
        if match:
            entry = found.setdefault(match.group(1), (set(), set()))
            entry[match.group(3) == 'U'].add(match.group(2))
    return found


def unused(tree, objects, known):
    """What an object defines and no code asks for, in no other object and not in its own file."""
    asked = set().union(*(wants for _, wants in objects.values()))
    code = '\n'.join(re.sub(r'/\*.*?\*/', '', tree.text(f), flags=re.S)
                     for f in tree.find('.c', '.inc') if not f.startswith(('test/', 'bench/')))
    words = re.findall(r'\bkiln_\w+', code)
    for name in sorted(set().union(*(defines for defines, _ in objects.values())) - asked - known):
        if name.startswith('kiln_') and words.count(name) < 2:
            yield name


def check_functions_are_used(tree):
    """each function that a file gives to others has a user that is no test"""
    known = declared(tree) | set(HOOKS)
    objects = members(tree.artefact('libkiln_all.a'))
    if len(objects) < 100:
        yield 'libkiln_all.a has %d objects only' % len(objects)
    yield from unused(tree, objects, known)
    defines = set().union(*(d for d, _ in objects.values()))
    tests = '\n'.join(tree.text(f) for f in tree.find('.c', '.h', under=['test/']))
    for name in HOOKS:
        if name not in defines or not re.search(r'\b%s\b' % name, tests):
            yield '%s is in HOOKS in vain' % name
