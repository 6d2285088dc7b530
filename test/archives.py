"""archives.py: archives of TorchScript made of text, for the tests that have no PyTorch."""
import io
import struct
import zipfile


def text_op(text):
    data = text.encode()
    return b'X' + struct.pack('<I', len(data)) + data


def int_op(i):
    return b'J' + struct.pack('<i', i)


def tensor_op(key, numel, offset=0, sizes=(1,)):
    strides = b''.join(int_op(1) for _ in sizes)
    return (b'ctorch._utils\n_rebuild_tensor_v2\n((' + text_op('storage') + b'ctorch\nFloatStorage\n' + text_op(key) +
            text_op('cpu') + int_op(numel) + b'tQ' + int_op(offset) + b'(' + b''.join(int_op(s) for s in sizes) +
            b't(' + strides + b't\x89ccollections\nOrderedDict\n)RtR')


def object_op(cls, attributes):
    """attributes: pairs of a name and a pickled value."""
    return (b'c' + cls.rpartition('.')[0].encode() + b'\n' + cls.rpartition('.')[2].encode() + b'\n)\x81}(' +
            b''.join(text_op(name) + value for name, value in attributes) + b'ub')


def archive(source, root, records=(), constants=b'(t', extra=()):
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', zipfile.ZIP_STORED) as z:
        def add(name, data):
            z.writestr(zipfile.ZipInfo('a/' + name, (1980, 1, 1, 0, 0, 0)), data)
        add('data.pkl', b'\x80\x02' + root + b'.')
        add('code/__torch__.py', source)
        for key, data in records:
            add('data/%s' % key, data)
        add('constants.pkl', b'\x80\x02' + constants + b'.')
        add('version', '3\n')
        for name, data in extra:
            add(name, data)
    return out.getvalue()


HEAD = 'class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n'
TRAINING = [('training', b'\x89')]


def forward(lines, result='x', returns='Tensor', attributes='', before=''):
    return (before + HEAD + attributes + '  def forward(self: __torch__.M,\n    x: Tensor) -> %s:\n' % returns +
            ''.join('    %s\n' % line for line in lines) + '    return %s\n' % result)


def program(lines, **more):
    return archive(forward(lines, **more), object_op('__torch__.M', TRAINING))
