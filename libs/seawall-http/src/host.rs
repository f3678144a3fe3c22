//! The host of a URL: an address in whatever spelling, or a name.
//!
//! # Why not leave it to the resolver?
//! Systems differ in what they take for an address: `0x7f.1`, `2130706433` and `0177.0.0.1` are 127.0.0.1 to some and names to
//! others. Here they are what a browser takes them for, once, and that is what is checked and connected to. What looks like an
//! address and is none is refused before any resolver sees it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Names are at most this long.
const NAME_MAX: usize = 253;

/// What stands between `//` and the port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Host {
    Address(IpAddr),
    Name(Box<str>),
}

impl Host {
    /// Reads the host of a URL. `None` where it is neither an address nor a name.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some(inner) = text.strip_prefix('[') {
            // No zones: they name an interface of this machine.
            return inner.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(|v6| Host::Address(v6.into()));
        }
        let bare = text.strip_suffix('.').unwrap_or(text);
        let is_plain = bare.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        if bare.is_empty() || bare.len() > NAME_MAX || !is_plain {
            return None;
        }
        if bare.split('.').any(|label| label.is_empty() || label.len() > 63) {
            return None;
        }
        let last = bare.rsplit('.').next().unwrap_or(bare);
        if is_numeric(last) {
            return ipv4(bare).map(|v4| Host::Address(v4.into()));
        }
        // The final dot is kept: it keeps the resolver from trying suffixes.
        Some(Host::Name(text.into()))
    }
}

/// Whether a name that ends in this label is meant as an address.
fn is_numeric(label: &str) -> bool {
    label.bytes().all(|b| b.is_ascii_digit()) || number(label).is_some()
}

/// One to four numbers, of which the last fills what is left.
fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut parts = text.split('.').map(number).collect::<Option<Vec<u64>>>()?;
    let last = parts.pop()?;
    let (count, room) = (parts.len(), 1_u64 << (8 * 4_usize.checked_sub(parts.len())?));
    if count > 3 || last >= room || parts.iter().any(|part| *part > 255) {
        return None;
    }
    let high = parts.iter().enumerate().map(|(at, part)| part << (8 * (3 - at))).sum::<u64>();
    u32::try_from(high + last).ok().map(Ipv4Addr::from)
}

/// A number in decimal, octal (`0…`) or hexadecimal (`0x…`).
fn number(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, radix) = match lower.strip_prefix("0x") {
        Some("") => return Some(0),
        Some(digits) => (digits, 16),
        None if lower.len() > 1 && lower.starts_with('0') => (&lower[1..], 8),
        None => (&*lower, 10),
    };
    // `from_str_radix` would take a sign.
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    is_number.then(|| u64::from_str_radix(digits, radix).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-3: spellings: decimal, octal, hex and short IPv4, trailing dot.
    #[test]
    fn sec_3_an_address_is_the_same_in_every_spelling() {
        let loopback = Some(Host::Address(IpAddr::from([127, 0, 0, 1])));
        let spellings = [
            "127.0.0.1",
            "127.0.0.1.",
            "127.1",
            "127.0.1",
            "2130706433",
            "0x7f000001",
            "0x7F.1",
            "0177.0.0.1",
            "017700000001",
            "0x7f.0x0.0x0.0x1",
            "0177.0.0.0x1",
            "127.0x1",
        ];
        for spelling in spellings {
            assert_eq!(Host::parse(spelling), loopback, "{spelling}");
        }
        assert_eq!(Host::parse("0"), Some(Host::Address(IpAddr::from([0, 0, 0, 0]))));
        assert_eq!(Host::parse("[::1]"), Some(Host::Address(IpAddr::V6(Ipv6Addr::LOCALHOST))));
    }

    /// SEC-3: what looks like an address and is none never reaches a resolver that may see one in it.
    #[test]
    fn sec_3_what_only_looks_like_an_address_is_refused() {
        let none = [
            "",
            ".",
            "256.1.1.1",
            "1.2.3.4.5",
            "4294967296",
            "0x100000000",
            "127.0.0.1..",
            "127..1",
            "1.2.3.09",
            "08",
            "a b",
            "a%41",
            "①②⑦.0.0.1",
            "127。0。0。1",
            "user@host",
            "[fe80::1%eth0]",
            "[127.0.0.1]",
            "[::1",
            "127.0.0.0x",
            "+1",
            "a/b",
            "a\\b",
            "a\0b",
        ];
        for text in none {
            let host = Host::parse(text);
            // `0x` alone is zero to a browser.
            let expected = (text == "127.0.0.0x").then(|| Host::Address(IpAddr::from([127, 0, 0, 0])));
            assert_eq!(host, expected, "{text}");
        }
        let names = [
            "localhost",
            "localhost.",
            "example.com",
            "xn--mnchen-3ya.de",
            "_dmarc.a-b.example",
            "1.example",
        ];
        for name in names {
            assert_eq!(Host::parse(name), Some(Host::Name(name.into())), "{name}");
        }
    }
}
