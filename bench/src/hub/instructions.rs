//! How many instructions the hub executes for an event and for a proxied call, counted by Valgrind's callgrind.
//!
//! A count of instructions hardly depends on what else the machine does, so two versions of the hub can be compared to a few per
//! thousand. Each count is the difference of two runs, one of which does more: what a start and a stop cost is not in it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio::task::LocalSet;

use super::cli::Options;
use super::lab::Lab;
use super::load::{Load, Pace, Stop};
use super::process::KEY;
use super::sink::Manner;
use super::wire::Connection;

pub const USAGE: &str = "\
Usage: cargo xtask bench instructions [--quick] [--folder DIR]

  --quick         fewer events and calls
  --folder DIR    where the hubs keep their data
  --hub FILE      the binary of the hub; `cargo xtask` builds it and says where it is

Needs Valgrind: `apt-get install valgrind`";

/// The name of the program that starts the hub under callgrind, in the folder of the data.
const WRAPPER: &str = "counted-hub";

/// Prints the instructions for an event that is accepted and delivered, and for a call that is proxied.
///
/// # Errors
/// If the hub can't be started under Valgrind, or does not answer as it must.
pub fn run(options: &Options) -> Result<(), String> {
    let (few, many) = if options.quick { (200, 700) } else { (500, 2_500) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    fs::create_dir_all(&options.folder).map_err(|error| format!("can't make a folder: {error}"))?;
    let (binary, counts) = (wrapper(options)?, options.folder.join("counts"));
    let per_unit = |less: u64, more: u64| more.saturating_sub(less) / (many - few);
    let local = LocalSet::new();
    local.block_on(&runtime, async {
        let (less, more) = (events(options, &binary, few).await?, events(options, &binary, many).await?);
        let (less, more) = (total(&counts, less)?, total(&counts, more)?);
        println!("instructions for an event, accepted and delivered: {}", per_unit(less, more));
        let (less, more) = (calls(options, &binary, few).await?, calls(options, &binary, many).await?);
        let (less, more) = (total(&counts, less)?, total(&counts, more)?);
        println!("instructions for a proxied call: {}", per_unit(less, more));
        Ok(())
    })
}

/// A program that takes the hub's arguments and starts it under callgrind.
fn wrapper(options: &Options) -> Result<PathBuf, String> {
    let path = options.folder.join(WRAPPER);
    let counts = options.folder.join("counts");
    let script = format!(
        "#!/bin/sh\nexec valgrind --quiet --tool=callgrind --callgrind-out-file='{}.%p' '{}' \"$@\"\n",
        counts.display(),
        options.hub.display()
    );
    let written =
        fs::write(&path, script).and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755)));
    written.map_err(|error| format!("can't write `{}`: {error}", path.display()))?;
    path.canonicalize().map_err(|error| format!("can't find `{}`: {error}", path.display()))
}

/// One client sends so many events, each when the one before has arrived. The hub's process, which has ended.
async fn events(options: &Options, binary: &Path, count: u64) -> Result<u32, String> {
    let mut lab = Lab::with_binary(binary, options).await?.with_sink().await?;
    let before = lab.before();
    let load = Load { pace: Pace::Arrived, ..Load::new(1, Stop::Events(count)) };
    let sent = lab.driver().closed(load).await?.events.len() as u64;
    lab.until_arrived(before, sent).await;
    if sent != count {
        return Err(format!("{sent} of {count} events were acknowledged"));
    }
    lab.hub.terminate()
}

/// One client makes so many calls through the gateway, one after the other. The hub's process, which has ended.
async fn calls(options: &Options, binary: &Path, count: u64) -> Result<u32, String> {
    let mut lab = Lab::with_binary(binary, options).await?;
    let peer = lab.peer(Manner::Prompt).await?;
    lab.api.service("up", peer, false).await?;
    let request = format!("GET /gateway/up/x HTTP/1.1\r\nhost: u\r\nx-seawall-key: {KEY}\r\n\r\n");
    let mut connection = Connection::open(lab.hub.address).await.map_err(|error| error.to_string())?;
    for _ in 0..count {
        match connection.exchange(request.as_bytes()).await {
            Ok(200..=299) => {}
            Ok(status) => return Err(format!("a call was answered with {status}")),
            Err(error) => return Err(format!("a call was not answered: {error}")),
        }
    }
    lab.hub.terminate()
}

/// The instructions that callgrind has counted for this process.
fn total(counts: &Path, process: u32) -> Result<u64, String> {
    let path = format!("{}.{process}", counts.display());
    let text =
        fs::read_to_string(&path).map_err(|error| format!("callgrind has not written `{path}`: {error}"))?;
    let _ = fs::remove_file(&path);
    total_in(&text).ok_or_else(|| format!("`{path}` has no totals"))
}

fn total_in(text: &str) -> Option<u64> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix("totals:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::total_in;

    #[test]
    fn the_total_stands_at_the_end_of_the_file() {
        assert_eq!(total_in("events: Ir\nfn=(1) main\n16 400\n\ntotals: 16400\n"), Some(16_400));
        assert_eq!(total_in("events: Ir\n"), None, "a file that was cut");
    }
}
