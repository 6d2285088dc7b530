"""host.py LIBRARY CASE: loads libkiln.so by ctypes, in the main thread and in another, and calls
the model of CASE (a folder of test/data) three times: profiled, compiled, compiled."""
import ctypes
import os
import sys
import threading

LIBRARY, CASE = sys.argv[1:3]
TENSOR = 1  # KILN_KIND_TENSOR
FUNCTIONS = '''version status_report status_destroy context_create context_release model_load
    model_release instance_create instance_release instance_call value_read value_count value_item
    value_kind value_rank value_sizes value_copy_data value_destroy'''.split()


class Kiln:
    def __init__(self):
        self.library = ctypes.CDLL(LIBRARY)
        for name in FUNCTIONS:
            getattr(self.library, 'kiln_' + name).restype = ctypes.c_void_p
        for name in ('version', 'status_report'):
            getattr(self.library, 'kiln_' + name).restype = ctypes.c_char_p
        for name in ('value_count', 'value_kind', 'value_rank'):
            getattr(self.library, 'kiln_' + name).restype = ctypes.c_int
        self.library.kiln_value_sizes.restype = ctypes.POINTER(ctypes.c_int64)

    def make(self, name, *arguments):
        """Calls a function that fills its last parameter and returns a status."""
        out = ctypes.c_void_p()
        status = getattr(self.library, 'kiln_' + name)(*arguments, ctypes.byref(out))
        assert not status, self.library.kiln_status_report(ctypes.c_void_p(status)).decode()
        return out

    def drop(self, name, value):
        getattr(self.library, 'kiln_' + name)(value)

    def items(self, value):
        return [self.make('value_item', value, i) for i in range(self.library.kiln_value_count(value))]

    def floats(self, value):
        """Every float of tensors of f32, in tuples and lists."""
        if self.library.kiln_value_kind(value) != TENSOR:
            found = []
            for item in self.items(value):
                found += self.floats(item)
                self.drop('value_destroy', item)
            return found
        sizes = self.library.kiln_value_sizes(value)
        count = 1
        for i in range(self.library.kiln_value_rank(value)):
            count *= sizes[i]
        data = (ctypes.c_float * count)()
        status = self.library.kiln_value_copy_data(value, data, ctypes.c_size_t(ctypes.sizeof(data)))
        assert not status
        return list(data)

    def use(self):
        assert self.library.kiln_version().count(b'.') == 2
        context = self.make('context_create', None)
        self.call_model(context)
        self.drop('context_release', context)

    def call_model(self, context):
        def path(name):
            return ctypes.c_char_p(os.path.join(CASE, name).encode())
        model = self.make('model_load', context, path('model.pt'), None)
        instance = self.make('instance_create', model)
        inputs = self.make('value_read', context, path('inputs_0.pt'))
        expected = self.make('value_read', context, path('expected_0.pt'))
        items = self.items(inputs)
        arguments = (ctypes.c_void_p * len(items))(*[i.value for i in items])
        want = self.floats(expected)
        for _ in range(3):
            result = self.make('instance_call', instance, ctypes.c_char_p(b'forward'), arguments,
                               ctypes.c_int(len(items)), None)
            got = self.floats(result)
            assert want and len(got) == len(want)
            assert all(abs(g - w) <= 1e-4 + 1e-4 * abs(w) for g, w in zip(got, want))
            self.drop('value_destroy', result)
        for value in items + [inputs, expected]:
            self.drop('value_destroy', value)
        self.drop('instance_release', instance)
        self.drop('model_release', model)


problems = []


def run():
    try:
        Kiln().use()
    except BaseException as problem:  # a thread's exception would be lost
        problems.append(problem)


run()
thread = threading.Thread(target=run)
thread.start()
thread.join()
for problem in problems:
    print('host.py:', repr(problem))
sys.exit(1 if problems else 0)
