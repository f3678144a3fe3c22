//! What a page knows of its request, and what it asks the API for.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, RawQuery};
use axum::http::Method;
use axum::http::StatusCode;
use axum::http::request::Parts;
use minijinja::{Value as View, context};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ask::view;
use super::form::Form;
use super::session::Session;
use super::show::encoded;
use super::{Dashboard, PageError, PageResult};
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

    /// Takes a parameter out.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        self.0.extract_if(.., |(own, _)| own == name).last().map(|(_, value)| value)
    }

    /// Adds a parameter.
    pub(super) fn add(&mut self, name: &str, value: &str) {
        self.0.push((name.to_owned(), value.to_owned()));
    }

    /// True if it has no parameter.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The parameters by their names, for the fields of a form.
    pub(super) fn values(&self) -> View {
        View::from_pairs(self.0.iter().cloned())
    }

    /// A path with all parameters.
    pub(super) fn all(&self, path: &str) -> String {
        self.with(path, |_| true)
    }

    /// A path with the parameters of these names.
    pub(super) fn over(&self, path: &str, names: &[&str]) -> String {
        self.with(path, |name| names.contains(&name))
    }

    /// A path with the parameters whose names fit.
    pub(super) fn with(&self, path: &str, fits: impl Fn(&str) -> bool) -> String {
        let mut whole = path.to_owned();
        for (name, value) in self.0.iter().filter(|(name, _)| fits(name)) {
            whole.push(if whole.contains('?') { '&' } else { '?' });
            whole.push_str(&format!("{}={}", encoded(name), encoded(value.trim())));
        }
        whole
    }
}

/// The request for a page: who asks for it, and what its path and its query say.
pub(super) struct PageContext {
    pub(super) dashboard: Arc<Dashboard>,
    pub(super) session: Session,
    pub(super) query: PageQuery,
    /// The name or the id in the path; empty if there is none.
    pub(super) name: String,
}

impl FromRequestParts<Arc<Dashboard>> for PageContext {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, dashboard: &Arc<Dashboard>) -> Result<Self, PageError> {
        let session = Session::from_request_parts(parts, dashboard).await?;
        let name = Option::<Path<String>>::from_request_parts(parts, dashboard).await;
        let name = name.map_err(|_| PageError::not_found())?.map(|Path(name)| name).unwrap_or_default();
        let Ok(RawQuery(query)) = RawQuery::from_request_parts(parts, dashboard).await;
        let query = PageQuery::of(query.as_deref());
        Ok(PageContext { dashboard: dashboard.clone(), session, query, name })
    }
}

impl PageContext {
    /// The path of the object that the page is about, below a path of the API.
    pub(super) fn at(&self, folder: &str) -> String {
        format!("{folder}/{}", encoded(&self.name))
    }

    /// What is at this path of the API; or why it is not shown.
    pub(super) async fn get(&self, path: &str) -> Result<Value, PageError> {
        match self.filtered(path).await? {
            (data, None) => Ok(data),
            (_, Some(message)) => {
                Err(PageError::Answered { status: StatusCode::UNPROCESSABLE_ENTITY, message })
            }
        }
    }

    /// The same as its type.
    pub(super) async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, PageError> {
        let broken = |error: serde_json::Error| PageError::Broken(format!("{path}: {error}"));
        serde_json::from_value(self.get(path).await?).map_err(broken)
    }

    /// The same for a template.
    pub(super) async fn view(&self, path: &str) -> Result<View, PageError> {
        Ok(view(&self.get(path).await?))
    }

    /// The same, and nothing if it is not there or not to be seen: for what is beside the point of a page.
    pub(super) async fn view_if(&self, path: &str) -> Option<View> {
        self.view(path).await.ok()
    }

    /// A list that somebody has filtered. A filter that can't be one is no reason to show nothing at all: it is said above the
    /// list, which is empty then.
    pub(super) async fn filtered(&self, path: &str) -> Result<(Value, Option<String>), PageError> {
        let mut answer = self.dashboard.ask(&self.session, Method::GET, path, None, None).await?;
        match answer.status {
            status if status.is_success() => Ok((answer.whole["data"].take(), None)),
            StatusCode::UNPROCESSABLE_ENTITY => Ok((Value::Null, Some(answer.message()))),
            status => Err(PageError::Answered { status, message: answer.message() }),
        }
    }

    /// The page of a template.
    pub(super) async fn page(&self, name: &str, what: View) -> PageResult {
        self.dashboard.page_with(StatusCode::OK, &self.session, name, what).await
    }

    /// The page of a list that can be filtered by these parameters. `home` is its path, `api` where the API has the list.
    pub(super) async fn list(&self, template: &str, home: &str, api: &str, filters: &[&str]) -> PageResult {
        let is_shown = |name: &str| filters.contains(&name) || name == "page_token";
        let (page, wrong) = self.filtered(&self.query.with(api, is_shown)).await?;
        let is_filter = |name: &&&str| **name != "sort" && self.query.get(name).is_some();
        let what = context! {
            page => view(&page), wrong, values => self.query.values(),
            filtered => filters.iter().find(is_filter).is_some(),
            further => self.query.get("page_token").is_some(), base => self.query.over(home, filters),
        };
        self.page(template, what).await
    }

    /// The page of a form, below the pages of `above`.
    pub(super) async fn form(
        &self,
        form: &Form,
        above: &[(&str, &str)],
        policy: impl Into<View>,
    ) -> PageResult {
        let own = (!form.is_new).then_some((&*form.cancel, &*form.name));
        let crumb = |(at, name): (&str, &str)| vec![at.to_owned(), name.to_owned()];
        let crumbs: Vec<Vec<String>> = above.iter().copied().chain(own).map(crumb).collect();
        self.page("form_page.html", context! { form => form.view(), crumbs, policy => policy.into() }).await
    }
}
