//! What people hand in: files, stdin, and texts on the command line.

use std::fs::File;
use std::io::{self, Read};

use serde_json::value::RawValue;

use crate::failure::Failure;

/// The hub takes no larger request.
pub(crate) const BODY_BYTES_MAX: usize = 1024 * 1024;

/// JSON in a file, or on stdin for `-`. It is checked, and handed on as it was written.
pub(crate) fn json_file(name: &str) -> Result<String, Failure> {
    checked(&read(name)?, name)
}

/// Any text in a file, or on stdin for `-`.
pub(crate) fn text_file(name: &str) -> Result<String, Failure> {
    read(name)
}

/// JSON on the command line, in a file for `@FILE`, or on stdin for `-`.
pub(crate) fn json_data(text: &str) -> Result<String, Failure> {
    match file_of(text) {
        Some(name) => json_file(name),
        None => checked(text, "--data"),
    }
}

/// The same for any text, with whether it is JSON.
pub(crate) fn any_data(text: &str) -> Result<(String, bool), Failure> {
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

/// Opens a file, or stdin for `-`, with how many bytes it has if somebody knows.
pub(crate) fn open(name: &str) -> Result<(Box<dyn Read>, Option<u64>), Failure> {
    if name == "-" {
        return Ok((Box::new(io::stdin()), None));
    }
    let unreadable = |error: io::Error| Failure::usage(format!("`{name}` can't be read: {error}"));
    let file = File::open(name).map_err(unreadable)?;
    let found = file.metadata().map_err(unreadable)?;
    if found.is_dir() {
        return Err(Failure::usage(format!("`{name}` is a folder")));
    }
    Ok((Box::new(file), found.is_file().then_some(found.len())))
}

fn read(name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let most = u64::try_from(BODY_BYTES_MAX).unwrap_or(u64::MAX);
    open(name)?
        .0
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("`{name}` can't be read: {error}")))?;
    if bytes.len() > BODY_BYTES_MAX {
        return Err(Failure::usage(format!(
            "`{name}` is larger than a request to the hub may be, which is 1 MiB"
        )));
    }
    String::from_utf8(bytes).map_err(|_| Failure::usage(format!("`{name}` is not UTF-8")))
}

fn checked(text: &str, name: &str) -> Result<String, Failure> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let Err(error) = serde_json::from_str::<&RawValue>(text) else { return Ok(text.to_owned()) };
    let (line, column, what) = (error.line(), error.column(), error.to_string());
    let what = what.split(" at line ").next().unwrap_or_default();
    let failure = Failure::usage(format!("{name}:{line}:{column}: it is no JSON: {what}"));
    Err(if looks_like_yaml(text, name) {
        failure.and("it looks like YAML, and this command reads JSON only")
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

    /// HUB-10: what is no JSON is shown where it stands, and YAML is called by its name.
    #[test]
    fn hub_10_what_is_no_json_is_shown_where_it_stands() {
        let said = |text: &str, name: &str| format!("{:?}", checked(text, name).unwrap_err());
        assert!(said("{\n  \"a\": x}", "a.json").contains("a.json:2:8: it is no JSON: expected value"));
        assert!(!said("{\n  \"a\": x}", "a.json").contains("YAML"));
        for (text, name) in [("# a\nname: billing", "-"), ("---\n- a", "-"), ("{a: b}", "a.yaml")] {
            assert!(said(text, name).contains("YAML"), "{text}");
        }
        let large = "{\"n\":123456789012345678901234567890.10}";
        assert_eq!(checked(&format!("\u{feff} {large}\n"), "-").unwrap(), large);
    }
}
