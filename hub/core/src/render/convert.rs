//! JSON to values and back.

use minijinja::Value;
use minijinja::value::ValueKind;
use serde_json::{Map, Number, Value as Json};

/// JSON as expressions see it.
pub(super) fn value_of(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(yes) => Value::from(*yes),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Value::from(whole),
            (None, Some(whole)) => Value::from(whole),
            _ => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::from(items.iter().map(value_of).collect::<Vec<_>>()),
        Json::Object(fields) => {
            Value::from_pairs(fields.iter().map(|(name, value)| (name.clone(), value_of(value))))
        }
    }
}

/// A value as JSON, or why it has no form there.
pub(super) fn json_of(value: &Value) -> Result<Json, String> {
    Ok(match value.kind() {
        ValueKind::None => Json::Null,
        ValueKind::Bool => Json::Bool(value.is_true()),
        ValueKind::String => Json::String(value.as_str().unwrap_or_default().to_owned()),
        ValueKind::Number => Json::Number(number_of(value)?),
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter().map_err(|error| error.to_string())?;
            items.map(|item| json_of(&item)).collect::<Result<_, _>>()?
        }
        ValueKind::Map => {
            let mut fields = Map::new();
            for key in value.try_iter().map_err(|error| error.to_string())? {
                let Some(name) = key.as_str() else {
                    return Err(format!("the name of a field is no text: {key}"));
                };
                let field = value.get_item(&key).map_err(|error| error.to_string())?;
                fields.insert(name.to_owned(), json_of(&field)?);
            }
            Json::Object(fields)
        }
        other => return Err(format!("{other} has no form in JSON")),
    })
}

fn number_of(value: &Value) -> Result<Number, String> {
    if value.is_integer() {
        if let Some(whole) = value.as_i64() {
            return Ok(whole.into());
        }
        return u64::try_from(value.clone())
            .map(Number::from)
            .map_err(|_| format!("{value} is too large a number"));
    }
    let float = f64::try_from(value.clone()).map_err(|error| error.to_string())?;
    Number::from_f64(float).ok_or_else(|| format!("{float} is no number in JSON"))
}
