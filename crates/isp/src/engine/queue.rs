//! Jobs that wait for threads, by users.

use super::pool::Steps;
use super::turns::{Turns, Usage};
use super::user::User;
use crate::scan::StepTime;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Jobs of all users.
pub(super) struct Queue {
    lines: Vec<Line>,
    turns: Arc<Turns>,
    /// Number of changes after which a blocked job may be able to continue.
    pub(super) changes: u64,
    /// Number of threads that were taken because a user had none.
    for_users: usize,
    /// Number of threads in steps of each time.
    busy: [usize; 3],
    /// Number that orders jobs by the time of their last step.
    order: u64,
}

/// Jobs of one user. The ones whose last step is longest ago come first.
struct Line {
    user: User,
    usage: Arc<Usage>,
    /// Jobs that have begun.
    begun: VecDeque<Entry>,
    /// Jobs that have not. Together they wait for memory.
    new: VecDeque<Entry>,
    /// Time until which new jobs wait.
    waits_until: Option<Instant>,
    /// Number of threads in steps of the user.
    threads: usize,
    /// Time at which the user had no thread, or was given one because of that.
    without_since: Instant,
    /// `true` if the user has work that does not wait.
    is_active: bool,
}

struct Entry {
    job: Arc<dyn Steps>,
    /// Number of threads in a step of it.
    threads: usize,
    time: StepTime,
    order: u64,
    /// Number of changes with which no further thread can advance it.
    blocked: Option<u64>,
}

impl Line {
    fn new(user: User, usage: Arc<Usage>, now: Instant) -> Self {
        let (begun, new) = (VecDeque::new(), VecDeque::new());
        Self { user, usage, begun, new, waits_until: None, threads: 0, without_since: now, is_active: false }
    }

    fn waits(&self, now: Instant) -> bool {
        self.waits_until.is_some_and(|until| now < until)
    }

    /// Removes the next job that a thread may take.
    fn next(&mut self, now: Instant, may_take: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let new = if self.waits(now) { None } else { self.new.iter().position(&may_take) };
        let begun = self.begun.iter().position(&may_take);
        let is_new = match (new, begun) {
            (Some(new), Some(begun)) => self.new[new].order < self.begun[begun].order,
            (new, _) => new.is_some(),
        };
        if is_new { self.new.remove(new?) } else { self.begun.remove(begun?) }
    }

    /// Entry of a job, which was taken not long ago.
    fn find(&self, job: &Arc<dyn Steps>) -> Option<usize> {
        self.begun.iter().rposition(|entry| Arc::ptr_eq(&entry.job, job))
    }
}

/// Jobs that a thread may take.
#[derive(Clone, Copy)]
pub(super) enum Choice {
    /// Those whose steps last no longer.
    Usual(StepTime),
    /// Those that no other thread has, and whose steps last no longer.
    Spare(StepTime),
    /// Those of users who have been without a thread for so long.
    Without(Duration),
}

/// Job that a thread has taken.
pub(super) struct Taken {
    pub(super) job: Arc<dyn Steps>,
    pub(super) usage: Arc<Usage>,
    changes: u64,
    for_user: bool,
}

/// End of a step of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It can go on.
    Ready,
    /// Other threads have to advance it.
    Blocked,
    /// It has not begun, and waits for memory of its user, as all others that have not begun.
    Waits {
        /// Time at which it is tried again.
        until: Instant,
    },
}

impl Queue {
    pub(super) fn new(turns: &Arc<Turns>) -> Self {
        Self { lines: Vec::new(), turns: Arc::clone(turns), changes: 0, for_users: 0, busy: [0; 3], order: 0 }
    }

