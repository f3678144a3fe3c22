//! What is done with a click: one call of the API for each.
//!
//! A form says which call it is in `_method` and `_path`, where to go afterwards in `_to`, what to say there in `_done`, and why in
//! `_reason`; all other fields are the body. A field's name is a path into it, `policy.retry.max_attempts`, and may say what kind of
//! value it is: `rate:number`, `paused:flag`, `body:json`, `ids:list`, `headers:pairs`. What is empty is left out. `{name}` in `_path` is
//! what that field says, and in `_to` what is answered. The script of the pages sends the same as JSON and shows what is wrong beside
//! the fields; without it, a page does.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde_json::{Map, Value, json};

use super::guard::leads_here;
use super::session::{self, Session};
use super::{Dashboard, PageResult, html, show};
use crate::http::query::pairs_of;

/// What somebody wants done.
struct FormAction {
    method: Method,
    path: String,
    body: Option<Value>,
    reason: Option<String>,
    to: String,
    done: String,
}

pub(super) async fn act(
    State(dashboard): State<Arc<Dashboard>>,
    session: Session,
    headers: HeaderMap,
    body: Bytes,
) -> PageResult {
    let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let by_script =
        said(header::CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with("application/json"));
    let (token, wish) = if by_script { of_json(&body) } else { of_form(&body) };
    let token = token.or_else(|| said("x-csrf").map(ToOwned::to_owned));
    if token.as_deref() != Some(session.csrf()) {
        let word = "the form does not belong to your session; reload the page and repeat the action";
        return Ok(failed(by_script, StatusCode::FORBIDDEN, &json!({"message": word}), word));
    }
    let wish = match wish {
        Ok(wish) => wish,
        Err(word) => return Ok(failed(by_script, StatusCode::BAD_REQUEST, &json!({"message": word}), &word)),
    };
    let (reason, wish_path) = (wish.reason.as_deref(), &*wish.path);
    let answer = dashboard.ask(&session, wish.method, &wish.path, wish.body.as_ref(), reason).await?;
    if !answer.status.is_success() {
        return Ok(failed(by_script, answer.status, &answer.whole, &answer.message()));
    }
    // What only looks changes nothing, and comes with every key that somebody types.
    if !wish_path.ends_with(":evaluate") {
        dashboard.live.forget();
        dashboard.menus.forget();
    }
    if by_script {
        return Ok(as_json(answer.status, &answer.whole));
    }
    if let Some(key) = answer.data()["key"].as_str() {
        return Ok(html(answer.status, show::sorry("Copy this key now; it is shown only once", key), false));
    }
    let to = filled(&wish.to, answer.data()).unwrap_or_else(|_| "/".into());
    let mut response = Redirect::to(&to).into_response();
    session::flash(&mut response, &wish.done);
    Ok(response)
}

fn failed(by_script: bool, status: StatusCode, whole: &Value, words: &str) -> Response {
    if by_script {
        return as_json(status, whole);
    }
    html(status, show::sorry("Action failed", words), false)
}

fn as_json(status: StatusCode, whole: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], whole.to_string()).into_response()
}

/// `{csrf, method, path, body, reason}`.
fn of_json(body: &[u8]) -> (Option<String>, Result<FormAction, String>) {
    let whole: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| whole[name].as_str().filter(|text| !text.is_empty()).map(ToOwned::to_owned);
    let body = whole.get("body").filter(|body| !body.is_null()).cloned();
    let (to, done) = (text("to").unwrap_or_default(), text("done").unwrap_or_default());
    (text("csrf"), wish(text("method").as_deref(), text("path"), body, text("reason"), (to, done)))
}

/// The fields of a form.
fn of_form(body: &[u8]) -> (Option<String>, Result<FormAction, String>) {
    let mut fields = Map::new();
    let (mut method, mut path, mut reason, mut token) = (None, None, None, None);
    let (mut to, mut done) = (String::new(), String::new());
    let mut wrong = None;
    for (name, value) in pairs_of(Some(&String::from_utf8_lossy(body))) {
        match &*name {
            "_method" => method = Some(value),
            "_path" => path = Some(value),
            "_reason" => reason = Some(value).filter(|value| !value.trim().is_empty()),
            "_csrf" => token = Some(value),
            "_to" => to = value,
            "_done" => done = value,
            _ if value.is_empty() => {}
            name => wrong = put(&mut fields, name, &value).err().or(wrong),
        }
    }
    let body = (!fields.is_empty()).then_some(Value::Object(fields));
    let wish = match wrong {
        Some(word) => Err(word),
        None => wish(method.as_deref(), path, body, reason, (to, done)),
    };
    (token, wish)
}

fn wish(
    method: Option<&str>,
    path: Option<String>,
    body: Option<Value>,
    reason: Option<String>,
    (to, done): (String, String),
) -> Result<FormAction, String> {
    let method = method.unwrap_or("POST").parse().map_err(|_| "unknown method".to_owned())?;
    let path = path.filter(|path| path.starts_with("/api/v1/")).ok_or("an API path is required")?;
    let path = filled(&path, body.as_ref().unwrap_or(&Value::Null))?;
    // Only to a page of ours.
    let to = if leads_here(&to) { to } else { "/".into() };
    Ok(FormAction { method, path, body, reason, to, done })
}

