//! Expressions: compiling and evaluating them, within bounds.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::LazyLock;

use minijinja::{Environment, ErrorKind, Expression, UndefinedBehavior, Value, filters, tests};

use super::{EXPRESSION_BYTES_MAX, STEPS_MAX, View};

/// What is wrong with a template, or with an event that does not fit it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// Where: `body.items[2].price`, `path`, `headers.x-order`.
    pub place: String,
    /// What, and what to write instead.
    pub reason: String,
}

impl Mistake {
    pub(super) fn new(place: &str, reason: impl Into<String>) -> Self {
        Mistake { place: place.into(), reason: reason.into() }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

impl std::error::Error for Mistake {}

/// One language for all rules: the filters and tests below, and nothing that reaches out of the event.
static LANGUAGE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut language = Environment::empty();
    language.set_undefined_behavior(UndefinedBehavior::Strict);
    language.set_fuel(Some(STEPS_MAX));
    language.set_recursion_limit(32);
    language.add_filter("default", filters::default);
    language.add_filter("upper", filters::upper);
    language.add_filter("lower", filters::lower);
    language.add_filter("trim", filters::trim);
    language.add_filter("replace", filters::replace);
    language.add_filter("split", filters::split);
    language.add_filter("join", filters::join);
    language.add_filter("length", filters::length);
    language.add_filter("first", filters::first);
    language.add_filter("last", filters::last);
    language.add_filter("min", filters::min);
    language.add_filter("max", filters::max);
    language.add_filter("sum", filters::sum);
    language.add_filter("abs", filters::abs);
    language.add_filter("round", filters::round);
    language.add_filter("int", filters::int);
    language.add_filter("float", filters::float);
    language.add_filter("string", filters::string);
    language.add_filter("bool", filters::bool);
    language.add_filter("sort", filters::sort);
    language.add_filter("unique", filters::unique);
    language.add_filter("map", filters::map);
    language.add_filter("select", filters::select);
    language.add_filter("selectattr", filters::selectattr);
    language.add_filter("reject", filters::reject);
    language.add_filter("rejectattr", filters::rejectattr);
    language.add_test("defined", tests::is_defined);
    language.add_test("undefined", tests::is_undefined);
    language.add_test("none", tests::is_none);
    language.add_test("string", tests::is_string);
    language.add_test("number", tests::is_number);
    language.add_test("startingwith", tests::is_startingwith);
    language.add_test("endingwith", tests::is_endingwith);
    language.add_test("in", tests::is_in);
    language.add_test("eq", tests::is_eq);
    language.add_test("ne", tests::is_ne);
    language.add_test("gt", tests::is_gt);
    language.add_test("ge", tests::is_ge);
    language.add_test("lt", tests::is_lt);
    language.add_test("le", tests::is_le);
    language
});

/// The filters of the language, as one finds them in a text.
const FILTERS: [&str; 26] = [
    "default",
    "upper",
    "lower",
    "trim",
    "replace",
    "split",
    "join",
    "length",
    "first",
    "last",
    "min",
    "max",
    "sum",
    "abs",
    "round",
    "int",
    "float",
    "string",
    "bool",
    "sort",
    "unique",
    "map",
    "select",
    "selectattr",
    "reject",
    "rejectattr",
];
/// The tests of the language.
const TESTS: [&str; 14] = [
    "defined",
    "undefined",
    "none",
    "string",
    "number",
    "startingwith",
    "endingwith",
    "in",
    "eq",
    "ne",
    "gt",
    "ge",
    "lt",
    "le",
];

/// The names that an expression over an event may begin with.
pub(super) const EVENT: [&str; 7] = ["id", "type", "source", "time", "data", "subject", "extensions"];
/// And those of one over a webhook, which is no event yet.
pub(super) const WEBHOOK: [&str; 2] = ["data", "headers"];

/// A compiled expression.
pub(super) struct Code {
    text: Box<str>,
    expression: Expression<'static, 'static>,
    /// What it reads of the event, like `data.total`.
    reads: BTreeSet<String>,
    /// Whether it says itself what to do where something is missing.
    minds_the_gap: bool,
}

/// Why an expression gave no value.
#[derive(Debug)]
pub(super) enum Gap {
    /// The event has no such field.
    Missing(String),
    /// Anything else.
    Wrong(String),
}

impl Code {
    /// `roots` are the names that it may begin with.
    pub(super) fn new(text: &str, roots: &[&str]) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("there is nothing between the braces".into());
        }
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(format!(
                "an expression of {} bytes is too long; {EXPRESSION_BYTES_MAX} are allowed",
                text.len()
            ));
        }
        let compiled = LANGUAGE.compile_expression_owned(text.to_owned());
        let expression = compiled.map_err(|error| format!("`{text}` is no expression: {}", say(&error)))?;
        unknown_word(text)?;
        let reads: BTreeSet<String> = expression.undeclared_variables(true).into_iter().collect();
        for read in &reads {
            let root = read.split('.').next().unwrap_or_default();
            if !roots.contains(&root) {
                return Err(format!("there is no `{root}`; there are {}", roots.join(", ")));
            }
        }
        let minds_the_gap = text.contains("default") || text.contains("defined");
        Ok(Code { text: text.into(), expression, reads, minds_the_gap })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The value for this event. What is missing is an error, unless the expression itself says otherwise.
    pub(super) fn eval(&self, view: &View) -> Result<Value, Gap> {
        if !self.minds_the_gap
            && let Some(missing) = self.reads.iter().find(|path| is_missing(&view.0, path))
        {
            return Err(Gap::Missing(missing.clone()));
        }
        let value = self.expression.eval(view.0.clone()).map_err(|error| match error.kind() {
            ErrorKind::UndefinedError => Gap::Missing(self.text().to_owned()),
            ErrorKind::OutOfFuel => Gap::Wrong(format!("`{}` takes more than {STEPS_MAX} steps", self.text)),
            _ => Gap::Wrong(format!("`{}`: {}", self.text, say(&error))),
        })?;
        if value.is_undefined() { Err(Gap::Missing(self.text().to_owned())) } else { Ok(value) }
    }
}

/// Finds a filter or a test that there is not. The engine would say so only when an event comes.
fn unknown_word(text: &str) -> Result<(), String> {
    let (mut rest, mut expects) = (text, None);
    while let Some(first) = rest.chars().next() {
        if first == '\'' || first == '"' {
            let end = end_of_quoted(&rest[1..], first).unwrap_or(rest.len() - 1);
            (rest, expects) = (&rest[(end + 2).min(rest.len())..], None);
            continue;
        }
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if word == 0 {
            if !first.is_whitespace() {
                expects = (first == '|').then_some(("filter", &FILTERS[..]));
            }
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let name = &rest[..word];
        expects = match (name, expects) {
            ("is", None) => Some(("test", &TESTS[..])),
            ("not", Some(("test", known))) => Some(("test", known)),
            (name, Some((kind, known))) if !known.contains(&name) => {
                return Err(format!("there is no {kind} `{name}`; there are {}", known.join(", ")));
            }
            _ => None,
        };
        rest = &rest[word..];
    }
    Ok(())
}

fn end_of_quoted(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at),
            _ => {}
        }
    }
    None
}

fn is_missing(root: &Value, path: &str) -> bool {
    let mut value = root.clone();
    for step in path.split('.') {
        match value.get_attr(step) {
            Ok(next) if !next.is_undefined() => value = next,
            _ => return true,
        }
    }
    false
}

/// An error of the engine in one line, without the place in a text that is one line long.
fn say(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Code").field(&self.text).finish()
    }
}