    /// Adds a job.
    pub(super) fn add(&mut self, user: User, job: Arc<dyn Steps>, now: Instant) {
        self.order += 1;
        let entry = Entry { threads: 0, time: job.step_time(), order: self.order, blocked: None, job };
        let at = self.lines.iter().position(|line| line.user == user).unwrap_or_else(|| {
            self.lines.push(Line::new(user, self.turns.usage(user), now));
            self.lines.len() - 1
        });
        let line = &mut self.lines[at];
        line.new.push_back(entry);
        if !line.waits(now) && !std::mem::replace(&mut line.is_active, true) {
            line.without_since = now;
            self.turns.begin(&line.usage);
        }
    }

    /// Takes the next job in turn: that of the user with the least processor time, and of this user the one that was
    /// taken longest ago.
    pub(super) fn take(&mut self, choice: Choice, now: Instant) -> Option<Taken> {
        // Threads add to the times meanwhile, and a sort may panic if its keys change: each is read once.
        let mut order: Vec<_> = self.lines.iter().map(|line| line.usage.ns()).zip(0..).collect();
        order.sort_unstable();
        for (_, at) in order {
            let line = &mut self.lines[at];
            if let Choice::Without(time) = choice
                && (line.threads > 0 || now.duration_since(line.without_since) < time)
            {
                continue;
            }
            let changes = self.changes;
            let next = line.next(now, |entry| {
                let is_chosen = match choice {
                    Choice::Without(_) => true,
                    Choice::Usual(longest) => entry.time <= longest,
                    Choice::Spare(longest) => entry.threads == 0 && entry.time <= longest,
                };
                is_chosen && entry.blocked != Some(changes)
            });
            let Some(mut entry) = next else { continue };
            self.order += 1;
            (entry.order, entry.threads) = (self.order, entry.threads + 1);
            line.threads += 1;
            self.busy[entry.time as usize] += 1;
            let for_user = matches!(choice, Choice::Without(_));
            self.for_users += usize::from(for_user);
            let (job, usage) = (Arc::clone(&entry.job), Arc::clone(&line.usage));
            line.begun.push_back(entry);
            if !std::mem::replace(&mut line.is_active, true) {
                self.turns.begin(&line.usage);
            }
            return Some(Taken { job, usage, changes, for_user });
        }
        None
    }

    /// Ends the step of a job.
    pub(super) fn give_back(&mut self, taken: &Taken, next: Next, now: Instant) {
        self.for_users -= usize::from(taken.for_user);
        self.with_line(&taken.job, now, |line, index, busy| {
            let entry = &mut line.begun[index];
            entry.threads -= 1;
            entry.blocked = (next == Next::Blocked).then_some(taken.changes);
            busy[entry.time as usize] -= 1;
            line.threads -= 1;
            if !taken.for_user {
                line.without_since = now;
            }
            if let Next::Waits { until } = next {
                line.waits_until = Some(until);
                line.new.extend(line.begun.remove(index));
            } else {
                line.waits_until = line.waits_until.filter(|until| now < *until);
            }
        });
    }

    /// Removes a job.
    pub(super) fn remove(&mut self, job: &Arc<dyn Steps>, now: Instant) {
        self.with_line(job, now, |line, index, busy| {
            if let Some(entry) = line.begun.remove(index) {
                line.threads -= entry.threads;
                busy[entry.time as usize] -= entry.threads;
            }
        });
        self.lines.retain(|line| !line.begun.is_empty() || !line.new.is_empty());
    }

    fn with_line(
        &mut self,
        job: &Arc<dyn Steps>,
        now: Instant,
        change: impl FnOnce(&mut Line, usize, &mut [usize; 3]),
    ) {
        let found = self.lines.iter_mut().find_map(|line| line.find(job).map(|index| (line, index)));
        let Some((line, index)) = found else { return };
        change(line, index, &mut self.busy);
        let has_work = !line.begun.is_empty() || !line.new.is_empty() && !line.waits(now);
        if line.is_active && !has_work {
            line.is_active = false;
            self.turns.end(&line.usage);
        }
    }

