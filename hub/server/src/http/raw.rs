//! An object whose fields are still texts: what nobody looks into is not taken apart.
//!
//! An event's data may be large, and mostly it is only passed on. Reading it into a tree and writing it out again costs more
//! than all the rest of accepting it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::fields::unknown;
use seawall_api::FieldProblem;

/// Nothing is nested deeper.
const DEPTH_MAX: usize = 100;

/// No number with so few digits, and without an exponent, is too large.
const DIGITS_SAFE: u32 = 300;

/// The fields of an object, as they are written. Every one of them is JSON.
pub(super) struct RawObject<'a> {
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
    problems: Vec<FieldProblem>,
}

impl<'a> RawObject<'a> {
    /// Reads an object. What is no JSON at all says why.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    pub(super) fn wrong(&mut self, field: &str, reason: impl Into<String>) {
        self.problems.push(FieldProblem { field: field.into(), reason: reason.into() });
    }

    /// A field as it is written, if there is one that is not null.
    pub(super) fn raw(&mut self, field: &str) -> Option<&'a str> {
        let at = self.fields.iter().position(|(name, _)| name == field)?;
        Some(self.fields.swap_remove(at).1.get()).filter(|text| *text != "null")
    }

    /// A field as it is written, if it is nested no deeper than whoever takes it apart later can follow.
    pub(super) fn nested(&mut self, field: &str) -> Option<&'a str> {
        let text = self.raw(field)?;
        if is_deep(text) {
            self.wrong(field, format!("must not be nested deeper than {DEPTH_MAX}"));
        } else if !is_readable(text) {
            self.wrong(field, "contains an incomplete character or a number that is too large");
        }
        Some(text)
    }

    pub(super) fn text(&mut self, field: &str) -> Option<String> {
        let text = serde_json::from_str(self.raw(field)?);
        text.map_err(|_| self.wrong(field, "must be a string")).ok()
    }

    /// A text that must be there, and not be empty.
    pub(super) fn needed(&mut self, field: &str) -> String {
        let before = self.problems.len();
        let text = self.text(field);
        if self.problems.len() == before {
            match &text {
                None => self.wrong(field, "required"),
                Some(text) if text.is_empty() => self.wrong(field, "must not be empty"),
                Some(_) => {}
            }
        }
        text.unwrap_or_default()
    }

    pub(super) fn end(mut self, known: &str) -> Vec<FieldProblem> {
        for (field, _) in std::mem::take(&mut self.fields) {
            self.wrong(&field, unknown("field", &field, known));
        }
        self.problems
    }
}

/// Whether a text is JSON that is nested no deeper than whoever takes it apart can follow.
pub(super) fn is_shallow_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok() && !is_deep(text) && is_readable(text)
}

/// Whether whoever takes this JSON apart later can. Half of a character, like `\ud800` alone, and a number like `1e999` are
/// well-formed and stand for nothing. They are rare, so it is taken apart now only where there may be one.
fn is_readable(json: &str) -> bool {
    let (mut digits, mut suspicious) = (0_u32, false);
    for byte in json.bytes() {
        suspicious |= byte == b'\\' || (digits > 0 && matches!(byte, b'e' | b'E')) || digits > DIGITS_SAFE;
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
    }
    !suspicious || serde_json::from_str::<serde_json::Value>(json).is_ok()
}

/// Whether JSON is nested deeper than allowed.
fn is_deep(json: &str) -> bool {
    let opens = |byte: &u8| matches!(byte, b'[' | b'{');
    // Mostly there are not even so many brackets.
    if json.as_bytes().iter().filter(|byte| opens(byte)).count() <= DEPTH_MAX {
        return false;
    }
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return true;
        }
    }
    false
}

impl<'de> Deserialize<'de> for RawObject<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = RawObject<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject<'de>, A::Error> {
                let mut shallow = RawObject { fields: Vec::with_capacity(6), problems: Vec::new() };
                while let Some(Name(name)) = map.next_key()? {
                    let value = map.next_value()?;
                    if shallow.fields.iter().any(|(known, _)| *known == name) {
                        shallow.wrong(&name, "duplicate field");
                    } else {
                        shallow.fields.push((name, value));
                    }
                }
                Ok(shallow)
            }
        }

        deserializer.deserialize_map(ObjectVisitor)
    }
}

/// The name of a field, borrowed unless it is written with escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(NameVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let mut shallow = RawObject::read(text.as_bytes()).unwrap();
        shallow.needed("id");
        shallow.raw("data");
        let problems = shallow.end("id, data");
        problems.iter().map(|one| format!("{}: {}", one.field, one.reason)).collect()
    }

    /// API-2: what is wrong is said field by field; what is inside a field is checked and left as it is.
    #[test]
    fn api_2_fields_are_read_as_they_are_written() {
        let mut shallow =
            RawObject::read(br#"{"id":"a\u0062","data":{"b": 1.10, "a":[ ]},"\u0074ype":"x"}"#).unwrap();
        assert_eq!(shallow.text("id").as_deref(), Some("ab"));
        assert_eq!(shallow.raw("data"), Some(r#"{"b": 1.10, "a":[ ]}"#));
        assert_eq!(shallow.text("type").as_deref(), Some("x"));
        assert!(shallow.end("").is_empty());
        assert_eq!(problems(r#"{"data":1}"#), ["id: required"]);
        assert_eq!(problems(r#"{"id":null}"#), ["id: required"]);
        assert_eq!(problems(r#"{"id":7}"#), ["id: must be a string"]);
        assert_eq!(problems(r#"{"id":""}"#), ["id: must not be empty"]);
        assert_eq!(problems(r#"{"id":"a","id":"b"}"#), ["id: duplicate field"]);
        assert_eq!(
            problems(r#"{"id":"a","idd":"b"}"#),
            ["idd: unknown field, did you mean `id`? Known: id, data"]
        );
        for wrong in ["", "[]", "{", r#"{"a":}"#, r#"{"data":{"a":}}"#, r#"{"a":1}x"#, "{\"a\":\"\u{1}\"}"] {
            assert!(RawObject::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(RawObject::read(b"{\"a\":\"\xff\"}").is_err(), "no UTF-8");
        let deep = format!(r#"{{"data":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        let mut deep = RawObject::read(deep.as_bytes()).unwrap();
        deep.nested("data");
        assert_eq!(deep.end("")[0].reason, "must not be nested deeper than 100");
        for half in [r#""\ud800""#, r#"["\ud41d\ude00"]"#, "1e999", "[-2E+400]", &"9".repeat(400)] {
            let text = format!(r#"{{"id":"a","data":{half}}}"#);
            let mut shallow = RawObject::read(text.as_bytes()).unwrap();
            shallow.nested("data");
            assert_eq!(
                shallow.problems.len(),
                1,
                "PRM-1: it could be kept, and no rule could look into it: {half}"
            );
        }
        for whole in [r#""\ud83d\ude00""#, r#""C:\\dir 4e999""#, "1e300", &"9".repeat(300)] {
            assert!(is_readable(whole), "{whole}");
        }
        assert!(!is_deep(&format!("{}{}", "[".repeat(100), "]".repeat(100))));
        assert!(is_deep(&format!("{}{}", "[".repeat(101), "]".repeat(101))));
        assert!(!is_deep(&format!("[{:?},{}]", "[".repeat(500), "[],".repeat(500))), "wide is not deep");
    }
}
