//! Expressions that match within lines.

use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look,
};

/// Returns the expression that matches the same texts as far as they have no line feed. The begin and the end of a text
/// are those of a line, so that it finds the same in a block of lines.
pub(super) fn without_line_feeds(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Look(Look::Start) => Hir::look(Look::StartLF),
        HirKind::Look(Look::End) => Hir::look(Look::EndLF),
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => Hir::fail(),
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) => hir.clone(),
        HirKind::Class(Class::Unicode(class)) => {
            let mut class = class.clone();
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(class)) => {
            let mut class = class.clone();
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Hir::class(Class::Bytes(class))
        }
        HirKind::Repetition(repetition) => {
            Hir::repetition(repetition.with(without_line_feeds(&repetition.sub)))
        }
        HirKind::Capture(capture) => without_line_feeds(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(without_line_feeds).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(without_line_feeds).collect()),
    }
}
