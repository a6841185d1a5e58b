//! Positions of open files under a scheduler that explores interleavings, against a model of the kernel: no byte is
//! read twice or skipped, and no call of the library reaches a descriptor that was closed.
//!
//! This program is apart, because it compiles the source of positions with atomic variables of the scheduler.

#![allow(clippy::unwrap_used)]

#[path = "../src/preload/position.rs"]
#[allow(dead_code, unreachable_pub)]
#[allow(clippy::default_constructed_unit_structs, reason = "the struct of the library has fields")]
mod position;

/// The process and the kernel of one execution.
mod host {
    use super::position::Position;
    use shuttle::sync::Mutex;
    pub(crate) use shuttle::sync::atomic::{AtomicI64, AtomicU64, Ordering};
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    pub(crate) type Fd = usize;

    /// Number of descriptors.
    const FDS: usize = 2;

    /// An open file of the kernel: its position, and those at which a byte was read.
    #[derive(Default)]
    pub(crate) struct File {
        at: Mutex<u64>,
        reads: std::sync::Mutex<Vec<u64>>,
    }

    impl File {
        /// read(2) of one byte at the position of the kernel.
        pub(crate) fn read(&self) {
            let mut at = self.at.lock().unwrap();
            self.note(*at);
            shuttle::thread::yield_now();
            *at += 1;
        }

        pub(crate) fn note(&self, at: u64) {
            self.reads.lock().unwrap().push(at);
        }

        pub(crate) fn position(&self) -> u64 {
            *self.at.lock().unwrap()
        }

        /// Returns the number of reads, each of which got a byte of its own.
        pub(crate) fn checked_reads(&self) -> u64 {
            let mut reads = self.reads.lock().unwrap().clone();
            reads.sort_unstable();
            assert!(reads.iter().copied().eq(0..reads.len() as u64), "bytes that were read: {reads:?}");
            reads.len() as u64
        }
    }

    /// Tables of descriptors: of the kernel, and of the library (addresses of positions).
    #[derive(Default)]
    pub(crate) struct Process {
        kernel: std::sync::Mutex<[Option<Arc<File>>; FDS]>,
        library: [AtomicU64; FDS],
        /// The table of a child of fork(2), whose descriptors are the same open files.
        library_of_child: [AtomicU64; FDS],
        /// There are no threads to wait for.
        pub(crate) is_alone: AtomicBool,
    }

    thread_local! {
        // All threads of an execution run in one thread of the system.
        static PROCESS: RefCell<Arc<Process>> = RefCell::default();
    }

    impl Process {
        /// Begins an execution.
        pub(crate) fn begin() -> Arc<Self> {
            PROCESS.replace(Arc::default());
            Self::get()
        }

        fn get() -> Arc<Self> {
            PROCESS.with_borrow(Arc::clone)
        }

        /// open(2): the descriptor gets a new open file.
        pub(crate) fn open(&self, fd: Fd) -> Arc<File> {
            let file = Arc::new(File::default());
            self.kernel.lock().unwrap()[fd] = Some(Arc::clone(&file));
            file
        }

        /// close(2).
        pub(crate) fn close(&self, fd: Fd) {
            shuttle::thread::yield_now();
            self.kernel.lock().unwrap()[fd] = None;
        }

        fn file(&self, fd: Fd) -> Option<Arc<File>> {
            shuttle::thread::yield_now();
            self.kernel.lock().unwrap()[fd].clone()
        }

        /// Enters or removes a descriptor in the table of the library.
        pub(crate) fn enter(&self, fd: Fd, position: Option<&Position>) {
            let address = position.map_or(0, |position| std::ptr::from_ref(position) as u64);
            self.library[fd].store(address, Ordering::SeqCst);
        }

        pub(crate) fn enter_in_child(&self, fd: Fd, position: &Position) {
            self.library_of_child[fd].store(std::ptr::from_ref(position) as u64, Ordering::SeqCst);
        }
    }

