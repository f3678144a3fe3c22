//! An example for each command, and what stands below the help of all of them.

use clap::Command;

/// Below the help of the whole.
pub(crate) const TOP: &str = "\
The key to the hub is SEAWALL_KEY, or SEAWALL_ADMIN_KEY, or stands in the file that `--key-file` names.

Exit codes:
  0  it went well
  1  the hub refused it, or a service behind it did; stderr says why, with the hub's code
  2  the command line, or a file that it names, is wrong
  3  there is no such thing
  4  not allowed: the key is missing, unknown, or not for this (401, 403)
  5  the hub can't be reached, or answers that it can't serve (5xx)

Examples:
  seawall demo
  seawall serve --data-dir ./data
  seawall services put billing.json
  seawall send order.created --data '{\"id\":\"A-7\",\"total\":120.5}'
  seawall dlq list --service billing --json";

/// By command: how it is used.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("serve", &["--data-dir ./data --allow-egress 10.1.0.0/16"]),
    ("demo", &["", "--listen 127.0.0.1:9000 --rate 50", "--no-story"]),
    ("backup", &["/backups/today --data-dir ./data"]),
    ("restore", &["/backups/today --data-dir ./data-again"]),
    (
        "call",
        &[
            "billing GET /invoices/7",
            "billing POST /invoices --data @invoice.json --mode sync-or-queue --timeout 5s",
        ],
    ),
    ("send", &["order.created --id A-7 --data '{\"total\":120.5}'", "--file events.jsonl"]),
    ("services list", &["", "--json | jq -r '.[].name'"]),
    ("services show", &["billing"]),
    ("services put", &["billing.json", "billing.json --if-version 3 --reason 'moved to the new host'"]),
    ("services delete", &["billing", "billing --pending dead-letter --reason 'retired'"]),
    ("services pause", &["billing --reason 'their migration, until 14:00'"]),
    ("services resume", &["billing"]),
    ("services test", &["billing", "billing --method HEAD --path /health"]),
    ("rules list", &[""]),
    ("rules show", &["invoices"]),
    ("rules put", &["invoices.json", "- < invoices.json"]),
    ("rules delete", &["invoices"]),
    ("rules enable", &["invoices"]),
    ("rules disable", &["invoices --reason 'wrong template'"]),
    ("rules versions", &["invoices"]),
    ("rules rollback", &["invoices 3"]),
    ("rules evaluate", &["--rule invoices --event A-7", "--rule-file invoices.json --event-file event.json"]),
    ("rules backtest", &["invoices", "invoices --rule-file invoices.json --max 500"]),
    ("sources list", &[""]),
    ("sources show", &["github"]),
    ("sources put", &["github.json"]),
    ("sources delete", &["github"]),
    ("events list", &["--type 'order.*' --limit 10", "--unmatched --all --json"]),
    ("events show", &["A-7"]),
    ("deliveries list", &["--service billing --state waiting"]),
    ("deliveries show", &["ID --watch"]),
    ("dlq list", &["--service billing --reason refused"]),
    ("dlq show", &["ID"]),
    ("dlq replay", &["ID --reason 'their bug is fixed'", "ID --mode same --again"]),
    ("dlq discard", &["ID --reason 'a test order'"]),
    ("circuits list", &[""]),
    ("circuits show", &["billing"]),
    ("circuits reset", &["billing --reason 'it is back'"]),
    ("circuits force-open", &["billing --reason 'they asked us to stop'"]),
    ("circuits force-closed", &["billing --reason 'the probe is wrong'"]),
    ("keys list", &[""]),
    ("keys make", &["shop --scope ingest --source shop --expires-in 90d > shop.key"]),
    ("keys rotate", &["shop --grace 10m > shop.key"]),
    ("keys revoke", &["shop --reason 'it was in a log'"]),
    ("audit", &["--limit 20"]),
    ("health", &[""]),
    ("check-config", &["seawall.yaml", "base.yaml production.toml --json"]),
    ("completions", &["bash > /etc/bash_completion.d/seawall"]),
];

/// Every command with its examples below its help.
pub(crate) fn add(command: Command) -> Command {
    below(command, "")
}

fn below(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}");
        let path = path.trim();
        command.mut_subcommand(name, |command| {
            let command = below(command, path);
            match EXAMPLES.iter().find(|(known, _)| *known == path) {
                Some((_, examples)) => command.after_help(text(path, examples)),
                None => command,
            }
        })
    })
}

fn text(path: &str, examples: &[&str]) -> String {
    let lines: Vec<String> =
        examples.iter().map(|example| format!("  seawall {path} {example}").trim_end().to_owned()).collect();
    let title = if lines.len() == 1 { "Example" } else { "Examples" };
    format!("{title}:\n{}\n\nExit codes: see `seawall --help`.", lines.join("\n"))
}
