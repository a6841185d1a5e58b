//! Result of an instruction in the form in which it is read.

use super::input::Form;
use crate::engine::{Account, Charge, Ticket};
use crate::instructions::Answer;
use crate::outcome::{Failure, Outcome};
use crate::{binary, text};
use std::sync::Arc;

/// Bytes of a result: those that are made for its form, and the payload, which stays where it is.
pub(super) struct Reply {
    head: Vec<u8>,
    outcome: Arc<Outcome>,
    has_payload: bool,
    _charge: Charge,
}

impl Reply {
    /// Makes the result of an instruction that is complete. Without memory for its form, the result is not kept: the
    /// instruction has failed then, as one without memory for its results.
    pub(super) fn new(form: &Form, ticket: &Ticket, mut outcome: Arc<Outcome>, account: &Account) -> Self {
        let mut charge = account.charge();
        let (head, has_payload) = format(form, &outcome, &mut charge).unwrap_or_else(|failure| {
            charge = account.charge();
            outcome = ticket.replace(failure);
            let head = match form {
                Form::Json => text::format(&outcome),
                Form::Binary(structure) => binary::format(structure, &outcome),
            };
            (head, false)
        });
        charge.shrink(head.capacity() as u64);
        Self { head, outcome, has_payload, _charge: charge }
    }

    fn payload(&self) -> &[u8] {
        let payload = self.outcome.result.as_ref().map_or(&[][..], Answer::payload);
        if self.has_payload { payload } else { &[] }
    }

    pub(super) fn len(&self) -> usize {
        self.head.len() + self.payload().len()
    }

    /// Returns up to `len` bytes from `from` on.
    pub(super) fn bytes(&self, from: usize, len: usize) -> Vec<u8> {
        let len = len.min(self.len() - from);
        let mut bytes = Vec::with_capacity(len);
        let head = self.head.get(from..).unwrap_or_default();
        bytes.extend_from_slice(&head[..len.min(head.len())]);
        let behind = from.saturating_sub(self.head.len());
        let missing = len - bytes.len();
        bytes.extend_from_slice(&self.payload()[behind..behind + missing]);
        bytes
    }
}

/// Makes the bytes before the payload, if the result has a payload in its form.
fn format(form: &Form, outcome: &Outcome, charge: &mut Charge) -> Result<(Vec<u8>, bool), Failure> {
    let Form::Binary(structure) = form else { return Ok((text::line(outcome, charge)?, true)) };
    let (buffer, has_payload) = if binary::has_text(structure, outcome) {
        (text::line(outcome, charge)?, true)
    } else {
        charge.cover(outcome.memory_bytes() as usize)?;
        (binary::positions(outcome), false)
    };
    charge.cover(2 * buffer.len() + structure.len())?;
    let payload = outcome.result.as_ref().map_or(&[][..], Answer::payload);
    let behind = if has_payload { payload.len() } else { 0 };
    Ok((binary::head(structure, outcome, &buffer, behind), has_payload))
}
