//! Questions about dead letters: filters, pages, groups.

use std::fmt;
use std::str::FromStr;

use super::{DeadLetter, Record, Status};
use crate::Millis;

/// The number of letters per page, if nothing else is said: what fits on a screen.
pub const PAGE_LIMIT: u32 = 50;

/// The largest page. A page is held in memory with all payloads.
pub const PAGE_LIMIT_MAX: u32 = 1_000;

/// How much of a payload is searched: what is longer is found by its beginning.
pub const SEARCHED_BYTES: usize = 64 * 1_024;

/// Which letters are meant. The default means all that are not deleted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Filter {
    /// The kind of the origin, such as `amqp`.
    pub kind: Option<String>,
    /// The place of the origin, such as the name of a queue.
    pub place: Option<String>,
    /// The reason for which the letter was given up.
    pub reason: Option<String>,
    /// Where the letter stands.
    pub status: Option<Status>,
    /// Letters that were given up at this time or later.
    pub from: Option<Millis>,
    /// Letters that were given up before this time.
    pub until: Option<Millis>,
    /// Text that occurs in the payload, in a header or in the message of the fault, in small or capital letters.
    pub text: Option<String>,
    /// Whether the deleted letters are meant, instead of those that are not.
    pub deleted: bool,
}

impl Filter {
    /// Only letters of this kind of origin.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Only letters of this place.
    #[must_use]
    pub fn place(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Only letters that were given up for this reason.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// Only letters with this status.
    #[must_use]
    pub fn status(mut self, status: Status) -> Self {
        self.status = Some(status);
        self
    }

    /// Only letters that were given up at this time or later.
    #[must_use]
    pub fn from(mut self, from: Millis) -> Self {
        self.from = Some(from);
        self
    }

    /// Only letters that were given up before this time.
    #[must_use]
    pub fn until(mut self, until: Millis) -> Self {
        self.until = Some(until);
        self
    }

    /// Only letters with this text in payload, headers or message.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Only letters that are deleted.
    #[must_use]
    pub fn deleted(mut self) -> Self {
        self.deleted = true;
        self
    }

    /// The text that is looked for, as it stands in [`searched_text`].
    #[must_use]
    pub fn needle(&self) -> Option<String> {
        self.text.as_deref().filter(|text| !text.is_empty()).map(folded)
    }

    /// Whether a letter is meant.
    #[must_use]
    pub fn matches(&self, letter: &DeadLetter) -> bool {
        let record = &letter.record;
        let is = |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|text| text == value);
        is(&self.kind, &record.origin.kind)
            && is(&self.place, &record.origin.place)
            && is(&self.reason, &record.fault.reason)
            && self.status.is_none_or(|status| status == letter.status)
            && self.from.is_none_or(|from| from <= record.at)
            && self.until.is_none_or(|until| record.at < until)
            && self.deleted == letter.deleted_at.is_some()
            && self.needle().is_none_or(|needle| searched_text(record).contains(&needle))
    }
}

/// What a search looks through: the message of the fault, the headers, and the beginning of the payload, in small letters. A
/// store keeps it beside the letter.
#[must_use]
pub fn searched_text(record: &Record) -> String {
    let mut text = record.fault.message.clone().unwrap_or_default();
    for (name, value) in &record.headers {
        text.extend(["\n", name, ": ", value]);
    }
    text.push('\n');
    let payload = &record.payload[..record.payload.len().min(SEARCHED_BYTES)];
    text.push_str(&String::from_utf8_lossy(payload));
    folded(&text)
}

/// In small letters, without the character that PostgreSQL's texts can't hold.
fn folded(text: &str) -> String {
    text.to_lowercase().replace('\0', "\u{fffd}")
}

/// The order of a list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum LetterOrder {
    /// The letter that was given up last comes first: what a person looks for.
    #[default]
    NewestFirst,
    /// The letter whose message was created first comes first, by [`happened_at`](DeadLetter::happened_at) and id: what a replay of
    /// many has to follow, or old state comes after new.
    AsItHappened,
}

impl LetterOrder {
    /// The time by which this order sorts a letter.
    #[must_use]
    pub fn time_of(self, letter: &DeadLetter) -> Millis {
        match self {
            LetterOrder::NewestFirst => letter.record.at,
            LetterOrder::AsItHappened => letter.happened_at(),
        }
    }
}

/// A page of letters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    /// The letters.
    pub letters: Vec<DeadLetter>,
    /// Where the next page begins; `None` if this is the last one.
    pub next: Option<Cursor>,
}

impl Page {
    /// Makes a page of rows that were asked for with one more than the limit: that one tells that there is a next page.
    #[must_use]
    pub fn of_rows(mut letters: Vec<DeadLetter>, order: LetterOrder, limit: u32) -> Page {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = letters.len() > limit;
        letters.truncate(limit);
        let next = letters.last().filter(|_| more).map(|letter| Cursor::of(letter, order));
        Page { letters, next }
    }
}

/// The place in a list after a letter. Letters that come or go meanwhile neither repeat nor hide others. As a text it is a
/// page token: `1794744000250.invoice-7`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// The time of the last letter of the page before, by which the list is sorted.
    pub at: Millis,
    /// The id of that letter.
    pub id: String,
}

impl Cursor {
    /// The place after this letter in a list of this order.
    #[must_use]
    pub fn of(letter: &DeadLetter, order: LetterOrder) -> Cursor {
        Cursor { at: order.time_of(letter), id: letter.record.id.clone() }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at.0, self.id)
    }
}

/// The text is no [`Cursor`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadCursor;

impl fmt::Display for BadCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the page token is not one that a page of dead letters has given")
    }
}

impl std::error::Error for BadCursor {}

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Self, BadCursor> {
        let (at, id) = text.split_once('.').ok_or(BadCursor)?;
        Ok(Cursor { at: Millis(at.parse().map_err(|_| BadCursor)?), id: id.to_owned() })
    }
}

/// How many letters there are of one group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupCount {
    /// The kind of the origin.
    pub kind: String,
    /// The place of the origin.
    pub place: String,
    /// The reason for which the letters were given up.
    pub reason: String,
    /// Where the letters stand.
    pub status: Status,
    /// The number of letters.
    pub count: u64,
    /// When the oldest of them was given up.
    pub oldest: Millis,
}
