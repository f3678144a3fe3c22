//! The URL of a database with its password, which is never on the command line.

use std::path::Path;

use anyhow::{Context, bail};
use seawall_hub_server::DatabaseUrl;

/// Adds the password from the file, or from PGPASSWORD, unless the URL has one.
pub(crate) fn with_password(url: &DatabaseUrl, file: Option<&Path>) -> anyhow::Result<DatabaseUrl> {
    if url.has_password() {
        return Ok(url.clone());
    }
    let password = match file {
        Some(file) => {
            let text = std::fs::read_to_string(file).with_context(|| {
                format!("can't read the password of the database from `{}`", file.display())
            })?;
            // Files end with a line break, which is not part of it.
            text.trim_end_matches(['\r', '\n']).to_owned()
        }
        None => match std::env::var("PGPASSWORD") {
            Ok(password) => password,
            Err(std::env::VarError::NotPresent) => String::new(),
            Err(_) => bail!("PGPASSWORD is not valid UTF-8"),
        },
    };
    Ok(url.clone().with_password(&password))
}
