//! Events as bytes that are made once: only their number changes.

use super::process::KEY;

/// So large is an event, as JSON.
pub const EVENT_BYTES: usize = 1024;
/// Before the number, in the event's data.
const MARK: &str = "evt-";
const DIGITS: usize = 10;
/// Before the digits of the event's id.
const ID: &str = "id-";
const ID_DIGITS: usize = 16;
/// Before the group, in the event's type.
const KIND: &str = "bench.";
const GROUP_DIGITS: usize = 4;

/// The type of the events of a group. A group is for one rule, and so for one service.
pub fn kind(group: usize) -> String {
    format!("{KIND}{group:0GROUP_DIGITS$}")
}

/// In which order the ids of events come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ids {
    /// Each after the one before, like names that begin with the time.
    Ascending,
    /// In none, like random names.
    Scattered,
}

/// The request that sends an event.
#[derive(Clone)]
pub struct Event {
    bytes: Vec<u8>,
    ids: Ids,
    id_at: usize,
    number_at: usize,
    group_at: usize,
}

impl Event {
    pub fn new(ids: Ids) -> Self {
        let body = body();
        let mut bytes = format!(
            "POST /api/v1/bridge/events HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {KEY}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        let head = bytes.len();
        bytes.extend_from_slice(body.as_bytes());
        let after = |mark: &str| head + body.find(mark).map_or(0, |at| at + mark.len());
        let (id_at, number_at, group_at) = (after(ID), after(MARK), after(KIND));
        Event { bytes, ids, id_at, number_at, group_at }
    }

    /// The request for the event of this number.
    pub fn request(&mut self, number: u64, group: usize) -> &[u8] {
        let id = match self.ids {
            Ids::Ascending => number,
            // Odd, so that no two numbers become the same id.
            Ids::Scattered => number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % (1 << 53),
        };
        write_digits(&mut self.bytes[self.id_at..self.id_at + ID_DIGITS], id);
        write_digits(&mut self.bytes[self.number_at..self.number_at + DIGITS], number);
        write_digits(&mut self.bytes[self.group_at..self.group_at + GROUP_DIGITS], group as u64);
        &self.bytes
    }
}

/// The number of an event, from a request that was made of it.
pub fn number_in(body: &[u8]) -> Option<u64> {
    let mark = MARK.as_bytes();
    let at = body.windows(mark.len()).position(|part| part == mark)? + mark.len();
    let digits = body.get(at..at + DIGITS)?;
    Some(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit.wrapping_sub(b'0'))))
}

fn write_digits(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// An order as a shop would tell of it. The number comes early in it, where a sink finds it soon.
fn body() -> String {
    let (id, number) = ("0".repeat(ID_DIGITS), "0".repeat(DIGITS));
    let items: Vec<String> = (0..5)
        .map(|n| {
            format!(r#"{{"sku":"SKU-10{n}","name":"a thing of kind {n}","quantity":{n},"price":1{n}.25}}"#)
        })
        .collect();
    let start = format!(
        r#"{{"id":"{ID}{id}","type":"{}","source":"shop","data":{{"about":"{MARK}{number}","customer":{{"id":4711,"name":"Ada Example","email":"ada@shop.example"}},"currency":"EUR","total":129.5,"paid":true,"items":[{}],"note":""#,
        kind(0),
        items.join(",")
    );
    let end = r#""}}"#;
    let note = "x".repeat(EVENT_BYTES - start.len() - end.len());
    format!("{start}{note}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_json_of_its_size_and_carries_its_number() {
        let mut event = Event::new(Ids::Ascending);
        let request = String::from_utf8(event.request(1_234, 17).to_vec()).unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("content-length: 1024"), "{head}");
        let json: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!((&json["id"], &json["type"]), (&"id-0000000000001234".into(), &"bench.0017".into()));
        assert_eq!(json["data"]["about"], "evt-0000001234");
        assert_eq!((body.len(), number_in(body.as_bytes())), (EVENT_BYTES, Some(1_234)));
        assert_eq!(number_in(b"nothing"), None);
    }

    #[test]
    fn scattered_ids_are_no_two_the_same() {
        let mut event = Event::new(Ids::Scattered);
        let mut id = |number| {
            let at = event.id_at;
            event.request(number, 0)[at..at + ID_DIGITS].to_vec()
        };
        let ids: std::collections::HashSet<_> = (0..10_000).map(&mut id).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(id(1) > id(2), "they do not ascend");
    }
}
