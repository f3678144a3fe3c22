//! A plain word match, in place of full text.

use super::tables::Tables;

/// The words that a text has to contain, in lower case; quoted words in this order. The last word may be a prefix.
#[derive(Debug)]
pub(super) struct TextQuery {
    phrases: Vec<Vec<String>>,
    /// Whether the last word may be the beginning of one.
    open_end: bool,
}

impl TextQuery {
    pub(super) fn new(text: &str) -> Self {
        let (mut phrases, mut open_end) = (Vec::new(), false);
        for (turn, part) in text.split('"').enumerate() {
            let is_quoted = turn % 2 == 1;
            let pieces: Vec<&str> = if is_quoted { vec![part] } else { part.split_whitespace().collect() };
            for phrase in pieces.into_iter().map(words_of).filter(|phrase| !phrase.is_empty()) {
                phrases.push(phrase);
                open_end = !is_quoted;
            }
        }
        TextQuery { phrases, open_end }
    }

    /// Whether the words contain every phrase. A query without a word matches nothing.
    pub(super) fn matches(&self, words: &[String]) -> bool {
        let Some(last) = self.phrases.len().checked_sub(1) else { return false };
        self.phrases.iter().enumerate().all(|(place, phrase)| {
            let prefix = place == last && self.open_end;
            words.windows(phrase.len()).any(|window| is_phrase(window, phrase, prefix))
        })
    }
}

fn is_phrase(window: &[String], phrase: &[String], prefix: bool) -> bool {
    let last = phrase.len() - 1;
    let same = |(place, (word, wanted)): (usize, (&String, &String))| {
        if prefix && place == last { word.starts_with(wanted) } else { word == wanted }
    };
    window.iter().zip(phrase).enumerate().all(same)
}

fn words_of(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

impl Tables {
    /// Returns the words of a dead letter: its names, its event, and what its attempts led to.
    pub(super) fn words(&self, number: u64) -> Vec<String> {
        let Some(row) = self.deliveries.get(&number) else { return Vec::new() };
        let mut texts = vec![self.id(number).to_string()];
        texts.extend(row.replay_of.map(|original| self.id(original).to_string()));
        if let Some(event) = self.events.get(&row.event) {
            texts.extend([event.id.clone(), event.kind.as_str().to_owned(), event.source.clone()]);
            texts.extend(event.trace.clone());
            texts.push(String::from_utf8_lossy(&event.payload).into_owned());
        }
        for attempt in &row.attempts {
            texts.extend(attempt.error.clone());
            texts.extend(
                attempt.answer.iter().map(|answer| String::from_utf8_lossy(&answer.body).into_owned()),
            );
        }
        texts.iter().flat_map(|text| words_of(text)).collect()
    }
}
