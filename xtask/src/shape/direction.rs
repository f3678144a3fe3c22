//! Rules of direction D1 to D7, D10 and D11: who may depend on whom, held against `cargo metadata`.
//!
//! The rules are rows of one table and speak of folders, so they already hold for crates that are not written
//! yet: a crate that does not exist has no dependencies. D8 is in `imports.rs` and D9 in `units.rs`, because
//! they are about sources.

use std::collections::{BTreeSet, VecDeque};

use super::expect_none;
use crate::metadata::{Dependency, Kind, Krate, Workspace};

const EVERYTHING: &[Set] = &[Set::Below("libs"), Set::Below("hub"), Set::Below("sim"), Set::Below("xtask")];
const ENGINE: Set = Set::Is("libs/seawall");
const API: Set = Set::Is("libs/seawall-api");
const CLIENT: Set = Set::Is("libs/seawall-client");
const HTTP: Set = Set::Is("libs/seawall-http");
const DIST: Set = Set::Is("libs/seawall-dist");
const MACROS: Set = Set::Is("libs/seawall-macros");
const TESTKIT: Set = Set::Is("libs/seawall-testkit");

/// What ends up in a program; development dependencies do not.
const USED: &[Kind] = &[Kind::Normal, Kind::Build];
const ANY: &[Kind] = &[Kind::Normal, Kind::Build, Kind::Dev];

/// Crates that talk to something outside of the process. Those in one row are one client library to us.
const CLIENTS: &[(&str, &[&str])] = &[
    ("SQL", &["sqlx", "rusqlite", "tokio-postgres", "libsqlite3-sys"]),
    ("Redis", &["redis", "fred", "deadpool-redis"]),
    ("HTTP", &["reqwest", "hyper", "hyper-util", "hyper-rustls"]),
    ("gRPC", &["tonic"]),
    ("AMQP", &["lapin"]),
    ("Kafka", &["rdkafka", "rskafka"]),
    ("NATS", &["async-nats"]),
    ("object storage", &["object_store", "aws-sdk-s3", "opendal", "rusty-s3"]),
];

const RULES: &[Rule] = &[
    Rule {
        name: "D1: libs never see hub, sim, xtask",
        who: &[Set::Below("libs")],
        but: &[],
        check: Check::NeverThrough(ANY, &[Set::Below("hub"), Set::Below("sim"), Set::Below("xtask")]),
    },
    Rule {
        // Its tests use the testkit; that they are only tests is D7.
        name: "D2: `seawall` uses no crate of ours but its macros",
        who: &[ENGINE],
        but: &[],
        check: Check::OfOursOnly(ANY, &[MACROS, TESTKIT]),
    },
    Rule {
        name: "D2: `seawall-macros` uses no crate of ours and no client library",
        who: &[MACROS],
        but: &[],
        check: Check::Never(ANY, &[Set::Below("libs"), Set::Clients]),
    },
    Rule {
        // What an error of a client means can be said only by who knows its type.
        name: "D2: `seawall-dist` knows no client library, `seawall` only behind features",
        who: &[ENGINE, DIST],
        but: &[],
        check: Check::Clients(0),
    },
    Rule {
        name: "D3: an adapter uses `seawall` and `seawall-dist`, no other crate of ours",
        who: &[Set::Adapters],
        but: &[],
        check: Check::OfOursOnly(USED, &[ENGINE, DIST, TESTKIT]),
    },
    Rule {
        // Files go through `object_store`, whose HTTP client is ours: its own would change what reqwest does in the whole program.
        name: "D3: an adapter uses exactly one client library",
        who: &[Set::Adapters],
        but: &[Set::Is("libs/seawall-files")],
        check: Check::Clients(1),
    },
    Rule {
        // The tests of its services run on the stores of `hub/store`, and no program gets what only tests use.
        name: "D4: `hub/core` knows no axum, no client library, no adapter",
        who: &[Set::Is("hub/core")],
        but: &[],
        check: Check::NeverThrough(USED, &[Set::Adapters, Set::Clients, Set::Named("axum")]),
    },
    Rule {
        name: "D5: `hub/core` does not know `seawall-api`",
        who: &[Set::Is("hub/core")],
        but: &[],
        check: Check::NeverThrough(USED, &[API]),
    },
    Rule {
        name: "D6: only `hub/server` knows adapters",
        who: &[Set::Below("hub"), Set::Below("sim"), Set::Below("xtask")],
        but: &[Set::Is("hub/server")],
        check: Check::Never(USED, &[Set::Adapters]),
    },
    Rule {
        name: "D6: only `hub/cli` has a `main` (and xtask, which nobody is shipped)",
        who: EVERYTHING,
        but: &[Set::Is("hub/cli"), Set::Is("xtask")],
        check: Check::NoMain,
    },
    Rule {
        name: "D7: the testkit is a development dependency everywhere but in sim and bench",
        who: EVERYTHING,
        but: &[Set::Below("sim")],
        check: Check::Never(USED, &[TESTKIT]),
    },
    Rule {
        name: "D10: `seawall-api` uses no crate of ours",
        who: &[API],
        but: &[],
        check: Check::OfOursOnly(ANY, &[]),
    },
    Rule {
        name: "D11: `seawall-client` uses `seawall-api`, `seawall`, `seawall-http`",
        who: &[CLIENT],
        but: &[],
        check: Check::OfOursOnly(USED, &[API, ENGINE, HTTP, TESTKIT]),
    },
];

