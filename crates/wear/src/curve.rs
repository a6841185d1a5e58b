//! Hilbert curve through a box with even sides of any length.
//!
//! Hilbert's curve fills cubes of side 2^k. The cube of the HALO paper has 8 × 16 × 16 positions,
//! so it needs a generalised curve: the box is divided into parts, and in each part a rotated curve
//! goes from corner to corner, such that each part starts next to the end of the previous one
//! (after J. Červený, "Gilbert: space-filling curve for rectangular domains of arbitrary size",
//! 2018). A compact Hilbert index (Hamilton and Rau-Chaplin, 2008) would keep the order of the
//! curve of the enclosing cube, and jump where that curve leaves the box.

use frit_core::convert::{count_u32, to_usize};
use frit_core::{Error, Result};

/// Vector along one axis: the axis, and a signed length.
#[derive(Clone, Copy, Debug)]
struct AxisVector {
    axis: usize,
    len: i32,
}

impl AxisVector {
    fn size(self) -> i32 {
        self.len.abs()
    }

    /// Vector of length one in the same direction.
    fn unit(self) -> AxisVector {
        AxisVector { len: self.len.signum(), ..self }
    }

    fn neg(self) -> AxisVector {
        AxisVector { len: -self.len, ..self }
    }

    fn minus(self, other: AxisVector) -> AxisVector {
        AxisVector { len: self.len - other.len, ..self }
    }

    /// Half of the vector, rounded up to an even length if the vector is longer than two: the parts
    /// only join at even lengths.
    fn half(self) -> AxisVector {
        let half = self.size() / 2;
        let half = if half % 2 == 1 && self.size() > 2 { half + 1 } else { half };
        AxisVector { len: half * self.len.signum(), ..self }
    }
}

type Point = [i32; 3];

fn plus(p: Point, side: AxisVector) -> Point {
    let mut q = p;
    q[side.axis] += side.len;
    q
}

/// Position of the last point along a side.
fn end(p: Point, side: AxisVector) -> Point {
    plus(plus(p, side), side.unit().neg())
}

/// Fills the box at `p` spanned by three sides. The curve starts at `p` and ends at the end of side
/// `a`.
fn fill(p: Point, a: AxisVector, b: AxisVector, c: AxisVector, out: &mut Vec<Point>) {
    let (w, h, d) = (a.size(), b.size(), c.size());
    if w * h * d == 0 {
        // An empty box: half of a side of length one.
        return;
    }
    let line = [(h == 1 && d == 1, a), (w == 1 && d == 1, b), (w == 1 && h == 1, c)];
    if let Some(&(_, side)) = line.iter().find(|l| l.0) {
        let mut q = p;
        for _ in 0..side.size() {
            out.push(q);
            q = plus(q, side.unit());
        }
        return;
    }
    let (a2, b2, c2) = (a.half(), b.half(), c.half());
    let (a_rest, b_rest, c_rest) = (a.minus(a2), b.minus(b2), c.minus(c2));
    if 2 * w > 3 * h && 2 * w > 3 * d {
        // Long in a: two boxes in a row.
        fill(p, a2, b, c, out);
        fill(plus(p, a2), a_rest, b, c, out);
    } else if 3 * h > 4 * d {
        // Flat in c: along b, along a, and back along b.
        fill(p, b2, c, a2, out);
        fill(plus(p, b2), a, b_rest, c, out);
        fill(end(end(p, a), b2), b2.neg(), c, a_rest.neg(), out);
    } else if 3 * d > 4 * h {
        // Flat in b: the same with c.
        fill(p, c2, a2, b, out);
        fill(plus(p, c2), a, b, c_rest, out);
        fill(end(end(p, a), c2), c2.neg(), a_rest.neg(), b, out);
    } else {
        fill(p, b2, c2, a2, out);
        fill(plus(p, b2), c, a2, b_rest, out);
        fill(end(end(p, b2), c), a, b2.neg(), c_rest.neg(), out);
        fill(end(plus(end(p, a), b2), c), c.neg(), a_rest.neg(), b_rest, out);
        fill(end(end(p, a), b2), b2.neg(), c2, a_rest.neg(), out);
    }
}

/// Positions of a box in the order of the curve.
#[derive(Clone, Debug)]
pub struct Curve3 {
    points: Vec<[u16; 3]>,
}

/// All orders of the axes.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

