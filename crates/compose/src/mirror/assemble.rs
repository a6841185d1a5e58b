//! Decision at a start which sides are up to date, from the superblocks of all sides.

use super::layout::Layout;
use super::sector::{Found, Superblock};
use frit_core::{Error, Result, size};

/// Superblock of a side, as the start found it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum SideFound {
    /// The sectors could be read.
    Read(Found<Superblock>),
    /// The device failed.
    Unreadable(String),
}

impl SideFound {
    fn valid(&self) -> Option<&Superblock> {
        if let SideFound::Read(Found::Valid(s)) = self { Some(s) } else { None }
    }
}

/// Sides of a mirror after a start, as sets of one bit each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Assembly {
    /// Sides that are up to date, except for requests that were not flushed.
    pub(super) serving: u32,
    /// Stale sides to which the regions are copied that were marked.
    pub(super) stale: u32,
    /// Stale sides to which all regions are copied.
    pub(super) new: u32,
    /// Sides that stay out of service, each with the reason.
    pub(super) out: Vec<(usize, String)>,
    /// Largest event counter.
    pub(super) events: u64,
    /// Sides whose superblocks contradict that of the trusted side.
    pub(super) overruled: u32,
    /// The superblocks of the sides that serve do not name all sides that are stale or out.
    pub(super) unnoted: bool,
}

/// Identity and sizes that a superblock must have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected<'a> {
    pub(super) identity: u64,
    pub(super) layout: &'a Layout,
    /// Side that the user trusts.
    pub(super) prefer: Option<usize>,
}

fn refused(what: String) -> Error {
    Error::Medium { what }
}

fn bit(side: usize) -> u32 {
    1 << side
}

/// Returns the names of the sides of a set, for messages.
fn names(set: u32) -> String {
    let all: Vec<String> = (0..32).filter(|&i| set >> i & 1 == 1).map(|i: u32| i.to_string()).collect();
    all.join(", ")
}

/// Decides which sides serve.
///
/// # Errors
/// Sides of another mirror or in another order, sides that contradict each other, and a start
/// without a side that is sure to be up to date.
pub(super) fn assemble(found: &[SideFound], expected: &Expected<'_>) -> Result<Assembly> {
    belong(found, expected)?;
    let valid = || found.iter().enumerate().filter_map(|(i, f)| Some((i, f.valid()?)));
    let overruled = contradicting(found, expected.prefer)?;
    let trusted = || valid().filter(|(i, _)| overruled & bit(*i) == 0);
    let events = trusted().map(|(_, s)| s.events).max().unwrap_or(0);
    let newest = || trusted().filter(|(_, s)| s.events == events);
    let noted = newest().fold(0, |set, (_, s)| set | s.stale);
    let serving = newest().fold(0, |set, (i, _)| set | bit(i)) & !noted;
    if serving == 0 {
        return Err(refused(format!("the mirror has no side that is up to date (stale: {})", names(noted))));
    }
    let all_events = valid().map(|(_, s)| s.events).max().unwrap_or(0);
    let mut a = Assembly {
        serving,
        stale: valid().fold(0, |set, (i, _)| set | bit(i)) & !serving,
        new: 0,
        out: Vec::new(),
        events: all_events,
        overruled,
        unnoted: overruled != 0,
    };
    let preferred = expected.prefer.is_some_and(|p| serving & bit(p) != 0);
    let mut unknown = Vec::new();
    for (i, side) in found.iter().enumerate() {
        let why = match side {
            SideFound::Read(Found::Valid(_)) => continue,
            SideFound::Read(Found::Blank) => "is new".to_owned(),
            SideFound::Read(Found::Damaged) => "has a damaged superblock".to_owned(),
            SideFound::Unreadable(why) => format!("cannot be read ({why})"),
        };
        if noted & bit(i) == 0 && !preferred {
            unknown.push(format!("device {i} {why}"));
        }
        match side {
            SideFound::Read(Found::Blank) => a.new |= bit(i),
            // It may be the device of another user, so it is overwritten only on request.
            SideFound::Read(_) if preferred => a.new |= bit(i),
            _ => a.out.push((i, format!("device {i} {why}"))),
        }
    }
    if !unknown.is_empty() {
        let first = serving.trailing_zeros();
        return Err(refused(format!(
            "{}, and the superblocks of the other devices do not say that it is stale, so these may be \
             older; set prefer = {first} to use device {first}",
            unknown.join(", ")
        )));
    }
    let out = a.out.iter().fold(0, |set, (i, _)| set | bit(*i));
    a.unnoted |= (a.stale | a.new | out) & !noted != 0;
    Ok(a)
}

