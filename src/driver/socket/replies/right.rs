//! Right answers, many at once: under load there is little else. All others are looked at one by one.

use super::super::super::{Completion, Outcome};
use super::{Noted, Replies};
use crate::dataset::{Dataset, Reading, UUID_LEN};
use crate::plan::Command;

/// The reply to a write that was executed.
const STORED: &[u8] = b"+OK\r\n";
/// What the reply begins with if the value is a UUID; the value and a line's end follow.
const UUID_HEAD: &[u8] = b"$36\r\n";
const UUID_REPLY_LEN: usize = UUID_HEAD.len() + UUID_LEN + 2;

impl Replies {
    /// Takes the right answers at the head of what arrived, all at once, and says how many bytes they were.
    pub(super) fn take_right(&mut self, arrived: &[u8], dataset: &Dataset, done: &mut Vec<Completion>) -> usize {
        let Some(&Noted { command, .. }) = self.asked.front() else { return 0 };
        match command {
            Command::Set => self.take_alike(arrived, STORED.len(), Outcome::Stored, done, |_, reply| reply == STORED),
            Command::Get if dataset.values_are_uuids() => {
                let right = |noted: Noted, reply: &[u8]| is_right_uuid(dataset, noted, reply);
                self.take_alike(arrived, UUID_REPLY_LEN, Outcome::Read(Reading::Matched), done, right)
            }
            _ => 0,
        }
    }

    /// Takes replies of `len` bytes to the first requests, which are all of one command, as long as they are `right`.
    fn take_alike(
        &mut self,
        arrived: &[u8],
        len: usize,
        outcome: Outcome,
        done: &mut Vec<Completion>,
        right: impl Fn(Noted, &[u8]) -> bool,
    ) -> usize {
        let Some(&Noted { ticket: first, command, .. }) = self.asked.front() else { return 0 };
        let answered = self.asked.iter().zip(first..).zip(arrived.chunks_exact(len));
        let count = answered
            .take_while(|((noted, ticket), reply)| {
                noted.ticket == *ticket && noted.command == command && right(**noted, reply)
            })
            .count();
        if count > 0 {
            self.asked.drain(..count);
            // A read buffer holds fewer than 2³².
            done.push(Completion { alike: count as u32 - 1, ..Completion::new(first, 0, outcome, None) });
        }
        count * len
    }
}

fn is_right_uuid(dataset: &Dataset, noted: Noted, reply: &[u8]) -> bool {
    let value = reply.strip_prefix(UUID_HEAD).and_then(|rest| rest.strip_suffix(b"\r\n"));
    value.is_some_and(|value| dataset.is_uuid_value(noted.place.place(), noted.version, value))
}