/// A path with `{name}` in it, and so on: what is said or answered under that name.
fn filled(path: &str, values: &Value) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or("the path has an unclosed brace")?;
        let value = values[name].as_str().ok_or_else(|| format!("{name}: required"))?;
        out.push_str(before);
        out.push_str(&show::encoded(value));
        rest = after;
    }
    Ok(out + rest)
}

/// Puts a value where its name says.
fn put(fields: &mut Map<String, Value>, name: &str, value: &str) -> Result<(), String> {
    let (path, kind) = name.split_once(':').unwrap_or((name, "text"));
    let value = match kind {
        "number" => value.parse::<f64>().ok().map(|number| {
            if number.fract() == 0.0 && number.abs() < 9e15 { json!(number as i64) } else { json!(number) }
        }),
        "flag" => Some(json!(matches!(value, "on" | "true" | "1"))),
        "json" => serde_json::from_str(value).ok(),
        "pairs" => Some(pairs(value).map_err(|line| format!("{path}: has no colon: {line}"))?),
        "list" => Some(value.split([',', '\n']).map(str::trim).filter(|item| !item.is_empty()).collect()),
        _ => Some(json!(value)),
    };
    let Some(value) = value else { return Err(format!("{path}: must be a {kind}")) };
    let mut place = fields;
    let (last, before) = match path.rsplit_once('.') {
        Some((before, last)) => (last, before.split('.').collect()),
        None => (path, Vec::new()),
    };
    for part in before {
        let inner = place.entry(part).or_insert_with(|| json!({}));
        let Value::Object(inner) = inner else { return Err(format!("{path}: `{part}` already has a value")) };
        place = inner;
    }
    let value = match (place.remove(last), value) {
        // Several boxes of one name.
        (Some(Value::Array(mut there)), Value::Array(more)) => {
            there.extend(more);
            Value::Array(there)
        }
        (Some(there), value) if !there.is_null() => over(value, there),
        // Nothing, unless something of the same name says more.
        (_, value) => value,
    };
    place.insert(last.to_owned(), value);
    Ok(())
}

/// What has a field of its own wins over the same in a piece of JSON.
fn over(under: Value, top: Value) -> Value {
    let (Value::Object(mut both), Value::Object(top)) = (under, top.clone()) else { return top };
    for (name, value) in top {
        let value = match both.remove(&name) {
            Some(under) => over(under, value),
            None => value,
        };
        both.insert(name, value);
    }
    Value::Object(both)
}

/// Lines of `name: value`, or the first that is none.
fn pairs(text: &str) -> Result<Value, &str> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let pair = |line| {
        let (name, value) = str::split_once(line, ':').ok_or(line)?;
        Ok((name.trim().to_owned(), json!(value.trim())))
    };
    lines.map(pair).collect::<Result<_, _>>().map(Value::Object)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UI-3: the fields of a form become the body of a call, with their types; what is empty is left out.
    #[test]
    fn ui_3_a_form_becomes_a_call() {
        let form = "_method=PUT&_path=/api/v1/registry/services/a&_csrf=t&_reason=because&_to=/services&name=a&note=\
                    &policy.retry.max_attempts:number=5&policy.rate:number=0.5&policy:json=%7B%22rate%22%3A9,%22retry%22%3A%7B%22x%22%3A1%7D%7D&paused:flag=on&body:json=%7B%22a%22%3A1%7D&ids:list=x,+y&ids:list=z&headers:pairs=x-a:+b:c%0A%0Ax-d:\
                    &all:json=null&some:json=null&some:list=a&also:list=b&also:json=null";
        let (token, wish) = of_form(form.as_bytes());
        let wish = wish.unwrap();
        assert_eq!((token.as_deref(), wish.method, &*wish.to), (Some("t"), Method::PUT, "/services"));
        assert_eq!(wish.reason.as_deref(), Some("because"));
        let expected = json!({
            "name": "a", "paused": true, "body": {"a": 1}, "ids": ["x", "y", "z"],
            "headers": {"x-a": "b:c", "x-d": ""}, "all": null, "some": ["a"], "also": ["b"],
            "policy": {"retry": {"max_attempts": 5, "x": 1}, "rate": 0.5},
        });
        assert_eq!(wish.body, Some(expected));
    }

    /// UI-3, SEC-1: what is said goes into the path as one part of it, and what is missing is said.
    #[test]
    fn ui_3_a_name_goes_into_the_path() {
        let form = |name: &str| format!("_method=PUT&_path=/api/v1/x/%7Bname%7D:test&name={name}");
        assert_eq!(of_form(form("a/../b").as_bytes()).1.unwrap().path, "/api/v1/x/a%2F..%2Fb:test");
        assert_eq!(of_form(form("").as_bytes()).1.err().as_deref(), Some("name: required"));
    }

    /// UI-3, SEC-1: a form leads to the API and to pages of ours, and nowhere else; what can't be read says so.
    #[test]
    fn sec_1_a_form_leads_nowhere_else() {
        for bad in [
            "_path=/actuator/health",
            "_path=http://evil/api/v1/",
            "name=a",
            "_path=/api/v1/x&a:number=b",
            "_path=/api/v1/x&a:pairs=no+colon",
        ] {
            assert!(of_form(bad.as_bytes()).1.is_err(), "{bad}");
        }
        for to in ["//evil", "http://evil", "/\\evil", ""] {
            let form = format!("_path=/api/v1/x&_to={to}");
            assert_eq!(of_form(form.as_bytes()).1.unwrap().to, "/", "{to}");
        }
    }
}
