//! The first documents that somebody reads are scripts: what they tell to type is typed here, and what they show is what comes.
//!
//! Every block of the language `sh` is run, in order, by one shell in an empty folder, with the binary on the path. A block of the
//! language `json` or `text` right behind one is what that block prints. What differs from run to run is left out of the
//! comparison: ids, times, durations. Only the ports are others than in the text, because those may be taken.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::harness::SEAWALL;

/// Stands in the output before that of each block.
const MARK: &str = "@@ block ";

/// What is typed, and what comes, if the document shows it.
struct Block {
    script: String,
    shown: Option<String>,
}

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The blocks of a document that are run.
fn blocks(document: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut lines = document.lines();
    // Whether nothing but text has come since the last block that is run.
    let mut open = false;
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let body = body.join("\n");
        match language {
            "sh" => blocks.push(Block { script: body, shown: None }),
            "json" | "text" if open => blocks.last_mut().unwrap().shown = Some(body),
            _ => {}
        }
        open = language == "sh";
    }
    blocks
}

fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

/// Runs the blocks of a document, and compares what each prints with what the document shows.
#[track_caller]
fn runs_as_it_stands(name: &str) {
    let blocks = blocks(&document(name));
    assert!(blocks.len() > 1 && blocks.iter().any(|block| block.shown.is_some()), "{name}");
    let folder = TempDir::new().unwrap();
    let (hub, peer) = (free_port(), free_port());
    let mut script = String::from("set -euo pipefail\ntrap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n");
    for (at, block) in blocks.iter().enumerate() {
        let body = block.script.replace("8480", &hub).replace("9000", &peer);
        script.push_str(&format!("echo '{MARK}{at}'\n{body}\n"));
    }
    let bin = Path::new(SEAWALL).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("bash");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SEAWALL_")) {
        shell.env_remove(name);
    }
    let listens = format!("127.0.0.1:{hub}");
    // The port stands in no command of theirs: it is the usual one.
    let shell = shell.args(["-c", &script]).current_dir(folder.path()).env("PATH", path);
    let shell = shell.env("SEAWALL_LISTEN", &listens).env("SEAWALL_URL", format!("http://{listens}"));
    let ran = shell.stdin(Stdio::null()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{name}: {}\n{out}\n{err}", ran.status);
    let printed: Vec<&str> = out.split(MARK).skip(1).collect();
    assert_eq!(printed.len(), blocks.len(), "{name}: {out}\n{err}");
    for (block, printed) in blocks.iter().zip(printed) {
        let printed = printed.split_once('\n').map_or("", |(_, printed)| printed);
        let printed = printed.replace(&hub, "8480").replace(&peer, "9000");
        if let Some(shown) = &block.shown {
            let (shown, printed) = (alike(shown), alike(&printed));
            assert_eq!(shown, printed, "{name} shows the first, and got the second, of\n{}", block.script);
        }
    }
}

/// A text without what differs from run to run: digits of ids, of times and of durations, and how much space is between words.
fn alike(text: &str) -> String {
    let words = text.split_inclusive([' ', '"', ',', ':', '}', '\n']);
    let word = |word: &str| {
        let ends = word.ends_with([' ', '"', ',', ':', '}', '\n']);
        let (body, end) = word.split_at(word.len() - usize::from(ends));
        let is_id = ["dlv_", "swk_", "op_"].iter().any(|id| body.starts_with(id));
        let is_time = body.len() > 10 && body.as_bytes().get(10) == Some(&b'T') && body.starts_with("20");
        let is_trace = body.len() == 32 && body.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_id || is_time || is_trace { format!("…{end}") } else { format!("{body}{end}") }
    };
    let plain: String = words.map(word).collect();
    let lines = plain.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    // A time has colons in it, so what stands behind the first of them is left of it.
    let lines = lines.map(|line| without_rest_of_times(&line)).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

fn without_rest_of_times(line: &str) -> String {
    let mut out = line.to_owned();
    while let Some(at) = out.find("…:") {
        let rest = out[at + '…'.len_utf8()..].find('Z').map(|z| at + '…'.len_utf8() + z + 1);
        let Some(end) = rest else { break };
        out.replace_range(at..end, "…");
    }
    for (before, after) in [("\"tookMicros\":", ['}', ',']), ("next attempt in ", ['"', '"'])] {
        while let Some(at) = out.find(before).filter(|at| !out[at + before.len()..].starts_with('…')) {
            let from = at + before.len();
            let Some(length) = out[from..].find(after) else { break };
            out.replace_range(from..from + length, "…");
        }
    }
    out
}

/// HUB-5. Trap "a command in a document that contains an id takes it from the answer before": the first page runs as it stands.
#[test]
fn hub_5_the_first_page_runs_as_it_stands() {
    runs_as_it_stands("docs/start-here.md");
}

/// HUB-5: and so does the first event of README.
#[test]
fn hub_5_the_first_event_of_the_readme_runs_as_it_stands() {
    runs_as_it_stands("README.md");
}

/// HUB-5: the command that brings `seawall` onto the path names a folder that makes it.
#[test]
fn hub_5_the_command_is_installed_from_where_it_is() {
    for name in ["README.md", "docs/start-here.md"] {
        assert!(document(name).contains("cargo install --locked --path hub/cli"), "{name}");
    }
    assert!(document("hub/cli/Cargo.toml").contains("[[bin]]\nname = \"seawall\""));
}
