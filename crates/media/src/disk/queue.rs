//! The queue of a drive: a part at the host, and a part that the drive sees and chooses from.

use super::drive::{Drive, DriveRequest};
use super::schedule::{Candidate, SchedulerState};
use super::spec::{Background, DiskSpec, DriveScheduler};
use frit_core::Nanos;
use std::collections::VecDeque;

/// A job for a drive.
#[derive(Clone, Copy, Debug)]
pub struct DriveJob<T> {
    /// The request; `None` for a flush, which is served when the drive sees no older job.
    pub request: Option<DriveRequest>,
    /// Position in the order of the host.
    pub number: u64,
    /// `true` if no request of the host waits for the job, so that it may have to yield
    /// ([`Background`]).
    pub background: bool,
    /// Value that [`DriveQueue::pop`] returns for the job.
    pub tag: T,
}

/// A queued job.
#[derive(Clone, Copy, Debug)]
struct QueuedJob<T> {
    candidate: Candidate,
    number: u64,
    /// Time from which it could have been chosen.
    since: Nanos,
    tag: T,
}

/// Jobs of one priority class, in the order of the host.
#[derive(Clone, Debug)]
struct JobQueue<T> {
    /// The jobs that the drive sees. A job has been here at least as long as those behind it.
    visible: VecDeque<QueuedJob<T>>,
    /// The jobs behind them, at the host.
    at_host: VecDeque<QueuedJob<T>>,
}

impl<T> JobQueue<T> {
    const fn new() -> JobQueue<T> {
        JobQueue { visible: VecDeque::new(), at_host: VecDeque::new() }
    }

    fn add(&mut self, w: QueuedJob<T>) {
        let place = self.at_host.partition_point(|x| x.number < w.number);
        self.at_host.insert(place, w);
    }

    /// Moves jobs to the part that the drive sees, up to its queue depth.
    fn fill(&mut self, depth: usize, at: Nanos) {
        while self.visible.len() < depth
            && let Some(mut w) = self.at_host.pop_front()
        {
            let place = self.visible.partition_point(|x| x.number < w.number);
            // An older job that arrives late cannot have waited for a shorter time than the job
            // behind it.
            let behind = self.visible.get(place).map_or(Nanos::MAX, |x| x.since);
            w.since = w.since.min(at).min(behind);
            self.visible.insert(place, w);
        }
    }

    fn remove(&mut self, number: u64) -> Option<QueuedJob<T>> {
        [&mut self.visible, &mut self.at_host].into_iter().find_map(|list| {
            let at = list.binary_search_by_key(&number, |w| w.number).ok()?;
            list.remove(at)
        })
    }
}

/// The jobs of a drive that wait for service.
///
/// The drive sees the oldest jobs, up to its queue depth, and its scheduler chooses among them. If
/// background jobs yield, they are served only when no other job waits. A job that could have been
/// chosen for longer than the drive's maximum wait is served next, independent of the scheduler.
#[derive(Clone, Debug)]
pub struct DriveQueue<T> {
    chooser: SchedulerState,
    depth: usize,
    max_wait: Nanos,
    yields: bool,
    next: u64,
    front: JobQueue<T>,
    background: JobQueue<T>,
}

impl<T> DriveQueue<T> {
    /// Creates an empty queue with unlimited depth and unlimited waiting time.
    #[must_use]
    pub fn new(scheduler: DriveScheduler) -> DriveQueue<T> {
        DriveQueue {
            chooser: SchedulerState::new(scheduler),
            depth: usize::MAX,
            max_wait: Nanos::MAX,
            yields: false,
            next: 0,
            front: JobQueue::new(),
            background: JobQueue::new(),
        }
    }

    /// Creates an empty queue with the parameters of a drive.
    #[must_use]
    pub fn of(spec: &DiskSpec) -> DriveQueue<T> {
        DriveQueue {
            depth: spec.queue_depth.max(1) as usize,
            max_wait: spec.max_wait,
            yields: spec.background == Background::Yield,
            ..DriveQueue::new(spec.scheduler)
        }
    }

    /// Number of queued jobs.
    #[must_use]
    pub fn len(&self) -> usize {
        let of = |l: &JobQueue<T>| l.visible.len() + l.at_host.len();
        of(&self.front) + of(&self.background)
    }

    /// Returns `true` if no job is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a request behind all others. `tag` is returned when the request is served.
    pub fn push(&mut self, drive: &Drive, request: DriveRequest, tag: T) {
        self.add(drive, DriveJob { request: Some(request), number: self.next, background: false, tag });
    }

    /// Adds a job at its position in the order of the host.
    pub fn add(&mut self, drive: &Drive, job: DriveJob<T>) {
        self.next = self.next.max(job.number + 1);
        let cylinder = job.request.map_or(0, |r| drive.cylinder(r.sector));
        let candidate = Candidate { request: job.request, cylinder };
        let w = QueuedJob { candidate, number: job.number, since: Nanos::MAX, tag: job.tag };
        if job.background && self.yields { self.background.add(w) } else { self.front.add(w) }
    }

