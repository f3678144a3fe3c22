//! What people read is in the words of the trade.
//!
//! Templates, help of commands, descriptions of routes and fields, and messages of errors say p95 and not "19 of
//! 20 were faster". The list has the phrases that the hub once used; it may only grow.

use super::source::{product, texts};
use super::{File, expect_none, files};

/// Phrases in lower case. Between two words any white space counts as one space.
const BANNED: &[&str] = &[
    // The dashboard.
    "to the content",
    "sure? why",
    "kept in the audit log",
    "none like this",
    "to the beginning",
    "at work again",
    "put it to work",
    "may look, and not act",
    "look at it",
    "look at them",
    "light or dark",
    "sees and does",
    "taken back",
    "there is nothing here",
    "may not see that",
    "that was not done",
    "delivered now",
    "went well",
    "begin here",
    "sees to it",
    "needs a person",
    "need a person",
    "needs a human",
    "waits for anybody",
    "happened lately",
    "error classes",
    "half were faster",
    "were faster",
    "sends that failed",
    "sends failed",
    "last sends",
    "no send",
    "tried again",
    "given up",
    "gave up on",
    "how far back",
    "first points are there",
    "said no",
    "or it broke",
    "nobody expected",
    "call that was kept",
    "next try",
    "before it in its order",
    "the peer",
    "its turn",
    "sends exactly this",
    "can't be made",
    "dead letter at once",
    "what was said",
    "refused it for good",
    "said that it is gone",
    "could be made of it",
    "tries are spent",
    "became too old",
    "in hand",
    "trouble first",
    "circuit by hand",
    "on duty will ask",
    "circuit was moved",
    "closed ever since",
    "policy in force",
    "as it was written",
    "rules that send to it",
    "thrown away",
    "shows who it is",
    "how it shows",
    "small letters",
    "failures in a row",
    "share of failures",
    "share counts",
    "wait for a place",
    "laid under",
    "is told",
    "are told",
    "was told",
    "not yet told",
    "told that",
    "bad is",
    "nothing is wrong",
    "seen by",
    "what is wrong",
    "whoever",
    "have seen it",
    "silences nobody",
    "for so long",
    "pile up",
    "send a sample",
    "from the first byte",
    "mended",
    "mend it",
    "to its dead letter",
    "of which",
    "first try",
    "was not tried",
    "sent and answered",
    "for its type",
    "led to none",
    "rule is for it",
    "failed alike",
    "what went wrong",
    "delivered since",
    "failed for good",
    "work on many",
    "i am at it",
    "keep the note",
    "today's rule",
    "same bytes as before",
    "what came back",
    "newest of them",
    "on its way again",
    "put aside",
    "puts them aside",
    "out of sight",
    "for good",
    "last word",
    "for a shell",
    "none chosen",
    "it has begun",
    "by their words",
    "under way",
    "halt it",
    "let it go on",
    "lets go on",
    "write a rule",
    "policy says",
    "only answers count",
    "one after the other",
    "those behind it",
    "go back to it",
    "that matters was",
    "first that is kept",
    "it matches is held",
    "that i write here",
    "longest age",
    "came lately",
    "shown this once",
    "opens nothing",
    "runs since",
    "for ever",
    "back to work",
    "changed anything yet",
    "give this to the sender",
    "what came from it",
    "as the sender calls",
    "one that fits",
    "answered: ",
    // The command line.
    "whom the hub",
    "become which requests",
    "who sends webhooks",
    "becomes of events",
    "who has changed what",
    "how the hub is",
    "makes a shell complete",
    "takes out of work",
    "rule to work",
    "somebody is at it",
    "done with it",
    "takes a key back",
    "so many",
    "so much",
    "does not ask",
    "only says how",
    "why you do it",
    "where the hub is",
    "unless said",
    "keeps everything",
    "stand still",
    "stands still",
    "goes on without you",
    "there are none like",
    "changed it meanwhile",
    // The API.
    "it is missing",
    "it is over",
    "a text is expected",
    "no such field",
    "stands there twice",
    "somebody",
];

/// Texts that contain a phrase for a reason.
const ALLOWED: &[(&str, &str)] = &[];

/// Folders with texts for people: all literals and doc comments of them count.
const DESCRIBED: &[&str] = &["hub/cli/src/", "libs/seawall-api/src/"];

fn problems(files: &[File], allowed: &[(&str, &str)]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| !file.is_in("tests") && !file.name().ends_with("tests.rs")) {
        let is_hub = file.path.starts_with("hub/") && file.path.contains("/src/");
        let is_described = DESCRIBED.iter().any(|folder| file.path.starts_with(folder));
        let read = match () {
            () if file.is_rust() && (is_hub || is_described) => {
                let mut read = texts(&product(&file.text));
                read.retain(|(_, text)| is_described || !text.starts_with("///"));
                read
            }
            () if file.is_in("templates") && is_hub => {
                file.text.lines().enumerate().map(|(index, line)| (index + 1, line.to_owned())).collect()
            }
            () => continue,
        };
        for (line, text) in read {
            let plain = plain(&text);
            let is_allowed = |phrase: &&str| {
                allowed.iter().any(|(text, word)| word == phrase && plain.contains(&text.to_lowercase()))
            };
            let found = BANNED.iter().filter(|phrase| says(&plain, phrase) && !is_allowed(phrase));
            problems.extend(found.map(|phrase| format!("{}:{line} says \"{phrase}\": {text}", file.path)));
        }
    }
    problems
}

/// The text in lower case, without the breaks of its lines.
fn plain(text: &str) -> String {
    text.to_lowercase().replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a text contains a phrase of whole words.
fn says(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + phrase.len()..].chars().next())
    })
}

#[test]
fn the_texts_of_this_project_are_in_the_words_of_the_trade() {
    let files = files();
    assert!(files.iter().any(|file| file.is_in("templates")), "the dashboard has templates");
    expect_none(&problems(&files, ALLOWED));
}

#[test]
fn an_old_phrase_is_found_wherever_people_read_it() {
    let files = [
        File::made_up("hub/server/src/dashboard/templates/overview.html", "<h2>Needs a person</h2>\n"),
        File::made_up(
            "hub/core/src/wait.rs",
            "/// It is given up.\nconst A: &str = \"too many of the last \\\n    sends failed\";\n#[cfg(test)]\nconst B: &str = \"given up\";\n",
        ),
        File::made_up("hub/cli/src/command/dlq.rs", "/// So many at most.\nlimit: u32,\n"),
        File::made_up("hub/cli/tests/hub/api.rs", "const A: &str = \"given up\";\n"),
    ];
    let found = problems(&files, &[("of the last sends", "sends failed")]);
    let heads: Vec<&str> = found.iter().filter_map(|problem| problem.split(": ").next()).collect();
    assert_eq!(
        heads,
        [
            "hub/server/src/dashboard/templates/overview.html:1 says \"needs a person\"",
            "hub/core/src/wait.rs:2 says \"last sends\"",
            "hub/cli/src/command/dlq.rs:1 says \"so many\"",
        ]
    );
}
