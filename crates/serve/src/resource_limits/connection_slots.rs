//! Connection slots: a bounded number, which no client can occupy permanently, with a part for the user who runs the
//! server and for root, whom other users must not keep out.

use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time that a new connection waits for evicted connections to end.
const EVICTION_WAIT_MAX: Duration = Duration::from_secs(1);

/// A connection that another thread can close.
pub(crate) trait Disconnect: Send + Sync {
    /// Closes the connection; its own thread notices at once.
    fn disconnect(&self);
}

/// The peer of a connection, as identified by the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Peer {
    /// A process of this machine, over a Unix socket: user ID and process ID.
    Process(u32, i32),
    /// A user of this machine, over TCP: user ID.
    User(u32),
    /// A machine, over TCP. For this machine: a user whom the kernel does not name.
    Machine(IpAddr),
    /// The kernel does not identify the peer.
    Unknown,
}

impl Peer {
    /// Returns the user ID, if the peer is a user of this machine.
    pub(crate) fn user(self) -> Option<u32> {
        match self {
            Peer::Process(user, _) | Peer::User(user) => Some(user),
            Peer::Machine(_) | Peer::Unknown => None,
        }
    }

    /// Returns `true` if the peer is a user or root.
    pub(super) fn is_user_or_root(self, owner: u32) -> bool {
        self.user().is_some_and(|user| user == 0 || user == owner)
    }

    /// Returns the peer without its process: what a limit for each user counts.
    pub(super) fn without_process(self) -> Peer {
        self.user().map_or(self, Peer::User)
    }
}

/// Limits on the number of connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotLimits {
    /// User who runs the server. This user and root are its *owners*.
    pub(crate) owner: u32,
    /// Maximum number of connections of all peers.
    pub(crate) most: usize,
    /// Number of further connections that only owners may have, while others occupy slots.
    pub(crate) reserved: usize,
    /// Maximum number of connections of each user or machine other than the owners.
    pub(crate) of_peer: usize,
    /// Idle time after which a connection may be evicted for a new one. `None`: never, so that only connections that
    /// have sent no complete message may be evicted.
    pub(crate) idle_min: Option<Duration>,
}

impl SlotLimits {
    /// Returns `true` if a peer is the user who runs the server, or root.
    pub(crate) fn is_owner(&self, peer: Peer) -> bool {
        peer.is_user_or_root(self.owner)
    }
}

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ConnectionState {
    /// No complete message has been received yet.
    New,
    /// Requests are being received or answered.
    Busy,
    /// Idle since this time: nothing has been received since, and no reply is outstanding.
    Idle(Instant),
}

struct SlotEntry<S> {
    socket: Arc<S>,
    peer: Peer,
    state: ConnectionState,
    /// The connection was evicted, and its thread is about to end.
    evicted: bool,
}

/// The connection slots of a server.
pub(crate) struct ConnectionSlots<S> {
    limits: SlotLimits,
    open: Mutex<OpenConnections<S>>,
    closed: Condvar,
}

struct OpenConnections<S> {
    number: u64,
    connections: HashMap<u64, SlotEntry<S>>,
}

/// The slot of a connection. Dropping it frees the slot.
pub(crate) struct ConnectionSlot<S> {
    slots: Arc<ConnectionSlots<S>>,
    number: u64,
}

/// Connections that a new one may replace.
#[derive(Clone, Copy, Debug)]
enum Replaceable {
    /// Those of the same user or machine, which has as many as it may have.
    OfPeer(Peer),
    /// Those of all peers but the owners.
    OfOthers,
    /// Those of the owners.
    OfOwners,
    /// All, those of the owners last.
    All,
}

impl<S: Disconnect> ConnectionSlots<S> {
    /// Creates slots.
    pub(crate) fn new(limits: SlotLimits) -> Arc<ConnectionSlots<S>> {
        let open = Mutex::new(OpenConnections { number: 0, connections: HashMap::new() });
        Arc::new(ConnectionSlots { limits, open, closed: Condvar::new() })
    }

