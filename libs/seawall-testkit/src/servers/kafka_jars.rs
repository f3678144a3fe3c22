//! Fetches Kafka's jars from Maven Central, once per machine.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::{ServerError, find_program};

/// The version of Kafka that the tests run. It needs Java 17.
const VERSION: &str = "4.3.1";

/// The folder with Kafka's jars, which Maven fetches if this machine does not have them yet.
///
/// The folder is below the user's cache directory. A lock on a file beside it lets one process fetch while others wait, and
/// the folder gets its name only when it is complete.
pub(crate) fn kafka_jars() -> Result<PathBuf, ServerError> {
    let cache = cache_folder();
    let jars = cache.join(format!("kafka-{VERSION}"));
    if jars.is_dir() {
        return Ok(jars);
    }
    fs::create_dir_all(&cache)?;
    let lock = File::create(cache.join("kafka.lock"))?;
    lock.lock()?;
    // Another process may have fetched them while this one waited.
    if !jars.is_dir() {
        fetch(&cache, &jars)?;
    }
    Ok(jars)
}

fn fetch(cache: &Path, jars: &Path) -> Result<(), ServerError> {
    let maven = find_program("mvn", "maven")?;
    let work = cache.join("kafka-fetch");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work)?;
    fs::write(work.join("pom.xml"), pom())?;
    let output = Command::new(maven)
        .current_dir(&work)
        .args([
            "-q",
            "-B",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            "-DoutputDirectory=jars",
        ])
        .output()?;
    if !output.status.success() {
        let text = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
        let action = format!(
            "fetching Kafka {VERSION} from Maven Central (without a network, copy the jars of a Kafka distribution to `{}`)",
            jars.display()
        );
        return Err(ServerError::Failed { action, output: text });
    }
    fs::rename(work.join("jars"), jars)?;
    let _ = fs::remove_dir_all(&work);
    Ok(())
}

/// A project of Maven that depends on Kafka and nothing else.
fn pom() -> String {
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n\
           <modelVersion>4.0.0</modelVersion>\n\
           <groupId>seawall</groupId><artifactId>kafka-jars</artifactId><version>1</version>\n\
           <dependencies><dependency>\n\
             <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>\n\
           </dependency></dependencies>\n\
         </project>\n"
    )
}

fn cache_folder() -> PathBuf {
    let of_home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let base = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(of_home);
    base.unwrap_or_else(env::temp_dir).join("seawall-testkit")
}
