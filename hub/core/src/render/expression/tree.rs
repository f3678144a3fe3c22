//! An event as expressions see it.
//!
//! # Why not the values of the JSON library?
//! One of its objects with a single field takes 600 bytes, so an event of 1 MiB could take 100 MiB. Here a value takes 24
//! bytes, texts stay in the event, and the fields of an object are a sorted list, so 1 MiB takes at most 19 MiB.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

/// A JSON value that borrows its texts.
#[derive(Clone, PartialEq, Debug)]
pub enum Tree<'t> {
    Null,
    Bool(bool),
    Int(i64),
    /// A whole number that is too large for `Int`.
    Large(u64),
    /// Any other number.
    Float(f64),
    Text(Cow<'t, str>),
    List(Box<[Tree<'t>]>),
    /// An object, sorted by name, each name once.
    Map(Box<[TreeField<'t>]>),
}

/// A field of an object.
pub(super) type TreeField<'t> = (Cow<'t, str>, Tree<'t>);

impl<'t> Tree<'t> {
    /// Parses JSON. A text that is no JSON, or nested deeper than 128, is null.
    #[must_use]
    pub fn parse(text: &'t str) -> Self {
        let mut scratch = Scratch::default();
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let tree = TreeBuilder(&mut scratch).deserialize(&mut deserializer);
        tree.and_then(|tree| deserializer.end().map(|()| tree)).unwrap_or(Tree::Null)
    }

    /// Fields in any order. Of those with the same name the last one counts.
    pub(in crate::render) fn map(mut fields: Vec<TreeField<'t>>) -> Self {
        if !fields.is_sorted_by(|(one, _), (next, _)| one < next) {
            fields.sort_by(|(one, _), (next, _)| one.cmp(next));
            // The sort keeps the order of equal names, and the first of a run is the one that stays.
            fields.dedup_by(|later, first| {
                let same = later.0 == first.0;
                if same {
                    std::mem::swap(&mut later.1, &mut first.1);
                }
                same
            });
        }
        Tree::Map(fields.into_boxed_slice())
    }

    /// Takes a field out of an object.
    pub(in crate::render) fn take(&mut self, name: &str) -> Option<Tree<'t>> {
        let Tree::Map(fields) = self else { return None };
        let at = fields.binary_search_by(|(field, _)| (**field).cmp(name)).ok()?;
        Some(std::mem::replace(&mut fields[at].1, Tree::Null))
    }

    /// The field of an object.
    pub(in crate::render) fn get(&self, name: &str) -> Option<&Tree<'t>> {
        match self {
            Tree::Map(fields) => field(fields, name),
            _ => None,
        }
    }
}

/// Finds a field by its name.
pub(super) fn field<'m, 't>(fields: &'m [TreeField<'t>], name: &str) -> Option<&'m Tree<'t>> {
    let at = fields.binary_search_by(|(field, _)| (**field).cmp(name)).ok()?;
    Some(&fields[at].1)
}

impl<'t> From<&'t Json> for Tree<'t> {
    fn from(json: &'t Json) -> Self {
        match json {
            Json::Null => Tree::Null,
            Json::Bool(yes) => Tree::Bool(*yes),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(whole), _) => Tree::Int(whole),
                (None, Some(large)) => Tree::Large(large),
                _ => Tree::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Tree::Text(Cow::Borrowed(text)),
            Json::Array(items) => Tree::List(items.iter().map(Tree::from).collect()),
            Json::Object(fields) => {
                Tree::map(fields.iter().map(|(name, value)| (Cow::Borrowed(&**name), value.into())).collect())
            }
        }
    }
}

/// Where items and fields lie until it is known how many there are. Each list then takes one piece of memory, of its size.
#[derive(Default)]
struct Scratch<'t> {
    items: Vec<Tree<'t>>,
    fields: Vec<TreeField<'t>>,
}

struct TreeBuilder<'s, 't>(&'s mut Scratch<'t>);

impl<'de> DeserializeSeed<'de> for TreeBuilder<'_, 'de> {
    type Value = Tree<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TreeBuilder<'_, 'de> {
    type Value = Tree<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree<'de>, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, yes: bool) -> Result<Tree<'de>, E> {
        Ok(Tree::Bool(yes))
    }

    fn visit_i64<E>(self, whole: i64) -> Result<Tree<'de>, E> {
        Ok(Tree::Int(whole))
    }

    fn visit_u64<E>(self, whole: u64) -> Result<Tree<'de>, E> {
        Ok(i64::try_from(whole).map_or(Tree::Large(whole), Tree::Int))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Tree<'de>, E> {
        Ok(Tree::Float(number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree<'de>, A::Error> {
        let start = self.0.items.len();
        while let Some(item) = seq.next_element_seed(TreeBuilder(&mut *self.0))? {
            self.0.items.push(item);
        }
        Ok(Tree::List(self.0.items.drain(start..).collect()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree<'de>, A::Error> {
        let start = self.0.fields.len();
        while let Some(name) = map.next_key_seed(TreeBuilder(&mut *self.0))? {
            let value = map.next_value_seed(TreeBuilder(&mut *self.0))?;
            let Tree::Text(name) = name else { continue };
            self.0.fields.push((name, value));
        }
        Ok(Tree::map(self.0.fields.drain(start..).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PRM-8: a value is as small as the bound on memory is built on.
    #[test]
    fn prm_8_a_value_of_an_event_takes_24_bytes() {
        assert_eq!(size_of::<Tree<'_>>(), 24);
    }

    /// HUB-4: JSON is read as the JSON library reads it; of two fields with one name the last counts.
    #[test]
    fn hub_4_json_is_taken_apart_as_it_is_written() {
        let text = r#"{"b": [1, -2, 1.5, 18446744073709551615, "a\n", null, true], "a": {}, "b2": {"z": 1, "a": 2, "z": 3}}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(Tree::parse(text), Tree::from(&json));
        assert_eq!(Tree::parse("{"), Tree::Null);
        assert_eq!(Tree::parse(text).get("b2").unwrap().get("z"), Some(&Tree::Int(3)));
    }
}
