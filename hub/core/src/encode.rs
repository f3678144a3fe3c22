//! Bytes as text in addresses and in hexadecimal digits, once for the whole hub.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
pub use percent_encoding::{AsciiSet, PercentEncode};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The bytes that are encoded in one segment of a path: all but the unreserved characters of RFC 3986.
pub const PATH_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The bytes that are encoded in a segment that may consist of dots only, so that it can't climb.
pub const DOT_SEGMENT: &AsciiSet = &PATH_SEGMENT.add(b'.');

/// The bytes that are encoded in a name or a value of a query.
pub const QUERY_VALUE: &AsciiSet = PATH_SEGMENT;

/// Percent-encodes a text, to be displayed or appended.
#[must_use]
pub fn percent<'a>(text: &'a str, encoded: &'static AsciiSet) -> PercentEncode<'a> {
    utf8_percent_encode(text, encoded)
}

/// Decodes a name or a value of a query or of a form: a plus is a space, and what is no percent-encoding stays.
#[must_use]
pub fn decoded_value(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

/// Writes bytes as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

/// Reads bytes from hexadecimal digits of either case.
#[must_use]
pub fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-14: a text is spelled in an address as it always was, byte by byte.
    #[test]
    fn hub_14_an_address_is_spelled_as_before() {
        let text: String = (0..=255).map(char::from).collect();
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
        let expected: String = text.bytes().map(one).collect();
        assert_eq!(percent(&text, PATH_SEGMENT).to_string(), expected);
        assert_eq!(percent(&text, DOT_SEGMENT).to_string(), expected.replace('.', "%2E"));
        assert_eq!(decoded_value(&expected), text);
        for (text, value) in [("a+b", "a b"), ("%zz%4", "%zz%4"), ("%2B%ff", "+\u{fffd}"), ("100%", "100%")] {
            assert_eq!(decoded_value(text), value);
        }
    }

    /// HUB-14: stored digits are those of before, and are read back in either case.
    #[test]
    fn hub_14_hexadecimal_digits_are_those_of_before() {
        let all: Vec<u8> = (0..=255).collect();
        let digits: String = all.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex(&all), digits);
        assert_eq!(bytes_of_hex(&digits.to_uppercase()), Some(all));
        for wrong in ["0", "+1", "0g", "é"] {
            assert_eq!(bytes_of_hex(wrong), None, "{wrong}");
        }
    }
}
