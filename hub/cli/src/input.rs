//! Input: files, stdin and texts on the command line.

use std::fs::File;
use std::io::{self, Read};
use std::ops::RangeInclusive;

use serde_json::value::RawValue;

use crate::error::CommandError;

/// The maximum request size of the hub.
pub(crate) const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Parses a whole number within a range.
pub(crate) fn whole<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match range.end() {
            end if *end >= u32::MAX.into() => format!("must be a whole number of at least {}", range.start()),
            end => format!("must be a whole number from {} to {end}", range.start()),
        })
    }
}

/// Reads JSON from a file, or from stdin for `-`, validates it and returns it as written.
pub(crate) fn json_file(name: &str) -> Result<String, CommandError> {
    checked(&read(name)?, name)
}

/// Reads a text from a file, or from stdin for `-`.
pub(crate) fn text_file(name: &str) -> Result<String, CommandError> {
    read(name)
}

/// Reads JSON from the command line, from a file for `@FILE`, or from stdin for `-`.
pub(crate) fn json_data(text: &str) -> Result<String, CommandError> {
    match file_of(text) {
        Some(name) => json_file(name),
        None => checked(text, "--data"),
    }
}

/// The same for any text. The flag is true if it is JSON.
pub(crate) fn any_data(text: &str) -> Result<(String, bool), CommandError> {
    let text = match file_of(text) {
        Some(name) => read(name)?,
        None => text.to_owned(),
    };
    let is_json = serde_json::from_str::<&RawValue>(&text).is_ok();
    Ok((text, is_json))
}

fn file_of(text: &str) -> Option<&str> {
    text.strip_prefix('@').or_else(|| (text == "-").then_some(text))
}

/// Opens a file, or stdin for `-`, with its size if it is known.
pub(crate) fn open(name: &str) -> Result<(Box<dyn Read>, Option<u64>), CommandError> {
    if name == "-" {
        return Ok((Box::new(io::stdin()), None));
    }
    let unreadable = |error: io::Error| CommandError::usage(format!("can't read `{name}`: {error}"));
    let file = File::open(name).map_err(unreadable)?;
    let found = file.metadata().map_err(unreadable)?;
    if found.is_dir() {
        return Err(CommandError::usage(format!("`{name}` is a folder")));
    }
    Ok((Box::new(file), found.is_file().then_some(found.len())))
}

fn read(name: &str) -> Result<String, CommandError> {
    let mut bytes = Vec::new();
    let most = u64::try_from(BODY_BYTES_MAX).unwrap_or(u64::MAX);
    open(name)?
        .0
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CommandError::usage(format!("can't read `{name}`: {error}")))?;
    if bytes.len() > BODY_BYTES_MAX {
        return Err(CommandError::usage(format!(
            "`{name}` is larger than the maximum request size of 1 MiB"
        )));
    }
    String::from_utf8(bytes).map_err(|_| CommandError::usage(format!("`{name}` is not UTF-8")))
}

fn checked(text: &str, name: &str) -> Result<String, CommandError> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let Err(error) = serde_json::from_str::<&RawValue>(text) else { return Ok(text.to_owned()) };
    let (line, column, what) = (error.line(), error.column(), error.to_string());
    let what = what.split(" at line ").next().unwrap_or_default();
    let failure = CommandError::usage(format!("{name}:{line}:{column}: invalid JSON: {what}"));
    Err(if looks_like_yaml(text, name) {
        failure.and("this looks like YAML; the command reads only JSON")
    } else {
        failure
    })
}

fn looks_like_yaml(text: &str, name: &str) -> bool {
    let said = name.rsplit_once('.').is_some_and(|(_, end)| matches!(end, "yaml" | "yml"));
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let key = |line: &str| line.split_once(':').is_some_and(|(key, _)| !key.contains(['"', '{', '[', ' ']));
    said || first.is_some_and(|line| line == "---" || key(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-10: invalid JSON is reported with its position, and YAML is recognised.
    #[test]
    fn hub_10_what_is_no_json_is_shown_where_it_stands() {
        let said = |text: &str, name: &str| format!("{:?}", checked(text, name).unwrap_err());
        assert!(said("{\n  \"a\": x}", "a.json").contains("a.json:2:8: invalid JSON: expected value"));
        assert!(!said("{\n  \"a\": x}", "a.json").contains("YAML"));
        for (text, name) in [("# a\nname: billing", "-"), ("---\n- a", "-"), ("{a: b}", "a.yaml")] {
            assert!(said(text, name).contains("YAML"), "{text}");
        }
        let large = "{\"n\":123456789012345678901234567890.10}";
        assert_eq!(checked(&format!("\u{feff} {large}\n"), "-").unwrap(), large);
    }
}
