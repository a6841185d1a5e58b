//! Functions of the C library before which positions of open files are given to the kernel: the new
//! process or program, or the code inside of the C library, uses those of the kernel. The arguments stay as
//! they are, also those of variadic functions, and vfork(2) returns twice to its caller: the code jumps
//! to the C library instead of calling it.

use super::calls::{PR_SET_SECCOMP, before_syscall, leave, show_position};
use super::files::{demote_all, forget, get, has_opens};
use super::sys::{self, Fd, define_next};
use super::thread::Thread;
use super::{faults, mounts, process};
use std::ffi::c_long;

/// Defines a function that calls `$before` with the first three arguments, and then jumps to the C library.
macro_rules! jump {
    ($name:ident, $before:path) => {
        const _: () = {
            define_next!($name);

            extern "C" fn prepare(a: usize, b: usize, c: usize) -> usize {
                let errno = sys::errno();
                $before(a, b, c);
                sys::set_errno(errno);
                NEXT.address()
            }

            #[cfg_attr(frit_preload, unsafe(export_name = stringify!($name)))]
            #[unsafe(naked)]
            unsafe extern "C" fn jump() {
                // All registers of arguments are kept, and al, which has the number of those in vector
                // registers. The stack is aligned by 8 at the entry.
                std::arch::naked_asm!(
                    "push rax",
                    "push rdi",
                    "push rsi",
                    "push rdx",
                    "push rcx",
                    "push r8",
                    "push r9",
                    "sub rsp, 128",
                    "movups [rsp], xmm0",
                    "movups [rsp + 16], xmm1",
                    "movups [rsp + 32], xmm2",
                    "movups [rsp + 48], xmm3",
                    "movups [rsp + 64], xmm4",
                    "movups [rsp + 80], xmm5",
                    "movups [rsp + 96], xmm6",
                    "movups [rsp + 112], xmm7",
                    "call {prepare}",
                    "mov r11, rax",
                    "movups xmm0, [rsp]",
                    "movups xmm1, [rsp + 16]",
                    "movups xmm2, [rsp + 32]",
                    "movups xmm3, [rsp + 48]",
                    "movups xmm4, [rsp + 64]",
                    "movups xmm5, [rsp + 80]",
                    "movups xmm6, [rsp + 96]",
                    "movups xmm7, [rsp + 112]",
                    "add rsp, 128",
                    "pop r9",
                    "pop r8",
                    "pop rcx",
                    "pop rdx",
                    "pop rsi",
                    "pop rdi",
                    "pop rax",
                    "jmp r11",
                    prepare = sym prepare,
                )
            }

            // Without the attribute nothing refers to it.
            #[used]
            static KEEP: unsafe extern "C" fn() = jump;
        };
    };
}

/// Before a new process or program.
fn all(_: usize, _: usize, _: usize) {
    demote_all();
}

/// Before sendmsg(2), which can send descriptors to other processes.
fn sent(_: usize, message: usize, _: usize) {
    /// Position of `msg_controllen` in `struct msghdr`.
    const CONTROL_LEN: usize = 40;
    // The kernel refuses a message that cannot be read.
    if has_opens() && sys::read_word(message.wrapping_add(CONTROL_LEN)).is_some_and(|len| len > 0) {
        demote_all();
    }
}

/// Before vfork(2).
fn all_shared(_: usize, _: usize, _: usize) {
    demote_all();
    process::begin_vfork();
}

/// Before setrlimit(2).
fn limits(resource: usize, _: usize, _: usize) {
    if resource as u32 == process::RLIMIT_FSIZE {
        process::limit_size();
        demote_all();
    }
}

/// Before prlimit(2), which reads limits if it gets no new ones.
fn limits_of(_: usize, resource: usize, new: usize) {
    if new != 0 {
        limits(resource, 0, 0);
    }
}

/// Before a function that uses the position of a descriptor, its first argument.
fn first(fd: usize, _: usize, _: usize) {
    if let Some(open) = get(fd as Fd) {
        open.demote(fd as Fd);
    }
}

