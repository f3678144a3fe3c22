//! What we need to know of the workspace, read from `cargo metadata`.
//!
//! Crates are known by their folder (`libs/seawall`), not by their name: folders are what the rules of
//! direction speak of, and they are settled before a crate is named.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::run;

#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target_dir: String,
    pub(crate) krates: Vec<Krate>,
}

/// One crate of ours. Spelt with `k` because `crate` is a keyword.
#[derive(Debug)]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "some of it is asked for only by the tests of the project's shape")
)]
pub(crate) struct Krate {
    pub(crate) name: String,
    /// From the workspace's root, with `/` between its parts.
    pub(crate) dir: String,
    pub(crate) published: bool,
    pub(crate) has_lib: bool,
    pub(crate) binaries: Vec<String>,
    pub(crate) features: Vec<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The folder of the crate, where it is one of ours.
    pub(crate) dir: Option<String>,
    /// True if it is there only with a feature.
    pub(crate) optional: bool,
    /// The features of the crate that are asked for.
    pub(crate) features: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Build,
    Dev,
}

impl Krate {
    pub(crate) fn is_published_lib(&self) -> bool {
        self.published && self.has_lib
    }
}

impl Workspace {
    pub(crate) fn load() -> anyhow::Result<Self> {
        let root = run::root();
        // `--no-deps` reads the manifests only: quick, and the dependencies that stand in them are all we ask
        // about.
        let output = Command::new(run::cargo())
            .args(["metadata", "--format-version", "1", "--no-deps"])
            .current_dir(&root)
            .output()
            .context("could not start `cargo metadata`")?;
        if !output.status.success() {
            bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Self::parse(&serde_json::from_slice(&output.stdout).context("`cargo metadata` did not print JSON")?)
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    fn parse(json: &Value) -> anyhow::Result<Self> {
        let root = PathBuf::from(text(json, "workspace_root")?);
        let krates = list(json, "packages")?.iter().map(|package| Krate::parse(package, &root));
        let krates = krates.collect::<anyhow::Result<_>>()?;
        Ok(Self { target_dir: text(json, "target_directory")?.to_owned(), krates, root })
    }
}

impl Krate {
    fn parse(package: &Value, root: &Path) -> anyhow::Result<Self> {
        let manifest = Path::new(text(package, "manifest_path")?);
        let targets = list(package, "targets")?;
        let is_a = |target: &&Value, kind: &str| {
            list(target, "kind").is_ok_and(|kinds| kinds.iter().any(|k| k == kind))
        };
        let binaries = targets.iter().filter(|target| is_a(target, "bin"));
        let dependencies =
            list(package, "dependencies")?.iter().map(|dependency| Dependency::parse(dependency, root));
        Ok(Self {
            name: text(package, "name")?.to_owned(),
            dir: manifest.parent().map(|dir| below(root, dir)).context("a manifest lies in a folder")?,
            // `null` means everywhere, a list names registries, an empty list means nowhere.
            published: package["publish"].as_array().is_none_or(|registries| !registries.is_empty()),
            has_lib: targets.iter().any(|target| is_a(&target, "lib") || is_a(&target, "proc-macro")),
            binaries: binaries
                .map(|target| text(target, "name").map(Into::into))
                .collect::<anyhow::Result<_>>()?,
            features: package["features"]
                .as_object()
                .context("`features` is missing")?
                .keys()
                .cloned()
                .collect(),
            dependencies: dependencies.collect::<anyhow::Result<_>>()?,
        })
    }
}

impl Dependency {
    fn parse(dependency: &Value, root: &Path) -> anyhow::Result<Self> {
        let kind = match dependency["kind"].as_str() {
            None => Kind::Normal,
            Some("build") => Kind::Build,
            Some("dev") => Kind::Dev,
            Some(other) => bail!("cargo knows a kind of dependency that we do not: `{other}`"),
        };
        let dir = dependency["path"].as_str().map(|path| below(root, Path::new(path)));
        let optional = dependency["optional"].as_bool().unwrap_or(false);
        let features = dependency["features"].as_array().into_iter().flatten();
        let features = features.filter_map(Value::as_str).map(Into::into).collect();
        Ok(Self { name: text(dependency, "name")?.to_owned(), kind, dir, optional, features })
    }
}

fn below(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn text<'a>(json: &'a Value, key: &str) -> anyhow::Result<&'a str> {
    json[key].as_str().with_context(|| format!("`cargo metadata` gave no text for `{key}`"))
}

fn list<'a>(json: &'a Value, key: &str) -> anyhow::Result<&'a Vec<Value>> {
    json[key].as_array().with_context(|| format!("`cargo metadata` gave no list for `{key}`"))
}

#[cfg(test)]
impl Workspace {
    /// A workspace that exists nowhere, for tests of what is made of it.
    pub(crate) fn made_up(target_dir: &str, krates: Vec<Krate>) -> Self {
        Self { root: PathBuf::from("nowhere"), target_dir: target_dir.into(), krates }
    }
}

#[cfg(test)]
impl Dependency {
    /// A dependency on a crate that is not ours.
    pub(crate) fn made_up(name: &str, kind: Kind) -> Self {
        Self { name: name.into(), kind, dir: None, optional: false, features: Vec::new() }
    }
}

#[cfg(test)]
impl Krate {
    /// A published library without features and dependencies, named as its folder.
    pub(crate) fn made_up(dir: &str) -> Self {
        Self {
            name: dir.trim_start_matches("libs/").replace('/', "-"),
            dir: dir.into(),
            published: true,
            has_lib: true,
            binaries: Vec::new(),
            features: Vec::new(),
            dependencies: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_rules_ask_about() {
        let json = r#"{
            "workspace_root": "/w", "target_directory": "/t", "packages": [{
                "name": "seawall-hub", "manifest_path": "/w/hub/cli/Cargo.toml", "publish": [],
                "features": {"default": []}, "targets": [{"name": "seawall", "kind": ["bin"]}],
                "dependencies": [
                    {"name": "seawall", "kind": null, "path": "/w/libs/seawall"},
                    {"name": "proptest", "kind": "dev"}
                ]
            }]
        }"#;
        let workspace = Workspace::parse(&serde_json::from_str(json).unwrap()).unwrap();
        let [krate] = workspace.krates.as_slice() else { panic!("one crate was given: {workspace:?}") };
        assert_eq!((krate.dir.as_str(), krate.published, krate.has_lib), ("hub/cli", false, false));
        assert_eq!(
            (krate.binaries.as_slice(), krate.features.as_slice()),
            (&["seawall".into()][..], &["default".into()][..])
        );
        let expected = [
            Dependency { dir: Some("libs/seawall".into()), ..Dependency::made_up("seawall", Kind::Normal) },
            Dependency::made_up("proptest", Kind::Dev),
        ];
        assert_eq!(krate.dependencies, expected);
    }

    #[test]
    fn the_workspace_at_hand_can_be_read() {
        let workspace = Workspace::load().unwrap();
        assert!(workspace.krates.iter().any(|krate| krate.dir == "xtask" && !krate.published));
        assert!(workspace.has("Cargo.toml"));
    }
}
