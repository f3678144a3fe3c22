//! A route with what it takes and returns: one row of the table.

use std::sync::Arc;

use axum::http::Method;
use axum::routing::MethodRouter;
use schemars::JsonSchema;
use seawall_hub_core::domain::key::Scope;
use serde_json::{Value, json};

use crate::http::openapi::components::Components;
use crate::http::openapi::parameters::of_query;
use crate::http::openapi::schema::Schema;
use crate::hub::Server;

/// A route. A path may end with a verb: `/…/services/{name}:pause`.
///
/// What all routes share is added by the document: the key, the errors of keys, of bodies, of names in paths and of the store.
pub(crate) struct Route {
    /// The HTTP method, like `GET`.
    pub(crate) method: Method,
    /// The path with its parameters in braces, and its verb.
    pub(crate) path: &'static str,
    /// The scope that a key needs; `None` if no key is needed.
    pub(crate) scope: Option<Scope>,
    /// What the route does, in one line.
    pub(crate) about: &'static str,
    /// The names of the headers that it reads.
    pub(crate) headers: Vec<&'static str>,
    /// The parameters of its query.
    pub(crate) query: Option<fn() -> Vec<Value>>,
    /// The schemas of the request body by media type.
    pub(crate) takes: Vec<(&'static str, BodySchema)>,
    /// True if the body is required.
    pub(crate) needs_body: bool,
    pub(crate) gives: Vec<SuccessResponse>,
    /// The error codes that are specific to this route.
    pub(crate) codes: Vec<&'static str>,
    /// The rest of the description.
    pub(crate) more: &'static str,
    /// True if the route uses the store.
    pub(crate) stored: bool,
    pub(super) handler: MethodRouter<Arc<Server>>,
}

/// A route that needs a key.
pub(super) fn route(
    method: Method,
    path: &'static str,
    scope: Scope,
    about: &'static str,
    handler: MethodRouter<Arc<Server>>,
) -> Route {
    Route { scope: Some(scope), ..public_route(method, path, about, handler) }
}

/// A route that anybody may use.
pub(super) fn public_route(
    method: Method,
    path: &'static str,
    about: &'static str,
    handler: MethodRouter<Arc<Server>>,
) -> Route {
    Route {
        method,
        path,
        scope: None,
        about,
        headers: Vec::new(),
        query: None,
        takes: Vec::new(),
        needs_body: false,
        gives: Vec::new(),
        codes: Vec::new(),
        more: "",
        stored: true,
        handler,
    }
}

pub(super) const GET: Method = Method::GET;
pub(super) const POST: Method = Method::POST;
pub(super) const PUT: Method = Method::PUT;
pub(super) const PATCH: Method = Method::PATCH;
pub(super) const DELETE: Method = Method::DELETE;

pub(super) const JSON: &str = "application/json";
/// The headers of routes that create something.
pub(super) const ONCE: &[&str] = &["Idempotency-Key"];
pub(super) const ONCE_FAILS: &[&str] = &["badKey", "otherContent", "conflict"];
/// The headers of routes that change versioned objects.
pub(super) const VERSIONS: &[&str] = &["If-Match", "If-None-Match"];
pub(super) const CHANGE_FAILS: &[&str] = &["badVersion", "stale", "invalid"];

/// A schema of a request or a response.
pub(crate) enum BodySchema {
    /// A schema that is written out.
    Written(Schema),
    /// The schema of a wire type.
    Typed(fn(&mut Components, &Method) -> Value),
}

impl BodySchema {
    pub(crate) fn value(&self, components: &mut Components, method: &Method) -> Value {
        match self {
            BodySchema::Written(schema) => schema.clone().into_value(),
            BodySchema::Typed(make) => make(components, method),
        }
    }
}

/// A successful response.
pub(crate) struct SuccessResponse {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) schema: BodySchema,
    /// True if the body is in the envelope.
    pub(crate) enveloped: bool,
    /// True if it has the header `ETag`.
    pub(crate) versioned: bool,
}

impl Route {
    /// Adds a body that is read as an `S`.
    pub(super) fn takes<S: JsonSchema>(mut self) -> Self {
        self.needs_body = true;
        self.may_take::<S>()
    }

    /// Adds a body that is read as an `S`, in which everything that a `V` shows may be written back.
    pub(super) fn writes<S: JsonSchema, V: JsonSchema>(mut self) -> Self {
        self.needs_body = true;
        self.takes.push((JSON, BodySchema::Typed(Components::request::<S, V>)));
        self
    }

    /// Adds an optional body that is read as an `S`.
    pub(super) fn may_take<S: JsonSchema>(mut self) -> Self {
        // The body of an action is the same whatever the method.
        let schema = BodySchema::Typed(|components, _| components.request::<S, S>(&POST));
        self.takes.push((JSON, schema));
        self
    }

    pub(super) fn takes_also(mut self, kind: &'static str, schema: Schema) -> Self {
        self.takes.push((kind, BodySchema::Written(schema)));
        self
    }

    /// Adds a response with a `T`.
    pub(super) fn returns<T: JsonSchema>(self, status: u16) -> Self {
        self.gives_body(status, BodySchema::Typed(|components, _| components.response::<T>()))
    }

    /// Adds a response with an `A` or a `B`.
    pub(super) fn returns_either<A: JsonSchema, B: JsonSchema>(self, status: u16) -> Self {
        let either = |components: &mut Components, _: &Method| json!({"oneOf": [components.response::<A>(), components.response::<B>()]});
        self.gives_body(status, BodySchema::Typed(either))
    }

    /// Adds a response with a `T`, without the envelope.
    pub(super) fn returns_plain<T: JsonSchema>(mut self) -> Self {
        let schema = BodySchema::Typed(|components, _| components.response::<T>());
        self.gives.push(SuccessResponse {
            status: 200,
            kind: JSON,
            schema,
            enveloped: false,
            versioned: false,
        });
        self
    }

    pub(super) fn gives_body(mut self, status: u16, schema: BodySchema) -> Self {
        self.gives.push(SuccessResponse { status, kind: JSON, schema, enveloped: true, versioned: false });
        self
    }

    /// Adds a response without the envelope.
    pub(super) fn gives_plain(mut self, kind: &'static str, schema: Schema) -> Self {
        let schema = BodySchema::Written(schema);
        self.gives.push(SuccessResponse { status: 200, kind, schema, enveloped: false, versioned: false });
        self
    }

    /// States that its responses have the header `ETag`.
    pub(super) fn etag(mut self) -> Self {
        self.gives.iter_mut().for_each(|gives| gives.versioned = true);
        self
    }

    /// Adds a query that is read as a `Q`.
    pub(super) fn query<Q: JsonSchema + 'static>(mut self) -> Self {
        self.query = Some(of_query::<Q>);
        self
    }

    pub(super) fn with(mut self, headers: &[&'static str]) -> Self {
        self.headers.extend(headers);
        self
    }

    pub(super) fn fails(mut self, codes: &[&'static str]) -> Self {
        self.codes.extend(codes);
        self
    }

    pub(super) fn more(mut self, more: &'static str) -> Self {
        self.more = more;
        self
    }

    /// Marks a route that answers from memory and has no store errors.
    pub(super) fn in_memory(mut self) -> Self {
        self.stored = false;
        self
    }
}
