//! A disk behind an ordinary SSD as its cache: over a disk, an FTL and a hybrid.

use crate::common::{many_images, share_of};

#[test]
fn distinct_images_of_caches_on_ssds_hold() {
    let stacks = [("flashcache-disk", 3_000), ("flashcache-ftl", 2_000), ("flashcache-through", 1_500)];
    let distinct = many_images(&stacks.map(|(name, images)| (name.to_owned(), images)));
    assert!(distinct >= share_of(10_000), "{distinct}");
}
