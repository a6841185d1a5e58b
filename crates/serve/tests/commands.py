# Test of every command and error with libnbd. nbdsh runs it with the connected handle `h`, see clients.rs.
import errno
import nbd

h.set_strict_mode(0)  # invalid requests must reach the server instead of being refused by libnbd


def fails(number, f, *args):
    try:
        f(*args)
    except nbd.Error as e:
        assert e.errnum == number, (f, args, e.string, e.errnum)
        return e.string
    raise AssertionError((f, args, "succeeded"))


size = h.get_size()
assert h.can_multi_conn() and h.can_fua() and h.can_flush() and h.can_trim() and h.can_zero()
assert h.can_fast_zero() and h.can_cache() and h.can_df() and not h.is_read_only() and not h.is_rotational()
assert h.get_block_size(nbd.SIZE_MINIMUM) == 1
assert h.get_block_size(nbd.SIZE_PREFERRED) == 4096
assert h.get_block_size(nbd.SIZE_MAXIMUM) == 32 << 20

# Reads and writes at any address.
for flags in (0, nbd.CMD_FLAG_FUA):
    for at, n in ((0, 512), (1, 1), (4095, 2), (12345, 70000), (size - 1, 1)):
        data = bytes((at + i) % 251 for i in range(n))
        h.pwrite(data, at, flags)
        assert h.pread(n, at) == data
        assert h.pread(n, at, nbd.CMD_FLAG_DF) == data

# Zeros and trims.
h.pwrite(b"x" * 16384, 65536)
h.zero(4096, 65536)
h.zero(4096, 69632, nbd.CMD_FLAG_NO_HOLE)
h.zero(100, 73730, nbd.CMD_FLAG_FAST_ZERO)
h.trim(4096, 77824, nbd.CMD_FLAG_FUA)
assert h.pread(8192, 65536) == b"\0" * 8192
assert h.pread(4096, 73728) == b"xx" + b"\0" * 100 + b"x" * (4096 - 102)
assert h.pread(4096, 77824) == b"\0" * 4096
fails(errno.ENOTSUP, h.zero, 4096, 0, nbd.CMD_FLAG_FAST_ZERO | nbd.CMD_FLAG_NO_HOLE)
h.cache(65536, 0)
h.flush()

# Ranges that start at the end, cross it, or overflow.
h.set_pread_initialize(False)
for at, n in ((size, 1), (size - 1, 2), (1 << 62, 512), ((1 << 63) - 512, 512)):
    fails(errno.EINVAL, h.pread, n, at)
    fails(errno.EINVAL, h.trim, n, at)
    fails(errno.EINVAL, h.cache, n, at)
    fails(errno.ENOSPC, h.zero, n, at)
    fails(errno.ENOSPC, h.pwrite, b"x" * n, at)
fails(errno.ENOSPC, h.zero, 0xFFFFFFFF, 0)
fails(errno.EINVAL, h.trim, 0xFFFFFFFF, 0)

# Lengths of zero, and lengths above the maximum.
for f in (h.trim, h.zero, h.cache):
    fails(errno.EINVAL, f, 0, 0)
fails(errno.EINVAL, h.pwrite, b"", 0)
fails(errno.EINVAL, h.pread, (32 << 20) + 1, 0)
fails(errno.EOVERFLOW, h.pread, (32 << 20) + 1, 0, nbd.CMD_FLAG_DF)
fails(errno.EINVAL, h.pwrite, bytes((32 << 20) + 1), 0)
data = bytes(32 << 20)
h.pwrite(data, 0)
assert h.pread(32 << 20, 0) == data

# Flags that are invalid for the command, or unknown.
fails(errno.EINVAL, h.pread, 512, 0, nbd.CMD_FLAG_NO_HOLE)
fails(errno.EINVAL, h.pwrite, b"x" * 512, 0, nbd.CMD_FLAG_DF)
fails(errno.EINVAL, h.trim, 512, 0, nbd.CMD_FLAG_REQ_ONE)
fails(errno.EINVAL, h.zero, 512, 0, nbd.CMD_FLAG_REQ_ONE)
fails(errno.EINVAL, h.cache, 512, 0, 1 << 9)
fails(errno.EINVAL, h.flush, nbd.CMD_FLAG_NO_HOLE)

# Block status: no context is selected on this connection, and both on another one.
fails(errno.EINVAL, h.block_status, 4096, 0, lambda *a: 0)
other = nbd.NBD()
other.set_strict_mode(0)
other.add_meta_context("base:allocation")
other.add_meta_context("frit:medium")
other.add_meta_context("qemu:dirty-bitmap:none")
other.connect_uri(h.get_uri())
assert other.can_meta_context("base:allocation") and other.can_meta_context("frit:medium")
assert not other.can_meta_context("qemu:dirty-bitmap:none")
h.trim(1 << 20, 0)
h.pwrite(b"x" * 65536, 65536)
seen = {}
other.block_status(1 << 20, 0, lambda name, at, entries, err: seen.__setitem__(name, list(entries)))
assert seen["base:allocation"] == [65536, 3, 65536, 0, (1 << 20) - 131072, 3], seen
assert seen["frit:medium"][1::2] in ([0, 1, 0], [0, 2, 0]), seen
other.block_status(1 << 20, 70000, lambda name, at, entries, err: seen.__setitem__(name, list(entries)), nbd.CMD_FLAG_REQ_ONE)
assert seen["base:allocation"] == [131072 - 70000, 0], seen
fails(errno.EINVAL, other.block_status, 4096, size, lambda *a: 0)

# One connection writes, another one flushes, and a third one reads.
h.pwrite(b"y" * 4096, 0)
other.flush()
third = nbd.NBD()
third.set_export_name("scratch")
third.connect_uri(h.get_uri())
assert third.pread(4096, 0) == b"y" * 4096

# Names of exports.
wrong = nbd.NBD()
uri = h.get_uri().replace("///", "///nobody")
try:
    wrong.connect_uri(uri)
    raise AssertionError("an unknown export was accepted")
except nbd.Error as e:
    assert e.errnum in (errno.ENOENT, errno.EINVAL), e.errnum
for c in (other, third):
    c.shutdown()
print("all commands and errors as expected")
