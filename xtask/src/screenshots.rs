//! `cargo xtask screenshots`: pictures of the dashboard, taken by the tests that look at it in a browser.
//!
//! Why by the tests: they have a hub on which something has happened, a browser that they move, and the list of all pages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::metadata::Workspace;
use crate::run::{self, Step, Usage};

/// Tells the tests where the pictures go.
const VARIABLE: &str = "SEAWALL_SCREENSHOTS";
/// Those that README and the pages of docs/ show. All others are for whoever looks at them now.
const KEPT: [&str; 4] =
    ["deadLetters.light.png", "demo-overview.light.png", "overview.phone.png", "rules-name-edit.dark.png"];
/// So large may one of these be: everybody who clones the repository gets them.
const KEPT_MAX: u64 = 200 * 1024;

pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let out = out(args)?;
    crate::needs::install();
    let folder = match &out {
        Some(folder) => std::path::absolute(folder)?,
        None => PathBuf::from(Workspace::load()?.target_dir).join("screenshots"),
    };
    let step = pictures(&folder);
    println!("==> {}", step.line());
    step.run()?;
    if out.is_none() {
        keep(&folder, &run::root().join("docs").join("images"))?;
    }
    println!("==> the pictures are in {}", folder.display());
    Ok(())
}

fn out(args: &[String]) -> Result<Option<PathBuf>, Usage> {
    match args {
        [] => Ok(None),
        [flag, folder] if flag == "--out" => Ok(Some(folder.into())),
        [flag] if flag == "--out" => Err(Usage::new("`--out` needs a folder")),
        rest => Usage::expect_none("screenshots", rest).map(|()| None),
    }
}

fn pictures(folder: &Path) -> Step {
    let tests = "test -p seawall-hub-cli --test hub -- browser::pictures browser::demo";
    Step::cargo("pictures", tests).env(VARIABLE, &folder.to_string_lossy())
}

fn keep(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for name in KEPT {
        let size =
            fs::copy(from.join(name), to.join(name)).with_context(|| format!("no picture `{name}`"))?;
        ensure!(size <= KEPT_MAX, "`{name}` has {size} bytes, more than {KEPT_MAX}; keep another one");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_command_line_is_refused_before_anything_runs() {
        let refusal = |args: &[&str]| {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            run(&args).expect_err("the arguments are wrong").to_string()
        };
        assert_eq!(refusal(&["--out"]), "`--out` needs a folder");
        assert_eq!(refusal(&["--all"]), "`screenshots` does not know `--all`");
    }

    #[test]
    fn the_tests_are_told_where_the_pictures_go() {
        assert_eq!(
            pictures(Path::new("/tmp/pictures")).line(),
            "SEAWALL_SCREENSHOTS=/tmp/pictures cargo test -p seawall-hub-cli --test hub -- browser::pictures browser::demo"
        );
    }

    /// What is checked in is there, and small.
    #[test]
    fn the_kept_pictures_are_small() {
        for name in KEPT {
            let file = run::root().join("docs").join("images").join(name);
            let size = fs::metadata(&file).map(|file| file.len());
            assert!(size.as_ref().is_ok_and(|size| *size <= KEPT_MAX), "{}: {size:?}", file.display());
        }
    }
}
