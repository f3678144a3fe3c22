//! Examples for each command, and the text below the top-level help.

use clap::{Arg, Command};

/// The text below the top-level help.
pub(crate) const TOP: &str = "\
The API key comes from the file of `--key-file`, from SEAWALL_KEY or from SEAWALL_ADMIN_KEY.

Exit codes:
  0  success
  1  the hub or a service rejected the request; stderr shows the reason and the error code
  2  the command line, or a file that it names, is invalid
  3  not found
  4  not allowed: the key is missing, unknown or lacks the scope (401, 403)
  5  the hub is unreachable or unavailable (5xx)
  6  a bulk operation ended without full success: some dead letters failed again, or the canary stopped it
  130  Ctrl-C; the operation continues in the background

Examples:
  seawall demo
  seawall serve --data-dir ./data
  seawall services put billing.json
  seawall send order.created --data '{\"id\":\"A-7\",\"total\":120.5}'
  seawall dlq list --service billing --json";

/// Examples by command.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("serve", &["--data-dir ./data --allow-egress 10.1.0.0/16"]),
    ("demo", &["", "--listen 127.0.0.1:9000 --rate 50", "--no-story"]),
    ("backup", &["/backups/today --data-dir ./data"]),
    ("restore", &["/backups/today --data-dir ./data-again"]),
    (
        "migrate",
        &[
            "--from /var/lib/seawall --to postgres://seawall@db.example/seawall",
            "--from postgres://seawall@db.example/seawall --to ./data",
        ],
    ),
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
    ("dlq groups", &["", "--service billing --state open,acknowledged"]),
    ("dlq group", &["grp_0d4d16df37c8e19d"]),
    ("dlq ack", &["grp_0d4d16df37c8e19d --note 'INC-42, Ada is working on it'"]),
    ("dlq resolve", &["grp_0d4d16df37c8e19d --reason 'the rule is fixed'"]),
    ("dlq reopen", &["grp_0d4d16df37c8e19d"]),
    ("dlq note", &["ID 'customer informed'", "grp_0d4d16df37c8e19d ''"]),
    (
        "dlq list",
        &["--service billing --reason refused", "--standing open --since 2h --search 'no customer'"],
    ),
    ("dlq show", &["ID", "ID --raw > event.json"]),
    ("dlq curl", &["ID"]),
    (
        "dlq replay",
        &[
            "ID --reason 'their bug is fixed'",
            "ID --mode same --again",
            "--group grp_0d4d16df37c8e19d --dry-run",
            "--group grp_0d4d16df37c8e19d --rate 20 --canary 1,10,100",
            "--service billing --since 2h --yes --detach --reason INC-42",
        ],
    ),
    ("dlq edit", &["ID --data data.json", "ID --path /v2/invoices --header 'x-version: 2' --dry-run"]),
    ("dlq park", &["ID ID --reason 'legal looks at them'", "--service billing --search test"]),
    ("dlq unpark", &["ID", "--all --yes"]),
    ("dlq delete", &["ID", "--standing delivered --until 7d --yes"]),
    ("dlq restore", &["ID", "--service billing"]),
    ("dlq purge", &["--standing deleted", "--standing deleted --force --reason 'asked to forget them'"]),
    ("dlq export", &["--service billing --out dead.jsonl", "--since 1d | jq -r .event"]),
    ("dlq discard", &["ID --reason 'a test order'"]),
    ("operations list", &[""]),
    ("operations show", &["OP"]),
    ("operations watch", &["OP", "OP --json"]),
    ("operations pause", &["OP --reason 'they are slow'"]),
    ("operations resume", &["OP"]),
    ("operations cancel", &["OP --reason 'the wrong group'"]),
    ("circuits list", &[""]),
    ("circuits show", &["billing"]),
    ("circuits reset", &["billing --reason 'it is back'"]),
    ("circuits force-open", &["billing --reason 'they asked us to stop'"]),
    ("circuits force-closed", &["billing --reason 'the probe is wrong'"]),
    ("alerts list", &["--state open", "--service billing --all --json"]),
    ("alerts show", &["ID"]),
    ("alerts ack", &["ID --reason 'I am on it'"]),
    ("alerts mute", &["ID --for 2h --reason 'their migration'"]),
    ("alerts unmute", &["ID"]),
    ("alerts rules list", &[""]),
    ("alerts rules show", &["dead-letters"]),
    ("alerts rules put", &["dead-letters dead-letters.json", "billing-late - < billing-late.json"]),
    ("alerts rules enable", &["warnings"]),
    ("alerts rules disable", &["warnings --reason 'the new parser warns a lot'"]),
    ("alerts rules mute", &["circuit-open --until 2026-11-15T14:00:00Z --reason 'maintenance'"]),
    ("alerts rules unmute", &["circuit-open"]),
    ("alerts rules delete", &["dead-letters"]),
    ("alerts channels list", &[""]),
    ("alerts channels show", &["duty"]),
    ("alerts channels put", &["duty duty.json --reason 'the new pager'"]),
    ("alerts channels test", &["duty"]),
    ("alerts channels delete", &["duty"]),
    ("keys list", &[""]),
    ("keys make", &["shop --scope ingest --source shop --expires-in 90d > shop.key"]),
    ("keys rotate", &["shop --grace 10m > shop.key"]),
    ("keys revoke", &["shop --reason 'it was in a log'"]),
    ("audit", &["--limit 20"]),
    ("health", &[""]),
    ("check-config", &["seawall.yaml", "base.yaml production.toml --json"]),
    ("completions", &["bash > /etc/bash_completion.d/seawall"]),
];

/// What the name or the id of a command means, by the beginning of the command.
const NOUNS: [(&str, &str); 13] = [
    ("alerts channels", "channel"),
    ("alerts rules", "alert rule"),
    ("alerts", "incident"),
    ("call", "service"),
    ("circuits", "service"),
    ("deliveries", "delivery"),
    ("dlq", "dead letter"),
    ("events", "event"),
    ("keys", "key"),
    ("operations", "operation"),
    ("rules", "rule"),
    ("services", "service"),
    ("sources", "source"),
];

/// Adds the examples to the help of every command, and says what its name or id means.
pub(crate) fn add(command: Command) -> Command {
    below(command, "")
}

fn below(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}");
        let path = path.trim();
        command.mut_subcommand(name, |command| {
            let command = below(command, path).mut_args(|arg| described(arg, path));
            match EXAMPLES.iter().find(|(known, _)| *known == path) {
                Some((_, examples)) => command.after_help(text(path, examples)),
                None => command,
            }
        })
    })
}

/// An argument with its help. A name or an id has none of its own, because commands share it.
fn described(arg: Arg, path: &str) -> Arg {
    let noun = NOUNS.iter().find(|(beginning, _)| path.starts_with(beginning)).map_or("", |(_, noun)| noun);
    match arg.get_id().as_str() {
        "name" | "service" if arg.get_help().is_none() => arg.help(format!("Name of the {noun}")),
        "id" if arg.get_help().is_none() => arg.help(format!("Id of the {noun}")),
        _ => arg,
    }
}

fn text(path: &str, examples: &[&str]) -> String {
    let lines: Vec<String> =
        examples.iter().map(|example| format!("  seawall {path} {example}").trim_end().to_owned()).collect();
    let title = if lines.len() == 1 { "Example" } else { "Examples" };
    format!("{title}:\n{}\n\nExit codes: see `seawall --help`.", lines.join("\n"))
}