    pub(crate) fn is_position_of(fd: Fd, position: &Position) -> bool {
        let (process, address) = (Process::get(), std::ptr::from_ref(position) as u64);
        [&process.library, &process.library_of_child]
            .iter()
            .any(|table| table[fd].load(Ordering::SeqCst) == address)
    }

    pub(crate) fn seek(fd: Fd, at: i64) {
        if let Some(file) = Process::get().file(fd) {
            *file.at.lock().unwrap() = at as u64;
        }
    }

    pub(crate) fn tell(fd: Fd) -> Option<u64> {
        Process::get().file(fd).map(|file| file.position())
    }

    #[derive(Default)]
    pub(crate) struct Wait;

    impl Wait {
        pub(crate) fn step(&mut self) {
            assert!(
                !Process::get().is_alone.load(Ordering::SeqCst),
                "waits for a thread that does not exist"
            );
            shuttle::thread::yield_now();
        }
    }

    pub(crate) struct BlockedSignals;

    impl BlockedSignals {
        pub(crate) fn new() -> Self {
            Self
        }
    }
}

use host::{Fd, File, Process};
use position::Position;
use shuttle::rand::{Rng as _, thread_rng};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Number of interleavings of each test.
const TRIED: usize = 20_000;
const FD: Fd = 0;
/// A descriptor that is opened later.
const OTHER: Fd = 1;

/// Reads a byte as the library does: directly, or through the mount.
fn read(fd: Fd, position: &Position, file: &File) {
    while let Some(from) = position.get_back(fd) {
        if position.replace(from, from + 1) {
            file.note(from);
            return;
        }
    }
    position.in_kernel(fd, || file.read());
}

/// Checks that the position of an open file that nobody uses is behind its reads.
fn check_end(fd: Fd, position: &Position, file: &File) {
    let reads = file.checked_reads();
    if position.is_given() {
        assert_eq!(file.position(), reads);
    } else {
        position.show(fd, || {});
        assert_eq!(file.position(), reads, "shown to the kernel");
        assert_eq!(position.get_back(fd), Some(reads), "no call has the position");
    }
}