    /// Number of threads in steps that last at least so long, without those for users who had none.
    pub(super) fn busy(&self, time: StepTime) -> usize {
        self.busy[time as usize..].iter().sum::<usize>().saturating_sub(self.for_users)
    }

    /// Number of threads that were taken because a user had none.
    pub(super) fn for_users(&self) -> usize {
        self.for_users
    }

    pub(super) fn len(&self) -> usize {
        self.lines.iter().map(|line| line.begun.len() + line.new.len()).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns `true` if jobs wait for memory.
    pub(super) fn has_waiting(&self) -> bool {
        self.lines.iter().any(|line| line.waits_until.is_some() && !line.new.is_empty())
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = &Arc<dyn Steps>> {
        self.lines.iter().flat_map(|line| line.begun.iter().chain(&line.new)).map(|entry| &entry.job)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::Step;
    use super::*;
    use proptest::prelude::*;

    struct Work(StepTime);

    impl Steps for Work {
        fn step(&self) -> Step {
            Step::Worked
        }

        fn cancel(&self) {}

        fn step_time(&self) -> StepTime {
            self.0
        }
    }

    fn work(time: StepTime) -> Arc<dyn Steps> {
        Arc::new(Work(time))
    }

    proptest! {
        /// Users with any numbers of jobs, whose steps take any times, have equal processor times.
        #[test]
        fn users_have_equal_times(users in proptest::collection::vec((1_usize..70, 1_u64..50), 2..12)) {
            let (turns, now) = (Turns::new(1), Instant::now());
            let mut queue = Queue::new(&turns);
            for (user, (jobs, _)) in users.iter().enumerate() {
                (0..*jobs).for_each(|_| queue.add(User(user as u32), work(StepTime::Short), now));
            }
            let usages: Vec<_> = (0..users.len()).map(|user| turns.usage(User(user as u32))).collect();
            for _ in 0..2000 {
                let taken = queue.take(Choice::Usual(StepTime::Endless), now).unwrap();
                let user = usages.iter().position(|usage| Arc::ptr_eq(usage, &taken.usage)).unwrap();
                taken.usage.add(users[user].1);
                queue.give_back(&taken, Next::Ready, now);
            }
            let times = usages.iter().map(|usage| usage.ns());
            let (least, most) = (times.clone().min().unwrap(), times.max().unwrap());
            prop_assert!(most - least <= 50, "{least} {most}");
            // A newcomer is the next.
            queue.add(User(99), work(StepTime::Short), now);
            let next = queue.take(Choice::Usual(StepTime::Endless), now).unwrap();
            prop_assert!(next.usage.ns() <= least + 50);
        }
    }

    #[test]
    fn a_user_takes_turns_with_the_own_jobs() {
        let (turns, now) = (Turns::new(1), Instant::now());
        let mut queue = Queue::new(&turns);
        let jobs: Vec<_> = (0..5).map(|_| work(StepTime::Short)).collect();
        jobs.iter().for_each(|job| queue.add(User(0), Arc::clone(job), now));
        for round in 0..3 {
            for job in &jobs {
                let taken = queue.take(Choice::Usual(StepTime::Endless), now).unwrap();
                assert!(Arc::ptr_eq(&taken.job, job), "{round}");
                queue.give_back(&taken, Next::Ready, now);
            }
        }
        for job in &jobs {
            let taken = queue.take(Choice::Usual(StepTime::Endless), now).unwrap();
            queue.give_back(&taken, Next::Ready, now);
            queue.remove(job, now);
        }
        assert!(queue.is_empty() && queue.take(Choice::Usual(StepTime::Endless), now).is_none());
    }

    #[test]
    fn a_user_without_a_thread_is_found_whatever_others_have() {
        let (turns, now) = (Turns::new(1), Instant::now());
        let mut queue = Queue::new(&turns);
        (0..64).for_each(|_| queue.add(User(0), work(StepTime::Endless), now));
        let first = queue.take(Choice::Usual(StepTime::Endless), now).unwrap();
        let limit = Duration::from_millis(50);
        let later = now + 2 * limit;
        assert!(queue.take(Choice::Without(limit), later).is_none(), "the user has a thread");
        queue.add(User(1), work(StepTime::Endless), later);
        assert!(queue.take(Choice::Without(limit), later + limit / 2).is_none(), "it is new");
        let found = queue.take(Choice::Without(limit), later + limit).unwrap();
        assert!(!Arc::ptr_eq(&found.usage, &first.usage));
        // It takes none of the threads that others have.
        assert_eq!((queue.busy(StepTime::Long), queue.for_users()), (1, 1));
        assert!(queue.take(Choice::Without(limit), later + limit).is_none());
        // Its next step follows at once.
        queue.give_back(&found, Next::Ready, later + limit);
        assert!(queue.take(Choice::Without(limit), later + limit).is_some());
    }

    #[test]
    fn times_that_change_meanwhile_do_not_disturb_the_order() {
        let (turns, now) = (Turns::new(1), Instant::now());
        let mut queue = Queue::new(&turns);
        (0..200).for_each(|user| queue.add(User(user), work(StepTime::Short), now));
        let usages: Vec<_> = (0..200).map(|user| turns.usage(User(user))).collect();
        let ended = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let mut ns = 1_u64;
                while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                    for usage in &usages {
                        ns = ns.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        usage.add(ns);
                    }
                }
            });
            // It panics at times if a time is read again.
            let taken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                for _ in 0..5000 {
                    let taken = queue.take(Choice::Usual(StepTime::Endless), now).unwrap();
                    queue.give_back(&taken, Next::Ready, now);
                }
            }));
            ended.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(taken.is_ok());
        });
    }

    #[test]
    fn a_blocked_job_of_one_user_does_not_hide_those_of_others() {
        let (turns, now) = (Turns::new(2), Instant::now());
        let mut queue = Queue::new(&turns);
        let (blocked, other) = (work(StepTime::Short), work(StepTime::Short));
        queue.add(User(0), Arc::clone(&blocked), now);
        queue.add(User(1), Arc::clone(&other), now);
        turns.usage(User(1)).add(100);
        let mut next = || {
            let taken = queue.take(Choice::Usual(StepTime::Endless), now)?;
            queue.give_back(&taken, Next::Blocked, now);
            Some(Arc::ptr_eq(&taken.job, &blocked))
        };
        assert_eq!([next(), next(), next()], [Some(true), Some(false), None]);
        queue.changes += 1;
        assert!(queue.take(Choice::Usual(StepTime::Endless), now).is_some());
    }

    #[test]
    fn jobs_that_wait_are_passed_over_and_their_user_has_no_work() {
        let (turns, now) = (Turns::new(1), Instant::now());
        let mut queue = Queue::new(&turns);
        let (waiting, other) = (work(StepTime::Short), work(StepTime::Short));
        queue.add(User(0), Arc::clone(&waiting), now);
        let until = now + Duration::from_millis(5);
        let taken = queue.take(Choice::Usual(StepTime::Endless), now).unwrap();
        queue.give_back(&taken, Next::Waits { until }, now);
        assert!(queue.has_waiting() && queue.take(Choice::Usual(StepTime::Endless), now).is_none());
        // The other one begins with the own time, although the first one has less.
        queue.add(User(1), Arc::clone(&other), now);
        turns.usage(User(1)).add(100);
        let taken = queue.take(Choice::Usual(StepTime::Endless), now).unwrap();
        assert!(Arc::ptr_eq(&taken.job, &other));
        let taken = queue.take(Choice::Usual(StepTime::Endless), until).unwrap();
        assert!(Arc::ptr_eq(&taken.job, &waiting));
        assert_eq!(turns.usage(User(0)).ns(), 100, "no time was saved up");
    }
}
