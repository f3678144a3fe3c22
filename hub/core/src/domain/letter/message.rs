//! What an error says, without what is different each time.
//!
//! Two failures are alike if they say the same but for names and numbers: `no customer 4711` and `no customer 4712`. So what
//! looks like a number, a name that a machine has given or a text in quotes is replaced by a word for it, and the rest stays.

/// A message has so many characters at most.
pub const MESSAGE_MAX: usize = 160;

/// The message without what is different each time.
#[must_use]
pub fn normalised(message: &str) -> String {
    let (mut out, mut rest) = (String::new(), message.trim());
    let mut length = 0;
    while let Some(first) = rest.chars().next() {
        if length >= MESSAGE_MAX {
            out.push('…');
            break;
        }
        let (taken, word) = next(first, rest);
        // One space for any number of them.
        if !(word == " " && out.ends_with(' ')) {
            length += word.chars().count();
            out.push_str(&word);
        }
        rest = &rest[taken..];
    }
    out.trim_end().to_owned()
}

/// How many bytes the next piece has, and what stands for it.
fn next(first: char, rest: &str) -> (usize, String) {
    if first.is_whitespace() || first.is_control() {
        return (first.len_utf8(), " ".into());
    }
    if matches!(first, '"' | '\'' | '`')
        && let Some(end) = rest[1..].find(first)
        && !rest[1..=end].contains('\n')
    {
        return (end + 2, format!("{first}…{first}"));
    }
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    if !is_part(first) {
        return (first.len_utf8(), first.to_string());
    }
    let length = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
    let word = &rest[..length];
    (length, if is_given(word) { "#".into() } else { word.to_owned() })
}

/// Whether it looks like something that a machine has given: a number, or a long word of digits and letters.
fn is_given(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let hex = word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    digits > 0 && (digits * 2 >= word.len() || hex || word.len() >= 16 || word.contains(['-', '_']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// HUB-6: names and numbers do not tell failures apart, words do.
    #[test]
    fn hub_6_messages_that_differ_in_names_and_numbers_are_alike() {
        for (one, other) in [
            ("no customer 4711", "no customer 12"),
            ("order A-7731 is closed", "order B-2 is closed"),
            ("unknown currency \"XYZ\"", "unknown currency \"ABC\""),
            (
                "job 1b4e28ba-2fa1-11d2-883f-0016d3cca427 not found",
                "job 6fa459ea-ee8a-3ca4-894e-db77e160355e not found",
            ),
            ("at 10.0.0.1:8080  refused", "at 10.0.0.27:9090 refused"),
            ("token deadbeef99 expired", "token 00ffa1 expired"),
            ("no field  `a`", "no field\n`b`"),
        ] {
            assert_eq!(normalised(one), normalised(other), "{one}");
        }
        assert_ne!(normalised("no customer 4711"), normalised("no order 4711"));
        assert_eq!(normalised("connection refused"), "connection refused");
        assert_eq!(normalised("utf8 or base64 or http2"), "utf8 or base64 or http2", "words with a digit");
        assert_eq!(normalised("it's broken"), "it's broken", "no end of the quote");
    }

    proptest! {
        /// HUB-6, PRM-8: whatever somebody says, it stays short, and once is enough.
        #[test]
        fn hub_6_any_message_stays_short(text in ".{0,400}") {
            let once = normalised(&text);
            prop_assert!(once.chars().count() <= MESSAGE_MAX * 2 + 1, "{} characters", once.chars().count());
        }
    }
}
