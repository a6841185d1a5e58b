//! Memory of the instructions of an engine, and the share of each user.
//!
//! Memory is counted when it is used, in steps, so that the limits of instructions may exceed the budget by far.
//! A user may take more only while all that the user then has is at most what is free then (dynamic
//! thresholds: Choudhury and Hahne, *Dynamic queue length thresholds for shared-memory packet switches*,
//! IEEE/ACM Transactions on Networking 6(2), 1998, with alpha = 1). So one user has at most half of the budget,
//! two have a third each, ten an eleventh each, and there is room for one more at any time.

mod allocator;
mod machine;

pub(super) use allocator::limit_arenas;
pub(crate) use machine::budget as machine_budget;

use super::User;
use crate::outcome::{Failure, Status};
use allocator::Freed;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;

/// Part of the budget that is not given to instructions, as its divisor. It is for what is not counted: the
/// allocator keeps freed memory in pieces (measured: up to as much as is in use), and threads have stacks.
const NOT_COUNTED: u64 = 2;
/// Memory of the threads of an engine in bytes, with their stacks and a chunk and line each. It is taken off a budget that
/// has several times as much.
const THREADS_BYTES: u64 = 64 << 20;
/// Size in bytes from which the memory of a list comes from the kernel at once, and not in pieces that the allocator
/// keeps. glibc does so above 32 MiB in any case (mallopt(3), `M_MMAP_THRESHOLD`). Pages that are not used take no memory.
const LARGE_BYTES: usize = 33 << 20;
/// Size in bytes up to which a list grows by doubling: more than the results of a view have. New pages for each view
/// take longer than a search that finds all lines.
const SMALL_BYTES: usize = 2 << 20;
/// Bytes that are counted at a time, unless less is in use than this.
const STEP_BYTES: u64 = 64 << 10;
/// Bytes that are counted at least.
const STEP_BYTES_MIN: u64 = 4 << 10;
/// Bytes that must be free for a user when an instruction begins. Otherwise it waits.
const BEGIN_BYTES: u64 = 1 << 20;
/// Bytes that a user may take at a time if what the user had before is at most what was free. So many users can work in
/// a small budget, and one step takes hardly more than many.
const FEW_BYTES: u64 = 2 * BEGIN_BYTES;

/// Memory of an engine.
#[derive(Debug)]
pub(crate) struct Memory {
    max: u64,
    state: Mutex<State>,
    freed: Freed,
}

#[derive(Default, Debug)]
struct State {
    used: u64,
    users: HashMap<User, u64>,
}

impl State {
    /// Bytes that a user has, and those that may be added for a purpose.
    fn share(&self, user: User, purpose: Purpose, max: u64) -> (u64, u64) {
        let has = self.users.get(&user).copied().unwrap_or(0);
        let free = max.saturating_sub(self.used);
        let parts = if purpose == Purpose::Ahead { 2 } else { 1 };
        // Whatever the user has then is at most this part of what is free then.
        let fair = free.saturating_sub(parts * has) / (parts + 1);
        let few = (free / parts).saturating_sub(has).min(FEW_BYTES);
        (has, fair.max(few))
    }
}

/// Purpose of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// Anything that an instruction needs.
    Needed,
    /// Results of parts before their turn, without which an instruction takes longer. They leave half of what is free.
    Ahead,
}

impl Memory {
    /// Creates the memory of an engine with a budget in bytes.
    pub(crate) fn new(budget: u64) -> Arc<Self> {
        let budget = if budget >= 4 * THREADS_BYTES { budget - THREADS_BYTES } else { budget };
        Arc::new(Self {
            max: budget - budget / NOT_COUNTED,
            state: Mutex::default(),
            freed: Freed::default(),
        })
    }

    /// Number of users who can have memory to begin an instruction at a time.
    pub(super) fn users_max(&self) -> usize {
        usize::try_from(self.max / BEGIN_BYTES).unwrap_or(usize::MAX)
    }

    /// Bytes that are in use by all users.
    pub(crate) fn used(&self) -> u64 {
        self.state.lock().used
    }

    /// Counts memory of a user.
    fn take(&self, (user, purpose): (User, Purpose), bytes: u64) -> Result<(), Failure> {
        let mut state = self.state.lock();
        let (has, free) = state.share(user, purpose, self.max);
        if bytes > free {
            let used = state.used;
            drop(state);
            return Err(self.refusal(user, bytes, (has, used)));
        }
        state.used += bytes;
        *state.users.entry(user).or_default() += bytes;
        debug_assert!(state.used <= self.max, "{} of {} bytes", state.used, self.max);
        Ok(())
    }

    /// Gives memory of a user back.
    fn give_back(&self, user: User, bytes: u64) {
        let mut state = self.state.lock();
        state.used = state.used.saturating_sub(bytes);
        if let Some(has) = state.users.get_mut(&user) {
            *has = has.saturating_sub(bytes);
            if *has == 0 {
                state.users.remove(&user);
            }
        }
        drop(state);
        self.freed.add(bytes);
    }

