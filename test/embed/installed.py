"""installed.py BUILD SOURCE MODEL VERSION: installs the build into an empty root, and compiles and runs
hosts in C and C++ against that root alone, as pkg-config and CMake tell them to.

A tool that is not there (g++, cmake) leaves its hosts out, and says so."""
import os
import shutil
import subprocess
import sys
import tempfile

build, source, model = (os.path.abspath(p) for p in sys.argv[1:4])
version = sys.argv[4]
WANT = 'tensor([[1.5, 2.5, 3.5],\n        [4.5, 5.5, 6.5]], dtype=float32)\n'
HOST = os.path.join(source, 'examples/embed/embed.c')
# Functions of the host's own with names from inside: the static library hides them.
CLASH = 'int kiln_mem_alloc(void) { return 0; }\nint je_kiln_mallocx(void) { return 0; }\n'
CPP = '''#include <kiln/kiln.h>
#include <kiln/kiln_op.h>
#include <kiln/kiln_graph.h>
#include <kiln/dlpack.h>
#include <cstdio>
#include <cstring>
static_assert(KILN_VERSION_NUMBER >= 200, "");
int main(int count, char **words) {
  if (kiln_version_number() != KILN_VERSION_NUMBER || std::strcmp(kiln_version(), KILN_VERSION_STRING))
    return 1;
  kiln_context *context = nullptr;
  kiln_model *model = nullptr;
  kiln_status *status = kiln_context_create(nullptr, &context);
  if (!status && count > 1) status = kiln_model_load(context, words[1], nullptr, &model);
  if (status) std::puts(kiln_status_report(status));
  else std::puts(kiln_model_method_name(model, 0));
  kiln_counters counters;
  if (model) kiln_model_counters(model, &counters);
  bool good = !status && counters.calls == 0;
  kiln_status_destroy(status);
  kiln_model_release(model);
  kiln_context_release(context);
  return good ? 0 : 1;
}
'''
CMAKE = '''cmake_minimum_required(VERSION 3.16)
project(host C)
find_package(Kiln 0.2 REQUIRED)
add_executable(host_shared host.c)
target_link_libraries(host_shared Kiln::kiln)
add_executable(host_static host.c)
target_link_libraries(host_static Kiln::kiln_static)
'''


def run(*command, env=None, want=None):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300,
                          env={**os.environ, **(env or {})})
    if done.returncode != 0 or (want is not None and not done.stdout.startswith(want)):
        sys.exit('%s\nexit status %d\n%s%s' % (' '.join(command), done.returncode, done.stdout,
                                             done.stderr))
    return done.stdout


def find(root, name):
    found = [os.path.join(folder, name) for folder, _, files in os.walk(root) if name in files]
    if len(found) != 1:
        sys.exit('%s was installed %d times' % (name, len(found)))
    return found[0]


def flags(pkgconfig, root, *options, name='kiln'):
    env = {'PKG_CONFIG_PATH': os.path.dirname(pkgconfig), 'PKG_CONFIG_SYSROOT_DIR': root}
    return run('pkg-config', *options, name, env=env).split()


def make_program(root, work, libs):
    """What `kiln compile` makes is linked as kiln-aot.pc says, and reads a four."""
    kiln = find(root, 'kiln.h').replace('/include/kiln/kiln.h', '/bin/kiln')
    if subprocess.run([kiln, 'compile', os.path.join(source, 'examples/digits/digits.pt'), '--input', '1x1x8x8xf32',
                       '-o', work], env={**os.environ, **libs}).returncode:
        print('no LLVM: no program ahead of time')
        return
    program = os.path.join(work, 'digits')
    run('cc', os.path.join(source, 'examples/aot/aot.c'), os.path.join(work, 'digits.o'), '-I' + work, '-o', program,
        *flags(find(root, 'kiln-aot.pc'), root, '--cflags', '--libs', name='kiln-aot'))
    with open(os.path.join(source, 'examples/aot/four.txt')) as picture:
        done = subprocess.run([program, program + '.weights'], stdin=picture, capture_output=True, text=True)
    if not done.stdout.startswith('4, '):
        sys.exit('the program says: %s%s' % (done.stdout, done.stderr))


def main():
    root = tempfile.mkdtemp(prefix='kiln-installed-')
    try:
        # Stripped: half a gigabyte of line tables need not be copied.
        run('meson', 'install', '-C', build, '--no-rebuild', '--quiet', '--strip',
            env={'DESTDIR': root})
        check(root)
    finally:
        shutil.rmtree(root)


def check(root):
    work = os.path.join(root, 'work')
    os.mkdir(work)
    pkgconfig, libkiln = find(root, 'kiln.pc'), find(root, 'libkiln.so.' + version)
    libs = {'LD_LIBRARY_PATH': os.path.dirname(libkiln)}
    shared = flags(pkgconfig, root, '--cflags', '--libs')
    static = ['-l:libkiln.a' if word == '-lkiln' else word
              for word in flags(pkgconfig, root, '--static', '--cflags', '--libs')]
    clash, cpp = os.path.join(work, 'clash.c'), os.path.join(work, 'host.cc')
    open(clash, 'w').write(CLASH)
    open(cpp, 'w').write(CPP)
    program = os.path.join(work, 'host')
    for link in (shared, static):
        run('cc', HOST, clash, '-o', program, *link)
        run(program, model, '2', '3', env=libs, want=WANT)
    if shutil.which('g++'):
        for link in (shared, static):
            run('g++', '-std=c++11', '-Wall', '-Wextra', '-Werror', cpp, '-o', program, *link)
            run(program, model, env=libs, want='forward\n')
    else:
        print('no g++: no host in C++')
    if shutil.which('cmake'):
        shutil.copy(HOST, os.path.join(work, 'host.c'))
        open(os.path.join(work, 'CMakeLists.txt'), 'w').write(CMAKE)
        prefix = find(root, 'kiln.h').removesuffix('/include/kiln/kiln.h')
        run('cmake', '-S', work, '-B', work + '/build', '-DCMAKE_PREFIX_PATH=' + prefix)
        run('cmake', '--build', work + '/build')
        for name in ('host_shared', 'host_static'):
            run(work + '/build/' + name, model, '2', '3', env=libs, want=WANT)
    else:
        print('no cmake: no host by find_package')
    make_program(root, work, libs)
    run(find(root, 'kiln.h').replace('/include/kiln/kiln.h', '/bin/kiln'), '--version',
        want='kiln %s\n' % version)
    if shutil.which('man'):
        page = subprocess.run(['man', '--warnings', '-l', find(root, 'kiln.1')],
                              capture_output=True, text=True)
        if page.stderr:
            sys.exit('kiln.1: ' + page.stderr)


main()
