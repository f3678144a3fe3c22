//! `seawall health`.

use seawall_client::api::ServiceCircuit;

use crate::connection::Session;
use crate::error::CommandResult;
use crate::output::{Column, cell};

const COLUMNS: &[Column<ServiceCircuit>] =
    &[("SERVICE", |one| cell(&one.service)), ("CIRCUIT", |one| cell(&one.circuit))];

/// Shows whether the hub is ready, and which circuits are not closed. No key is required.
pub(super) async fn run(session: &Session) -> CommandResult {
    session.send(session.hub.ops().readiness()).await?;
    let health = session.send(session.hub.ops().health()).await?;
    if session.out.json {
        return session.out.line(health.text());
    }
    let open = &health.circuits_not_closed;
    session.out.text(&format!("hub {}; circuits not closed: {}", health.state, open.len()))?;
    session.out.section("Circuits", COLUMNS, open)
}
