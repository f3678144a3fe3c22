//! What all objects with a name and a version have in common: they are listed, read, created, replaced, changed and deleted alike.

use std::future::Future;

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use seawall_api::{DeleteQuery, Deleted, PendingPolicy as PendingWord};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::service::{ChangeError, ChangeKey, PendingPolicy};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::http::access::Caller;
use crate::http::context::RequestContext;
use crate::http::error::{ApiError, refused};
use crate::http::input::Input;
use crate::http::once::{change_key, replayed_or};
use crate::http::query::QueryInput;
use crate::http::reply::{ApiReply, ApiResult, expected, parse};
use crate::hub::Server;

/// What a request writes about an object.
pub(crate) type ResourceInput<R> = Input<<R as NamedObject>::Spec, <R as NamedObject>::View>;

/// The object that a request describes, and the version that its body states.
pub(crate) type ReadResult<R> = Result<(R, Option<u64>), ApiError>;

/// The conditions of a change.
pub(crate) struct ChangeTerms {
    /// The version that the caller has seen; `None` means any.
    pub(crate) expected: Option<u64>,
    /// The idempotency key, for a change that creates something.
    pub(crate) once: Option<ChangeKey>,
    /// What becomes of the deliveries that wait for an object that is deleted.
    pub(crate) pending: PendingPolicy,
}

/// A kind of object that is registered under a name.
pub(crate) trait NamedObject: Clone + Send + Sync + 'static {
    /// What people write.
    type Spec: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    /// What the API returns.
    type View: Serialize + JsonSchema + Send + 'static;
    /// What one of the kind is called in messages.
    const NOUN: &'static str;

    /// The name of the object.
    fn name(&self) -> &Slug;
    /// The version of the object.
    fn version(&self) -> u64;
    /// All objects of the kind.
    fn all(hub: &Server) -> Vec<Self>;
    /// The object with this name.
    fn named(hub: &Server, name: &Slug) -> Option<Self>;

    /// True if the caller may see the object. Any other looks as if it did not exist.
    fn is_seen_by(&self, caller: &Caller) -> bool;
    /// The specification that a change is merged into.
    fn spec(&self, hub: &Server) -> Result<Self::Spec, ApiError>;
    /// The object as it is returned.
    fn view(&self, hub: &Server) -> impl Future<Output = Self::View> + Send;
    /// The object that a request describes. `before` is the one that it replaces.
    fn read(cx: &RequestContext, input: ResourceInput<Self>, before: Option<Self>) -> ReadResult<Self>;
    /// Stores the object.
    fn commit(
        self,
        cx: &RequestContext,
        terms: ChangeTerms,
    ) -> impl Future<Output = Result<Self, ChangeError>> + Send;
    /// Deletes the object.
    fn remove(
        &self,
        cx: &RequestContext,
        terms: ChangeTerms,
    ) -> impl Future<Output = Result<(), ChangeError>> + Send;
}

/// Defines the types of a resource and where its objects are: `resource!(RuleSpec => Rule, "rule", registry.rules, registry.rule)`.
macro_rules! resource {
    ($spec:ty => $view:ty, $noun:literal, $handle:ident.$all:ident, $same:ident.$named:ident) => {
        type Spec = $spec;
        type View = $view;
        const NOUN: &'static str = $noun;

        fn name(&self) -> &Slug {
            &self.name
        }

        fn version(&self) -> u64 {
            self.version
        }

        fn all(hub: &Server) -> Vec<Self> {
            hub.$handle.$all()
        }

        fn named(hub: &Server, name: &Slug) -> Option<Self> {
            hub.$same.$named(name)
        }
    };
}
pub(crate) use resource;

/// The object with this name, if the caller may see it.
pub(crate) fn find<R: NamedObject>(cx: &RequestContext, name: &str) -> Result<R, ApiError> {
    let found = Slug::new(name).ok().and_then(|name| R::named(&cx.hub, &name));
    found.filter(|object| object.is_seen_by(&cx.caller)).ok_or_else(|| ApiError::missing(R::NOUN))
}

/// The response with an object.
pub(crate) async fn reply<R: NamedObject>(cx: &RequestContext, object: &R) -> ApiReply<R::View> {
    ApiReply::versioned(object.version(), object.view(&cx.hub).await)
}

/// The response to an action on an object.
pub(crate) async fn changed<R: NamedObject>(
    cx: &RequestContext,
    result: Result<R, ChangeError>,
) -> ApiResult<R::View> {
    Ok(reply(cx, &result.map_err(refused(R::NOUN))?).await)
}