    fn refusal(&self, user: User, bytes: u64, (has, used): (u64, u64)) -> Failure {
        Failure::new(
            Status::Busy,
            format!(
                "{bytes} more bytes exceed the share of {user}, whose instructions and results have {has} of the \
                 {used} bytes in use of {} in all; a user has at most as much as is free: read or close other \
                 results, give fewer instructions at a time, or reduce the result with \"limit\", \"length\" or \
                 \"memory\"",
                self.max
            ),
        )
    }
}

/// Memory of a user.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    memory: Arc<Memory>,
    user: User,
    purpose: Purpose,
}

impl Account {
    pub(crate) fn new(memory: &Arc<Memory>, user: User) -> Self {
        Self { memory: Arc::clone(memory), user, purpose: Purpose::Needed }
    }

    /// Account of the same user for results of parts before their turn, which can also be scanned later.
    pub(crate) fn ahead(&self) -> Self {
        Self { purpose: Purpose::Ahead, ..self.clone() }
    }

    /// Begins to count memory of the user.
    pub(crate) fn charge(&self) -> Charge {
        Charge { account: self.clone(), bytes: 0, needed: 0 }
    }

    /// Counts memory of the user.
    ///
    /// # Errors
    /// The share of the user is exceeded.
    pub(crate) fn charged(&self, bytes: usize) -> Result<Charge, Failure> {
        let mut charge = self.charge();
        charge.cover(bytes)?;
        Ok(charge)
    }

    /// Fails if an instruction that begins now would soon have to fail.
    pub(crate) fn check_room(&self) -> Result<(), Failure> {
        let state = self.memory.state.lock();
        let (has, free) = state.share(self.user, self.purpose, self.memory.max);
        let used = state.used;
        drop(state);
        // A budget can be smaller than what usually begins.
        let begin = BEGIN_BYTES.min(self.memory.max / 16);
        if free >= begin { Ok(()) } else { Err(self.memory.refusal(self.user, begin, (has, used))) }
    }
}

#[cfg(test)]
impl Account {
    /// Creates an account without a limit.
    pub(crate) fn unlimited() -> Self {
        Self::new(&Memory::new(u64::MAX), User::default())
    }
}

/// Memory in use, which is counted for a user until this value is dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    account: Account,
    /// Bytes that are counted.
    bytes: u64,
    /// Bytes that are in use, as far as [`Self::push`] and [`Self::add`] know them.
    needed: u64,
}

impl Charge {
    /// Counts further memory, so that at least `bytes` are counted.
    ///
    /// # Errors
    /// The share of the user is exceeded. The count is as before.
    #[inline]
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), Failure> {
        if bytes as u64 <= self.bytes { Ok(()) } else { self.grow(bytes as u64) }
    }

    fn grow(&mut self, bytes: u64) -> Result<(), Failure> {
        let step =
            if bytes < STEP_BYTES { bytes.next_power_of_two().max(STEP_BYTES_MIN) } else { STEP_BYTES };
        let rounded = bytes.next_multiple_of(step);
        let Account { memory, user, purpose } = &self.account;
        let of = (*user, *purpose);
        // At the limit, each byte counts.
        let grown = [rounded, bytes].into_iter().find(|to| memory.take(of, to - self.bytes).is_ok());
        match grown {
            Some(to) => self.bytes = to,
            None => memory.take(of, bytes - self.bytes).map(|()| self.bytes = bytes)?,
        }
        Ok(())
    }

    /// Counts further memory beside what is in use.
    ///
    /// # Errors
    /// The share of the user is exceeded. The count is as before.
    #[inline]
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), Failure> {
        let needed = self.needed + bytes as u64;
        if needed > self.bytes {
            self.grow(needed)?;
        }
        self.needed = needed;
        Ok(())
    }

    /// Adds an element to a list, and counts it.
    ///
    /// # Errors
    /// The share of the user is exceeded. The list is as before.
    #[inline]
    pub(crate) fn push<T>(&mut self, list: &mut Vec<T>, element: T) -> Result<(), Failure> {
        self.add(size_of::<T>())?;
        if list.len() == list.capacity() {
            make_room(list, 1);
        }
        list.push(element);
        Ok(())
    }

    /// Gives back what exceeds `bytes`.
    pub(crate) fn shrink(&mut self, bytes: u64) {
        self.needed = self.needed.min(bytes);
        if bytes < self.bytes {
            self.account.memory.give_back(self.account.user, self.bytes - bytes);
            self.bytes = bytes;
        }
    }
}

/// Makes room for more elements of a list, so that a long one leaves no unused memory behind where it was.
pub(crate) fn make_room<T>(list: &mut Vec<T>, more: usize) {
    let wanted = list.len().saturating_add(more);
    if wanted <= list.capacity() || wanted * size_of::<T>() <= SMALL_BYTES {
        return;
    }
    let room = wanted.max(2 * list.capacity()).max(LARGE_BYTES / size_of::<T>());
    // Without so much address space, the list grows as usual.
    let _ = list.try_reserve_exact(room - list.len());
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests;
