//! Paths that can be sent, and those that would leave the address that they are below.

use super::TemplateError;

/// The maximum length of a path in bytes: as much as the headers of a request to the hub may have.
pub(super) const PATH_BYTES_MAX: usize = 32 * 1024;

/// Checks a rendered path: its length, its characters, and that it stays below the address of the service.
pub(super) fn check_path(path: &str) -> Result<(), TemplateError> {
    if path.len() > PATH_BYTES_MAX {
        return Err(TemplateError::new(
            "path",
            format!("must have at most {PATH_BYTES_MAX} bytes, not {}", path.len()),
        ));
    }
    // What begins at `#` would not be sent at all; the others can't be.
    let sendable = |byte: u8| byte.is_ascii_graphic() && !b"\"<>`#".contains(&byte);
    if !path.bytes().all(sendable) {
        return Err(TemplateError::new(
            "path",
            "it holds a space or a character that has to be percent-encoded",
        ));
    }
    let before_query = path.split('?').next().unwrap_or_default();
    if climbs(before_query) {
        return Err(TemplateError::new("path", "`..` would leave the address of the service"));
    }
    if path.starts_with("//") {
        return Err(TemplateError::new("path", "two slashes in front would name another host"));
    }
    Ok(())
}

/// Whether a part of a path is `.` or `..`, in any spelling that some server takes for it: encoded dots, slashes and backslashes,
/// backslashes as they are, and dots with a parameter after them (`..;x`). The query is no part of it.
#[must_use]
pub fn climbs(path: &str) -> bool {
    // How many dots there are since the last slash, as long as there is nothing else.
    let mut dots = Some(0_u32);
    let is_step = |dots| matches!(dots, Some(1 | 2));
    let mut rest = path.as_bytes();
    while let Some((byte, after)) = next(rest) {
        rest = after;
        match byte {
            b'.' => dots = dots.map(|dots| dots.saturating_add(1)),
            b'/' | b'\\' | b';' if is_step(dots) => return true,
            b'/' | b'\\' => dots = Some(0),
            _ => dots = None,
        }
    }
    is_step(dots)
}

/// The next byte, decoded if it is one that matters here, and what comes after it.
fn next(bytes: &[u8]) -> Option<(u8, &[u8])> {
    match bytes {
        [b'%', b'2', b'e' | b'E', rest @ ..] => Some((b'.', rest)),
        [b'%', b'2', b'f' | b'F', rest @ ..] => Some((b'/', rest)),
        [b'%', b'5', b'c' | b'C', rest @ ..] => Some((b'\\', rest)),
        [b'%', b'3', b'b' | b'B', rest @ ..] => Some((b';', rest)),
        [byte, rest @ ..] => Some((*byte, rest)),
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-3: every spelling of a step up is seen, and nothing else is taken for one.
    #[test]
    fn sec_3_a_step_up_is_seen_in_every_spelling() {
        for path in [
            "/..",
            "/a/../b",
            "/./a",
            "/%2e%2E/a",
            "/a/.%2e",
            "/..%2fa",
            "/a%5C..",
            "/..\\a",
            "/..;/a",
            "/.;x=1",
            "/%2e%2e%3B",
            "..",
            "/a/.",
        ] {
            assert!(climbs(path), "{path}");
        }
        for path in [
            "",
            "/",
            "/a..b",
            "/.well-known/x",
            "/...",
            "/%2ea",
            "/a.b/c",
            "/a;..",
            "/..a",
            "/%2",
            "/%252e%252e/",
        ] {
            assert!(!climbs(path), "{path}");
        }
    }
}
