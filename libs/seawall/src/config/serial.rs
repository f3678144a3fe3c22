//! Plans and configurations for serde, through the same table as files.
//!
//! A plan is a map of its settings as they stand in a file, with `name` beside them. So it can be a field of an application's own
//! structure, in whatever format that is read from, as long as the format describes itself (JSON, YAML, TOML and the like).

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::layer::{Item, Report};
use super::load;
use super::resolve::is_shown;
use super::tree::{Content, DEPTH_MAX, Entry, Node};
use super::value::Value;
use super::{Config, ConfigError, Place, Plan, Problem};

/// The name of a plan that has none; [`Plan::with_name`] gives it another.
const NAME: &str = "guard";

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let items = shown(self);
        Section { name: Some(&self.name), depth: 0, items: &items }.serialize(serializer)
    }
}

/// Written out in full: bases and presets are resolved.
impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Guards<'a>(&'a [Plan]);
        impl Serialize for Guards<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(self.0.len()))?;
                for plan in self.0 {
                    let items = shown(plan);
                    map.serialize_entry(&plan.name, &Section { name: None, depth: 0, items: &items })?;
                }
                map.end()
            }
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("guards", &Guards(&self.plans))?;
        map.end()
    }
}

fn shown(plan: &Plan) -> Vec<&Item> {
    plan.settings.items().filter(|item| is_shown(item) && item.key.path != "preset").collect()
}

/// Settings whose paths begin with the same `depth` names.
struct Section<'a> {
    name: Option<&'a str>,
    depth: usize,
    items: &'a [&'a Item],
}

impl Serialize for Section<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let head = |item: &Item| item.key.path.split('.').nth(self.depth);
        let groups = || self.items.chunk_by(|one, other| head(one) == head(other));
        let mut map = serializer.serialize_map(Some(groups().count() + usize::from(self.name.is_some())))?;
        if let Some(name) = self.name {
            map.serialize_entry("name", name)?;
        }
        for group in groups() {
            let Some((first, key)) = group.first().and_then(|first| Some((first, head(first)?))) else {
                continue;
            };
            if first.key.path.split('.').count() == self.depth + 1 {
                map.serialize_entry(key, &first.value)?;
            } else {
                map.serialize_entry(key, &Section { name: None, depth: self.depth + 1, items: group })?;
            }
        }
        map.end()
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Count(count) => serializer.serialize_u32(*count),
            Value::Number(number) => serializer.serialize_f64(*number),
            Value::Switch(switch) => serializer.serialize_bool(*switch),
            Value::Words(words) => words.serialize(serializer),
            Value::Names(names) => names.serialize(serializer),
            value => serializer.collect_str(value),
        }
    }
}

/// A guard as it stands in a file, with an optional `name`. Nothing in it has a base to extend.
impl<'de> Deserialize<'de> for Plan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut tree = Tree { depth: 0 }.deserialize(deserializer)?;
        let mut name = NAME.to_owned();
        if let Content::Map(entries) = &mut tree.content
            && let Some(at) = entries.iter().position(|entry| entry.key == "name")
        {
            let entry = entries.remove(at);
            name = entry.value.text().ok_or_else(|| D::Error::custom("name: write a text"))?.to_owned();
        }
        load::alone(&name, &tree, Report::default()).map_err(|error| D::Error::custom(told(&error)))
    }
}

/// `guards` and `configs` as they stand in a file.
impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let tree = Tree { depth: 0 }.deserialize(deserializer)?;
        load::of_tree(&tree).map_err(|error| D::Error::custom(told(&error)))
    }
}

/// Every mistake with its path; where it stands is for the format to say.
fn told(error: &ConfigError) -> String {
    let told = |problem: &Problem| {
        let path = if problem.path().is_empty() { String::new() } else { format!("{}: ", problem.path()) };
        let remedy = problem.remedy().map_or(String::new(), |remedy| format!("; {remedy}"));
        format!("{path}{}{remedy}", problem.reason())
    };
    error.problems().iter().map(told).collect::<Vec<_>>().join("\n")
}

/// Reads anything that describes itself.
#[derive(Clone, Copy)]
struct Tree {
    depth: usize,
}

impl Tree {
    fn place() -> Place {
        Place::whole("plan", 0)
    }

    fn plain<E>(text: impl Into<String>) -> Result<Node, E> {
        Ok(Node::plain(Tree::place(), text))
    }

    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.depth < DEPTH_MAX {
            Ok(Tree { depth: self.depth + 1 })
        } else {
            Err(E::custom("it is nested too deep"))
        }
    }
}

impl<'de> DeserializeSeed<'de> for Tree {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("settings of a guard")
    }

    fn visit_bool<E>(self, switch: bool) -> Result<Node, E> {
        Tree::plain(switch.to_string())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Tree::plain(number.to_string())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Tree::plain(number.to_string())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Tree::plain(number.to_string())
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::quoted(Tree::place(), text))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Tree::plain("")
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Tree::plain("")
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let (below, mut items) = (self.deeper()?, Vec::new());
        while let Some(item) = seq.next_element_seed(below)? {
            items.push(item);
        }
        Ok(Node { place: Tree::place(), content: Content::List(items) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let (below, mut entries) = (self.deeper()?, Vec::<Entry>::new());
        while let Some(key) = map.next_key::<String>()? {
            if entries.iter().any(|entry| entry.key == key) {
                return Err(A::Error::custom(format!("{key}: this key stands here twice")));
            }
            let value = map.next_value_seed(below)?;
            entries.push(Entry { key, place: Tree::place(), value });
        }
        Ok(Node { place: Tree::place(), content: Content::Map(entries) })
    }
}

#[cfg(test)]
mod tests;
