//! Seek times as a function of the distance in cylinders.

use frit_core::{Error, Nanos, Result};
use std::cell::RefCell;
use std::sync::Arc;

/// A curve, a number of cylinders, and the table for them.
type CachedTable = (SeekCurve, u32, Arc<[u32]>);

thread_local! {
    static LAST: RefCell<Option<CachedTable>> = const { RefCell::new(None) };
}

/// Maximum number of cylinders of a disk: the seek curve is kept as a table with one entry per
/// cylinder.
pub const CYLINDERS_MAX: u32 = 4_000_000;

/// A seek curve, in one of the forms in which drives are described. All times are for reads; writes
/// add the write settle time. A distance of zero takes no time.
#[derive(Clone, PartialEq, Debug)]
pub enum SeekCurve {
    /// The same time for every distance.
    Constant(Nanos),
    /// Straight lines through three points: one cylinder, a third of all (the mean of random
    /// seeks), all.
    Linear {
        /// Seek over one cylinder.
        single: Nanos,
        /// Average seek of the data sheet.
        average: Nanos,
        /// Seek from the first to the last cylinder.
        full: Nanos,
    },
    /// `a·√(d−1) + b·(d−1) + c` through the same three points: Lee and Katz, "An analytic performance model
    /// of disk arrays" (SIGMETRICS 1993), equation 1.
    Curve {
        /// Seek over one cylinder.
        single: Nanos,
        /// Average seek of the data sheet.
        average: Nanos,
        /// Seek from the first to the last cylinder.
        full: Nanos,
    },
    /// A square root for short distances, a line for long ones: Ruemmler and Wilkes, "An
    /// introduction to disk drive modeling" (IEEE Computer, March 1994), table 3. `first` overrides
    /// the shortest distances, where curves are irregular (Worthington et al., 1994).
    TwoPiece {
        /// First distance to which the line applies.
        division: u32,
        /// Constant and factor (ms) of the square root.
        root_ms: (f64, f64),
        /// Constant and factor (ms) of the line.
        line_ms: (f64, f64),
        /// Times of 1, 2, 3 … cylinders.
        first: Vec<Nanos>,
    },
    /// Measured points `(distance, time)` in ascending order, with linear interpolation.
    Points(Vec<(u32, Nanos)>),
}

impl SeekCurve {
    /// Returns the seek times in nanoseconds for the distances from 0 to `cylinders - 1`.
    ///
    /// # Errors
    /// A curve without points, or times of more than four seconds, which no arm takes.
    pub(super) fn table(&self, cylinders: u32) -> Result<Box<[u32]>> {
        if let SeekCurve::Points(points) = self {
            check_points(points)?;
        }
        let at = self.evaluator(cylinders);
        let mut table = Vec::with_capacity(cylinders as usize);
        table.push(0);
        for d in 1..cylinders {
            let ms = at(d);
            if !(0.0..4000.0).contains(&ms) {
                let why = format!("gives {ms} ms for a distance of {d} cylinders; a seek takes 0 to 4000 ms");
                return Err(Error::param("seek curve", d, why));
            }
            table.push((ms * 1e6).round() as u32);
        }
        Ok(table.into_boxed_slice())
    }

    /// Returns the table, from a cache of one entry per thread. Callers that build the same drive
    /// repeatedly (for example for each image that a power loss may leave) compute the table once.
    ///
    /// # Errors
    /// The errors of [`SeekCurve::table`].
    pub(super) fn shared_table(&self, cylinders: u32) -> Result<Arc<[u32]>> {
        LAST.with_borrow_mut(|last| {
            if let Some((_, _, table)) = last.as_ref().filter(|(c, n, _)| c == self && *n == cylinders) {
                return Ok(table.clone());
            }
            let table: Arc<[u32]> = self.table(cylinders)?.into();
            *last = Some((self.clone(), cylinders, table.clone()));
            Ok(table)
        })
    }