    /// Returns `true` if a peer is the user who runs the server, or root.
    pub(crate) fn is_owner(&self, peer: Peer) -> bool {
        self.limits.is_owner(peer)
    }

    /// Assigns a slot to a connection, and returns `true` with it if another connection was
    /// evicted. Returns `None` if the peer has all the connections that it may have, and none may be evicted.
    pub(crate) fn admit(self: &Arc<Self>, socket: &Arc<S>, peer: Peer) -> Option<(ConnectionSlot<S>, bool)> {
        let limits = &self.limits;
        let mut open = self.open.lock();
        // Evicted connections end soon, but keep their thread until then. The limit bounds the
        // number of threads when very many clients connect at once. Only owners wait, because nobody is
        // admitted meanwhile.
        let until = Instant::now() + EVICTION_WAIT_MAX;
        let is_owner = self.is_owner(peer);
        let threads_max = 2 * (limits.most + if is_owner { limits.reserved } else { 0 });
        while open.connections.len() >= threads_max {
            if !is_owner || self.closed.wait_until(&mut open, until).timed_out() {
                return None;
            }
        }
        let replaceable = open.replaceable(limits, peer);
        if let Some(replaceable) = replaceable
            && !open.evict(limits, replaceable)
        {
            return None;
        }
        open.number += 1;
        let number = open.number;
        let connection =
            SlotEntry { socket: Arc::clone(socket), peer, state: ConnectionState::New, evicted: false };
        open.connections.insert(number, connection);
        Some((ConnectionSlot { slots: Arc::clone(self), number }, replaceable.is_some()))
    }

    /// Calls a function for each connection.
    pub(crate) fn each(&self, f: impl FnMut(&S)) {
        self.open.lock().connections.values().map(|g| &*g.socket).for_each(f);
    }

    /// Waits until all connections have ended, or until `time` has passed. Returns the number of
    /// connections that remain.
    pub(crate) fn wait(&self, time: Option<Duration>) -> usize {
        let until = time.map(|t| Instant::now() + t);
        let mut open = self.open.lock();
        while !open.connections.is_empty() {
            match until {
                Some(until) if self.closed.wait_until(&mut open, until).timed_out() => break,
                Some(_) => {}
                None => self.closed.wait(&mut open),
            }
        }
        open.connections.len()
    }
}

impl<S: Disconnect> OpenConnections<S> {
    /// Returns which connections a new one of this peer has to replace, or `None` if a slot is free for it.
    fn replaceable(&self, limits: &SlotLimits, peer: Peer) -> Option<Replaceable> {
        let remaining = || self.connections.values().filter(|g| !g.evicted);
        let all = remaining().count();
        let of_owners = remaining().filter(|g| limits.is_owner(g.peer)).count();
        let of_peer = remaining().filter(|g| g.peer.without_process() == peer.without_process()).count();
        if limits.is_owner(peer) {
            let of_others_kept = (all - of_owners).min(limits.reserved);
            return match () {
                () if of_owners >= limits.most => Some(Replaceable::OfOwners),
                () if all >= limits.most + of_others_kept => Some(Replaceable::All),
                () => None,
            };
        }
        match () {
            () if of_peer >= limits.of_peer => Some(Replaceable::OfPeer(peer)),
            () if all >= limits.most => Some(Replaceable::OfOthers),
            () => None,
        }
    }

    /// Evicts a connection, and returns `false` if none may be evicted. The victim is the oldest
    /// connection that has sent no complete message. If there is none, it is the connection idle
    /// longest of the peer with most connections. Hence a client with few connections keeps them
    /// while another occupies all slots.
    fn evict(&mut self, limits: &SlotLimits, which: Replaceable) -> bool {
        match which {
            Replaceable::OfPeer(peer) => {
                self.evict_among(limits, |p| p.without_process() == peer.without_process())
            }
            Replaceable::OfOthers => self.evict_among(limits, |p| !limits.is_owner(p)),
            Replaceable::OfOwners => self.evict_among(limits, |p| limits.is_owner(p)),
            Replaceable::All => {
                self.evict_among(limits, |p| !limits.is_owner(p))
                    || self.evict_among(limits, |p| limits.is_owner(p))
            }
        }
    }

