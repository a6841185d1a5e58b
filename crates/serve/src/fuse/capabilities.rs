//! Negotiation of limits and capabilities with the kernel at mounting.

use fuser::{InitFlags, KernelConfig};

/// Maximum size of a request: the maximum that the kernel allows without further settings
/// (fs.fuse.max_pages_limit is 256).
const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Maximum number of outstanding background requests, such as read-ahead and the requests of a loop
/// device.
const BACKGROUND_MAX: u16 = 128;

/// Sets the limits of requests, and requests capabilities; each is used if the kernel has it.
pub(super) fn negotiate(config: &mut KernelConfig, capabilities: impl IntoIterator<Item = InitFlags>) {
    // If the kernel allows less, it reports its maximum, which is then used.
    let _ = config.set_max_write(REQUEST_BYTES_MAX).map_err(|most| config.set_max_write(most));
    let _ = config.set_max_background(BACKGROUND_MAX);
    for wish in capabilities {
        let _ = config.add_capabilities(wish);
    }
}