/// Before a function that writes to a descriptor, its third argument.
fn third(_: usize, _: usize, fd: usize) {
    first(fd, 0, 0);
}

/// Before ioctl(2), which returns the number of bytes behind the position.
fn control(fd: usize, request: usize, _: usize) {
    const FIONREAD: u32 = 0x541B;
    if request as u32 == FIONREAD {
        show_position(fd as Fd);
    }
}

/// Before a function that takes a descriptor over.
fn first_for_good(fd: usize, _: usize, _: usize) {
    first(fd, 0, 0);
    forget(fd as Fd);
}

/// Before syscall(2).
fn system_call(number: usize, a: usize, b: usize) {
    before_syscall(number as c_long, a, b);
}

/// Before pthread_setcanceltype(3).
fn cancel_type(kind: usize, _: usize, _: usize) {
    const ASYNCHRONOUS: u32 = 1;
    Thread::get().set_ends_anywhere(kind as u32 == ASYNCHRONOUS);
}

/// Before ulimit(3), which may set RLIMIT_FSIZE.
fn ulimit_of(command: usize, _: usize, _: usize) {
    const UL_SETFSIZE: u32 = 2;
    if command as u32 == UL_SETFSIZE {
        limits(process::RLIMIT_FSIZE as usize, 0, 0);
    }
}

/// Before functions that save the mask of signals, which the C library sets again without a call that is seen.
fn saves_mask(_: usize, _: usize, _: usize) {
    if mounts::has_mounts() {
        faults::unblock();
    }
}

/// Before functions that set the mask of signals.
fn mask(_: usize, _: usize, _: usize) {
    Thread::get().forget_mask();
}

/// Before functions that save a mask of signals, and set another.
fn swaps_mask(a: usize, b: usize, c: usize) {
    saves_mask(a, b, c);
    mask(a, b, c);
}

/// Before prctl(2), which can forbid system calls of this library.
fn secure(operation: usize, _: usize, _: usize) {
    if operation as u32 == PR_SET_SECCOMP {
        leave();
    }
}

/// Before functions after which other code may close descriptors.
fn off(_: usize, _: usize, _: usize) {
    leave();
}

jump!(vfork, all_shared);
jump!(__vfork, all_shared);
jump!(execve, all);
jump!(execv, all);
jump!(execvp, all);
jump!(execvpe, all);
jump!(execveat, all);
jump!(fexecve, all);
jump!(execl, all);
jump!(execlp, all);
jump!(execle, all);
jump!(posix_spawn, all);
jump!(posix_spawnp, all);
jump!(popen, all);
jump!(system, all);
jump!(sendmsg, sent);
jump!(sendmmsg, all);
jump!(dprintf, first);
jump!(vdprintf, first);
jump!(__dprintf_chk, first);
jump!(__vdprintf_chk, first);
jump!(ioctl, control);
jump!(lockf, first);
jump!(lockf64, first);
jump!(fdopen, first_for_good);
jump!(backtrace_symbols_fd, third);
jump!(pthread_setcanceltype, cancel_type);
jump!(syscall, system_call);
jump!(setrlimit, limits);
jump!(setrlimit64, limits);
jump!(prlimit, limits_of);
jump!(prlimit64, limits_of);
jump!(ulimit, ulimit_of);
jump!(longjmp, mask);
jump!(_longjmp, mask);
jump!(siglongjmp, mask);
jump!(__longjmp_chk, mask);
jump!(setcontext, mask);
jump!(getcontext, saves_mask);
jump!(swapcontext, swaps_mask);
jump!(sigsetmask, mask);
jump!(sigblock, mask);
jump!(sighold, mask);
jump!(prctl, secure);
// A ring can close descriptors.
jump!(io_uring_queue_init, off);
jump!(io_uring_queue_init_params, off);
jump!(io_uring_setup, off);
