#![doc = include_str!("../docs/client.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod bridge;
mod call;
mod client;
mod dead_letters;
mod error;
mod export;
mod json;
mod ops;
mod path;
mod registry;
mod reply;

pub use seawall_api as api;

pub use bridge::{DeliveriesApi, EventsApi};
pub use call::ApiCall;
pub use client::{ATTEMPTS, CONNECT_TIMEOUT, Client, ClientBuilder, TIMEOUT};
pub use dead_letters::{DeadLettersApi, GroupsApi};
pub use error::{ClientError, HubError, RawResponse};
pub use export::LetterStream;
pub use json::{JsonBody, RawJson};
pub use ops::{AlertChannelsApi, AlertRulesApi, AlertsApi, OperationsApi, OpsApi};
pub use registry::{CircuitsApi, KeysApi, RulesApi, ServicesApi, SourcesApi};
pub use reply::Reply;
