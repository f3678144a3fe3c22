//! The wire has types: what the hub reads and returns is defined in `seawall-api`, and nowhere else by hand.
//!
//! What is still written as loose JSON is counted, and the counts only go down.

use super::source::{code, product};
use super::{File, expect_none, files};

/// Something that is counted in some files, and how often it is there now.
struct Ratchet {
    what: &'static str,
    /// The start of the paths.
    below: &'static str,
    /// The parts of paths that may contain it.
    except: &'static [&'static str],
    /// The texts that are counted, in code without its literals or with them.
    texts: &'static [&'static str],
    with_literals: bool,
    now: usize,
}

const RATCHETS: [Ratchet; 3] = [
    Ratchet {
        what: "JSON written by hand in handlers",
        below: "hub/server/src/http/",
        except: &["/input.rs", "/openapi/", "/raw.rs", "tests"],
        texts: &["json!("],
        with_literals: false,
        now: 8,
    },
    Ratchet {
        what: "loose `Value` in handlers",
        below: "hub/server/src/http/",
        except: &["/input.rs", "/query.rs", "/reader.rs", "/shape.rs", "/openapi/", "/raw.rs", "tests"],
        texts: &["Value"],
        with_literals: false,
        now: 48,
    },
    Ratchet {
        what: "requests and responses described by hand",
        below: "hub/server/src/http/routes/",
        except: &["tests"],
        texts: &["_shape(\"", ".gives(", ".gives_this(", ".gives_plain("],
        with_literals: true,
        now: 4,
    },
];

fn problems(files: &[File], ratchets: &[Ratchet]) -> Vec<String> {
    let count = |ratchet: &Ratchet| -> usize {
        let read = files.iter().filter(|file| {
            file.is_rust()
                && file.path.starts_with(ratchet.below)
                && !ratchet.except.iter().any(|part| file.path.contains(part))
        });
        let found = read.map(|file| {
            let text = product(&file.text);
            let text = if ratchet.with_literals { text } else { code(&text) };
            ratchet.texts.iter().map(|part| text.matches(part).count()).sum::<usize>()
        });
        found.sum()
    };
    let problem = |ratchet: &Ratchet| {
        let found = count(ratchet);
        let Ratchet { what, now, .. } = ratchet;
        (found > *now)
            .then(|| format!("{what}: {found}, which is more than {now}; use the types of `seawall-api`"))
    };
    ratchets.iter().filter_map(problem).collect()
}

/// API-4
#[test]
fn what_is_read_and_returned_without_a_type_only_gets_less() {
    expect_none(&problems(&files(), &RATCHETS));
}

#[test]
fn a_count_that_grows_is_found() {
    let files = [
        File::made_up(
            "hub/server/src/http/registry/keys.rs",
            "let a = json!({}); // json!(\nlet b = json!([]);\n",
        ),
        File::made_up("hub/server/src/http/openapi/document.rs", "json!({})"),
        File::made_up("hub/server/src/http/keys/tests.rs", "json!({})"),
    ];
    let with = |now| [Ratchet { now, except: &["/openapi/", "tests"], ..RATCHETS[0] }];
    assert_eq!(problems(&files, &with(2)), [""; 0]);
    assert!(problems(&files, &with(1))[0].contains("more than 1"));
    assert_eq!(problems(&files, &with(3)), [""; 0]);
}