    /// Moves a background job to the foreground because a request of the host now waits for it.
    pub fn promote(&mut self, number: u64) {
        if let Some(w) = self.background.remove(number) {
            self.front.add(w);
        }
    }

    /// Removes and returns the job that is served next if service begins at `at`.
    pub fn pop(&mut self, drive: &Drive, at: Nanos) -> Option<T> {
        self.front.fill(self.depth, at);
        self.background.fill(self.depth, at);
        let since = |l: &JobQueue<T>| l.visible.front().map_or(Nanos::MAX, |w| w.since);
        let (a, b) = (since(&self.front), since(&self.background));
        let (oldest, line) = if a <= b { (a, &mut self.front) } else { (b, &mut self.background) };
        if at.since(oldest) >= self.max_wait {
            return line.visible.pop_front().map(|w| w.tag);
        }
        let line = if self.front.visible.is_empty() { &mut self.background } else { &mut self.front };
        let next = self.chooser.choose(drive, at, &line.visible.iter().map(|w| &w.candidate))?;
        line.visible.remove(next).map(|w| w.tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::drive::DriveRequestKind;
    use crate::disk::testing::simple;
    use crate::disk::{CacheSpec, OverheadAfter, WriteBack};
    use frit_core::Sector;
    use strum::IntoEnumIterator;

    /// Returns the order of service on a drive with 100 blocks per cylinder; the arm is at cylinder
    /// 50.
    fn order(scheduler: DriveScheduler, cylinders: &[u64]) -> Vec<u64> {
        let mut drive = Drive::new(&simple()).unwrap();
        let read =
            |c: u64| DriveRequest { kind: DriveRequestKind::Read, sector: Sector(c * 100), sectors: 1 };
        let mut now = drive.service(&read(50), Nanos::ZERO).done;
        let mut queue = DriveQueue::new(scheduler);
        for &c in cylinders {
            queue.push(&drive, read(c), c);
        }
        let mut out = Vec::new();
        while let Some(c) = queue.pop(&drive, now) {
            now = drive.service(&read(c), now).done;
            out.push(c);
        }
        out
    }

    #[test]
    fn schedulers_keep_their_orders() {
        let waiting = [60, 10, 55, 80, 45, 20];
        assert_eq!(order(DriveScheduler::Fifo, &waiting), waiting);
        assert_eq!(order(DriveScheduler::Sstf, &waiting), [55, 60, 45, 20, 10, 80]);
        assert_eq!(order(DriveScheduler::Scan, &waiting), [55, 60, 80, 45, 20, 10]);
        assert_eq!(order(DriveScheduler::CLook, &waiting), [55, 60, 80, 10, 20, 45]);
    }

    #[test]
    fn nothing_is_lost_and_equals_keep_their_order() {
        for s in DriveScheduler::iter() {
            let mut served = order(s, &[3, 90, 3, 50, 7]);
            served.sort_unstable();
            assert_eq!(served, [3, 3, 7, 50, 90], "{s:?}");
            assert!(DriveQueue::<()>::new(s).is_empty());
        }
    }

    #[test]
    fn positioning_time_is_what_service_takes() {
        // The overheads are long enough for a sector to pass in the meantime.
        let mut slow = simple();
        slow.overheads.command = Nanos(200_000);
        slow.overheads.read_miss = OverheadAfter { read: Nanos(350_000), write: Nanos(50_000) };
        let mut drive = Drive::new(&slow).unwrap();
        let mut now = Nanos::ZERO;
        for block in [700, 12, 9_950, 4_401, 4_405, 4_412] {
            let r = DriveRequest { kind: DriveRequestKind::Read, sector: Sector(block), sectors: 1 };
            let expected = drive.positioning(&r, now);
            let s = drive.service(&r, now);
            assert_eq!(s.seek + s.rotation, expected);
            now = s.done;
        }
    }

    #[test]
    fn what_the_cache_takes_costs_no_way() {
        let cache = CacheSpec { write_back: WriteBack::Full, dirty_sectors: 8, ..CacheSpec::default() };
        let mut drive = Drive::new(&DiskSpec { cache, ..simple() }).unwrap();
        let job = |kind, block| DriveRequest { kind, sector: Sector(block), sectors: 8 };
        let way = |d: &Drive, kind, block| d.positioning(&job(kind, block), Nanos(10)) > Nanos::ZERO;
        assert!(!way(&drive, DriveRequestKind::Write, 5000) && way(&drive, DriveRequestKind::Read, 5000));
        drive.service(&job(DriveRequestKind::Write, 5000), Nanos(0));
        assert!(way(&drive, DriveRequestKind::Write, 7000) && !way(&drive, DriveRequestKind::Read, 5000));
    }

    const DEPTH: u32 = 4;

    fn spec(scheduler: DriveScheduler, max_wait: u64, background: Background) -> DiskSpec {
        DiskSpec { scheduler, max_wait: Nanos(max_wait), background, queue_depth: DEPTH, ..simple() }
    }

    fn job(cylinder: u64, number: u64, background: bool) -> DriveJob<u64> {
        let request =
            DriveRequest { kind: DriveRequestKind::Read, sector: Sector(cylinder * 100), sectors: 1 };
        DriveJob { request: Some(request), number, background, tag: number }
    }

    /// Returns the job numbers in the order of service; each service takes `step` and moves the
    /// arm.
    fn drain(queue: &mut DriveQueue<u64>, jobs: &[DriveJob<u64>], step: u64) -> Vec<u64> {
        let mut drive = Drive::new(&simple()).unwrap();
        let (mut now, mut out) = (Nanos::ZERO, Vec::new());
        jobs.iter().for_each(|&j| queue.add(&drive, j));
        while let Some(n) = queue.pop(&drive, now) {
            if let Some(r) = jobs[n as usize].request {
                drive.service(&r, now);
            }
            now = Nanos(now.0 + step);
            out.push(n);
        }
        assert!(queue.is_empty());
        out
    }

    #[test]
    fn a_drive_sees_no_more_than_it_takes() {
        // The arm is at cylinder 0. The nearest of the first four jobs is served, then the next job
        // becomes visible.
        let jobs: Vec<_> =
            [40, 30, 20, 10, 5, 1].into_iter().zip(0..).map(|(c, n)| job(c, n, false)).collect();
        let mut q = DriveQueue::of(&spec(DriveScheduler::Sstf, u64::MAX, Background::Yield));
        assert_eq!(drain(&mut q, &jobs, 1), [3, 4, 5, 2, 1, 0]);
        let mut q = DriveQueue::new(DriveScheduler::Sstf);
        assert_eq!(drain(&mut q, &jobs, 1), [5, 4, 3, 2, 1, 0]);
    }

    #[test]
    fn nobody_waits_longer_than_the_bound() {
        // One job is far away, the others are near: it is served third, after two services of 10
        // each, and not last.
        let cylinders = [90, 1, 2, 3, 4, 5, 6, 7];
        let jobs: Vec<_> = cylinders.into_iter().zip(0..).map(|(c, n)| job(c, n, false)).collect();
        let starved =
            drain(&mut DriveQueue::of(&spec(DriveScheduler::Sstf, u64::MAX, Background::Equal)), &jobs, 10);
        assert_eq!(starved.last(), Some(&0));
        let bounded =
            drain(&mut DriveQueue::of(&spec(DriveScheduler::Sstf, 20, Background::Equal)), &jobs, 10);
        assert_eq!(bounded.iter().position(|&n| n == 0), Some(2));
        // With a bound of zero the order is first come, first served, once all jobs are visible.
        let none = drain(&mut DriveQueue::of(&spec(DriveScheduler::Sstf, 0, Background::Equal)), &jobs, 10);
        assert_eq!(none, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn background_yields_but_not_for_ever() {
        let jobs: Vec<_> = (0..8).map(|n| job(n, n, n < 2)).collect();
        let order = |b, wait| drain(&mut DriveQueue::of(&spec(DriveScheduler::Fifo, wait, b)), &jobs, 10);
        assert_eq!(order(Background::Yield, u64::MAX), [2, 3, 4, 5, 6, 7, 0, 1]);
        // Both background jobs have waited for 20 after two services; among jobs that waited
        // equally long, those in the foreground go first.
        assert_eq!(order(Background::Yield, 25), [2, 3, 4, 5, 0, 1, 6, 7]);
        assert_eq!(order(Background::Equal, u64::MAX), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn what_somebody_waits_for_does_not_yield() {
        let drive = Drive::new(&simple()).unwrap();
        let mut q = DriveQueue::of(&spec(DriveScheduler::Fifo, u64::MAX, Background::Yield));
        (0..12).for_each(|n| q.add(&drive, job(n, n, n < 10)));
        assert_eq!(q.pop(&drive, Nanos(0)), Some(10));
        for n in [9, 1, 11] {
            q.promote(n); // at the host, visible to the drive, and not a background job
        }
        let rest: Vec<_> = std::iter::from_fn(|| q.pop(&drive, Nanos(0))).collect();
        assert_eq!(rest, [1, 9, 11, 0, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_flush_waits_for_what_came_before_it() {
        for scheduler in DriveScheduler::iter() {
            let flush = DriveJob { request: None, ..job(0, 2, false) };
            let jobs = [job(50, 0, false), job(70, 1, false), flush, job(99, 3, false)];
            let out = drain(&mut DriveQueue::of(&spec(scheduler, u64::MAX, Background::Yield)), &jobs, 1);
            assert_eq!(out, [0, 1, 2, 3], "{scheduler:?}");
        }
    }

    #[test]
    fn late_ones_take_their_place() {
        let drive = Drive::new(&simple()).unwrap();
        let mut q = DriveQueue::of(&spec(DriveScheduler::Fifo, 15, Background::Yield));
        [0, 2, 3, 4, 5, 6].into_iter().for_each(|n| q.add(&drive, job(n, n, false)));
        assert_eq!(q.pop(&drive, Nanos(0)), Some(0));
        q.add(&drive, job(1, 1, false));
        let rest: Vec<_> = (1..7).map(|i| q.pop(&drive, Nanos(i * 10)).unwrap()).collect();
        assert_eq!(rest, [1, 2, 3, 4, 5, 6]);
    }
}
