//! What stands after the question mark of a page, and what the API is asked for it.

use axum::http::Method;
use serde_json::Value;

use super::session::Session;
use super::show::encoded;
use super::{Dashboard, PageError};
use crate::http::query::pairs_of;

/// What stands after the question mark. What is empty was not filled in.
pub(super) struct PageQuery(Vec<(String, String)>);

impl PageQuery {
    pub(super) fn of(query: Option<&str>) -> Self {
        PageQuery(pairs_of(query).into_iter().filter(|(_, value)| !value.trim().is_empty()).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.trim())
    }

    /// What was said besides these, as it is written in a query.
    pub(super) fn besides(&self, known: &[&str]) -> Option<String> {
        let others = self.0.iter().filter(|(name, _)| !known.contains(&&**name));
        let pairs: Vec<String> =
            others.map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
        (!pairs.is_empty()).then(|| pairs.join("&"))
    }

    /// A path with those of these that were said.
    pub(super) fn over(&self, path: &str, names: &[&str]) -> String {
        let said = names.iter().filter_map(|name| Some((name, self.get(name)?)));
        let pairs: Vec<String> = said.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        match (pairs.is_empty(), path.contains('?')) {
            (true, _) => path.to_owned(),
            (false, false) => format!("{path}?{}", pairs.join("&")),
            (false, true) => format!("{path}&{}", pairs.join("&")),
        }
    }
}

impl Dashboard {
    /// A list that somebody has filtered. A filter that can't be one is no reason to show nothing at all: it is said above the
    /// list, which is empty then.
    pub(super) async fn filtered(
        &self,
        session: &Session,
        path: &str,
    ) -> Result<(Value, Option<String>), PageError> {
        let answer = self.ask(session, Method::GET, path, None, None).await?;
        if answer.status.is_success() {
            return Ok((answer.data().clone(), None));
        }
        if answer.status == 422 {
            return Ok((Value::Null, Some(answer.message())));
        }
        Err(PageError::Answered { status: answer.status, message: answer.message() })
    }
}
