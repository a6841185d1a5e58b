use super::*;
use proptest::prelude::*;

const MAX: u64 = 48 << 20;

/// A budget whose counted part is [`MAX`].
fn memory() -> Arc<Memory> {
    Memory::new(2 * MAX)
}

/// Takes memory in steps until the share is exceeded.
fn filled(account: &Account) -> Vec<Charge> {
    std::iter::from_fn(|| account.charged(STEP_BYTES as usize).ok()).collect()
}

#[test]
fn a_user_has_at_most_what_is_free_and_leaves_room_for_another() {
    let memory = memory();
    let share = |charges: &[Charge]| charges.iter().map(|charge| charge.bytes).sum::<u64>();
    let first = filled(&Account::new(&memory, User(0)));
    assert_eq!(share(&first), MAX / 2);
    // What the first one has is more than the share of two, so the second one has half of the rest.
    let second = filled(&Account::new(&memory, User(1)));
    assert_eq!(share(&second), MAX / 4);
    drop((first, second));
    // Results of parts before their turn leave room for their merge.
    let ahead = filled(&Account::new(&memory, User(0)).ahead());
    assert_eq!(share(&ahead), MAX / 3);
    let merged = filled(&Account::new(&memory, User(0)));
    assert_eq!(share(&merged) + share(&ahead), MAX / 2);
    drop((ahead, merged));
    // Ten users who take in turn have equal shares.
    let accounts: Vec<_> = (0..10).map(|user| Account::new(&memory, User(user))).collect();
    let mut charges: Vec<Vec<Charge>> = (0..10).map(|_| Vec::new()).collect();
    for _ in 0..MAX / STEP_BYTES {
        for (account, charges) in accounts.iter().zip(&mut charges) {
            charges.extend(account.charged(STEP_BYTES as usize));
        }
    }
    for charges in &charges {
        let (share, fair) = (share(charges), MAX / 11);
        assert!(share <= fair + STEP_BYTES && share + 2 * STEP_BYTES >= fair, "{share} of {fair}");
    }
    let newcomer = filled(&Account::new(&memory, User(10)));
    assert!(share(&newcomer) + 11 * STEP_BYTES >= MAX / 22, "{}", share(&newcomer));
    drop((charges, newcomer));
    assert_eq!(memory.used(), 0);
}

#[test]
fn one_step_takes_no_more_than_many() {
    let memory = memory();
    let [first, second, third] = [0, 1, 2].map(|user| Account::new(&memory, User(user)));
    assert!(first.charged(MAX as usize).is_err() && first.charged(MAX as usize / 2 + 1).is_err());
    let _half = first.charged(MAX as usize / 2).unwrap();
    let _quarter = second.charged(MAX as usize / 4).unwrap();
    assert!(third.check_room().is_ok());
    // The last goes to those who have little.
    let _few: Vec<_> =
        (3..9).map(|user| Account::new(&memory, User(user)).charged(FEW_BYTES as usize).unwrap()).collect();
    assert_eq!(memory.used(), MAX);
}

#[test]
fn a_refusal_says_who_has_what() {
    let memory = memory();
    let account = Account::new(&memory, User(7));
    let _kept = account.charged(20 << 20).unwrap();
    let failure = account.charged(9 << 20).unwrap_err();
    assert_eq!(failure.status, Status::Busy);
    for part in ["9437184 more bytes", "user 7", "20971520 of the 20971520 bytes", "50331648 in all"] {
        assert!(failure.message.contains(part), "{part}: {failure}");
    }
    assert!(account.check_room().is_ok());
    let _rest = filled(&account);
    assert_eq!(account.check_room().unwrap_err().status, Status::Busy);
    assert!(Account::new(&memory, User(8)).check_room().is_ok());
}

#[derive(Clone, Debug)]
enum Act {
    Cover(usize, usize),
    Add(usize, usize),
    Shrink(usize, u64),
    Drop(usize),
}

fn act() -> impl Strategy<Value = Act> {
    let bytes = prop_oneof![0_usize..10_000, 0_usize..(MAX as usize)];
    prop_oneof![
        4 => (0_usize..12, bytes.clone()).prop_map(|(at, bytes)| Act::Cover(at, bytes)),
        2 => (0_usize..12, bytes).prop_map(|(at, bytes)| Act::Add(at, bytes)),
        1 => (0_usize..12, 0..MAX).prop_map(|(at, bytes)| Act::Shrink(at, bytes)),
        1 => (0_usize..12).prop_map(Act::Drop),
    ]
}

proptest! {
    #[test]
    fn counts_never_exceed_the_budget_and_are_all_given_back(acts in proptest::collection::vec(act(), 1..80)) {
        let memory = memory();
        // Twelve charges of four users, beside a model that has a number for each.
        let accounts: Vec<_> = (0..12).map(|at| Account::new(&memory, User(at % 4))).collect();
        let mut charges: Vec<_> = accounts.iter().map(Account::charge).collect();
        let mut needed = [0_u64; 12];
        for act in acts {
            let used = |charges: &[Charge]| charges.iter().map(|charge| charge.bytes).sum::<u64>();
            let of_user = |charges: &[Charge], at: usize| used_of(charges, at % 4);
            match act {
                Act::Cover(at, bytes) => {
                    let (before, all, has) = (charges[at].bytes, used(&charges), of_user(&charges, at));
                    let more = (bytes as u64).saturating_sub(before);
                    let free = MAX - all;
                    let fits = has + more <= free.saturating_sub(more) || more <= FEW_BYTES && has + more <= free;
                    prop_assert_eq!(charges[at].cover(bytes).is_ok(), more == 0 || fits);
                    let after = if more > 0 && fits { bytes as u64 } else { before };
                    prop_assert!((after..after + STEP_BYTES).contains(&charges[at].bytes));
                }
                Act::Add(at, bytes) => {
                    let before = charges[at].bytes;
                    match charges[at].add(bytes) {
                        Ok(()) => needed[at] += bytes as u64,
                        Err(_) => prop_assert_eq!(charges[at].bytes, before),
                    }
                    prop_assert!(charges[at].bytes >= needed[at]);
                }
                Act::Shrink(at, bytes) => {
                    charges[at].shrink(bytes);
                    needed[at] = needed[at].min(bytes);
                    prop_assert!(charges[at].bytes <= bytes);
                }
                Act::Drop(at) => (charges[at], needed[at]) = (accounts[at].charge(), 0),
            }
            prop_assert_eq!(memory.used(), used(&charges));
            prop_assert!(memory.used() <= MAX);
        }
        drop(charges);
        prop_assert_eq!(memory.used(), 0);
        prop_assert!(memory.state.lock().users.is_empty());
    }
}

fn used_of(charges: &[Charge], user: usize) -> u64 {
    charges.iter().enumerate().filter(|(at, _)| at % 4 == user).map(|(_, charge)| charge.bytes).sum()
}

#[test]
fn a_long_list_is_not_copied_again() {
    let account = Account::unlimited();
    let (mut charge, mut list) = (account.charge(), Vec::new());
    let mut capacities = Vec::new();
    for at in 0..3_000_000_u64 {
        charge.push(&mut list, at).unwrap();
        if capacities.last() != Some(&list.capacity()) {
            capacities.push(list.capacity());
        }
    }
    assert!(
        capacities.iter().all(|capacity| *capacity * 8 <= SMALL_BYTES || *capacity * 8 >= LARGE_BYTES - 8)
    );
    // What is used counts, and not the address space.
    assert!((24_000_000..24_000_000 + STEP_BYTES).contains(&charge.bytes), "{}", charge.bytes);
}
