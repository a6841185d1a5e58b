//! Assignment of colours. The hues are those of Okabe and Ito (2008), *Color Universal Design*,
//! which people with the common kinds of colour blindness can distinguish; `style.css` defines them
//! for light and dark screens.

/// A colour of the style sheet: the classes `f-…` fill, `k-…` stroke and `b-…` paint a background
/// with it.
pub(super) type Colour = &'static str;

/// Returns the colour of a class of requests.
pub(super) fn class(name: &str) -> Colour {
    match name {
        "read" => "blue",
        "write" => "verm",
        "discard" => "purple",
        "flush" => "green",
        "read-or-miss" => "sky",
        "write-dirty" | "zone-append" => "orange",
        "write-clean" => "yellow",
        _ => "ink",
    }
}

/// Returns the colour of a cause of commands.
pub(super) fn cause(name: &str) -> Colour {
    match name {
        "host" => "blue",
        "merge" => "sky",
        "gc" => "verm",
        "wear-level" => "purple",
        "meta" => "yellow",
        "migrate" => "green",
        "destage" => "orange",
        "isp" => "ink",
        _ => "grey",
    }
}

/// Returns the colour of one of several runs, by its index.
pub(super) fn run(place: usize) -> Colour {
    ["ink", "blue", "orange", "green", "purple", "verm", "sky", "grey"][place % 8]
}
