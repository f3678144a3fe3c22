//! What stands after the question mark: filters and pages.

use axum::response::Response;
use seawall_hub_core::encode::decoded_value;
use seawall_hub_core::port::store::{Page, PageRequest};
use serde_json::{Value, json};

use super::fields::{FieldError, unknown};
use super::reply::wrong_fields;

/// The default number of items on a page.
const PAGE_SIZE: usize = 50;
/// The maximum number of items on a page.
const PAGE_SIZE_MAX: usize = 500;

/// The last digits of a token are made of the others, so that a token that no page has given is recognised.
const CHECK_DIGITS: usize = 4;

/// The parameters of a request, taken one by one. What is left at the end is unknown.
pub(super) struct Query {
    pairs: Vec<(String, String)>,
    problems: Vec<FieldError>,
}

impl Query {
    pub(super) fn new(query: Option<&str>) -> Self {
        Query { pairs: pairs_of(query), problems: Vec::new() }
    }

    pub(super) fn wrong(&mut self, field: &str, reason: impl Into<String>) {
        self.problems.push(FieldError { field: field.into(), reason: reason.into() });
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        let at = self.pairs.iter().position(|(known, _)| known == name)?;
        let value = self.pairs.remove(at).1;
        if value.is_empty() {
            // Whoever forgot to fill it in would get everything.
            self.wrong(name, "must not be empty; omit it for all");
        }
        Some(value).filter(|value| !value.is_empty())
    }

    pub(super) fn parsed<T, E: std::fmt::Display>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.text(name)?;
        parse(&text).map_err(|error| self.wrong(name, error.to_string())).ok()
    }

    /// One of these words.
    pub(super) fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(name)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meant)| *meant);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.wrong(name, format!("must be one of {}, not `{text}`", known.join(", ")));
        }
        found
    }

    pub(super) fn page(&mut self) -> PageRequest {
        // What the last page calls the next one is empty, and so is what a loop begins with.
        self.pairs.retain(|(name, value)| name != "page_token" || !value.is_empty());
        let size = self.parsed("page_size", |text| {
            let size = text.parse().ok().filter(|size| (1..=PAGE_SIZE_MAX).contains(size));
            size.ok_or(format!("must be an integer from 1 to {PAGE_SIZE_MAX}"))
        });
        let from = self.parsed("page_token", |text| {
            position(text).ok_or("must be the `nextPageToken` of a previous page")
        });
        PageRequest { from, size: size.unwrap_or(PAGE_SIZE) }
    }

    pub(super) fn end(mut self, known: &str) -> Result<(), Box<Response>> {
        let left: Vec<String> = self.pairs.iter().map(|(name, _)| name.clone()).collect();
        for name in left {
            self.wrong(&name, unknown("parameter", &name, known));
        }
        if self.problems.is_empty() { Ok(()) } else { Err(Box::new(wrong_fields(&self.problems))) }
    }
}

/// The token of the next page; empty if there is none.
pub(super) fn next_token<T>(page: &Page<T>) -> String {
    page.next.map(token).unwrap_or_default()
}

/// A page as it is answered.
pub(super) fn paged<T>(page: &Page<T>, name: &str, show: impl Fn(&T) -> Value) -> Value {
    let items: Vec<Value> = page.items.iter().map(show).collect();
    json!({name: items, "nextPageToken": next_token(page)})
}

/// What a page calls the next one.
fn token(position: u64) -> String {
    // Multiplied by a large odd number, neighbours look nothing alike.
    let check = position.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44;
    format!("{}{:0>width$}", base_36(position), base_36(check), width = CHECK_DIGITS)
}

/// The other way round; nothing, if it was not written by [`token`].
fn position(text: &str) -> Option<u64> {
    let digits = text.len().checked_sub(CHECK_DIGITS).and_then(|end| text.get(..end))?;
    u64::from_str_radix(digits, 36).ok().filter(|position| token(*position) == text)
}

fn base_36(mut number: u64) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(u32::try_from(number % 36).unwrap_or(0), 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

/// Names and values of a query, or of a form.
pub(crate) fn pairs_of(query: Option<&str>) -> Vec<(String, String)> {
    let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded_value(name), decoded_value(value))
    };
    pairs.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// API-1: parameters are decoded, pages are numbered, and what nobody knows is a mistake.
    #[test]
    fn api_1_parameters_are_taken_one_by_one() {
        let mut query =
            Query::new(Some("type=order.%2A&source=a+b&page_size=7&page_token=zzlugz&state=%zz%4"));
        assert_eq!(query.text("type").as_deref(), Some("order.*"));
        assert_eq!(query.text("source").as_deref(), Some("a b"));
        assert_eq!(query.page(), PageRequest { from: Some(35 * 36 + 35), size: 7 });
        assert_eq!(query.text("state").as_deref(), Some("%zz%4"));
        assert!(query.end("").is_ok());
        for wrong in [
            "page_size=0",
            "page_size=501",
            "page_size=",
            "page_token=!",
            "page_token=zzzz",
            "page_token=zzlug0",
            "page_token=Z",
            "page_token=%2B1",
            "tpye=a",
        ] {
            let mut query = Query::new(Some(wrong));
            query.page();
            assert!(query.end("type").is_err(), "{wrong}");
        }
        for number in [0, 35, 36, 1_295, 1_000_000, u64::MAX] {
            assert_eq!(position(&token(number)), Some(number));
        }
    }
}
