//! `cargo xtask bench engine`: all rows, one table.

use std::io::Write;

use crate::body::with_runtime;
use crate::cli::Options;
use crate::harness::measure;
use crate::launch::numbers_file;
use crate::row::{BARE_BLOCKING, BARE_CALL, EMPTY_LOOP, NO_OPERATION, Row, Rows};
use crate::table::Report;
use crate::{caches, json, limits, ours, peers, targets, tasks, watched};

/// Measures what was asked for and prints it.
pub fn run(options: &Options) -> Result<(), String> {
    let mut file = numbers_file(options.json.as_ref())?;

    watched::install_subscriber();
    let mut rows = Rows::default();
    // Some peers spawn a task when they are built; it belongs to the runtime that their rows run on.
    with_runtime(|runtime| {
        let _context = runtime.enter();
        limits::add(&mut rows);
        ours::add(&mut rows);
        watched::add(&mut rows);
        caches::add(&mut rows);
        peers::add(&mut rows);
        tasks::add(&mut rows);
    });
    let Rows { mut rows, mut footprints } = rows;
    rows.retain(|row| is_base(row) || options.wants(&row.group.to_string(), &row.name));
    footprints.retain(|footprint| options.wants("bytes", &footprint.name));
    if rows.iter().all(is_base) && footprints.is_empty() {
        let filter = options.filter.as_deref().unwrap_or_default();
        return Err(format!("no row's group or name contains `{filter}`"));
    }

    let measured = measure(&rows, options.rounds, |line| eprintln!("{line}"))?;
    let mut ratios = targets::ratios();
    ratios.extend(tasks::ratios());
    let report = Report { measured: &measured, footprints: &footprints, ratios: &ratios };
    print!("{report}");
    if let Some(file) = &mut file {
        writeln!(file, "{:#}", json::document(&report))
            .map_err(|error| format!("the JSON was not written: {error}"))?;
    }
    Ok(())
}

fn is_base(row: &Row) -> bool {
    [BARE_CALL, NO_OPERATION, BARE_BLOCKING, EMPTY_LOOP].contains(&row.name.as_str())
}
