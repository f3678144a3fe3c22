//! What Spring does with a file before resilience4j sees it: documents for profiles, and placeholders.
//!
//! A document after `---` lies over those before it. One with `spring.config.activate.on-profile` (or `spring.profiles`, as
//! it was called before) counts only if its profile is chosen: by the loader, or else by `spring.profiles.active` in the file
//! itself. `${NAME:default}` stands for a variable of the environment or a property of the file, in what resilience4j reads.

use std::collections::HashMap;

use super::super::layer::Report;
use super::super::nearest::squash;
use super::super::tree::{Content, Entry, Node, join, shortened};
use super::super::value::{Wrong, listed};
use super::resilience4j::Resilience4j;

/// A value that a placeholder stands for may have placeholders itself, up to this depth.
const DEPTH_MAX: usize = 8;
/// No setting is longer, and values that contain each other twice double with every step.
const VALUE_MAX: usize = 4_096;

const ON_PROFILE: &str = "spring.config.activate.on-profile";
const OLD_PROFILES: &str = "spring.profiles";
const ACTIVE: &str = "spring.profiles.active";

/// Whether documents are those of an application with Spring.
pub(in crate::config) fn is_spring(documents: &[Node]) -> bool {
    let is_known = |entry: &Entry| {
        Resilience4j::knows(&entry.key) || entry.key == "spring" || entry.key.starts_with("spring.")
    };
    documents.iter().any(|document| entries_of(document).iter().any(is_known))
}

/// The documents whose profile is chosen, or that are for every profile.
pub(in crate::config) fn choose(
    documents: Vec<Node>,
    chosen: &[String],
    variables: &Variables,
    report: &mut Report,
) -> Vec<Node> {
    let mut active = chosen.to_vec();
    let general = documents.iter().filter(|document| profiles_of(document).is_none());
    for node in general.filter_map(|document| property(document, ACTIVE)) {
        let names = texts_of(node)
            .into_iter()
            .flat_map(|names| names.split(',').map(str::to_owned).collect::<Vec<_>>());
        if chosen.is_empty() {
            // A name that can't be found out is no name of a document either.
            active.extend(names.filter_map(|name| fill(name.trim(), variables, 0).ok()));
        }
    }
    let is_for = |document: &Node, report: &mut Report| {
        let Some(node) = profiles_of(document) else { return true };
        let wanted = texts_of(node);
        let mut matching = false;
        for expression in wanted.iter().flat_map(|list| list.split(',')) {
            match holds(expression, &active) {
                Some(holds) => matching |= holds,
                None => {
                    let reason = format!("`{}` is not a profile", shortened(expression));
                    let remedy = "write names with `!`, `&` or `|`, and without brackets";
                    report.wrong(&node.place, ON_PROFILE, Wrong::new(reason, remedy));
                }
            }
        }
        if !matching && active.is_empty() {
            let names: Vec<&str> = wanted.iter().map(String::as_str).collect();
            let reason =
                format!("not read: this document is for {}, and no profile is chosen", listed(&names));
            report.warn(&document.place, "", reason);
        }
        matching
    };
    documents.into_iter().filter(|document| is_for(document, report)).collect()
}

fn profiles_of(document: &Node) -> Option<&Node> {
    let old = || property(document, OLD_PROFILES).filter(|node| !matches!(node.content, Content::Map(_)));
    property(document, ON_PROFILE).or_else(old).filter(|node| !node.is_null())
}

/// Whether `prod`, `!dev`, `prod & eu` or `prod | staging` holds. Nothing, if it can't be read.
fn holds(expression: &str, active: &[String]) -> Option<bool> {
    if expression.contains(['(', ')']) || (expression.contains('&') && expression.contains('|')) {
        return None;
    }
    let one = |name: &str| {
        let (name, wanted) = match name.trim().strip_prefix('!') {
            Some(name) => (name.trim(), false),
            None => (name.trim(), true),
        };
        // Where nothing is chosen, Spring calls it `default`.
        let is_active =
            active.iter().any(|active| active == name) || (active.is_empty() && name == "default");
        (!name.is_empty()).then_some(is_active == wanted)
    };
    if expression.contains('&') {
        return expression.split('&').map(one).try_fold(true, |all, holds| Some(all & holds?));
    }
    expression.split('|').map(one).try_fold(false, |any, holds| Some(any | holds?))
}

