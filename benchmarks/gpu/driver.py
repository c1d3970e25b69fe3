"""NVIDIA's driver through ctypes: as much of it as checks need, of libcuda.so.1 or of what stands in for it.

python3 driver.py watch LIBRARY ORDINAL     until its input ends, then prints the least memory that was free, and all
python3 driver.py copy LIBRARY ORDINAL      bytes/s of copies within the device's memory
python3 driver.py facts LIBRARY ORDINAL     what the driver says of itself and of the device, as JSON
"""
import ctypes
import json
import sys
import threading
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_ulonglong, c_void_p

NAME_BYTES = 128
MULTIPROCESSORS, CLOCK, MEMORY_CLOCK, BUS_WIDTH = 16, 13, 36, 37
MAJOR, MINOR = 75, 76


class DriverError(Exception):
    """A call that failed, by its name and the name of its error."""


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [(name, c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")]
    _fields_ += [("stream", c_void_p), ("attributes", c_void_p), ("count", c_uint)]


class Driver:
    """A driver with the context of one of its devices; nothing is given back before the process ends."""

    def __init__(self, library, ordinal=0):
        try:
            self.library = ctypes.CDLL(library)
        except OSError as error:
            raise DriverError(f"the driver cannot be loaded: {error}") from error
        self.call("cuInit", 0)
        count, version = c_int(), c_int()
        self.call("cuDriverGetVersion", byref(version))
        self.call("cuDeviceGetCount", byref(count))
        if ordinal >= count.value:
            raise DriverError(f"the driver has {count.value} devices, and no device {ordinal}")
        self.version, self.count, self.device = version.value, count.value, c_int()
        self.call("cuDeviceGet", byref(self.device), ordinal)

    def call(self, name, *arguments):
        function = getattr(self.library, name, None)
        if function is None:
            raise DriverError(f"the driver has no {name}")
        if result := function(*arguments):
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(result, byref(text))
            raise DriverError(f"{name} failed with {(text.value or b'an unknown error').decode()} ({result})")

    def name(self):
        text = ctypes.create_string_buffer(NAME_BYTES)
        self.call("cuDeviceGetName", text, NAME_BYTES, self.device)
        return text.value.decode(errors="replace")

    def attribute(self, number):
        value = c_int()
        self.call("cuDeviceGetAttribute", byref(value), number, self.device)
        return value.value

    def capability(self):
        return self.attribute(MAJOR) * 10 + self.attribute(MINOR)

    def open(self):
        """Makes the context and a stream."""
        context, self.stream = c_void_p(), c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(context), self.device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuStreamCreate", byref(self.stream), 1)
        return self

    def memory(self):
        """Bytes that are free, and all."""
        free, total = c_size_t(), c_size_t()
        self.call("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value, total.value

    def allocate(self, size):
        address = c_ulonglong()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(size))
        return address

    def upload(self, data):
        data = bytes(data)
        address = self.allocate(len(data))
        self.call("cuMemcpyHtoDAsync_v2", address, data, c_size_t(len(data)), self.stream)
        self.finish()
        return address

    def download(self, address, size):
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoHAsync_v2", data, address, c_size_t(size), self.stream)
        self.finish()
        return data.raw

    def kernel(self, ptx, name):
        library, kernel = c_void_p(), c_void_p()
        self.call("cuLibraryLoadData", byref(library), ptx.encode(), None, None, 0, None, None, 0)
        self.call("cuLibraryGetKernel", byref(kernel), library, name.encode())
        return kernel

    def launch(self, kernel, ctas, threads, *arguments):
        config = LaunchConfig(ctas, 1, 1, threads, 1, 1, 0, self.stream, None, 0)
        pointers = (c_void_p * len(arguments))(*(ctypes.addressof(each) for each in arguments))
        self.call("cuLaunchKernelEx", byref(config), kernel, pointers, None)
        self.finish()

    def finish(self):
        self.call("cuStreamSynchronize", self.stream)


def facts(driver):
    print(json.dumps({
        "version": driver.version, "count": driver.count, "name": driver.name(), "capability": driver.capability(),
        "multiprocessors": driver.attribute(MULTIPROCESSORS), "clock_khz": driver.attribute(CLOCK),
        "memory_clock_khz": driver.attribute(MEMORY_CLOCK), "memory_bits": driver.attribute(BUS_WIDTH)}))


def watch(driver):
    least, total = driver.open().memory()
    print("ready", least, flush=True)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.wait(0.005):
        least = min(least, driver.memory()[0])
    print(least, total)


def copy(driver, size=1 << 30, repeats=20):
    driver.open()
    source, target = driver.allocate(size), driver.allocate(size)
    begin, end, elapsed = c_void_p(), c_void_p(), c_float()
    for event in (begin, end):
        driver.call("cuEventCreate", byref(event), 0)
    driver.call("cuMemsetD8Async", source, 1, c_size_t(size), driver.stream)
    for event, count in ((begin, 2), (end, repeats)):  # those before the first event warm up
        for _ in range(count):
            driver.call("cuMemcpyDtoDAsync_v2", target, source, c_size_t(size), driver.stream)
        driver.call("cuEventRecord", event, driver.stream)
    driver.finish()
    driver.call("cuEventElapsedTime", byref(elapsed), begin, end)
    print(2 * size * repeats / (elapsed.value * 1e-3))  # each byte is read and written


if __name__ == "__main__":
    try:
        {"watch": watch, "copy": copy, "facts": facts}[sys.argv[1]](Driver(sys.argv[2], int(sys.argv[3])))
    except DriverError as failure:
        sys.exit(f"driver.py: {failure}")
