//! Looking for the next request before sleeping.

use super::stream::Stream;
use std::io;
use std::time::{Duration, Instant};

/// How long a thread looks for the next request before it sleeps. Being woken costs both sides more
/// than that on most machines; a thread that looks in vain does so ever more rarely.
#[derive(Default, Debug)]
pub(super) struct Patience {
    /// Times in a row that nothing came.
    in_vain: u32,
    /// Reads until it is tried again.
    rest: u32,
}

/// The longest look, about what a wake-up on another core takes.
const LOOK: Duration = Duration::from_micros(25);

impl Patience {
    /// Reads without sleep, if something comes soon. Others on this processor go first.
    pub(super) fn read(&mut self, stream: &Stream, room: &mut [u8]) -> io::Result<Option<usize>> {
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
        let (stream, mut patience, mut room) =
            (Stream::unix(ours, Duration::from_secs(9)).unwrap(), Patience::default(), [0; 16]);
        let mut looks = 0;
        for _ in 0..1000 {
            let before = patience.in_vain;
            assert_eq!(patience.read(&stream, &mut room).unwrap(), None);
            looks += u32::from(patience.in_vain != before || patience.rest == 256);
        }
        assert!(looks < 15, "{looks} looks in vain");
        theirs.write_all(b"quick").unwrap();
        let found = (0..300).find_map(|_| patience.read(&stream, &mut room).unwrap());
        assert_eq!((found, patience.in_vain), (Some(5), 0));
        drop(theirs);
        assert_eq!(patience.read(&stream, &mut room).unwrap(), Some(0), "hung up");
    }
}
