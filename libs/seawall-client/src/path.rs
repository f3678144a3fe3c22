//! Paths and queries.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::Value;

/// The bytes that are encoded: all but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The path of one thing in a collection, with a verb or a path below it.
pub(crate) fn at(collection: &str, name: &str, rest: &str) -> String {
    let part = utf8_percent_encode(name, ENCODED).to_string();
    // A segment of dots would lead elsewhere.
    let part = if part.bytes().all(|byte| byte == b'.') { part.replace('.', "%2E") } else { part };
    format!("{collection}/{part}{rest}")
}

/// The path with a query of the fields that are set.
pub(crate) fn with_query(path: &str, query: &impl Serialize) -> String {
    let Ok(Value::Object(fields)) = serde_json::to_value(query) else { return path.to_owned() };
    let mut out = path.to_owned();
    let mut add = |name: &str, value: &str| {
        out.push(if out.len() == path.len() { '?' } else { '&' });
        out.extend(utf8_percent_encode(name, ENCODED));
        out.push('=');
        out.extend(utf8_percent_encode(value, ENCODED));
    };
    for (name, value) in &fields {
        let values = match value {
            Value::Array(values) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        for value in values {
            match value {
                Value::Null => {}
                Value::String(text) => add(name, text),
                other => add(name, &other.to_string()),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use seawall_api::{DeliveryQuery, PageQuery};

    use super::*;

    // HUB-10: a name with anything in it is one part of a path.
    #[test]
    fn hub_10_a_name_can_not_leave_its_place_in_a_path() {
        assert_eq!(at("/a", "billing-2", ":pause"), "/a/billing-2:pause");
        assert_eq!(at("/a", "../a b?c#d%e:f/é", ""), "/a/..%2Fa%20b%3Fc%23d%25e%3Af%2F%C3%A9");
        assert_eq!(at("/a", "..", ""), "/a/%2E%2E");
    }

    // HUB-10: a query has the fields that are set, and nothing else.
    #[test]
    fn hub_10_a_query_has_the_fields_that_are_set() {
        assert_eq!(with_query("/a", &DeliveryQuery::default()), "/a");
        let query = DeliveryQuery {
            event: Some("a&b".into()),
            page: PageQuery { page_size: Some(7), page_token: None },
            ..DeliveryQuery::default()
        };
        assert_eq!(with_query("/a", &query), "/a?event=a%26b&page_size=7");
    }
}
