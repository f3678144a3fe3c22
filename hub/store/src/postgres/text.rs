//! Texts that may contain U+0000, which a text of PostgreSQL can't.
//!
//! # Why one escape for all texts?
//! Error texts, headers, notes and ids come from outside, and every other store keeps them as they are. So each text that is written
//! goes through [`stored`], and each one that is read through [`shown`]. U+0000 becomes U+0001 U+0001, and U+0001 becomes U+0001
//! U+0002: whatever has neither of them stays as it is, and two escaped texts compare like the texts themselves.

use std::borrow::Cow;

/// The character that U+0000 and itself are escaped with.
const ESCAPE: char = '\u{1}';
/// What stands for U+0000 behind the escape character.
const FOR_NUL: char = '\u{1}';
/// What stands for the escape character behind itself.
const FOR_ESCAPE: char = '\u{2}';

/// Returns a text as the database holds it.
pub(crate) fn stored(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for one in text.chars() {
        match one {
            '\0' => escaped.extend([ESCAPE, FOR_NUL]),
            ESCAPE => escaped.extend([ESCAPE, FOR_ESCAPE]),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

/// Returns a text of the database as it was before.
pub(crate) fn shown(text: String) -> String {
    if !text.contains(ESCAPE) {
        return text;
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(one) = rest.next() {
        if one != ESCAPE {
            plain.push(one);
            continue;
        }
        match rest.next() {
            Some(FOR_NUL) => plain.push('\0'),
            Some(FOR_ESCAPE) => plain.push(ESCAPE),
            // Nobody here has written this: it stays as it is.
            other => plain.extend([Some(ESCAPE), other].into_iter().flatten()),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts in which U+0000 and the escape characters are frequent.
    fn texts() -> impl Strategy<Value = String> {
        let one = prop_oneof![Just('\0'), Just(ESCAPE), Just(FOR_ESCAPE), any::<char>()];
        proptest::collection::vec(one, 0..20).prop_map(String::from_iter)
    }

    proptest! {
        /// HUB-14: a text comes back as it was, whatever is in it, and the database can hold it.
        #[test]
        fn hub_14_a_text_comes_back_as_it_was(text in texts()) {
            let escaped = stored(&text).into_owned();
            prop_assert!(!escaped.contains('\0'));
            prop_assert_eq!(shown(escaped), text);
        }

        /// HUB-14: texts are in the same order in the database as in every other store.
        #[test]
        fn hub_14_escaped_texts_keep_their_order(one in texts(), other in texts()) {
            prop_assert_eq!(stored(&one).cmp(&stored(&other)), one.cmp(&other));
        }

        /// HUB-14: what has no such character is stored as it is, so that people can read and query it.
        #[test]
        fn hub_14_a_common_text_is_stored_as_it_is(text in "[^\\x00\\x01]{0,20}") {
            prop_assert!(matches!(stored(&text), Cow::Borrowed(_)));
        }
    }

    /// HUB-14: a text that was not escaped is shown as it is.
    #[test]
    fn hub_14_what_was_never_escaped_is_shown_as_it_is() {
        for odd in ["\u{1}", "a\u{1}b", "\u{1}\u{3}"] {
            assert_eq!(shown(odd.to_owned()), odd);
        }
        assert_eq!(stored("a\0b\u{1}"), "a\u{1}\u{1}b\u{1}\u{2}");
    }
}
