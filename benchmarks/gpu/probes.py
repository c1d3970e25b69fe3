"""Single instructions, of which device and interpreter must give the same bits.

python3 probes.py NAME LIBRARY ORDINAL FILE     runs one on a driver and writes its results, 32 bits each

An element-wise probe reads three words a thread and writes one; a product of matrices reads fragments as they lie in
registers, so that which element is where does not matter: both sides get the same words.
"""
import random
import struct
import sys
from array import array

from driver import Driver, DriverError

ITEMS = 1 << 14
THREADS = 128
SPECIAL = [0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x80800001, 0x3F800000, 0xBF800001,
           0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x4B000000, 0x33800000, 0x00FFFFFF]

# name: operands, how far from the correctly rounded value the ISA allows a device to be, in units of the last place.
ELEMENTWISE = {
    "add.rn.ftz.f32": (2, 0),
    "sub.rn.ftz.f32": (2, 0),
    "mul.rn.ftz.f32": (2, 0),
    "fma.rn.ftz.f32": (3, 0),
    "div.rn.ftz.f32": (2, 0),
    "sqrt.rn.ftz.f32": (1, 0),
    "min.ftz.f32": (2, 0),
    "max.ftz.f32": (2, 0),
    "rcp.approx.ftz.f32": (1, 1),
    "rsqrt.approx.ftz.f32": (1, 4),
    "ex2.approx.ftz.f32": (1, 2),
    "cvt.rni.ftz.f32.f32": (1, 0),
    "cvt.rzi.ftz.s32.f32": (1, 0),
    "cvt.rn.f32.s32": (1, 0),
    "cvt.rn.bf16x2.f32": (2, 0),
}
# name: least capability and whether it must be that, words a thread and of all, results a thread.
PRODUCTS = {
    "mma.sync.m16n8k16.bf16": (80, False, 10, 0, 4),
    "wgmma.m64n8k16.bf16": (90, True, 8, 128, 4),
    "wgmma.m64n8k32.e4m3": (90, True, 8, 128, 4),
}
PROBES = [*ELEMENTWISE, *PRODUCTS]


def runs_on(name, capability):
    least, is_exact = PRODUCTS[name][:2] if name in PRODUCTS else (80, False)
    return capability == least if is_exact else capability >= least


def tolerance(name):
    return ELEMENTWISE[name][1] if name in ELEMENTWISE else 0


def _entry(target, parameters, body):
    lines = "".join(f"  {line}\n" for line in body)
    return (f".version {'8.0' if target == 'sm_90a' else '7.0'}\n.target {target}\n.address_size 64\n"
            f".visible .entry probe({', '.join(f'.param .u64 {name}' for name in parameters)})\n{{\n{lines}}}\n")


INDEX = [".reg .b32 %t<4>;", ".reg .b64 %p<8>;", "mov.u32 %t0, %ctaid.x;", "mov.u32 %t1, %ntid.x;",
         "mov.u32 %t2, %tid.x;", "mad.lo.u32 %t3, %t0, %t1, %t2;", "ld.param.u64 %p0, [in];",
         "ld.param.u64 %p1, [out];", "cvta.to.global.u64 %p0, %p0;", "cvta.to.global.u64 %p1, %p1;"]


def _at(register, base, words):
    """The address of a thread's words."""
    return [f"mul.wide.u32 {register}, %t3, {4 * words};", f"add.u64 {register}, {register}, {base};"]


def elementwise_ptx(name):
    count = ELEMENTWISE[name][0]
    operands = ", ".join(f"%a{i}" for i in range(count))
    body = INDEX + [".reg .b32 %a<4>;"] + _at("%p2", "%p0", 3) + _at("%p3", "%p1", 1)
    body += [f"ld.global.b32 %a{i}, [%p2+{4 * i}];" for i in range(3)]
    return _entry("sm_80", ("in", "out"), body + [f"{name} %a3, {operands};", "st.global.b32 [%p3], %a3;", "ret;"])


def _registers(prefix, first, count):
    return "{" + ", ".join(f"%{prefix}{i}" for i in range(first, first + count)) + "}"


def product_ptx(name):
    words = PRODUCTS[name][2]
    body = INDEX + [".reg .b32 %a<12>;", ".reg .f32 %d<4>;"] + _at("%p2", "%p0", words) + _at("%p3", "%p1", 4)
    body += [f"ld.global.b32 %a{i}, [%p2+{4 * i}];" for i in range(words)]
    body += [f"mov.b32 %d{i}, %a{words - 4 + i};" for i in range(4)]
    if name.startswith("mma"):
        body += [f"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {_registers('d', 0, 4)}, "
                 f"{_registers('a', 0, 4)}, {_registers('a', 4, 2)}, {_registers('d', 0, 4)};"]
    else:
        body += _wgmma("m64n8k16.f32.bf16.bf16" if name.endswith("bf16") else "m64n8k32.f32.e4m3.e4m3",
                       ", 1, 1, 0" if name.endswith("bf16") else ", 1, 1")
    body += [f"st.global.f32 [%p3+{4 * i}], %d{i};" for i in range(4)]
    return _entry("sm_80" if name.startswith("mma") else "sm_90a", ("in", "out", "shared"), body + ["ret;"])


