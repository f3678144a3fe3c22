//! The verbs that services, rules and sources share: list, show, put and delete by name.

use clap::Args;
use seawall_client::api::{Deleted, Name, PendingPolicy};
use seawall_client::{ApiCall, RawJson, Reply};
use serde::de::DeserializeOwned;

use crate::connection::{ReasonArg, Session};
use crate::error::CommandResult;
use crate::input;
use crate::output::{Column, note};

/// A kind of object that is registered by name.
pub(super) trait Resource: DeserializeOwned + 'static {
    /// The noun in results.
    const NOUN: &'static str;
    const COLUMNS: &'static [Column<Self>];
    /// The fields to show first.
    const FIRST: &'static [&'static str];

    fn name(&self) -> &Name;

    fn version(&self) -> u64;

    fn warnings(&self) -> &[String] {
        &[]
    }
}

#[derive(Args)]
pub(crate) struct PutArgs {
    /// JSON file, or `-` for stdin.
    #[arg(value_name = "FILE")]
    file: String,

    /// Expected current version, to prevent lost updates; 0 if it must not exist yet.
    #[arg(long, value_name = "VERSION")]
    if_version: Option<u64>,

    #[command(flatten)]
    why: ReasonArg,
}

/// What is changed, and why.
#[derive(Args)]
pub(crate) struct ChangeArgs {
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) why: ReasonArg,
}

/// What is deleted although deliveries may be pending, and why.
#[derive(Args)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    change: ChangeArgs,
    /// What to do with its pending deliveries (default refuse).
    #[arg(long)]
    pending: Option<PendingArg>,
}

/// What is created or replaced under a name, and why.
#[derive(Args)]
pub(crate) struct NamedPutArgs {
    name: String,
    /// JSON file, or `-` for stdin.
    #[arg(value_name = "FILE")]
    file: String,
    #[command(flatten)]
    why: ReasonArg,
}

/// What to do with pending deliveries.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum PendingArg {
    /// Refuse to delete while deliveries are pending.
    Refuse,
    /// Dead-letter them.
    DeadLetter,
}

impl From<PendingArg> for PendingPolicy {
    fn from(pending: PendingArg) -> Self {
        match pending {
            PendingArg::Refuse => PendingPolicy::Refuse,
            PendingArg::DeadLetter => PendingPolicy::DeadLetter,
        }
    }
}

pub(super) async fn list<R: Resource>(session: &Session, call: ApiCall<Vec<R>>) -> CommandResult {
    session.whole_list(R::COLUMNS, call).await
}

pub(super) async fn show<R: Resource>(session: &Session, call: ApiCall<R>) -> CommandResult {
    session.show(&session.send(call).await?, R::FIRST)
}

/// Sends a file as it is. `create` makes the request.
pub(super) async fn put<R: Resource>(
    session: &Session,
    put: &PutArgs,
    create: impl FnOnce(RawJson) -> ApiCall<R>,
) -> CommandResult {
    let call = create(RawJson(input::json_file(&put.file)?));
    let call = match put.if_version {
        Some(version) => call.if_version(version),
        None => call,
    };
    write(session, put.why.of(call)).await
}

/// Sends a file as it is, for the object with the name. `put` makes the request.
pub(super) async fn put_named<R: Resource>(
    session: &Session,
    NamedPutArgs { name, file, why }: &NamedPutArgs,
    put: impl FnOnce(&str, RawJson) -> ApiCall<R>,
) -> CommandResult {
    let call = put(name, RawJson(input::json_file(file)?));
    write(session, why.of(call)).await
}

/// Sends a request that creates or updates one.
pub(super) async fn write<R: Resource>(session: &Session, call: ApiCall<R>) -> CommandResult {
    let reply = session.send(call).await?;
    for warning in reply.warnings() {
        note(&format!("warning: {warning}"));
    }
    changed(session, &reply, if reply.is_created() { "created" } else { "updated" })
}

/// Changes one. `change` makes the request, whose response is the updated object.
pub(super) async fn change<R: Resource>(
    session: &Session,
    ChangeArgs { name, why }: &ChangeArgs,
    done: &str,
    change: impl FnOnce(&str) -> ApiCall<R>,
) -> CommandResult {
    act(session, why.of(change(name)), done).await
}

/// Sends a request whose response is the updated object.
pub(super) async fn act<R: Resource>(session: &Session, call: ApiCall<R>, done: &str) -> CommandResult {
    changed(session, &session.send(call).await?, done)
}

/// Deletes one. `delete` makes the request.
pub(super) async fn delete<R: Resource>(
    session: &Session,
    ChangeArgs { name, why }: &ChangeArgs,
    delete: impl FnOnce(&str) -> ApiCall<Deleted>,
) -> CommandResult {
    let reply = session.send(why.of(delete(name))).await;
    let hint = "use `--pending dead-letter`";
    let reply = reply.map_err(|failure| failure.in_options("`pending=deadLetter`", hint))?;
    session.told(&reply, |deleted| format!("{} `{}` deleted", R::NOUN, deleted.name))
}

/// Deletes one with the choice of what happens to its pending deliveries.
pub(super) async fn delete_with_pending<R: Resource>(
    session: &Session,
    args: &DeleteArgs,
    call: impl FnOnce(&str, PendingPolicy) -> ApiCall<Deleted>,
) -> CommandResult {
    let pending = args.pending.map(Into::into).unwrap_or_default();
    delete::<R>(session, &args.change, |name| call(name, pending)).await
}

fn changed<R: Resource>(session: &Session, reply: &Reply<R>, word: &str) -> CommandResult {
    session.told(reply, |one| format!("{} `{}` {word} (version {})", R::NOUN, one.name(), one.version()))
}
