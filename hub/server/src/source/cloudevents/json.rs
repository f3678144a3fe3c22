//! JSON in which every name of an object stands once.

use serde_json::Value;

/// Reads JSON. Of a name that stands twice the library would take the last; here it is a mistake. How deep it may be is
/// the library's bound of 128 levels.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, String> {
    let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    // Each name has a colon after it, and names that were lost have one too.
    if colons(bytes) == names(&value) { Ok(value) } else { Err("duplicate field in an object".into()) }
}

/// How many colons stand outside of texts, in what is JSON.
fn colons(bytes: &[u8]) -> usize {
    let (mut count, mut in_text) = (0, false);
    let mut bytes = bytes.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_text = !in_text,
            b'\\' => drop(bytes.next()),
            b':' if !in_text => count += 1,
            _ => {}
        }
    }
    count
}

/// How many names there are, as deep as the library reads.
fn names(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.len() + map.values().map(names).sum::<usize>(),
        Value::Array(list) => list.iter().map(names).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
