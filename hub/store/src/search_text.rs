//! What a full-text search does alike in every database: splitting what was typed, and putting together what is indexed.

use seawall_hub_core::domain::delivery::DeliveryId;

/// The maximum size of the indexed text of a dead letter in bytes.
pub(crate) const TEXT_MAX: usize = 64 * 1024;
/// The maximum size of the indexed part of each error and each response in bytes.
pub(crate) const ANSWER_MAX: usize = 4 * 1024;
/// The number of attempts whose errors and responses are indexed, the last ones.
pub(crate) const ATTEMPTS_MAX: u32 = 10;

/// The text of a dead letter that is indexed. Names are added first, so that they are in it however large the rest is.
pub(crate) struct IndexedText(String);

impl IndexedText {
    pub(crate) fn new(id: DeliveryId) -> Self {
        IndexedText(id.to_string())
    }

    /// Adds as much as there is room for, and not more than `most` bytes.
    pub(crate) fn add(&mut self, bytes: &[u8], most: usize) {
        let room = TEXT_MAX.saturating_sub(self.0.len() + 1).min(most);
        self.0.push(' ');
        self.0.push_str(&String::from_utf8_lossy(&bytes[..bytes.len().min(room)]));
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

/// Splits a search text into words and quoted phrases. True means that it was not quoted: the last one may then be the beginning
/// of a word. Pieces without a letter or digit are left out.
pub(crate) fn pieces(text: &str) -> Vec<(String, bool)> {
    let mut pieces: Vec<(String, bool)> = Vec::new();
    for (turn, part) in text.split('"').enumerate() {
        if turn % 2 == 1 {
            pieces.push((part.to_owned(), false));
        } else {
            pieces.extend(part.split_whitespace().map(|word| (word.to_owned(), true)));
        }
    }
    pieces.retain(|(piece, _)| piece.chars().any(char::is_alphanumeric));
    pieces
}
