//! One JSON object over another.

use serde_json::Value;

/// A change over what is there: field by field, and within these fields field by field too, however deep. Null takes away.
pub(super) fn patched(before: Value, change: Value, deep: &[&str]) -> Value {
    fn over(before: &mut Value, change: Value) {
        match (before, change) {
            (Value::Object(before), Value::Object(change)) => {
                for (name, value) in change {
                    if value.is_null() {
                        before.remove(&name);
                    } else {
                        over(before.entry(name).or_insert(Value::Null), value);
                    }
                }
            }
            (before, change) => *before = change,
        }
    }
    let (Value::Object(mut all), Value::Object(change)) = (before, change.clone()) else { return change };
    for (name, value) in change {
        let there = all.entry(name.clone()).or_insert(Value::Null);
        if deep.contains(&&*name) && there.is_object() && value.is_object() {
            over(there, value);
        } else {
            *there = value;
        }
    }
    Value::Object(all)
}

/// One object over another, field by field.
pub(super) fn merged(before: Value, over: Value) -> Value {
    match (before, over) {
        (Value::Object(mut before), Value::Object(over)) => {
            before.extend(over);
            Value::Object(before)
        }
        (_, over) => over,
    }
}
