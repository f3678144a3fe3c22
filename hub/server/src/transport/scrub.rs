//! What a peer says back of our credentials is not kept.
//!
//! Many peers repeat what they were sent when something is wrong, headers and all. What is kept of an answer would then hold the
//! secret in clear, in the database and wherever it is shown.

/// Shorter secrets would be found everywhere.
const SECRET_MIN: usize = 6;
const HIDDEN: &[u8] = "…".as_bytes();

/// The same bytes with every secret hidden.
pub(crate) fn scrubbed(text: &[u8], secrets: &[String]) -> Vec<u8> {
    let mut out = text.to_vec();
    for secret in secrets.iter().map(String::as_bytes).filter(|secret| secret.len() >= SECRET_MIN) {
        out = without(&out, secret);
    }
    out
}

fn without(text: &[u8], secret: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some(at) = rest.windows(secret.len()).position(|part| part == secret) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(HIDDEN);
        rest = &rest[at + secret.len()..];
    }
    // What was cut off may end in the middle of it.
    let tail = (SECRET_MIN..secret.len()).rev().find(|length| rest.ends_with(&secret[..*length]));
    out.extend_from_slice(&rest[..rest.len() - tail.unwrap_or(0)]);
    if tail.is_some() {
        out.extend_from_slice(HIDDEN);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PRM-9: what a peer repeats of a secret is not kept, be it whole, twice, or cut off at the end.
    #[test]
    fn prm_9_what_a_peer_repeats_is_hidden() {
        let secrets = ["s3cr3t-t0ken".to_owned(), "short".to_owned()];
        let check = |text: &str, kept: &str| {
            assert_eq!(String::from_utf8(scrubbed(text.as_bytes(), &secrets)).unwrap(), kept);
        };
        check("you sent `Bearer s3cr3t-t0ken`, s3cr3t-t0ken!", "you sent `Bearer …`, …!");
        check("cut off: s3cr3t-t0", "cut off: …");
        check("cut off: s3cr3", "cut off: s3cr3");
        check("short and nothing else", "short and nothing else");
        check("", "");
    }
}
