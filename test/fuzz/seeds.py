"""seeds.py TARGET OUT FOLDER...: writes a fuzz target's first inputs, from the models (*.pt), IR texts
and arrays below the folders, each at most 64 KB. For the targets that run what they load, the words
that say the inputs (test/fuzz/archive.c) come from the recorded inputs or samples of a case."""
import hashlib
import io
import os
import pickle
import re
import sys
import warnings
import zipfile

LIMIT = 64 << 10
DTYPES = {'FloatStorage': 'f32', 'DoubleStorage': 'f64', 'LongStorage': 'i64', 'IntStorage': 'i32',
          'BoolStorage': 'b', 'ByteStorage': 'u8', 'CharStorage': 'i8', 'ShortStorage': 'i16',
          'HalfStorage': 'f16', 'BFloat16Storage': 'bf16', 'ComplexFloatStorage': 'c64',
          'ComplexDoubleStorage': 'c128'}


class Shape:
    def __init__(self, storage, offset, sizes, *rest):
        self.word = '%s:%s' % (DTYPES.get(storage, 'f32'), 'x'.join(map(str, sizes)))


class Other:
    def __init__(self, *args, **kwargs):
        pass

    def __setstate__(self, state):
        pass


class Reader(pickle.Unpickler):
    """Reads torch.save data without torch: tensors become their shapes."""

    def find_class(self, module, name):
        if name == '_rebuild_tensor_v2':
            return Shape
        if name == 'OrderedDict':
            return dict
        return name if name.endswith('Storage') else Other

    def persistent_load(self, saved):
        return saved[1]


def words_of(value):
    if isinstance(value, Shape):
        return [value.word]
    if isinstance(value, (list, tuple)):
        return [w for v in value for w in words_of(v)]
    if isinstance(value, dict):
        return [w for v in value.values() for w in words_of(v)]
    if isinstance(value, bool):
        return [str(value)]
    if isinstance(value, (int, float)):
        return [str(value)]
    if isinstance(value, str) and value and not re.search(r'\s', value):
        return [value]
    return []


def read_saved(path):
    try:
        with zipfile.ZipFile(path) as archive:
            name = next(n for n in archive.namelist() if n.endswith('data.pkl'))
            return Reader(io.BytesIO(archive.read(name))).load()
    except Exception:
        return ()


def words_for(path):
    folder = os.path.dirname(path)
    for name in ('inputs_0.pt', 'forward_in.pt'):
        if os.path.exists(os.path.join(folder, name)):
            return words_of(read_saved(os.path.join(folder, name)))
    samples = os.path.join(folder, 'samples.pt')
    if os.path.exists(samples):
        saved = read_saved(samples)
        if saved and isinstance(saved[0], (list, tuple)):
            return words_of(saved[0][1])
    return []


def members(path):
    try:
        with zipfile.ZipFile(path) as archive:
            return [(n, archive.read(n)) for n in archive.namelist()]
    except Exception:
        return []


def with_inputs(path, words):
    """The archive with extra/inputs, small enough: sources and pickles first."""
    out = io.BytesIO()
    entries = members(path)
    if not entries:
        return None
    prefix = entries[0][0].split('/')[0]
    with zipfile.ZipFile(out, 'w') as archive:
        for name, data in entries:
            if not name.endswith('.debug_pkl') and '/traced_inputs' not in name:
                archive.writestr(zipfile.ZipInfo(name), data)
        archive.writestr(zipfile.ZipInfo(prefix + '/extra/inputs'), ' '.join(words))
    return out.getvalue()


def program(text, words):
    """One class with methods, as class M of file __torch__."""
    found = re.findall(r'^class (\w+)\(Module\)', text, re.M)
    if len(found) != 1 or 'CONSTANTS' in text:
        return None
    text = re.sub(r'__torch__[\w.]*\.%s\b' % found[0], '__torch__.M', text)
    text = re.sub(r'^class %s\b' % found[0], 'class M', text, flags=re.M)
    text = re.sub(r'^  (_is_full_backward_hook|__\w+__) ?[:=].*\n', '', text, flags=re.M)
    return ('#%s\n%s' % (' '.join(words), text)).encode()


def seeds(target, path):
    if target == 'graph':
        if path.endswith(('.txt', '.ir')):
            with open(path, 'rb') as f:
                yield f.read()
    elif path.endswith('.npy') and target == 'values':
        with open(path, 'rb') as f:
            yield f.read()
    elif path.endswith('.pt'):
        is_model = any(n.endswith(('.py', 'constants.pkl')) for n, _ in members(path))
        if target == 'zip' or (target == 'values' and not is_model):
            with open(path, 'rb') as f:
                yield f.read()
        elif target == 'archive':
            if is_model:
                yield with_inputs(path, words_for(path))
        elif target == 'pickle':
            yield from (d for n, d in members(path) if n.endswith('data.pkl'))
        elif target == 'source':
            yield from (d for n, d in members(path) if n.endswith('.py'))
        elif target == 'program':
            code = [d for n, d in members(path) if n.endswith('.py')]
            if len(code) == 1:
                yield program(code[0].decode('utf-8', 'replace'), words_for(path))


def main():
    warnings.simplefilter('ignore')  # names that stand twice in an archive
    target, out, folders = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.makedirs(out, exist_ok=True)
    for folder in folders:
        for parent, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                path = os.path.join(parent, name)
                if os.path.getsize(path) > 8 * LIMIT:
                    continue
                for data in seeds(target, path):
                    if data and len(data) <= LIMIT:
                        with open(os.path.join(out, hashlib.sha1(data).hexdigest()), 'wb') as f:
                            f.write(data)


main()
