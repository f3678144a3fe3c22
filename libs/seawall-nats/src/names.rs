//! The names of streams and consumers.

/// Checks the name of a stream or of a consumer.
pub(crate) fn check(name: &str) -> Result<(), String> {
    let is_wrong = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '.' | '*' | '>' | '/' | '\\');
    if name.is_empty() {
        return Err("is empty".to_owned());
    }
    if name.contains(is_wrong) {
        return Err(format!(
            "`{}` has a space, a dot, a wildcard or a separator of paths in it; use letters, digits, `-` and `_`",
            name.escape_debug()
        ));
    }
    Ok(())
}
