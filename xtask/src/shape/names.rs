//! Names of types in the hub: nouns that a newcomer can guess, each for one thing, all in the glossary.
//!
//! A participle, a pronoun or a question word as the name of a type says nothing to somebody who meets it in
//! another file (`Kept`, `Whose`, `Again`). A noun that stands for two things says the wrong one half of the
//! time. A participle before a noun is fine (`StoredDelivery`).

use std::collections::{BTreeMap, BTreeSet};

use super::source::{code, is_word, product};
use super::{File, expect_none, files, read};

const GLOSSARY: &str = "docs/dev/glossary.md";

/// Names that no type of the hub has. All but the last group were once in use. Plain nouns that are
/// right somewhere (`Call`, `Entry`, `State`) are not here.
#[rustfmt::skip]
const BANNED: &[&str] = &[
    // Participles.
    "Accepted", "Acknowledged", "Answered", "Answering", "Asked", "Asking", "Begun", "Called", "Caught", "Changed",
    "Chosen", "Coming", "Committed", "Copied", "Counted", "Doing", "Done", "Edited", "Encoded", "Ended", "Evaluated",
    "Following", "Found", "Given", "Holding", "Hurried", "Incoming", "Kept", "Known", "Looked", "Lowered", "Lowering",
    "Made", "Matched", "Named", "Opened", "Packed", "Panicked", "Pending", "Prepared", "Presented", "Pruned", "Refused",
    "Registered", "Rendered", "Resolved", "Rotated", "Said", "Sealed", "Seen", "Sending", "Sent", "Shared", "Shown",
    "Spent", "Steered", "Steering", "Tested", "Told", "Trying", "Verified", "Waiting", "Wanted", "Watched", "Watching",
    "Written",
    // What something is not.
    "CannotOpen", "NoAnswer", "NoDemo", "Nobody", "NotAccepted", "NotCalled", "NotCopied", "NotRead", "NotRendered",
    "Unfinished", "Unnamed", "Unread", "Unreadable",
    // Question words, pronouns, adverbs, prepositions and adjectives.
    "About", "Again", "Alone", "Behind", "By", "Dead", "Due", "Early", "First", "InHand", "IsCounted", "Last", "Left",
    "Live", "Many", "Next", "Once", "Open", "Out", "Plain", "Quiet", "Shallow", "Short", "TheirPanic", "TooSlow",
    "Which", "Whole", "Whose", "Why", "Within", "Wrong",
    // Verbs.
    "Accept", "Act", "Ask", "Deliver", "Gives", "Keep", "Move", "Passes", "Put", "Reseal", "Steer", "Take", "Talk",
    // Pictures that must be learnt first.
    "Answer", "Birth", "Birthplace", "Census", "Court", "Depths", "Desk", "Door", "Eyes", "Gap", "Hand", "Hangup",
    "KeptCall", "KeptStanding", "LastWord", "LineIo", "LogSeen", "Manner", "Matter", "Mistake", "Numbers", "OldEvents",
    "Pace", "PageAt", "Passage", "Patience", "Pieces", "Pile", "Pulse", "Remaker", "Rulebook", "Scene", "Seat",
    "ServiceSeen", "Shelf", "Sight", "Sign", "Signs", "Standing", "StoreSeen", "Tally", "Tempo", "Track", "Tray",
    "Tries", "Trouble", "Turn", "Watch", "Way", "Ways", "WholeLetter", "Wish", "Wishes", "WorkStep",
    // Errors that do not end in `Error`.
    "BadEventType", "BadRule", "BadSlug", "FieldProblem",
    // Never in use, and not to be.
    "Another", "Anybody", "Anything", "Each", "Everything", "How", "It", "Nothing", "Other", "Others", "Some",
    "Somebody", "Something", "That", "Them", "These", "They", "This", "Those", "Us", "What", "Whatever", "When",
    "Where", "Whether", "Who", "Whoever", "Whom",
];

/// Names that several types share, with the reason.
const SHARED: &[(&str, &str)] = &[
    ("DeliveryInsert", "a delivery that a store inserts: the same role in each database"),
    ("Session", "a login of the dashboard, and the command line's session with a hub"),
    ("UnitApplier", "what applies the changes of a unit: the same role in each database"),
    ("Verb", "the subcommands of one command of the command line: one private type per file of `command/`"),
];

/// A type as it is defined.
#[derive(PartialEq, Eq, Debug)]
struct Type {
    name: String,
    is_public: bool,
}

/// The types that a source defines, apart from its tests. Associated types are none.
fn types(text: &str) -> Vec<Type> {
    code(&product(text)).lines().filter_map(type_of).collect()
}

