//! The designs of the prototype that failed, on a board that executes what it is told (sections 3.4 and
//! 3.2 of FAST 2013). The medium of frit refuses a program without an erase, so the board of these tests
//! is a plain one: a second program of a cell can only clear further bits.

use super::*;
use frit_core::{Cause, MediumKind, Sink, Tok};

const BLOCK: usize = 4;
const PER_PAGE: usize = 8;

/// A virtual page of the board. The controller programs all of it with each command: the rest of the
/// buffer has ones, which change nothing in erased cells.
struct Board {
    page: [u8; BLOCK * PER_PAGE],
    programs: u32,
}

/// A request queue: blocks at their places in the virtual page.
type Queue = Vec<(usize, [u8; BLOCK])>;

impl Board {
    fn erased() -> Board {
        Board { page: [0xFF; BLOCK * PER_PAGE], programs: 0 }
    }

    /// Programs the places of a queue. The unused rest of the buffer of the controller holds what its
    /// last transfer left there.
    fn program(&mut self, queue: &Queue, leftover: u8) {
        let mut buffer = [leftover; BLOCK * PER_PAGE];
        for (place, data) in queue {
            buffer[place * BLOCK..][..BLOCK].copy_from_slice(data);
        }
        for (cell, bits) in self.page.iter_mut().zip(buffer) {
            *cell &= bits;
        }
        self.programs += 1;
    }

    fn block(&self, place: usize) -> &[u8] {
        &self.page[place * BLOCK..][..BLOCK]
    }
}

/// An allocator that hands out places of one virtual page to several queues.
struct SharedPage(usize);

impl SharedPage {
    fn queue(&mut self, contents: &[u8]) -> Queue {
        contents
            .iter()
            .map(|&c| {
                self.0 += 1;
                (self.0 - 1, [c; BLOCK])
            })
            .collect()
    }
}

#[test]
fn two_queues_on_one_virtual_page_corrupt_it() {
    for first in [0, 1] {
        let mut places = SharedPage(0);
        let queues = [places.queue(&[0x11, 0x22, 0x33]), places.queue(&[0x44, 0x55])];
        let mut board = Board::erased();
        // Lower layers may send the queues in either order.
        board.program(&queues[first], 0x00);
        board.program(&queues[1 - first], 0x00);
        assert_eq!(board.programs, 2, "one virtual page is programmed twice without an erase");
        let lost = queues.iter().flatten().filter(|(place, data)| board.block(*place) != data).count();
        assert_eq!(lost, 5, "the second program clears the blocks of the first, and the reverse");
    }
    // A virtual page for each queue: every block is as it was written, in either order.
    let queues = [SharedPage(0).queue(&[0x11, 0x22, 0x33]), SharedPage(0).queue(&[0x44, 0x55])];
    for first in [0, 1] {
        let mut boards = [Board::erased(), Board::erased()];
        for queue in [first, 1 - first] {
            boards[queue].program(&queues[queue], 0x00);
        }
        for (queue, board) in queues.iter().zip(&boards) {
            assert!(queue.iter().all(|(place, data)| board.block(*place) == data));
        }
    }
}

#[test]
fn a_nameless_write_of_two_commands_corrupts_when_it_is_reordered() {
    // READ NATIVE MAX ADDRESS returns the next place; a write with this address follows. Each write is
    // a command of its own, and two of them lie in one virtual page.
    let mut next = SharedPage(0);
    let writes = [next.queue(&[0xA5]), next.queue(&[0x3C])];
    let mut board = Board::erased();
    for write in [1, 0] {
        board.program(&writes[write], 0x00);
    }
    let intact = writes.iter().flatten().filter(|(place, data)| board.block(*place) == data).count();
    assert_eq!(intact, 0, "both writes were acknowledged, and both are corrupt");
}

#[test]
fn the_medium_refuses_what_corrupts_the_board() {
    // The same commands to the NAND of frit: addresses 0 and 1 of a block are handed out, and the writes
    // arrive in the other order.
    let config = nand_config(TWO_UNITS, NandFaults::default());
    let mut nand = Nand::new(config, MemoryStore::new(4 << 20), &mut Hardware::new()).unwrap();
    let sink = &mut Sink::untimed();
    let spare = |seq| frit_media::Spare { lpn: 0, seq };
    let data = [1; 4096];
    let mut program = |page, seq| {
        nand.program(sink, Ppn(page), WriteData::Bytes(&data), spare(seq), Cause::Host, Tok::DONE)
    };
    assert!(matches!(program(1, 1), Err(Error::Rule { medium: MediumKind::Nand, .. })));
    program(0, 2).unwrap();
    assert!(matches!(program(0, 3), Err(Error::Rule { medium: MediumKind::Nand, .. })));
}
