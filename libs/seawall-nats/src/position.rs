//! Where in a stream a message is, by the subject that its acknowledgement goes to.

/// The sequence of a message in its stream, and the number of its delivery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Position {
    pub(crate) sequence: u64,
    pub(crate) delivered: u32,
}

impl Position {
    /// Reads `$JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.…`, and the longer form with a domain and an account in front.
    pub(crate) fn of_reply(reply: &str) -> Option<Position> {
        let rest = reply.strip_prefix("$JS.ACK.")?;
        let skipped = match rest.bytes().filter(|byte| *byte == b'.').count() {
            6 => 2,
            8.. => 4,
            _ => return None,
        };
        let mut parts = rest.split('.').skip(skipped);
        let delivered = parts.next()?.parse::<u64>().ok()?;
        let sequence = parts.next()?.parse().ok()?;
        Some(Position { sequence, delivered: u32::try_from(delivered).unwrap_or(u32::MAX) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_the_subject_are_read() {
        let expected = Some(Position { sequence: 17, delivered: 3 });
        assert_eq!(Position::of_reply("$JS.ACK.ORDERS.billing.3.17.9.1700000000000000000.4"), expected);
        assert_eq!(
            Position::of_reply("$JS.ACK._.hash.ORDERS.billing.3.17.9.1700000000000000000.4.x"),
            expected
        );
        for wrong in ["", "_INBOX.abc", "$JS.ACK.a.b", "$JS.ACK.ORDERS.billing.x.17.9.1.4"] {
            assert_eq!(Position::of_reply(wrong), None, "{wrong}");
        }
    }
}