fn type_of(line: &str) -> Option<Type> {
    let trimmed = line.trim_start();
    let (visibility, rest) = match trimmed.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => ("restricted", rest.split_once(") ")?.1),
        Some(rest) if rest.starts_with(' ') => ("pub", rest),
        _ => ("", trimmed),
    };
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let keyword =
        ["struct ", "enum ", "trait ", "union ", "type "].into_iter().find(|k| rest.starts_with(k))?;
    if keyword == "type " && trimmed.len() < line.len() {
        return None;
    }
    let name: String = rest[keyword.len()..].trim_start().chars().take_while(|c| is_word(*c)).collect();
    let is_type = name.starts_with(char::is_uppercase);
    is_type.then_some(Type { name, is_public: visibility == "pub" })
}

/// The types that the glossary explains: the first column of its tables.
fn explained(glossary: &str) -> BTreeSet<&str> {
    glossary.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once("` |")?.0)).collect()
}

fn problems(files: &[File], shared: &[(&str, &str)], glossary: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let mut defined = BTreeMap::<String, BTreeSet<&str>>::new();
    let explained = explained(glossary);
    for file in files.iter().filter(|file| is_product(file)) {
        for found in types(&file.text) {
            if BANNED.contains(&found.name.as_str()) {
                problems.push(format!("{}: `{}` is not a noun that says what it is", file.path, found.name));
            }
            if found.is_public && !explained.contains(found.name.as_str()) {
                problems.push(format!("{}: `{}` is not in {GLOSSARY}", file.path, found.name));
            }
            defined.entry(found.name).or_default().insert(&file.path);
        }
    }
    for (name, paths) in &defined {
        let is_shared = shared.iter().any(|(shared, _)| shared == name);
        let places = || paths.iter().copied().collect::<Vec<_>>().join(" and ");
        match paths.len() {
            1 if is_shared => problems.push(format!("`{name}` is defined once: take it off the list")),
            2.. if !is_shared => problems.push(format!("`{name}` is defined in {}", places())),
            _ => {}
        }
    }
    let gone = |name: &&&str| !defined.contains_key(**name);
    let named = shared.iter().map(|(name, _)| name);
    problems.extend(named.filter(gone).map(|name| format!("`{name}` is on the list and does not exist")));
    problems.extend(
        explained
            .iter()
            .filter(gone)
            .map(|name| format!("{GLOSSARY} explains `{name}`, which does not exist")),
    );
    problems
}

fn is_product(file: &File) -> bool {
    let is_test = file.is_in("tests") || file.name() == "tests.rs" || file.name().ends_with("_tests.rs");
    file.is_rust() && file.path.starts_with("hub/") && file.is_in("src") && !is_test
}

#[test]
fn types_of_the_hub_are_nouns_that_mean_one_thing_and_are_explained() {
    expect_none(&problems(&files(), SHARED, &read(GLOSSARY)));
}

#[test]
fn a_type_that_is_no_noun_is_found() {
    let check = |text: &str| problems(&[File::made_up("hub/core/src/a.rs", text)], &[], "");
    assert_eq!(check("struct Kept;"), ["hub/core/src/a.rs: `Kept` is not a noun that says what it is"]);
    assert_eq!(check("    pub(crate) enum Why {}").len(), 1);
    assert_eq!(check("struct KeptRow;\n// struct Kept;\n#[cfg(test)]\nstruct Kept;"), [""; 0]);
    assert_eq!(check("trait A {\n    type Kept;\n}\nimpl A for B {\n    type Kept = u8;\n}"), [""; 0]);
    assert_eq!(problems(&[File::made_up("libs/a/src/a.rs", "struct Kept;")], &[], ""), [""; 0]);
}

#[test]
fn a_name_for_two_types_is_found() {
    let check = |one: &str, other: &str, shared: &[(&str, &str)]| {
        let files = [File::made_up("hub/core/src/a.rs", one), File::made_up("hub/cli/src/b.rs", other)];
        problems(&files, shared, "").join(", ")
    };
    let both = "`Queue` is defined in hub/cli/src/b.rs and hub/core/src/a.rs";
    assert_eq!(check("struct Queue;", "type Queue = u8;", &[]), both);
    assert_eq!(check("struct Queue;", "type Queue = u8;", &[("Queue", "the same")]), "");
    assert_eq!(
        check("struct Queue;", "", &[("Queue", "x")]),
        "`Queue` is defined once: take it off the list"
    );
    assert_eq!(check("", "", &[("Queue", "x")]), "`Queue` is on the list and does not exist");
}

#[test]
fn a_public_type_that_nobody_explains_is_found() {
    let check = |text: &str, glossary: &str| {
        problems(&[File::made_up("hub/core/src/a.rs", text)], &[], glossary).join(", ")
    };
    let lacks = "hub/core/src/a.rs: `Queue` is not in docs/dev/glossary.md";
    assert_eq!(check("pub struct Queue<T>(T);", "A `Queue` is one."), lacks);
    assert_eq!(check("pub struct Queue<T>(T);", "| `Queue` | A queue. |"), "");
    assert_eq!(check("pub(super) struct Queue;", ""), "");
    assert_eq!(
        check("", "| `Queue` | A queue. |"),
        "docs/dev/glossary.md explains `Queue`, which does not exist"
    );
}
