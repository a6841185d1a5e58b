//! Adaptive polling: a thread polls for the next request before it sleeps.

use super::stream::ClientStream;
use std::io;
use std::time::{Duration, Instant};

/// Adaptive polling for the next request. On most machines a wake-up costs both sides more time
/// than a short poll. The more polls in a row find nothing, the rarer they become.
#[derive(Default, Debug)]
pub(super) struct AdaptiveSpin {
    /// Number of polls in a row that found nothing.
    in_vain: u32,
    /// Number of reads until the next poll.
    rest: u32,
}

/// Maximum duration of a poll, about as long as a wake-up on another core.
const LOOK: Duration = Duration::from_micros(25);

impl AdaptiveSpin {
    /// Polls for input for a short time. Returns `None` if there is none. Other threads on this
    /// processor run first.
    pub(super) fn read(&mut self, stream: &ClientStream, room: &mut [u8]) -> io::Result<Option<usize>> {
        if self.rest > 0 {
            self.rest -= 1;
            return Ok(None);
        }
        let begin = Instant::now();
        while begin.elapsed() < LOOK {
            if let Some(n) = stream.try_read(room)? {
                self.in_vain = 0;
                return Ok(Some(n));
            }
            std::thread::yield_now();
        }
        self.in_vain = (self.in_vain + 1).min(8);
        // The pause doubles with each poll that finds nothing, up to 256 reads.
        self.rest = 1 << self.in_vain;
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
        let (stream, mut adaptive_spin, mut room) =
            (ClientStream::unix(ours, Duration::from_secs(9)).unwrap(), AdaptiveSpin::default(), [0; 16]);
        let mut looks = 0;
        for _ in 0..1000 {
            let before = adaptive_spin.in_vain;
            assert_eq!(adaptive_spin.read(&stream, &mut room).unwrap(), None);
            looks += u32::from(adaptive_spin.in_vain != before || adaptive_spin.rest == 256);
        }
        assert!(looks < 15, "{looks} looks in vain");
        theirs.write_all(b"quick").unwrap();
        let found = (0..300).find_map(|_| adaptive_spin.read(&stream, &mut room).unwrap());
        assert_eq!((found, adaptive_spin.in_vain), (Some(5), 0));
        drop(theirs);
        assert_eq!(adaptive_spin.read(&stream, &mut room).unwrap(), Some(0), "disconnected");
    }
}