/// Verifies that the superblocks belong to this mirror, each on the device of its side.
fn belong(found: &[SideFound], expected: &Expected<'_>) -> Result<()> {
    for (i, s) in found.iter().enumerate().filter_map(|(i, f)| Some((i, f.valid()?))) {
        let layout = expected.layout;
        if s.identity != expected.identity {
            return Err(refused(format!(
                "device {i} belongs to another mirror; fill its sectors at {} and {} with zeros to use it as \
                 a new side",
                layout.superblocks()[0],
                layout.superblocks()[1]
            )));
        }
        if s.side as usize != i {
            return Err(refused(format!(
                "device {i} holds side {} of the mirror; name the devices in their former order",
                s.side
            )));
        }
        let (sides, region) = (found.len(), layout.region_bytes());
        if s.sides as usize != sides || s.data != layout.data || s.region != region {
            let sizes = |bytes, region, sides| {
                format!("{} in {sides} sides with regions of {}", size::format(bytes), size::format(region))
            };
            return Err(refused(format!(
                "device {i} is of a mirror of {}, and the stack has one of {}",
                sizes(s.data, s.region, s.sides as usize),
                sizes(layout.data, region, sides)
            )));
        }
    }
    Ok(())
}

/// Returns the sides that the trusted side overrules. Two sides contradict each other if each says
/// that the other one is stale: each was in use without the other one.
fn contradicting(found: &[SideFound], prefer: Option<usize>) -> Result<u32> {
    let stale = |i: usize| found[i].valid().map_or(0, |s| s.stale);
    let both = |i: usize, j: usize| stale(i) & bit(j) != 0 && stale(j) & bit(i) != 0;
    let pairs = || (0..found.len()).flat_map(|i| (0..i).map(move |j| (j, i))).filter(|&(j, i)| both(i, j));
    if let Some(p) = prefer.filter(|&p| p < found.len() && stale(p) & bit(p) == 0) {
        let overruled = (0..found.len()).filter(|&i| i != p && both(p, i)).fold(0, |set, i| set | bit(i));
        // Without its rivals, the others must agree.
        let left = |&(j, i): &(usize, usize)| overruled & (bit(i) | bit(j)) == 0;
        if !pairs().any(|pair| left(&pair)) {
            return Ok(overruled);
        }
    }
    match pairs().next() {
        None => Ok(0),
        Some((a, b)) => Err(refused(format!(
            "devices {a} and {b} were used without each other, and each says that the other one is stale; \
             set prefer = {a} or prefer = {b} to keep the data of that device and to overwrite the other one"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: u64 = 77;

    fn layout() -> Layout {
        Layout::new(1 << 20, 64 << 10).unwrap()
    }

    fn superblock(side: u32, sides: u32, events: u64, stale: u32) -> Superblock {
        let l = layout();
        Superblock { identity: IDENTITY, side, sides, events, data: l.data, region: l.region_bytes(), stale }
    }

    fn start(found: &[SideFound], prefer: Option<usize>) -> Result<Assembly> {
        assemble(found, &Expected { identity: IDENTITY, layout: &layout(), prefer })
    }

    /// Starts a mirror with superblocks of these event counters and stale sides.
    fn of(sides: &[(u64, u32)], prefer: Option<usize>) -> std::result::Result<(u32, u32), String> {
        let n = sides.len() as u32;
        let read = |(i, &(events, stale)): (usize, &(u64, u32))| {
            SideFound::Read(Found::Valid(superblock(i as u32, n, events, stale)))
        };
        let found: Vec<SideFound> = sides.iter().enumerate().map(read).collect();
        start(&found, prefer).map(|a| (a.serving, a.stale)).map_err(|e| e.to_string())
    }

    #[test]
    fn older_sides_and_those_that_newer_ones_name_are_stale() {
        assert_eq!(of(&[(1, 0), (1, 0)], None), Ok((0b11, 0)));
        assert_eq!(of(&[(2, 0b10), (1, 0)], None), Ok((0b01, 0b10)));
        assert_eq!(of(&[(1, 0), (2, 0b01)], None), Ok((0b10, 0b01)));
        assert_eq!(of(&[(5, 0), (4, 0), (5, 0)], None), Ok((0b101, 0b010)));
        // The end of a resynchronization of side 0 was cut off before its own superblock.
        assert_eq!(of(&[(3, 0b10), (9, 0)], None), Ok((0b10, 0b01)));
        // A preference does not make a stale side current.
        assert_eq!(of(&[(1, 0), (2, 0b01)], Some(0)), Ok((0b10, 0b01)));
    }

    #[test]
    fn sides_that_contradict_each_other_are_refused_until_one_is_preferred() {
        let split = [(6, 0b10), (9, 0b01)];
        let why = of(&split, None).unwrap_err();
        assert!(why.contains("prefer = 0 or prefer = 1"), "{why}");
        assert_eq!(of(&split, Some(0)), Ok((0b01, 0b10)));
        assert_eq!(of(&split, Some(1)), Ok((0b10, 0b01)));
        assert!(of(&split, Some(7)).is_err());
        // Side 0 was overruled, and says so itself.
        assert_eq!(of(&[(6, 0b01), (10, 0b01)], None), Ok((0b10, 0b01)));
        assert!(of(&[(6, 0b01), (6, 0b01)], None).is_ok());
        assert!(of(&[(6, 0b11), (6, 0b11)], None).is_err());
    }

    #[test]
    fn a_side_without_a_superblock_needs_a_note_or_a_preference() {
        let valid = |stale| SideFound::Read(Found::Valid(superblock(0, 2, 4, stale)));
        let (blank, damaged) = (SideFound::Read(Found::Blank), SideFound::Read(Found::Damaged));
        let gone = SideFound::Unreadable("EIO".into());
        for other in [&blank, &damaged, &gone] {
            let why = start(&[valid(0), other.clone()], None).unwrap_err().to_string();
            assert!(why.contains("device 1") && why.contains("prefer = 0"), "{why}");
            let a = start(&[valid(0), other.clone()], Some(0)).unwrap();
            assert_eq!((a.serving, a.stale, a.unnoted), (1, 0, true));
            assert_eq!(a.new == 2, *other != gone);
            let a = start(&[valid(0b10), other.clone()], None).unwrap();
            assert_eq!((a.serving, a.new == 2, a.unnoted), (1, *other == blank, false));
            assert_eq!(a.out.is_empty(), *other == blank);
        }
        assert!(start(&[blank.clone(), blank], None).is_err());
    }

    #[test]
    fn other_mirrors_orders_and_shapes_are_refused() {
        let side = |s: Superblock| SideFound::Read(Found::Valid(s));
        let ours = |i| superblock(i, 2, 1, 0);
        for (a, b, named) in [
            (Superblock { identity: 1, ..ours(0) }, ours(1), "device 0 belongs to another mirror"),
            (ours(1), ours(0), "device 0 holds side 1"),
            (ours(0), Superblock { sides: 3, ..ours(1) }, "in 3 sides"),
            (ours(0), Superblock { region: 4096, ..ours(1) }, "regions of 4"),
        ] {
            let why = start(&[side(a), side(b)], Some(0)).unwrap_err().to_string();
            assert!(why.contains(named), "{why}");
        }
    }
}
