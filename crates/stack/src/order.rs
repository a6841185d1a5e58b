//! Order of the layers of a stack: an upper one before those below it.

use crate::error::Problem;
use crate::roles::{Filled, LayerTable};
use crate::stack::Below;

/// Maximum number of layers that an error names.
const NAMES_MAX: usize = 8;

/// Returns the layers in the order of a walk from the top, as indexes into `layers`. Checks that one
/// layer is above all others.
pub(crate) fn top_first(
    layers: &[LayerTable<'_>],
    filled: &[Filled],
    problems: &mut Vec<Problem>,
) -> Option<Vec<usize>> {
    let below = |i: usize| {
        filled[i].iter().filter_map(|(_, b)| if let Below::Layer(i) = b { Some(*i) } else { None })
    };
    let mut is_below = vec![false; layers.len()];
    (0..layers.len()).flat_map(below).for_each(|i| is_below[i] = true);
    let tops: Vec<usize> = (0..layers.len()).filter(|&i| !is_below[i]).collect();
    let table = |i: usize| format!("[{}]", layers[i].entry.key);
    match tops[..] {
        [top] => {
            let mut order = Vec::new();
            let mut next = vec![top];
            while let Some(i) = next.pop() {
                order.push(i);
                let mut under: Vec<usize> = below(i).collect();
                under.reverse();
                next.extend(under);
            }
            if order.len() == layers.len() {
                return Some(order);
            }
            // A layer is below one layer at most, so the others form circles.
            let lost = (0..layers.len()).find(|i| !order.contains(i)).unwrap_or(0);
            problems.push(circle(&layers[lost]));
            None
        }
        [] => {
            problems.extend(layers.first().map(circle));
            None
        }
        [_, other, ..] => {
            let names: Vec<&str> =
                tops.iter().take(NAMES_MAX).map(|&i| layers[i].entry.key.as_str()).collect();
            let others: Vec<String> = tops.iter().skip(1).take(NAMES_MAX).map(|&i| table(i)).collect();
            let message = format!("{} are all top layers: requests go to one layer", names.join(" and "));
            let help = format!(
                "remove {}, or name it in a role of another layer, such as `disk = \"{}\"` of a cache",
                others.join(" and "),
                layers[other].entry.key
            );
            let at = Some(layers[other].table.span.clone());
            problems.push(Problem::new(message).at(at, "another layer").help(help));
            None
        }
    }
}

fn circle(layer: &LayerTable<'_>) -> Problem {
    Problem::new(format!("`{}` is below itself: the layers name each other in a circle", layer.entry.key))
        .at(Some(layer.table.span.clone()), "a layer of the circle")
        .help("one layer has to be above all others; `frit check` draws a valid stack")
}
