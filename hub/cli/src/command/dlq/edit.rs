//! `seawall dlq edit`: an edited copy of a dead letter, shown before it is sent.

use clap::Args;
use seawall_client::Reply;
use seawall_client::api::{EditInput, EditResult, Headers, ReplayOptions, RequestEdit};
use serde_json::Value;

use super::letter::differences;
use crate::confirm::sure;
use crate::connection::{ReasonArg, Session};
use crate::error::{CommandError, CommandResult};
use crate::input;
use crate::output::note;

#[derive(Args)]
pub(crate) struct Edit {
    id: String,
    /// New event `data`: a JSON file, or `-` for stdin; the request is rendered with the current rule.
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["method", "path", "body", "header"])]
    data: Option<String>,
    /// New method.
    #[arg(long)]
    method: Option<String>,
    /// New path, with its query.
    #[arg(long)]
    path: Option<String>,
    /// New body: a file, or `-` for stdin; empty removes the body.
    #[arg(long, value_name = "FILE|-")]
    body: Option<String>,
    /// Header change: `name: value` sets a header, `name:` removes it; repeatable.
    #[arg(long, value_name = "NAME:VALUE")]
    header: Vec<String>,
    /// Allow a second replay of the same dead letter.
    #[arg(long)]
    again: bool,
    /// Dry run: only show the differences.
    #[arg(long)]
    dry_run: bool,
    /// Skip confirmation.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    why: ReasonArg,
}

impl Edit {
    pub(super) async fn run(&self, session: &Session) -> CommandResult {
        let edit = EditInput {
            options: ReplayOptions { again: Some(self.again), reason: None },
            ..self.changes(session).await?
        };
        let seen = self.send(session, &edit, true).await?;
        let diff = differences(&seen.diff);
        if diff.is_empty() {
            return Err(CommandError::usage("no changes")
                .and(format!("`seawall dlq replay {} --mode same` sends the original request", self.id)));
        }
        if !session.out.json {
            session.out.text(&diff)?;
        } else if !self.yes && !self.dry_run {
            diff.lines().for_each(note);
        }
        if self.dry_run {
            return if session.out.json { session.out.line(seen.text()) } else { Ok(()) };
        }
        if !self.yes {
            sure("Send the edited copy?")?;
        }
        let sent = self.send(session, &edit, false).await;
        let sent = sent.map_err(|failure| failure.in_options("`again: true`", "use `--again`"))?;
        session.told(&sent, |sent| {
            let delivery = sent.delivery.as_ref().map_or("", |id| id.as_str());
            format!("replay started as delivery {delivery}\nseawall deliveries show {delivery} --watch")
        })
    }

    async fn send(
        &self,
        session: &Session,
        edit: &EditInput,
        dry_run: bool,
    ) -> Result<Reply<EditResult>, CommandError> {
        let edit = EditInput { dry_run: Some(dry_run), ..edit.clone() };
        session.send(self.why.of(session.hub.dead_letters().edit(&self.id, &edit))).await
    }

    /// The changes as a request body.
    async fn changes(&self, session: &Session) -> Result<EditInput, CommandError> {
        if let Some(file) = &self.data {
            let data: Value = serde_json::from_str(&input::json_file(file)?).unwrap_or_default();
            return Ok(EditInput { data: Some(data), ..EditInput::default() });
        }
        let mut request = RequestEdit {
            method: self.method.clone(),
            path: self.path.as_deref().map(Into::into),
            ..RequestEdit::default()
        };
        if self.body.is_some() || !self.header.is_empty() {
            let letter = session.send(session.hub.dead_letters().get(&self.id)).await?.into_data();
            let headers = headers(letter.request.map(|now| now.headers).unwrap_or_default(), &self.header)?;
            if let Some(file) = &self.body {
                request.body = Some(body(&input::text_file(file)?, &headers)?);
            }
            request.headers = Some(headers).filter(|_| !self.header.is_empty());
        }
        if request == RequestEdit::default() {
            return Err(CommandError::usage("no changes given")
                .and("`--data FILE` changes the event; `--path`, `--method`, `--header` and `--body FILE` change the request"));
        }
        Ok(EditInput { request: Some(request), ..EditInput::default() })
    }
}

/// The current headers with the changes applied.
fn headers(mut headers: Headers, changes: &[String]) -> Result<Headers, CommandError> {
    for change in changes {
        let Some((name, value)) = change.split_once(':') else {
            return Err(CommandError::usage(format!("`{change}` is not a header: write `name: value`")));
        };
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
        if value.is_empty() {
            headers.remove(&name);
        } else {
            headers.insert(name, value.to_owned());
        }
    }
    Ok(headers)
}

/// A JSON value, or a text if the content type is not JSON.
fn body(text: &str, headers: &Headers) -> Result<Value, CommandError> {
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let is_json = headers.get("content-type").is_none_or(|kind| kind.to_ascii_lowercase().contains("json"));
    match (is_json, serde_json::from_str(text)) {
        (false, _) => Ok(text.into()),
        (true, Ok(body)) => Ok(body),
        (true, Err(error)) => Err(CommandError::usage(format!("the body is not valid JSON: {error}"))
            .and("for another content type, add for example `--header 'content-type: text/plain'`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HUB-10: a header is set or taken away, the others stay; a body is what the headers say.
    #[test]
    fn hub_10_a_header_is_changed_and_the_others_stay() {
        let made = |pairs: &[(&str, &str)]| -> Headers {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let now = made(&[("x-a", "1"), ("x-b", "2")]);
        let changes = ["X-A: 3: 4".to_owned(), "x-b:".to_owned(), "content-type: text/plain".to_owned()];
        let all = headers(now.clone(), &changes).unwrap();
        assert_eq!(all, made(&[("x-a", "3: 4"), ("content-type", "text/plain")]));
        assert!(headers(now, &["x".to_owned()]).is_err());
        assert_eq!(body("7", &all).unwrap(), Value::from("7"));
        assert_eq!(body("7", &Headers::new()).unwrap(), Value::from(7));
        assert_eq!(body("", &Headers::new()).unwrap(), Value::Null);
        assert!(
            format!("{:?}", body("{a", &Headers::new()).unwrap_err()).contains("content-type: text/plain")
        );
    }
}