    fn evict_among(&mut self, limits: &SlotLimits, may: impl Fn(Peer) -> bool) -> bool {
        let may = |g: &SlotEntry<S>| !g.evicted && may(g.peer);
        let new = self.connections.iter_mut().filter(|(_, g)| may(g) && g.state == ConnectionState::New);
        if let Some((_, connection)) = new.min_by_key(|(number, _)| **number) {
            connection.evict();
            return true;
        }
        let Some(idle_min) = limits.idle_min else { return false };
        let mut of_peer: HashMap<Peer, usize> = HashMap::new();
        for connection in self.connections.values().filter(|g| !g.evicted) {
            *of_peer.entry(connection.peer).or_default() += 1;
        }
        let now = Instant::now();
        let idle = |g: &SlotEntry<S>| match g.state {
            ConnectionState::Idle(since) => {
                Some(now.saturating_duration_since(since)).filter(|t| *t >= idle_min)
            }
            ConnectionState::New | ConnectionState::Busy => None,
        };
        let all = self.connections.values_mut().filter(|g| may(g));
        let victim = all
            .filter_map(|g| idle(g).map(|time| (of_peer.get(&g.peer).copied(), time, g)))
            .max_by_key(|(count, time, _)| (*count, *time));
        victim.map(|(.., connection)| connection.evict()).is_some()
    }
}

impl<S: Disconnect> SlotEntry<S> {
    fn evict(&mut self) {
        self.evicted = true;
        self.socket.disconnect();
    }
}

impl<S> ConnectionSlot<S> {
    fn with_entry(&self, f: impl FnOnce(&mut SlotEntry<S>)) {
        let mut open = self.slots.open.lock();
        if let Some(connection) = open.connections.get_mut(&self.number) {
            f(connection);
        }
    }

    /// Marks the connection as busy: a complete message was received, and requests are being
    /// answered.
    pub(crate) fn busy(&self) {
        self.with_entry(|g| g.state = ConnectionState::Busy);
    }

    /// Marks the connection as idle since a time: all requests are answered, and nothing has been
    /// received.
    pub(crate) fn idle(&self, since: Instant) {
        self.with_entry(|g| g.state = ConnectionState::Idle(since));
    }
}

impl<S> Drop for ConnectionSlot<S> {
    fn drop(&mut self) {
        self.slots.open.lock().connections.remove(&self.number);
        self.slots.closed.notify_all();
    }
}

impl Disconnect for std::os::unix::net::UnixStream {
    fn disconnect(&self) {
        // This fails if the peer has already closed the connection, which is harmless.
        let _ = self.shutdown(std::net::Shutdown::Both);
    }
}

