//! Which colour stands for what. Hues are those of Okabe and Ito (2008), *Color Universal Design*, which people with the
//! common kinds of colour blindness tell apart; `style.css` has them for light and dark.

/// A colour of the style sheet: classes `f-…` fill, `k-…` stroke and `b-…` paint a background with it.
pub(super) type Colour = &'static str;

/// A class of requests.
pub(super) fn class(name: &str) -> Colour {
    match name {
        "read" => "blue",
        "write" => "verm",
        "discard" => "purple",
        "flush" => "green",
        _ => "ink",
    }
}

/// The cause of a command.
pub(super) fn cause(name: &str) -> Colour {
    match name {
        "host" => "blue",
        "merge" => "sky",
        "gc" => "verm",
        "wear-level" => "purple",
        "meta" => "yellow",
        "migrate" => "green",
        "destage" => "orange",
        _ => "grey",
    }
}

/// One of several runs, by its place.
pub(super) fn run(place: usize) -> Colour {
    ["ink", "blue", "orange", "green", "purple", "verm", "sky", "grey"][place % 8]
}