def _wgmma(shape, tail):
    """B is the first 256 bytes of shared memory, two matrices of 8 rows of 16 bytes one behind the other, not swizzled:
    128 bytes to the other matrix of a row, and any number to the next 8 rows, as there are none."""
    return [".shared .align 128 .b8 tile[512];", ".reg .b64 %s<4>;", ".reg .b32 %w<4>;",
            "ld.param.u64 %s0, [shared];", "cvta.to.global.u64 %s0, %s0;", "mov.u32 %w0, tile;",
            "mul.wide.u32 %s1, %t2, 4;", "add.u64 %s0, %s0, %s1;", "shl.b32 %w1, %t2, 2;", "add.u32 %w1, %w1, %w0;",
            "ld.global.b32 %w2, [%s0];", "st.shared.b32 [%w1], %w2;", "fence.proxy.async;", "bar.sync 0;",
            "shr.u32 %w0, %w0, 4;",
            "and.b32 %w0, %w0, 16383;", "cvt.u64.u32 %s2, %w0;", f"or.b64 %s2, %s2, {(8 << 16) | (16 << 32)};",
            "wgmma.fence.sync.aligned;",
            f"wgmma.mma_async.sync.aligned.{shape} {_registers('d', 0, 4)}, {_registers('a', 0, 4)}, %s2, 1{tail};",
            "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]


def words_of(name):
    """Inputs from a seed: special numbers, any bits, and numbers whose products end about the least normal one."""
    draw = random.Random(name)

    def word():
        kind = draw.randrange(4)
        if kind == 0:
            return draw.choice(SPECIAL)
        if kind == 1:
            return draw.getrandbits(32)
        exponent = draw.randrange(60, 70) if kind == 2 else draw.randrange(117, 137)
        return draw.getrandbits(1) << 31 | exponent << 23 | draw.getrandbits(23)

    return array("I", (word() for _ in range(3 * ITEMS)))


def fragments_of(name, threads):
    """Operands of moderate size, two to a word (e4m3: four), and sums of f32; B of a warpgroup apart."""
    _, _, words, shared, _ = PRODUCTS[name]
    draw = random.Random(name)
    small = (lambda: draw.randrange(0x30, 0x48) | draw.getrandbits(1) << 7) if name.endswith("e4m3") else None

    def operand():
        if small:
            return int.from_bytes(bytes(small() for _ in range(4)), "little")
        halves = [draw.getrandbits(1) << 15 | draw.randrange(120, 134) << 7 | draw.getrandbits(7) for _ in range(2)]
        return halves[0] | halves[1] << 16

    def accumulator():
        return struct.unpack("<I", struct.pack("<f", draw.uniform(-8, 8)))[0]

    each = [[operand() for _ in range(words - 4)] + [accumulator() for _ in range(4)] for _ in range(threads)]
    return array("I", sum(each, [])), array("I", (operand() for _ in range(max(shared, 1))))


def results(name, driver):
    if name in ELEMENTWISE:
        source, target = driver.upload(words_of(name)), driver.upload(bytes(4 * ITEMS))
        driver.launch(driver.kernel(elementwise_ptx(name), "probe"), ITEMS // THREADS, THREADS, source, target)
        return driver.download(target, 4 * ITEMS)
    fragments, shared = fragments_of(name, THREADS)
    size = 4 * THREADS * PRODUCTS[name][4]
    source, target, tile = driver.upload(fragments), driver.upload(bytes(size)), driver.upload(shared)
    driver.launch(driver.kernel(product_ptx(name), "probe"), 1, THREADS, source, target, tile)
    return driver.download(target, size)


def _is_nan(word):
    return word & 0x7F800000 == 0x7F800000 and word & 0x7FFFFF != 0


def _ordered(word):
    return -(word & 0x7FFFFFFF) if word >> 31 else word


def differences(name, got, want):
    """How many words differ by more than is allowed, and the first: its index and both words. NaN is NaN."""
    got, want = array("I", got), array("I", want)
    is_float = not name.startswith("cvt.rzi") and "bf16x2" not in name
    differ = [i for i, (a, b) in enumerate(zip(got, want))
              if a != b and not (is_float and (_is_nan(a) and _is_nan(b) or not (_is_nan(a) or _is_nan(b))
                                              and abs(_ordered(a) - _ordered(b)) <= tolerance(name)))]
    return len(got), len(differ), (differ[0], got[differ[0]], want[differ[0]]) if differ else None


if __name__ == "__main__":
    probe, library, ordinal, path = sys.argv[1:]
    try:
        data = results(probe, Driver(library, int(ordinal)).open())
    except DriverError as failure:
        sys.exit(f"probes.py: {failure}")
    with open(path, "wb") as file:
        file.write(data)