impl Disconnect for std::net::TcpStream {
    fn disconnect(&self) {
        // This fails if the peer has already closed the connection, which is harmless.
        let _ = self.shutdown(std::net::Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[derive(Default)]
    struct Socket(AtomicBool);

    impl Disconnect for Socket {
        fn disconnect(&self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    type SlotEntries = Vec<(Arc<Socket>, ConnectionSlot<Socket>)>;

    const OWNER: u32 = 1000;

    fn slots_of(most: usize, idle_min: Option<Duration>) -> Arc<ConnectionSlots<Socket>> {
        ConnectionSlots::new(SlotLimits { owner: OWNER, most, reserved: 2, of_peer: 3, idle_min })
    }

    fn admit(slots: &Arc<ConnectionSlots<Socket>>, connections: &mut SlotEntries, pid: i32) -> bool {
        admit_peer(slots, connections, Peer::Process(0, pid))
    }

    fn admit_peer(slots: &Arc<ConnectionSlots<Socket>>, connections: &mut SlotEntries, peer: Peer) -> bool {
        let socket = Arc::new(Socket::default());
        let Some((slot, _)) = slots.admit(&socket, peer) else { return false };
        connections.push((socket, slot));
        true
    }

    fn disconnected(connections: &SlotEntries) -> Vec<usize> {
        (0..connections.len()).filter(|&i| connections[i].0.0.load(Ordering::Relaxed)).collect()
    }

    #[test]
    fn silent_ones_make_room_oldest_first_and_busy_ones_never() {
        let slots = slots_of(3, Some(Duration::ZERO));
        let mut connections = Vec::new();
        (0..3).for_each(|_| assert!(admit(&slots, &mut connections, 1)));
        connections[0].1.busy();
        assert!(admit(&slots, &mut connections, 2) && disconnected(&connections) == [1]);
        assert!(admit(&slots, &mut connections, 2) && disconnected(&connections) == [1, 2]);
        connections[3].1.busy();
        connections[4].1.busy();
        assert!(!admit(&slots, &mut connections, 2), "all are busy");
        connections.remove(0);
        assert!(admit(&slots, &mut connections, 2), "a slot was freed");
        drop(connections);
        assert_eq!(slots.wait(None), 0);
    }

    #[test]
    fn idle_ones_make_room_where_one_peer_has_most() {
        let slots = slots_of(4, Some(Duration::from_secs(60)));
        let mut connections = Vec::new();
        let hours = |h: u64| Instant::now().checked_sub(Duration::from_secs(h * 3600));
        // The first connection has been idle for longest, but is the only one of its process; the
        // second process has three.
        for (pid, idle) in [(1, 5), (2, 1), (2, 3), (2, 2)] {
            assert!(admit(&slots, &mut connections, pid));
            // `Instant` cannot represent this time on a machine that booted less than that long
            // ago.
            let Some(since) = hours(idle) else { return };
            connections.last().unwrap().1.idle(since);
        }
        assert!(admit(&slots, &mut connections, 3) && disconnected(&connections) == [2]);
        connections[4].1.busy();
        connections[1].1.idle(Instant::now());
        assert!(
            admit(&slots, &mut connections, 3) && disconnected(&connections) == [2, 3],
            "the other is not idle for long"
        );
        let never = slots_of(1, None);
        let mut connections = Vec::new();
        assert!(admit(&never, &mut connections, 1));
        connections[0].1.idle(Instant::now());
        assert!(!admit(&never, &mut connections, 2));
    }

    #[test]
    fn others_keep_the_owner_out_neither_by_number_nor_by_silence() {
        let slots = slots_of(4, None);
        let mut connections = Vec::new();
        let [one, two, owner] = [2001, 2002, OWNER].map(Peer::User);
        for _ in 0..3 {
            assert!(admit_peer(&slots, &mut connections, one));
        }
        assert!(admit_peer(&slots, &mut connections, one), "it replaces its own oldest one");
        assert_eq!(disconnected(&connections), [0]);
        connections[1..].iter().for_each(|(_, slot)| slot.busy());
        assert!(!admit_peer(&slots, &mut connections, one), "no more than three of a user");
        assert!(!admit_peer(&slots, &mut connections, Peer::Process(2001, 77)), "whatever its process");
        assert!(admit_peer(&slots, &mut connections, two), "another user still has a slot");
        connections[4].1.busy();
        assert!(!admit_peer(&slots, &mut connections, Peer::Unknown), "all four are in use");
        for peer in [owner, Peer::Process(0, 1)] {
            assert!(admit_peer(&slots, &mut connections, peer), "reserved for the owner and root");
        }
        connections[5..].iter().for_each(|(_, slot)| slot.busy());
        assert!(!admit_peer(&slots, &mut connections, owner), "six in all");
        assert_eq!(disconnected(&connections), [0]);
    }

    #[test]
    fn a_new_connection_of_the_owner_is_not_evicted_for_another_user() {
        let slots = slots_of(4, Some(Duration::ZERO));
        let mut connections = Vec::new();
        for _ in 0..4 {
            assert!(admit_peer(&slots, &mut connections, Peer::User(OWNER)));
        }
        assert!(!admit_peer(&slots, &mut connections, Peer::User(2001)));
        assert!(admit_peer(&slots, &mut connections, Peer::User(0)), "the owners share their slots");
        assert_eq!(disconnected(&connections), [0]);
    }
}
