//! `seawall dlq edit`: a changed copy of a dead letter, shown before it is sent.

use clap::Args;
use seawall_hub_server::client::Ask;
use serde_json::{Map, Value, json};

use super::letter::differences;
use super::path;
use crate::confirm::sure;
use crate::failure::{Done, Failure};
use crate::input;
use crate::output::note;
use crate::talk::{Data, Session, Why};

#[derive(Args)]
pub(crate) struct Edit {
    id: String,
    /// Other `data` for the event, as JSON in a file or on stdin; today's rule makes the request of it.
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["method", "path", "body", "header"])]
    data: Option<String>,
    /// Another method.
    #[arg(long)]
    method: Option<String>,
    /// Another path, with its query.
    #[arg(long)]
    path: Option<String>,
    /// Another body, from a file or stdin; an empty one is none.
    #[arg(long, value_name = "FILE|-")]
    body: Option<String>,
    /// `name: value` sets a header, `name:` takes it away; the others stay. May be said more than once.
    #[arg(long, value_name = "NAME:VALUE")]
    header: Vec<String>,
    /// Also if it was replayed before.
    #[arg(long)]
    again: bool,
    /// Only shows what would be different.
    #[arg(long)]
    dry_run: bool,
    /// Does not ask.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    why: Why,
}

impl Edit {
    pub(super) async fn run(&self, session: &Session) -> Done {
        let mut body = self.changed(session).await?;
        body.insert("again".into(), json!(self.again));
        let seen = self.ask(session, &body, true).await?;
        let diff = differences(&seen.value["diff"]);
        if diff.is_empty() {
            return Err(Failure::usage("nothing is changed by it")
                .and(format!("`seawall dlq replay {} --mode same` sends it as it was", self.id)));
        }
        if !session.out.json {
            session.out.text(&diff)?;
        } else if !self.yes && !self.dry_run {
            diff.lines().for_each(note);
        }
        if self.dry_run {
            return if session.out.json { session.out.line(&seen.text) } else { Ok(()) };
        }
        if !self.yes {
            sure("Send it like this?")?;
        }
        let sent = self.ask(session, &body, false).await;
        let sent = sent.map_err(|failure| failure.in_options("`again: true`", "here that is `--again`"))?;
        session.told(&sent, |data| {
            let delivery = data["delivery"].as_str().unwrap_or_default();
            format!("it goes out as delivery {delivery}\nseawall deliveries show {delivery} --watch")
        })
    }

    async fn ask(&self, session: &Session, body: &Map<String, Value>, dry: bool) -> Result<Data, Failure> {
        let mut body = body.clone();
        body.insert("dryRun".into(), json!(dry));
        let ask = Ask::post(path(&self.id, ":edit")).json(Value::Object(body).to_string());
        session.ask(self.why.of(ask)).await
    }

    /// What is to be different.
    async fn changed(&self, session: &Session) -> Result<Map<String, Value>, Failure> {
        if let Some(file) = &self.data {
            let data: Value = serde_json::from_str(&input::json_file(file)?).unwrap_or_default();
            return Ok(Map::from_iter([("data".to_owned(), data)]));
        }
        let mut request = Map::new();
        for (name, value) in [("method", &self.method), ("path", &self.path)] {
            request.extend(value.iter().map(|value| (name.to_owned(), json!(value))));
        }
        if self.body.is_some() || !self.header.is_empty() {
            let now = session.get(path(&self.id, "")).await?.value["request"].take();
            let headers = headers(&now["headers"], &self.header)?;
            if let Some(file) = &self.body {
                request.insert("body".into(), body(&input::text_file(file)?, &headers)?);
            }
            if !self.header.is_empty() {
                request.insert("headers".into(), Value::Object(headers));
            }
        }
        if request.is_empty() {
            return Err(Failure::usage("what is to be different? Nothing is named")
                .and("`--data FILE` changes the event; `--path`, `--method`, `--header`, `--body FILE` the request"));
        }
        Ok(Map::from_iter([("request".to_owned(), Value::Object(request))]))
    }
}

/// Those that are there, with these changes.
fn headers(now: &Value, changes: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut headers = now.as_object().cloned().unwrap_or_default();
    for change in changes {
        let Some((name, value)) = change.split_once(':') else {
            return Err(Failure::usage(format!("`{change}` is no header: say `name: value`")));
        };
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
        if value.is_empty() {
            headers.remove(&name);
        } else {
            headers.insert(name, json!(value));
        }
    }
    Ok(headers)
}

/// JSON as such, and anything else as a text, if the headers allow that.
fn body(text: &str, headers: &Map<String, Value>) -> Result<Value, Failure> {
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let kind = headers.get("content-type").and_then(Value::as_str);
    let is_json = kind.is_none_or(|kind| kind.to_ascii_lowercase().contains("json"));
    match (is_json, serde_json::from_str(text)) {
        (false, _) => Ok(json!(text)),
        (true, Ok(body)) => Ok(body),
        (true, Err(error)) => Err(Failure::usage(format!("the body is no JSON: {error}"))
            .and("another kind has to be said: `--header 'content-type: text/plain'`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-10: a header is set or taken away, the others stay; a body is what the headers say.
    #[test]
    fn hub_10_a_header_is_changed_and_the_others_stay() {
        let now = json!({"x-a": "1", "x-b": "2"});
        let changes = ["X-A: 3: 4".to_owned(), "x-b:".to_owned(), "content-type: text/plain".to_owned()];
        let all = headers(&now, &changes).unwrap();
        assert_eq!(Value::Object(all.clone()), json!({"x-a": "3: 4", "content-type": "text/plain"}));
        assert!(headers(&now, &["x".to_owned()]).is_err());
        assert_eq!(body("7", &all).unwrap(), json!("7"));
        assert_eq!(body("7", &Map::new()).unwrap(), json!(7));
        assert_eq!(body("", &Map::new()).unwrap(), Value::Null);
        assert!(format!("{:?}", body("{a", &Map::new()).unwrap_err()).contains("content-type: text/plain"));
    }
}