pub(crate) async fn list<R: NamedObject>(cx: RequestContext) -> ApiResult<Vec<R::View>> {
    let mut views = Vec::new();
    for object in R::all(&cx.hub).iter().filter(|object| object.is_seen_by(&cx.caller)) {
        views.push(object.view(&cx.hub).await);
    }
    Ok(ApiReply::new(views))
}

pub(crate) async fn get<R: NamedObject>(cx: RequestContext, Path(name): Path<String>) -> ApiResult<R::View> {
    Ok(reply(&cx, &find::<R>(&cx, &name)?).await)
}

/// Creates an object, or replaces the one of the same name.
pub(crate) async fn create<R: NamedObject>(
    cx: RequestContext,
    headers: HeaderMap,
    body: Bytes,
) -> ApiResult<R::View> {
    let once = change_key(&headers, &cx.caller, R::NOUN, &body)?;
    put::<R>(&cx, Input::create(&body), expected(&headers)?, once).await
}

/// Creates or replaces the object with the name in the path.
pub(crate) async fn replace<R: NamedObject>(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> ApiResult<R::View> {
    put::<R>(&cx, Input::put(&body, &name), expected(&headers)?, None).await
}

/// Changes some fields; those that are omitted stay. It is repeated until no other change comes between: a caller who states no
/// version means the newest.
pub(crate) async fn change<R: NamedObject>(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> ApiResult<R::View> {
    let (stated, change) = (expected(&headers)?, parse(&body)?);
    loop {
        let current = find::<R>(&cx, &name)?;
        let input = Input::patch(&current.spec(&cx.hub)?, change.clone(), &name);
        match put::<R>(&cx, Ok(input), stated.or(Some(current.version())), None).await {
            Err(error) if stated.is_none() && error.is_stale() => {}
            result => return result,
        }
    }
}

async fn put<R: NamedObject>(
    cx: &RequestContext,
    input: Result<ResourceInput<R>, serde_json::Error>,
    expected: Option<u64>,
    once: Option<ChangeKey>,
) -> ApiResult<R::View> {
    let input = input?;
    let _sealing = cx.hub.keyring.sealing().await;
    let name = input.get::<String>("name").and_then(|name| Slug::new(&name).ok());
    let before = name.and_then(|name| R::named(&cx.hub, &name));
    let is_new = before.is_none();
    let (object, stated) = R::read(cx, input, before)?;
    let name = object.name().clone();
    let terms = ChangeTerms { expected: expected.or(stated), once, pending: PendingPolicy::Refuse };
    match object.commit(cx, terms).await {
        Ok(stored) => {
            let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
            Ok(reply(cx, &stored).await.with_status(status))
        }
        Err(error) => {
            let again = match R::named(&cx.hub, &name) {
                Some(object) => Some(reply(cx, &object).await),
                None => None,
            };
            replayed_or(error, R::NOUN, |_| again)
        }
    }
}

/// Deletes an object for which nothing waits.
pub(crate) async fn delete<R: NamedObject>(
    cx: RequestContext,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> ApiResult<Deleted> {
    let name = remove::<R>(&cx, &name, &headers, PendingPolicy::Refuse).await?;
    Ok(ApiReply::new(Deleted { name: name.as_str().into(), deleted: true }))
}

/// Deletes an object with the deliveries that wait for it, if the query says so.
pub(crate) async fn delete_with_pending<R: NamedObject>(
    cx: RequestContext,
    Path(name): Path<String>,
    QueryInput(query): QueryInput<DeleteQuery>,
    headers: HeaderMap,
) -> ApiResult<Deleted> {
    let pending = match query.pending {
        PendingWord::DeadLetter => PendingPolicy::DeadLetter,
        _ => PendingPolicy::Refuse,
    };
    let name = remove::<R>(&cx, &name, &headers, pending).await?;
    Ok(ApiReply::new(Deleted { name: name.as_str().into(), deleted: true }))
}

/// Deletes an object and returns its name.
pub(crate) async fn remove<R: NamedObject>(
    cx: &RequestContext,
    name: &str,
    headers: &HeaderMap,
    pending: PendingPolicy,
) -> Result<Slug, ApiError> {
    let object = find::<R>(cx, name)?;
    let terms = ChangeTerms { expected: expected(headers)?, once: None, pending };
    object.remove(cx, terms).await.map_err(refused(R::NOUN))?;
    Ok(object.name().clone())
}