struct Rule {
    name: &'static str,
    who: &'static [Set],
    but: &'static [Set],
    check: Check,
}

enum Check {
    /// Does not depend on these.
    Never(&'static [Kind], &'static [Set]),
    /// Nor does any crate of ours that it depends on.
    NeverThrough(&'static [Kind], &'static [Set]),
    /// Of our crates, depends on these at most.
    OfOursOnly(&'static [Kind], &'static [Set]),
    /// Depends on exactly so many rows of [`CLIENTS`].
    Clients(usize),
    NoMain,
}

/// Some crates, ours by their folder and others by their name.
enum Set {
    Is(&'static str),
    Below(&'static str),
    Adapters,
    Clients,
    Named(&'static str),
}

impl Set {
    fn holds(&self, name: &str, dir: Option<&str>) -> bool {
        match self {
            Self::Is(wanted) => dir == Some(wanted),
            Self::Below(folder) => dir.is_some_and(|dir| dir.split('/').next() == Some(folder)),
            Self::Adapters => dir.is_some_and(|dir| {
                dir.starts_with("libs/seawall-")
                    && !any_holds(&[API, CLIENT, DIST, MACROS, TESTKIT], name, Some(dir))
            }),
            Self::Clients => dir.is_none() && CLIENTS.iter().any(|(_, crates)| crates.contains(&name)),
            Self::Named(wanted) => dir.is_none() && name == *wanted,
        }
    }
}

fn any_holds(sets: &[Set], name: &str, dir: Option<&str>) -> bool {
    sets.iter().any(|set| set.holds(name, dir))
}

fn problems(krates: &[Krate]) -> Vec<String> {
    let mut problems = Vec::new();
    for rule in RULES {
        let is_meant = |krate: &&Krate| {
            let dir = Some(krate.dir.as_str());
            any_holds(rule.who, &krate.name, dir) && !any_holds(rule.but, &krate.name, dir)
        };
        for krate in krates.iter().filter(is_meant) {
            let broken = rule.check.broken_by(krate, krates);
            problems.extend(broken.into_iter().map(|how| format!("{}: {} {how}", rule.name, krate.dir)));
        }
    }
    problems
}

impl Check {
    /// How the crate breaks the rule, as the end of a sentence that begins with the crate.
    fn broken_by(&self, krate: &Krate, krates: &[Krate]) -> Vec<String> {
        let of_kind = |kinds: &'static [Kind]| krate.dependencies.iter().filter(|d| kinds.contains(&d.kind));
        let direct = |dependency: &Dependency| format!("depends on {}", dependency.name);
        match self {
            Self::Never(kinds, what) => {
                of_kind(kinds).filter(|d| any_holds(what, &d.name, d.dir.as_deref())).map(direct).collect()
            }
            Self::OfOursOnly(kinds, what) => {
                let ours = of_kind(kinds).filter(|d| d.dir.is_some());
                ours.filter(|d| !any_holds(what, &d.name, d.dir.as_deref())).map(direct).collect()
            }
            Self::NeverThrough(kinds, what) => paths(krate, krates, kinds)
                .into_iter()
                .filter(|path| path.last().is_some_and(|d| any_holds(what, &d.name, d.dir.as_deref())))
                .map(|path| {
                    path.iter().map(|d| d.name.as_str()).collect::<Vec<_>>().join(", which depends on ")
                })
                .map(|path| format!("depends on {path}"))
                .collect(),
            Self::Clients(wanted) => {
                let used = of_kind(USED).filter(|d| !switched_off(krate, d, &[])).collect::<Vec<_>>();
                let is_used = |crates: &[&str]| used.iter().any(|d| crates.contains(&d.name.as_str()));
                let used = CLIENTS.iter().filter(|(_, crates)| is_used(crates)).map(|(what, _)| *what);
                let used: Vec<_> = used.collect();
                let how = format!("uses {} client libraries ({})", used.len(), used.join(", "));
                if used.len() == *wanted { vec![] } else { vec![how] }
            }
            Self::NoMain => krate.binaries.iter().map(|name| format!("has the binary `{name}`")).collect(),
        }
    }
}

/// The shortest way to every crate that can be reached through crates of ours. `first` is about the first
/// step; the further ones are what is really compiled in.
fn paths<'a>(krate: &'a Krate, krates: &'a [Krate], first: &[Kind]) -> Vec<Vec<&'a Dependency>> {
    let mut seen = BTreeSet::new();
    let mut queue = VecDeque::from([(krate, Vec::new())]);
    let mut paths = Vec::new();
    while let Some((at, way)) = queue.pop_front() {
        let kinds = if way.is_empty() { first } else { USED };
        let asked = way.last().map_or(&[][..], |edge: &&Dependency| &edge.features);
        let is_used = |d: &&Dependency| kinds.contains(&d.kind) && !switched_off(at, d, asked);
        for dependency in at.dependencies.iter().filter(is_used) {
            if !seen.insert((&dependency.name, &dependency.dir)) {
                continue;
            }
            let mut way = way.clone();
            way.push(dependency);
            let next = krates.iter().find(|krate| dependency.dir.as_ref() == Some(&krate.dir));
            queue.extend(next.map(|next| (next, way.clone())));
            paths.push(way);
        }
    }
    paths
}

/// Whether this is a client of the engine that nobody has asked for. Its features are named as the clients.
fn switched_off(krate: &Krate, dependency: &Dependency, asked: &[String]) -> bool {
    ENGINE.holds(&krate.name, Some(&krate.dir)) && dependency.optional && !asked.contains(&dependency.name)
}

#[test]
fn this_project_keeps_the_rules_of_direction() {
    expect_none(&problems(&Workspace::load().unwrap().krates));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One crate a line: its folder, `:`, then what it depends on. `dev:x` is a development dependency, `opt:x` an optional
    /// one, `x+y` asks for the feature `y`, and `main` is a binary; `sim`, `xtask` and what has a slash are ours.
    fn graph(text: &str) -> Vec<Krate> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(|line| line.split_once(':').unwrap()).map(|(dir, rest)| krate(dir, rest)).collect()
    }

    fn krate(dir: &str, rest: &str) -> Krate {
        let mut krate = Krate::made_up(dir);
        for word in rest.split_whitespace() {
            let (kind, word) =
                word.strip_prefix("dev:").map_or((Kind::Normal, word), |word| (Kind::Dev, word));
            let (optional, word) = word.strip_prefix("opt:").map_or((false, word), |word| (true, word));
            let (word, feature) = word.split_once('+').unwrap_or((word, ""));
            if word == "main" {
                krate.binaries.push(krate.name.clone());
                continue;
            }
            let mut dependency = Dependency { optional, ..Dependency::made_up(word, kind) };
            dependency.features.push(feature.into());
            if word.contains('/') || ["sim", "xtask"].contains(&word) {
                let ours = Krate::made_up(word);
                (dependency.name, dependency.dir) = (ours.name, Some(ours.dir));
            }
            krate.dependencies.push(dependency);
        }
        krate
    }

    /// For each rule the graphs that break it and no other rule.
    const BROKEN: &[(&str, &[&str])] = &[
        (
            "D1: libs",
            &["libs/seawall-dist: hub/core", "libs/seawall-dist: dev:sim", "libs/seawall-testkit: xtask"],
        ),
        (
            "D2: `seawall` uses",
            &[
                "libs/seawall: libs/seawall-http",
                "libs/seawall: dev:libs/seawall-dist",
                "libs/seawall: libs/seawall-dist",
            ],
        ),
        ("D2: `seawall-macros` uses", &["libs/seawall-macros: libs/seawall", "libs/seawall-macros: hyper"]),
        (
            "D2: `seawall-dist` knows",
            &["libs/seawall: reqwest", "libs/seawall-dist: redis", "libs/seawall-dist: opt:redis"],
        ),
        (
            "D3: an adapter uses `seawall`",
            &[
                "libs/seawall-files: object_store libs/seawall-http",
                "libs/seawall-sql: sqlx libs/seawall-redis",
            ],
        ),
        ("D3: an adapter uses exactly", &["libs/seawall-http: tokio", "libs/seawall-redis: redis sqlx"]),
        (
            "D4",
            &[
                "hub/core: axum",
                "hub/core: sqlx",
                "hub/core: hub/model\nhub/model: sqlx",
                "hub/core: hub/store\nhub/store: rusqlite",
                "hub/core: libs/seawall+reqwest\nlibs/seawall: opt:reqwest",
            ],
        ),
        ("D5", &["hub/core: libs/seawall-api", "hub/core: hub/model\nhub/model: libs/seawall-api"]),
        (
            "D6: only `hub/server`",
            &["hub/cli: libs/seawall-http", "hub/store: libs/seawall-sql", "sim: libs/seawall-nats"],
        ),
        ("D6: only `hub/cli`", &["hub/server: main", "libs/seawall: main", "sim: main"]),
        ("D7", &["libs/seawall: libs/seawall-testkit", "hub/cli: libs/seawall-testkit"]),
        ("D10", &["libs/seawall-api: libs/seawall", "libs/seawall-api: dev:libs/seawall-http"]),
        ("D11", &["libs/seawall-client: libs/seawall-dist", "libs/seawall-client: libs/seawall-sql"]),
    ];

    #[test]
    fn every_rule_can_fail_and_fails_alone() {
        for rule in RULES {
            let (_, graphs) = BROKEN.iter().find(|(start, _)| rule.name.starts_with(start)).expect(rule.name);
            for text in *graphs {
                let found = problems(&graph(text));
                assert!(!found.is_empty(), "{}: nothing found in {text}", rule.name);
                assert!(found.iter().all(|problem| problem.starts_with(rule.name)), "{text}: {found:?}");
            }
        }
    }

    #[test]
    fn a_problem_names_the_rule_and_the_whole_way() {
        let found = problems(&graph("hub/core: libs/seawall-dist\nlibs/seawall-dist: libs/seawall-api"));
        let whole = "hub/core depends on seawall-dist, which depends on seawall-api";
        assert!(
            found.iter().any(|problem| problem.starts_with("D5") && problem.ends_with(whole)),
            "{found:?}"
        );
    }

    #[test]
    fn the_house_as_it_is_planned_keeps_every_rule() {
        let house = "
            libs/seawall: tokio opt:hyper opt:reqwest opt:libs/seawall-macros dev:libs/seawall-testkit
            libs/seawall-dist: libs/seawall dev:libs/seawall-testkit
            libs/seawall-sql: libs/seawall libs/seawall-dist sqlx dev:libs/seawall-testkit
            libs/seawall-http: libs/seawall hyper hyper-util dev:axum
            libs/seawall-macros: syn
            libs/seawall-testkit: libs/seawall tokio
            libs/seawall-api: serde
            libs/seawall-client: libs/seawall libs/seawall-api libs/seawall-http tokio
            hub/core: libs/seawall libs/seawall-dist dev:hub/store dev:libs/seawall-testkit
            hub/store: hub/core sqlx rusqlite
            hub/server: hub/core libs/seawall-api hub/store libs/seawall-http libs/seawall-sql axum
            hub/cli: hub/server libs/seawall-client sim main
            sim: libs/seawall libs/seawall-testkit
            xtask: anyhow main";
        expect_none(&problems(&graph(house)));
    }
}