#[test]
fn each_byte_is_read_once() {
    let body = || {
        let process = Process::begin();
        let (file, position) = (process.open(FD), Arc::new(Position::default()));
        process.enter(FD, Some(&position));
        let given = Arc::new(AtomicU32::new(0));
        let gives = thread_rng().gen_bool(0.2);
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                let (file, position, given) = (Arc::clone(&file), Arc::clone(&position), Arc::clone(&given));
                shuttle::thread::spawn(move || {
                    for _ in 0..3 {
                        match thread_rng().gen_range(0..3) {
                            0 => read(FD, &position, &file),
                            1 => position.in_kernel(FD, || file.read()),
                            _ if gives && thread < 2 => {
                                position.give(FD, || {
                                    given.fetch_add(1, Ordering::SeqCst);
                                });
                                assert!(position.get_back(FD).is_none(), "given for good");
                            }
                            _ => position.show(FD, || {}),
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(given.load(Ordering::SeqCst), u32::from(position.is_given()), "once before it is given");
        check_end(FD, &position, &file);
    };
    shuttle::check_random(body, TRIED);
    shuttle::check_pct(body, TRIED / 4, 3);
}

/// A call that has begun, and ends when it is told to.
struct LastingCall {
    thread: shuttle::thread::JoinHandle<()>,
    is_over: Arc<AtomicBool>,
}

impl LastingCall {
    fn begin(file: &Arc<File>, position: &Arc<Position>) -> Self {
        let (is_begun, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (file, position) = (Arc::clone(file), Arc::clone(position));
        let (begins, ends) = (Arc::clone(&is_begun), Arc::clone(&is_over));
        let thread = shuttle::thread::spawn(move || {
            position.in_kernel(FD, || {
                file.read();
                begins.store(true, Ordering::SeqCst);
                wait_for(&ends);
            });
        });
        wait_for(&is_begun);
        Self { thread, is_over }
    }

    fn end(self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.join().unwrap();
    }
}

fn wait_for(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        shuttle::thread::yield_now();
    }
}

/// A descriptor is closed while other threads use it, and then it is a descriptor of other code, or of another open
/// file, which gets the memory of the position. The calls of the others have found the first file before.
#[test]
fn a_closed_descriptor_is_left_alone() {
    let body = || {
        let process = Process::begin();
        let (file, position) = (process.open(FD), Arc::new(Position::default()));
        process.enter(FD, Some(&position));
        read(FD, &position, &file);
        let lasting = thread_rng().gen_bool(0.5).then(|| LastingCall::begin(&file, &position));
        let late: Vec<_> = (0..2)
            .map(|_| {
                let (file, position) = (Arc::clone(&file), Arc::clone(&position));
                shuttle::thread::spawn(move || {
                    for _ in 0..2 {
                        match thread_rng().gen_range(0..4) {
                            0 => drop(position.get_back(FD)),
                            1 => position.show(FD, || {}),
                            2 => position.give(FD, || {}),
                            _ => position.in_kernel(FD, || file.read()),
                        }
                    }
                })
            })
            .collect();

        // As `forget` and `opened` do.
        process.enter(FD, None);
        position.wait_for_move();
        process.close(FD);
        let foreign = process.open(FD);
        let number = if thread_rng().gen_bool(0.5) { FD } else { OTHER };
        let second = if number == FD { Arc::clone(&foreign) } else { process.open(OTHER) };
        let is_entered = position.reset();
        if is_entered {
            process.enter(number, Some(&position));
        }
        for _ in 0..2 {
            match is_entered {
                true => read(number, &position, &second),
                false => second.read(),
            }
            if is_entered && thread_rng().gen_bool(0.5) {
                position.in_kernel(number, || second.read());
            }
            if number != FD {
                foreign.read();
            }
        }
        late.into_iter().for_each(|thread| thread.join().unwrap());
        foreign.checked_reads();
        if is_entered {
            check_end(number, &position, &second);
        }
        lasting.into_iter().for_each(LastingCall::end);
        if is_entered {
            check_end(number, &position, &second);
        }
    };
    shuttle::check_random(body, TRIED * 2);
    shuttle::check_pct(body, TRIED, 3);
}

/// A child of fork(2) finds the positions of its parent at any moment, but not the threads that move them. It shares
/// open files that its parent had not given to the kernel before the fork, because it was opening them: it moves no
/// position that its parent uses.
#[test]
fn a_child_waits_for_no_thread_of_its_parent_and_moves_no_position() {
    let body = || {
        let process = Process::begin();
        let (file, position) = (process.open(FD), Arc::new(Position::default()));
        process.enter(FD, Some(&position));
        let parent = {
            let (file, position) = (Arc::clone(&file), Arc::clone(&position));
            shuttle::thread::spawn(move || {
                for _ in 0..3 {
                    match thread_rng().gen_range(0..4) {
                        0 => position.show(FD, || {}),
                        1 => position.give(FD, || {}),
                        2 => position.in_kernel(FD, || file.read()),
                        _ => read(FD, &position, &file),
                    }
                }
            })
        };
        let child = Arc::new(position.forked());
        process.enter_in_child(FD, &child);
        child.begin_child();
        let is_ended = thread_rng().gen_bool(0.5);
        if is_ended {
            parent.join().unwrap();
            process.is_alone.store(true, Ordering::SeqCst);
            use_in_child(&child);
        } else {
            use_in_child(&child);
            parent.join().unwrap();
        }
        assert!(child.is_given());
        check_end(FD, &position, &file);
    };
    shuttle::check_random(body, TRIED);
    shuttle::check_pct(body, TRIED / 4, 3);
}

fn use_in_child(position: &Position) {
    match thread_rng().gen_range(0..4) {
        0 => position.show(FD, || {}),
        1 => assert!(position.get_back(FD).is_none()),
        2 => position.in_kernel(FD, || {}),
        _ => position.wait_for_move(),
    }
    position.give(FD, || {});
}
