use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use rusqlite::Connection;

use super::*;

/// SQLite's own tokenizer, as the store on SQLite uses it.
struct Tokenizer(Connection);

impl Tokenizer {
    fn new() -> Self {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch(
                "CREATE VIRTUAL TABLE texts USING fts5 (words, tokenize = 'unicode61');
                 CREATE VIRTUAL TABLE terms USING fts5vocab (texts, instance);",
            )
            .unwrap();
        Tokenizer(connection)
    }

    fn words(&self, text: &str) -> Vec<String> {
        self.0.execute_batch("DELETE FROM texts").unwrap();
        self.0.execute("INSERT INTO texts (words) VALUES (?1)", [text]).unwrap();
        let mut terms = self.0.prepare("SELECT term FROM terms ORDER BY offset").unwrap();
        let terms = terms.query_map([], |row| row.get(0)).unwrap();
        terms.collect::<rusqlite::Result<_>>().unwrap()
    }
}

/// HUB-6: every character is a part of a word, or not, and becomes what it becomes on SQLite.
#[test]
fn hub_6_every_character_is_as_on_sqlite() {
    let tokenizer = Tokenizer::new();
    let all: Vec<char> = ('\u{1}'..=char::MAX).collect();
    let differs = |text: &str| words(text) != tokenizer.words(text);
    for chunk in all.chunks(4_096) {
        for around in ["", "x"] {
            let text = |one: &char| format!("{around}{one}{around} ");
            if differs(&chunk.iter().map(text).collect::<String>()) {
                let first = chunk.iter().find(|one| differs(&text(one)));
                panic!("{:?} is different", first.map(|one| one.escape_unicode().to_string()));
            }
        }
    }
}

/// Characters of many scripts, with those frequent that fold, separate or combine.
fn texts() -> impl Strategy<Value = String> {
    let one = prop_oneof![
        any::<char>(),
        proptest::char::range(' ', '~'),
        proptest::char::range('À', 'ɏ'),
        proptest::char::range('\u{300}', '\u{340}'),
        proptest::char::range('Ͱ', 'ӿ'),
        proptest::char::range('Ḁ', 'ỿ'),
    ];
    vec(one, 0..40).prop_map(String::from_iter)
}

/// Texts of few words, so that searches find something.
fn few_words() -> impl Strategy<Value = String> {
    vec(prop_oneof!["a", "b", "ab", "Ábc", "b-a", "7", " ", " ", "\"", "ß", "-"], 0..12)
        .prop_map(|words| words.concat())
}

/// Whether the words match a query, as PostgreSQL says it: phrases with `&` between them, words with `<->`.
fn matches(query: &str, words: &[String]) -> bool {
    let same = |word: &String, wanted: &str| match wanted.strip_suffix(":*") {
        Some(prefix) => word.starts_with(prefix.trim_matches('\'')),
        None => word == wanted.trim_matches('\''),
    };
    query.split(" & ").all(|phrase| {
        let phrase: Vec<&str> = phrase.split(" <-> ").collect();
        let found = |window: &[String]| window.iter().zip(&phrase).all(|(word, wanted)| same(word, wanted));
        words.windows(phrase.len()).any(found)
    })
}

proptest! {
    /// HUB-6: a text has the same words on both databases.
    #[test]
    fn hub_6_a_text_has_the_words_that_it_has_on_sqlite(texts in vec(texts(), 1..8)) {
        let tokenizer = Tokenizer::new();
        for text in texts {
            prop_assert_eq!(words(&text), tokenizer.words(&text));
        }
    }

    /// HUB-6: a search finds the same texts on both databases.
    #[test]
    fn hub_6_a_search_finds_what_it_finds_on_sqlite(text in few_words(), typed in few_words()) {
        let tokenizer = Tokenizer::new();
        tokenizer.0.execute("INSERT INTO texts (words) VALUES (?1)", [&text]).unwrap();
        let found = crate::sqlite::expression(&typed).is_some_and(|typed| {
            let count = "SELECT count(*) FROM texts WHERE texts MATCH ?1";
            tokenizer.0.query_row(count, [typed], |row| row.get::<_, i64>(0)).unwrap() > 0
        });
        prop_assert_eq!(query(&typed).is_some_and(|query| matches(&query, &words(&text))), found);
    }
}

/// HUB-6: what the database is asked for.
#[test]
fn hub_6_a_search_is_phrases_and_a_prefix() {
    for (typed, asked) in [
        ("no stock", "'no' & 'stock':*"),
        (r#"say "no stock""#, "'say' & 'no' <-> 'stock'"),
        ("A-7731", "'a' <-> '7731':*"),
        ("Müller & Söhne!", "'muller' & 'sohne':*"),
        ("it's \\ 'x'", "'it' <-> 's' & 'x':*"),
    ] {
        assert_eq!(query(typed).as_deref(), Some(asked), "{typed}");
    }
    assert_eq!(query(" *\" -- "), None);
    assert_eq!(vector("A-7731 a"), "'a':1 '7731':2 'a':3 ");
}

/// HUB-6, PRM-8: a text keeps within the limits of the database, and its last word is in it.
#[test]
fn hub_6_a_long_text_keeps_within_the_limits() {
    let many = "a ".repeat(POSITIONS_MAX) + "last";
    assert!(vector(&many).ends_with("'a':16383 'last' "));
    let long = "ä".repeat(5_000) + "é";
    assert_eq!(words(&long), ["a".repeat(WORD_MAX)]);
    let wide: BTreeSet<usize> = words(&"語".repeat(5_000)).iter().map(String::len).collect();
    assert_eq!(wide, BTreeSet::from([WORD_MAX]));
}
