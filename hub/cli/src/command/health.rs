//! `seawall health`.

use crate::failure::Done;
use crate::output::Column;
use crate::talk::Session;

const COLUMNS: &[Column] = &[("SERVICE", "service"), ("CIRCUIT", "circuit")];

/// Whether the hub is there and takes work, and which circuits are not closed. No key is needed.
pub(super) async fn run(session: &Session) -> Done {
    session.get("/actuator/health/readiness").await?;
    let mut data = session.get("/actuator/health").await?;
    if session.out.json {
        return session.out.line(&data.text);
    }
    let open = data.value["circuitsNotClosed"].take();
    let open = open.as_array().map_or(&[][..], Vec::as_slice);
    let state = data.value["state"].as_str().unwrap_or_default();
    session.out.text(&format!("the hub is {state}, and circuits that are not closed: {}", open.len()))?;
    session.out.section("Circuits", COLUMNS, open)
}
