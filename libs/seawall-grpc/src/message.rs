//! The sizes of messages on the wire.

use bytes::Bytes;

/// One byte says whether the message is compressed, four bytes say how long it is.
const PREFIX: usize = 5;

/// Reads the length of every message that passes, wherever the pieces of the stream begin and end.
#[derive(Debug)]
pub(crate) struct MessageSizes {
    limit: u64,
    prefix: [u8; PREFIX],
    /// How much of the prefix was read.
    known: usize,
    /// How much of the message is still to come.
    left: u64,
}

impl MessageSizes {
    pub(crate) fn new(limit: u64) -> Self {
        MessageSizes { limit, prefix: [0; PREFIX], known: 0, left: 0 }
    }

    /// Looks at the next piece of the stream, and says how long the message is that is too long.
    pub(crate) fn check(&mut self, piece: &Bytes) -> Result<(), u64> {
        let mut rest = &piece[..];
        while !rest.is_empty() {
            if self.left > 0 {
                let skipped = usize::try_from(self.left).map_or(rest.len(), |left| left.min(rest.len()));
                self.left -= skipped as u64;
                rest = &rest[skipped..];
                continue;
            }
            let taken = rest.len().min(PREFIX - self.known);
            self.prefix[self.known..self.known + taken].copy_from_slice(&rest[..taken]);
            self.known += taken;
            rest = &rest[taken..];
            if self.known == PREFIX {
                let [_, length @ ..] = self.prefix;
                (self.known, self.left) = (0, u64::from(u32::from_be_bytes(length)));
                if self.left > self.limit {
                    return Err(self.left);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(lengths: &[usize]) -> Vec<u8> {
        let message = |length: &usize| {
            let prefix = u32::try_from(*length).unwrap().to_be_bytes();
            [&[0][..], &prefix[..], &vec![7; *length]].concat()
        };
        lengths.iter().flat_map(message).collect()
    }

    /// ADP-2: sizes are those of messages, however the stream is cut into pieces.
    #[test]
    fn adp_2_the_size_of_a_message_is_known_wherever_the_stream_is_cut() {
        for piece in 1..30 {
            let check = |lengths: &[usize]| {
                let mut sizes = MessageSizes::new(10);
                stream(lengths)
                    .chunks(piece)
                    .try_for_each(|piece| sizes.check(&Bytes::copy_from_slice(piece)))
            };
            assert_eq!(check(&[0, 10, 3, 0, 9]), Ok(()), "in pieces of {piece}");
            assert_eq!(check(&[10, 11]), Err(11), "in pieces of {piece}");
        }
    }
}
