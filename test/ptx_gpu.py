"""What ptx.py runs on an NVIDIA GPU, through its driver's API (libcuda) alone.

Each case gets fresh memory on the device, its PTX goes to the driver's assembler, and the launch is one of few
threads or of more than the kernel has iterations."""
import ctypes
import itertools

LAUNCHES = [(3, 5), (64, 128)] # blocks, threads of each
COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76 # CUdevice_attribute


class GpuError(Exception):
    pass


class Gpu:
    """The machine's first GPU; GpuError where there is none."""

    def __init__(self):
        try:
            self.cuda = ctypes.CDLL('libcuda.so.1')
        except OSError as error:
            raise GpuError(str(error))
        self.call('cuInit', 0)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call('cuDeviceGet', ctypes.byref(device), 0)
        name = ctypes.create_string_buffer(256)
        self.call('cuDeviceGetName', name, 256, device)
        self.name, version = name.value.decode(), []
        for attribute in COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR:
            value = ctypes.c_int()
            self.call('cuDeviceGetAttribute', ctypes.byref(value), attribute, device)
            version.append(value.value)
        self.version = 'sm_%d%d' % tuple(version)
        self.call('cuDevicePrimaryCtxRetain', ctypes.byref(self.context), device)
        self.call('cuCtxSetCurrent', self.context)

    def call(self, name, *args):
        status = getattr(self.cuda, name)(*args)
        if status:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(status, ctypes.byref(text))
            raise GpuError('%s: %s' % (name, (text.value or b'?').decode()))

    def upload(self, data):
        address = ctypes.c_uint64()
        self.call('cuMemAlloc_v2', ctypes.byref(address), ctypes.c_size_t(len(data) + 64))
        if data:
            self.call('cuMemcpyHtoD_v2', address, data, ctypes.c_size_t(len(data)))
        return address

    def download(self, address, count):
        data = ctypes.create_string_buffer(count)
        if count:
            self.call('cuMemcpyDtoH_v2', data, address, ctypes.c_size_t(count))
        return data.raw

    def run(self, case, entry, parameters, blocks, threads):
        """The bytes of the case's tensors after a launch, and the fault word (None: it has none)."""
        module, function, held = ctypes.c_void_p(), ctypes.c_void_p(), []
        self.call('cuModuleLoadData', ctypes.byref(module), case.ptx.encode())
        try:
            self.call('cuModuleGetFunction', ctypes.byref(function), module, entry.encode())
            for kind, _, data in case.tensors:
                held.append(self.upload(data if kind == 'in' else b'\xa5' * len(data)))
            words = held + [ctypes.c_uint64(number) for number in case.numbers]
            if len(words) + (case.fault is not None) < parameters:
                held.append(self.upload(b'\xa5' * case.scratch * blocks * threads))
                words = words + held[-1:]
            if case.fault is not None:
                held.append(self.upload(bytes(4)))
                words = words + held[-1:]
            if len(words) != parameters:
                raise GpuError('%d parameters, not %d' % (parameters, len(words)))
            args = (ctypes.c_void_p * len(words))(*[ctypes.addressof(word) for word in words])
            self.call('cuLaunchKernel', function, blocks, 1, 1, threads, 1, 1, 0, None, args, None)
            self.call('cuCtxSynchronize')
            tensors = [self.download(address, len(data)) for address, (_, _, data) in zip(held, case.tensors)]
            fault = self.download(words[-1], 4) if case.fault is not None else None
            return tensors, fault and int.from_bytes(fault, 'little')
        finally:
            for address in held:
                self.cuda.cuMemFree_v2(address)
            self.cuda.cuModuleUnload(module)


def check_cases(gpu, cases, same, entry_of):
    """(name, what is wrong or None) of each case; entry_of gives of its PTX the entry's name and how many parameters
    that has."""
    for case, (blocks, threads) in itertools.product(cases, LAUNCHES):
        name = '%s, %d x %d threads of %s' % (case.name, blocks, threads, gpu.name)
        try:
            tensors, fault = gpu.run(case, *entry_of(case.ptx), blocks, threads)
        except GpuError as error:
            yield name, str(error)
            continue
        wrong = ['b%d differs' % i for i, (kind, dtype, data) in enumerate(case.tensors)
                 if kind == 'out' and not same(dtype, tensors[i], data)]
        if fault != case.fault:
            wrong.append('the fault word is %s' % fault)
        yield name, ', '.join(wrong) or None
