//! Drawing of a stack as a tree.

use frit_core::size;
use frit_stack::{LayerSummary, StackSummary};

/// Draws the layers and media of a stack, the top layer first.
pub(super) fn drawing(s: &StackSummary) -> String {
    let mut out = String::new();
    if let Some(top) = s.layers.first() {
        out.push_str(&label(top));
        out.push('\n');
        draw_below(s, top, "", &mut out);
    }
    out
}

fn label(l: &LayerSummary) -> String {
    let kind = if l.kind == l.name { String::new() } else { format!(" ({})", l.kind) };
    format!("{}{kind}, {}", l.name, size::format(l.capacity_bytes))
}

fn draw_below(s: &StackSummary, l: &LayerSummary, indent: &str, out: &mut String) {
    let below: Vec<(&str, &String)> =
        l.on.iter().flat_map(|(role, names)| names.iter().map(move |name| (*role, name))).collect();
    for (i, (role, name)) in below.iter().enumerate() {
        let is_last = i + 1 == below.len();
        let branch = if is_last { "└─" } else { "├─" };
        let layer = s.layers.iter().find(|l| l.name == **name);
        let medium = s.media.iter().find(|m| m.name == **name);
        let what = match (layer, medium) {
            (Some(layer), _) => label(layer),
            (None, Some(m)) => {
                let kind: &str = m.kind.into();
                format!("{name} ({kind}), {}", size::format(m.bytes))
            }
            (None, None) => (*name).clone(),
        };
        out.push_str(&format!("{indent}{branch} {role}: {what}\n"));
        if let Some(layer) = layer {
            let deeper = if is_last { "   " } else { "│  " };
            draw_below(s, layer, &format!("{indent}{deeper}"), out);
        }
    }
}
