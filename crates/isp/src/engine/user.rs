//! Users of an engine, among whom it shares memory and processors.

/// User of an engine: in a mount the one who opened the command file. Engines that serve one user only, such
/// as those of volumes and images, have the default one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct User(
    /// User ID of the system.
    pub u32,
);

impl std::fmt::Display for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "user {}", self.0)
    }
}