impl Curve3 {
    /// Creates a curve through a box with these sides. Of the possible orders of the axes it takes
    /// the one whose windows of `sides[0]` steps visit the most positions of the first axis, since
    /// writes are to be spread over the first axis (the ranks).
    ///
    /// # Errors
    /// A side is zero or longer than 4096, the box has more than 2^24 positions, or no continuous
    /// curve through it was found. With even sides there always is one.
    pub fn new(sides: [u32; 3]) -> Result<Curve3> {
        let shown = format!("{} × {} × {}", sides[0], sides[1], sides[2]);
        let places = sides.iter().map(|&s| u64::from(s)).product::<u64>();
        if sides.iter().any(|&s| s == 0 || s > 4096) || places > 1 << 24 {
            let why = "sides have to be 1 to 4096 and a cube at most 2^24 stripes; use more cubes or larger stripes";
            return Err(Error::param("cube", shown, why));
        }
        ORDERS
            .iter()
            .map(|&order| Curve3::along(sides, order))
            // An odd side can make the curve jump, depending on the order of the axes.
            .filter(Curve3::is_continuous)
            .max_by_key(|c| c.spread(sides[0]))
            .ok_or_else(|| {
                let why = "no continuous curve goes through it: sides have to be even";
                Error::param("cube", shown, why)
            })
    }

    fn along(sides: [u32; 3], order: [usize; 3]) -> Curve3 {
        let side = |i: usize| AxisVector { axis: order[i], len: sides[order[i]].cast_signed() };
        let mut out = Vec::with_capacity(sides.iter().map(|&s| to_usize(s)).product());
        fill([0; 3], side(0), side(1), side(2), &mut out);
        Curve3 { points: out.into_iter().map(|p| p.map(|x| x as u16)).collect() }
    }

    /// Returns `true` if each point is adjacent to the previous one.
    fn is_continuous(&self) -> bool {
        self.points.windows(2).all(|w| (0..3).map(|i| w[0][i].abs_diff(w[1][i])).sum::<u16>() == 1)
    }

    /// Number of different positions on the first axis in each window of `width` steps, summed over
    /// the windows.
    fn spread(&self, width: u32) -> usize {
        // `seen` holds the last window that visited a position, so it needs no reset.
        let mut seen = vec![usize::MAX; to_usize(width)];
        let different = |(i, w): (usize, &[[u16; 3]])| {
            w.iter().filter(|p| std::mem::replace(&mut seen[usize::from(p[0])], i) != i).count()
        };
        self.points.chunks(to_usize(width)).enumerate().map(different).sum()
    }

    /// Number of positions.
    #[must_use]
    pub fn len(&self) -> u32 {
        count_u32(self.points.len())
    }

    /// Returns `true` if the curve has no positions, which never happens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Position of a point by its number on the curve.
    #[inline]
    #[must_use]
    pub fn at(&self, seq: u32) -> [u32; 3] {
        self.points[to_usize(seq)].map(u32::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn check(sides: [u32; 3]) {
        let c = Curve3::new(sides).unwrap_or_else(|e| panic!("{sides:?}: {e}"));
        let all: HashSet<[u16; 3]> = c.points.iter().copied().collect();
        assert_eq!(count_u32(all.len()), sides.iter().product::<u32>(), "{sides:?}");
        assert_eq!(to_usize(c.len()), all.len());
        for p in &all {
            assert!((0..3).all(|i| u32::from(p[i]) < sides[i]), "{sides:?}: {p:?}");
        }
        assert!(c.is_continuous(), "{sides:?}");
    }

    #[test]
    fn it_goes_through_every_place_of_an_even_box_once_from_neighbour_to_neighbour() {
        check([8, 16, 16]);
        for a in (2..=16).step_by(2) {
            for b in (2..=16).step_by(2) {
                for c in (2..=20).step_by(2) {
                    check([a, b, c]);
                }
            }
        }
        check([1, 1, 1]);
        check([1, 4, 6]);
    }

    #[test]
    fn the_papers_cube_is_laid_to_spread_over_ranks_and_keeps_neighbours_near() {
        let sides = [8, 16, 16];
        let c = Curve3::new(sides).unwrap();
        for order in ORDERS {
            assert!(c.spread(8) >= Curve3::along(sides, order).spread(8), "{order:?}");
        }
        // Locality: 64 consecutive points are in a box of not many more positions.
        let extent = |w: &[[u16; 3]], i: usize| {
            let (lo, hi) = w.iter().fold((u16::MAX, 0), |(l, h), p| (l.min(p[i]), h.max(p[i])));
            u32::from(hi - lo) + 1
        };
        let boxes: Vec<u32> = c.points.chunks(64).map(|w| (0..3).map(|i| extent(w, i)).product()).collect();
        assert!(boxes.iter().all(|&b| b <= 256), "{boxes:?}");
    }

    #[test]
    fn boxes_that_cannot_be_are_refused() {
        assert!(Curve3::new([0, 2, 2]).is_err() && Curve3::new([4097, 1, 1]).is_err());
        assert!(Curve3::new([3, 5, 3]).unwrap_err().to_string().contains("even"));
    }
}