/// The property of this path, with dots in keys or without.
fn property<'a>(node: &'a Node, path: &str) -> Option<&'a Node> {
    let path = squash(path);
    entries_of(node).iter().find_map(|entry| {
        let rest = path.strip_prefix(&squash(&entry.key))?;
        if rest.is_empty() { Some(&entry.value) } else { property(&entry.value, rest.strip_prefix('.')?) }
    })
}

fn texts_of(node: &Node) -> Vec<String> {
    match &node.content {
        Content::List(items) => items.iter().filter_map(Node::text).map(str::to_owned).collect(),
        _ => node.text().map(str::to_owned).into_iter().collect(),
    }
}

fn entries_of(node: &Node) -> &[Entry] {
    if let Content::Map(entries) = &node.content { entries } else { &[] }
}

/// What placeholders can stand for.
#[derive(Debug, Default)]
pub(in crate::config) struct Variables {
    environment: HashMap<String, String>,
    /// By their path without case, `-` and `_`.
    properties: HashMap<String, String>,
}

impl Variables {
    pub(in crate::config) fn new(environment: impl IntoIterator<Item = (String, String)>) -> Self {
        Variables { environment: environment.into_iter().collect(), properties: HashMap::new() }
    }

    /// Adds the properties of a document; a later one wins.
    pub(in crate::config) fn add(&mut self, document: &Node) {
        let mut open = vec![(document, String::new())];
        while let Some((node, path)) = open.pop() {
            if let Some(text) = node.text() {
                self.properties.insert(squash(&path), text.to_owned());
            }
            open.extend(entries_of(node).iter().map(|entry| (&entry.value, join(&path, &entry.key))));
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        // Spring finds `app.time-out` as `APP_TIMEOUT`, too.
        let relaxed = || name.replace('.', "_").replace('-', "").to_uppercase();
        let variable = self.environment.get(name).or_else(|| self.environment.get(&relaxed()));
        variable.or_else(|| self.properties.get(&squash(name))).map(String::as_str)
    }
}

/// Whether placeholders stand in what resilience4j reads.
pub(in crate::config) fn has_placeholders(documents: &[Node]) -> bool {
    fn any(node: &Node) -> bool {
        match &node.content {
            Content::Scalar { text, .. } => text.contains("${"),
            Content::List(items) => items.iter().any(any),
            Content::Map(entries) => entries.iter().any(|entry| any(&entry.value)),
        }
    }
    documents.iter().any(any)
}

/// Replaces the placeholders in what resilience4j reads, and writes keys with dots as sections.
pub(in crate::config) fn replace(document: &mut Node, variables: &Variables, report: &mut Report) {
    let Content::Map(entries) = &mut document.content else { return };
    entries.retain_mut(|entry| {
        let is_ours = Resilience4j::knows(&entry.key);
        let is_whole = !is_ours || replace_in(&mut entry.value, &entry.key, variables, report);
        if is_ours {
            expand(entry);
        }
        is_whole
    });
}

/// `resilience4j.retry.instances.a.maxAttempts: 3` is what it would be with sections.
fn expand(entry: &mut Entry) {
    let names: Vec<String> = entry.key.split('.').map(str::to_owned).collect();
    if names.len() > 2 && names.len() < super::super::tree::DEPTH_MAX {
        entry.key = names[..2].join(".");
        for name in names.into_iter().skip(2).rev() {
            let place = entry.place.clone();
            let value = std::mem::replace(&mut entry.value, Node::plain(place.clone(), ""));
            entry.value.content = Content::Map(vec![Entry { key: name, place, value }]);
        }
    }
}

/// Says whether every placeholder could be replaced; what is left out has been reported.
fn replace_in(node: &mut Node, path: &str, variables: &Variables, report: &mut Report) -> bool {
    match &mut node.content {
        Content::Scalar { text, .. } if text.contains("${") => match fill(text, variables, 0) {
            Ok(filled) => *text = filled,
            Err(wrong) => {
                report.wrong(&node.place, path, wrong);
                return false;
            }
        },
        Content::Scalar { .. } => {}
        Content::List(items) => items.retain_mut(|item| replace_in(item, path, variables, report)),
        Content::Map(entries) => entries
            .retain_mut(|entry| replace_in(&mut entry.value, &join(path, &entry.key), variables, report)),
    }
    true
}

fn fill(text: &str, variables: &Variables, depth: usize) -> Result<String, Wrong> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some(end) = closing(after) else { break };
        out.push_str(before);
        let (inner, next) = (&after[..end], &after[end + 1..]);
        let (name, default) = match inner.split_once(':') {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let shown = shortened(name);
        let Some(value) = variables.get(name.trim()).or(default) else {
            let remedy = format!("set it, or write a default: `${{{shown}:…}}`");
            return Err(Wrong::new(format!("there is no variable `{shown}`"), remedy));
        };
        if depth >= DEPTH_MAX || out.len() + value.len() > VALUE_MAX {
            return Err(Wrong::new(format!("`{shown}` leads too far"), "write the value here"));
        }
        out.push_str(&fill(value, variables, depth + 1)?);
        rest = next;
    }
    out.push_str(rest);
    if out.len() > VALUE_MAX {
        Err(Wrong::new("the value is too long", "write a shorter one"))
    } else {
        Ok(out)
    }
}

