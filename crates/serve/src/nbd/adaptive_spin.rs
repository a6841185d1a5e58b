//! Adaptive polling: a thread polls for the next request before it sleeps.

use super::stream::ClientStream;
use std::io;
use std::time::{Duration, Instant};

/// Adaptive polling for the next request. On most machines a wake-up costs both sides more time
/// than a short poll. The more polls in a row find nothing, the rarer they become.
#[derive(Default, Debug)]
pub(super) struct AdaptiveSpin {
    /// Number of polls in a row that found nothing.
    empty_polls: u32,
    /// Number of reads until the next poll.
    reads_to_next_poll: u32,
}

/// Maximum duration of a poll, about as long as a wake-up on another core.
const POLL_MAX: Duration = Duration::from_micros(25);

impl AdaptiveSpin {
    /// Polls for input for a short time. Returns `None` if there is none. Other threads on this
    /// processor run first.
    pub(super) fn read(&mut self, stream: &ClientStream, into: &mut [u8]) -> io::Result<Option<usize>> {
        if self.reads_to_next_poll > 0 {
            self.reads_to_next_poll -= 1;
            return Ok(None);
        }
        let begin = Instant::now();
        while begin.elapsed() < POLL_MAX {
            if let Some(n) = stream.try_read(into)? {
                self.empty_polls = 0;
                return Ok(Some(n));
            }
            std::thread::yield_now();
        }
        self.empty_polls = (self.empty_polls + 1).min(8);
        // The pause doubles with each poll that finds nothing, up to 256 reads.
        self.reads_to_next_poll = 1 << self.empty_polls;
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_client_that_is_slow_is_looked_for_ever_more_rarely() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (stream, mut adaptive_spin, mut into) =
            (ClientStream::unix(ours, Duration::from_secs(9)).unwrap(), AdaptiveSpin::default(), [0; 16]);
        let mut polls = 0;
        for _ in 0..1000 {
            let before = adaptive_spin.empty_polls;
            assert_eq!(adaptive_spin.read(&stream, &mut into).unwrap(), None);
            polls +=
                u32::from(adaptive_spin.empty_polls != before || adaptive_spin.reads_to_next_poll == 256);
        }
        assert!(polls < 15, "{polls} polls without input");
        theirs.write_all(b"quick").unwrap();
        let found = (0..300).find_map(|_| adaptive_spin.read(&stream, &mut into).unwrap());
        assert_eq!((found, adaptive_spin.empty_polls), (Some(5), 0));
        drop(theirs);
        assert_eq!(adaptive_spin.read(&stream, &mut into).unwrap(), Some(0), "disconnected");
    }
}