    /// Returns a function that maps a distance of at least one cylinder to milliseconds.
    fn evaluator(&self, cylinders: u32) -> Box<dyn Fn(u32) -> f64 + '_> {
        let ms = |t: &Nanos| t.0 as f64 / 1e6;
        let span = f64::from(cylinders.max(2) - 1);
        match self {
            SeekCurve::Constant(t) => {
                let t = ms(t);
                Box::new(move |_| t)
            }
            SeekCurve::Linear { single, average, full } => {
                let (s, a, f) = (ms(single), ms(average), ms(full));
                let third = (span / 3.0).max(2.0);
                Box::new(move |d| {
                    let d = f64::from(d);
                    if d <= third {
                        s + (a - s) * (d - 1.0) / (third - 1.0)
                    } else {
                        a + (f - a) * (d - third) / (span - third).max(1.0)
                    }
                })
            }
            SeekCurve::Curve { single, average, full } => {
                let (s, a, f) = (ms(single), ms(average), ms(full));
                // The coefficients of equation 1, solved for `single`, `average` and `full`.
                let root = (-10.0 * s + 15.0 * a - 5.0 * f) / (3.0 * span.sqrt());
                let line = (7.0 * s - 15.0 * a + 8.0 * f) / (3.0 * span);
                Box::new(move |d| {
                    let d = f64::from(d - 1);
                    root * d.sqrt() + line * d + s
                })
            }
            SeekCurve::TwoPiece { division, root_ms, line_ms, first } => {
                Box::new(move |d| match first.get(d as usize - 1) {
                    Some(t) => ms(t),
                    None if d < *division => root_ms.0 + root_ms.1 * f64::from(d).sqrt(),
                    None => line_ms.0 + line_ms.1 * f64::from(d),
                })
            }
            SeekCurve::Points(points) => Box::new(|d| between(points, d)),
        }
    }
}

fn check_points(points: &[(u32, Nanos)]) -> Result<()> {
    if points.is_empty() {
        return Err(Error::param("seek curve", "", "has no points; give distances and times"));
    }
    if let Some(w) = points.windows(2).find(|w| w[0].0 >= w[1].0) {
        return Err(Error::param("seek curve", w[1].0, "has to be larger than the distance before it"));
    }
    Ok(())
}

/// Interpolates linearly between points. Before the first point its time applies; after the last
/// point the last line is extended.
fn between(points: &[(u32, Nanos)], d: u32) -> f64 {
    let ms = |t: Nanos| t.0 as f64 / 1e6;
    let i = points.partition_point(|p| p.0 < d);
    let (a, b) = match (points.get(i.wrapping_sub(1)), points.get(i)) {
        (_, Some(b)) if b.0 == d => return ms(b.1),
        (None, Some(b)) => return ms(b.1),
        (Some(a), Some(b)) => (a, b),
        _ => match points {
            [.., a, b] => (a, b),
            [one] => return ms(one.1),
            [] => return 0.0,
        },
    };
    let line = ms(a.1) + (ms(b.1) - ms(a.1)) * f64::from(d - a.0) / f64::from(b.0 - a.0);
    line.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(x: f64) -> Nanos {
        Nanos((x * 1e6) as u64)
    }

    #[test]
    fn points_are_met_and_joined_by_lines() {
        let c = SeekCurve::Points(vec![(1, ms(1.0)), (10, ms(2.8)), (20, ms(3.8))]);
        let t = c.table(31).unwrap();
        assert_eq!((t[0], t[1], t[10], t[20]), (0, 1_000_000, 2_800_000, 3_800_000));
        assert_eq!((t[2], t[15], t[30]), (1_200_000, 3_300_000, 4_800_000));
        assert!(SeekCurve::Points(vec![]).table(4).is_err());
        assert!(SeekCurve::Points(vec![(2, ms(1.0)), (2, ms(1.0))]).table(4).is_err());
    }

    #[test]
    fn three_points_are_met_by_both_curves() {
        let (single, average, full) = (ms(1.0), ms(8.0), ms(16.0));
        let lines = SeekCurve::Linear { single, average, full }.table(3001).unwrap();
        assert_eq!((lines[1], lines[1000], lines[3000]), (1_000_000, 8_000_000, 16_000_000));
        let curve = SeekCurve::Curve { single, average, full }.table(3001).unwrap();
        assert_eq!(curve[1], 1_000_000);
        assert!((f64::from(curve[3000]) / 1e6 - 16.0).abs() < 0.01, "{}", curve[3000]);
        // The mean over random pairs of cylinders is the average of the data sheet.
        let n = 3001.0;
        let mean: f64 =
            (1..3001).map(|d| 2.0 * (n - f64::from(d)) / (n * n) * f64::from(curve[d as usize])).sum::<f64>()
                / 1e6;
        assert!((mean - 8.0).abs() < 0.1, "{mean}");
    }

    #[test]
    fn two_pieces_and_the_first_ten() {
        let first = vec![ms(2.0), ms(3.0)];
        let c = SeekCurve::TwoPiece { division: 300, root_ms: (3.0, 0.5), line_ms: (8.0, 0.01), first };
        let t = c.table(1000).unwrap();
        assert_eq!((t[1], t[2], t[4], t[299]), (2_000_000, 3_000_000, 4_000_000, 11_645_808));
        assert_eq!(t[300], 11_000_000);
        assert!(SeekCurve::Constant(ms(5000.0)).table(3).is_err());
    }
}