/// Where the placeholder ends that begins before this text: at the brace that no other one opened.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0_usize;
    text.char_indices().find_map(|(at, c)| match c {
        '{' => {
            open += 1;
            None
        }
        '}' if open == 0 => Some(at),
        '}' => {
            open -= 1;
            None
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eng_12_profiles_are_chosen_as_in_spring() {
        let active = ["prod".to_owned(), "eu".to_owned()];
        for (expression, expected) in [
            ("prod", Some(true)),
            ("dev", Some(false)),
            ("!dev", Some(true)),
            ("prod & eu", Some(true)),
            ("prod & !eu", Some(false)),
            ("dev | eu", Some(true)),
            ("(dev | eu) & prod", None),
            ("", None),
            ("prod &", None),
        ] {
            assert_eq!(holds(expression, &active), expected, "{expression}");
        }
        assert_eq!((holds("default", &[]), holds("default", &active)), (Some(true), Some(false)));
    }

    #[test]
    fn eng_12_placeholders_stand_for_variables_and_defaults() {
        let environment = [("WAIT", "3s"), ("APP_TIMEOUT", "9s"), ("LOOP", "${LOOP}"), ("TWO", "${WAIT}")];
        let variables = Variables::new(environment.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let filled = |text: &str| fill(text, &variables, 0).map_err(|wrong| wrong.reason);
        assert_eq!(filled("${WAIT}"), Ok("3s".into()));
        assert_eq!(filled("${NONE:5s}"), Ok("5s".into()));
        assert_eq!(filled("${NONE:${WAIT:1s}}"), Ok("3s".into()));
        assert_eq!(filled("a ${app.time-out} b ${TWO}"), Ok("a 9s b 3s".into()));
        assert_eq!(filled("${NONE:}"), Ok(String::new()));
        assert_eq!(filled("$ {} ${open"), Ok("$ {} ${open".into()));
        assert_eq!(filled("${NONE}"), Err("there is no variable `NONE`".into()));
        assert_eq!(filled("${LOOP}"), Err("`LOOP` leads too far".into()));
    }
}
