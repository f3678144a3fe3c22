//! An HTTP client behind Seawall's guards.
#![doc = ""]
#![doc = include_str!("../docs/http.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod auth;
mod base;
mod body;
mod client;
mod dial;
pub mod egress;
mod error;
mod fault;
mod gather;
pub mod header;
mod host;
mod observe;
mod request;
mod response;
mod sample;

pub use auth::{Auth, Secret};
pub use base::Base;
pub use body::Body;
pub use client::{BadClient, Bounds, Held, HeldBody, HttpClient, HttpClientBuilder, RequestGuard};
#[cfg(feature = "tls")]
pub use dial::{BadTls, Tls};
pub use dial::{Proxy, Resolve, Resolving, Socket};
pub use egress::Egress;
pub use error::{BadRequest, Cause, HttpError};
pub use gather::{GATHERED_MAX, gathered};
pub use observe::{AttemptObserver, ObservedAttempt};
pub use request::{Evidence, Request};
pub use response::{BodyStream, Cut, Opened, Response, Timings};

pub use bytes::Bytes;
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
pub use seawall::client::ByStatus;
