//! Questions about files of which the kernel has writes that it has not sent (`--writeback`).
//!
//! The kernel sends them at the last close at the latest, so only files that are open can have some. The server does
//! not know where they are: a program that asks it for holes, or reads past the end that the server knows without the
//! page cache, would get an answer that is wrong. `cp` then copies zeros. So the kernel is told to drop the pages of
//! the file (FUSE_NOTIFY_INVAL_INODE), which it writes before, and the question is answered afterwards.
//!
//! As in [`super::page_invalidation`], a thread of its own notifies, because a notification waits for requests. A
//! request that asks holds no lock of a page.

use frit_fs::{Attr, Ino, InodeType};
use frit_fuse::Kernel;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

/// Sectors of 512 bytes that an open file has at least: one block. `tar` takes a file without any for a single hole.
/// To write the pages for each question about attributes would make every `write` wait.
const SECTORS_MIN: u64 = 8;

/// A question about a file, answered when the kernel has sent its writes.
struct Question {
    ino: Ino,
    answer: Box<dyn FnOnce() + Send>,
}

/// The open files of a mount with a writeback cache, and the thread that asks the kernel for their writes.
#[derive(Debug)]
struct OpenFiles {
    opens: Mutex<HashMap<Ino, u32>>,
    questions: Sender<Question>,
}

/// What the kernel may have and the server has not. Without a writeback cache, that is nothing.
#[derive(Debug)]
pub(super) struct UnsentWrites(Option<OpenFiles>);

impl UnsentWrites {
    /// Starts the thread of a mount with a writeback cache. It ends when this value is dropped.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(writeback: bool, kernel: Arc<OnceLock<Kernel>>) -> io::Result<UnsentWrites> {
        if !writeback {
            return Ok(UnsentWrites(None));
        }
        let (questions, next) = channel();
        let body = move || answer_all(&next, &kernel);
        std::thread::Builder::new().name("unsent".into()).spawn(body)?;
        Ok(UnsentWrites(Some(OpenFiles { opens: Mutex::default(), questions })))
    }

    pub(super) fn opened(&self, ino: Ino) {
        if let Some(files) = &self.0 {
            *files.opens.lock().entry(ino).or_default() += 1;
        }
    }

    pub(super) fn released(&self, ino: Ino) {
        let Some(files) = &self.0 else { return };
        let mut opens = files.opens.lock();
        if let Some(count) = opens.get_mut(&ino) {
            *count -= 1;
            if *count == 0 {
                opens.remove(&ino);
            }
        }
    }

    /// Returns the files, if the kernel may have writes of this one.
    fn of(&self, ino: Ino) -> Option<&OpenFiles> {
        self.0.as_ref().filter(|files| files.opens.lock().contains_key(&ino))
    }

    /// Returns `true` if the kernel may have writes of a file.
    pub(super) fn may_have(&self, ino: Ino) -> bool {
        self.of(ino).is_some()
    }

    /// Calls `answer` when the server has all writes of the file, at once or from another thread.
    pub(super) fn ask(&self, ino: Ino, answer: impl FnOnce() + Send + 'static) {
        match self.of(ino) {
            // If the thread is gone, the reply is dropped, which answers with an error.
            Some(files) => drop(files.questions.send(Question { ino, answer: Box::new(answer) })),
            None => answer(),
        }
    }

    /// Returns attributes that claim no hole where the kernel may have data.
    pub(super) fn shown(&self, attr: Attr) -> Attr {
        if attr.kind != InodeType::File || !self.may_have(attr.ino) {
            return attr;
        }
        Attr { sectors: attr.sectors.max(SECTORS_MIN), ..attr }
    }
}

fn answer_all(next: &Receiver<Question>, kernel: &OnceLock<Kernel>) {
    while let Ok(Question { ino, answer }) = next.recv() {
        // The kernel may have forgotten the inode, and then has no writes of it.
        let _ = kernel.get().map(|kernel| kernel.inval_inode(ino.0, 0, 0));
        answer();
    }
}
